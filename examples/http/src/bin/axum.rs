//! The same web server by a router of axum's.
//!
//! ```sh
//! cargo run --release -p example-http --bin axum                      # has clients of its own for a second and ends
//! cargo run --release -p example-http --bin axum -- 127.0.0.1:7080    # serves until Ctrl-C; try `curl http://127.0.0.1:7080/hello/you`
//! ```
//!
//! A router is a service of tower's, and becomes one of hyper's by `TowerToHyperService`: that takes the place of `axum::serve`, which is
//! for tokio.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use example_http::{AnyError, run};
use hyper_util::service::TowerToHyperService;

/// Whoever asks for it has a thread of the server's for as long: no open server would offer that, and this one has a limit.
const BLOCK: u64 = 5000;

type Visits = Arc<AtomicUsize>;

fn main() -> Result<(), AnyError> {
    let router = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .route("/hello/{name}", get(hello))
        .route("/echo", post(|body: Body| async { body }))
        .route("/block/{millis}", get(block))
        .route("/unblock/{millis}", get(unblock))
        .with_state(Visits::default());
    run(TowerToHyperService::new(router))
}

async fn hello(Path(name): Path<String>, State(visits): State<Visits>) -> String {
    let number = visits.fetch_add(1, Ordering::Relaxed) + 1;
    format!("hello, {name}: you are visitor {number}\n")
}

/// As a library may that does I/O of its own. It costs this thread, and nobody else notices.
async fn block(Path(millis): Path<u64>) -> &'static str {
    thread::sleep(Duration::from_millis(BLOCK.min(millis)));
    "done\n"
}

/// The same where threads are for that.
async fn unblock(Path(millis): Path<u64>) -> &'static str {
    paceline::unblock(move || thread::sleep(Duration::from_millis(BLOCK.min(millis)))).await;
    "done\n"
}
