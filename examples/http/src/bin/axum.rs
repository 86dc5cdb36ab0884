//! The same web server with a router of axum.
//!
//! ```sh
//! cargo run --release -p example-http --bin axum                      # runs its own clients for a second and ends
//! cargo run --release -p example-http --bin axum -- 127.0.0.1:7080    # serves until Ctrl-C; try `curl http://127.0.0.1:7080/hello/you`
//! ```
//!
//! A router is a tower service, and `TowerToHyperService` makes it a hyper service. This replaces
//! `axum::serve`, which is for tokio.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use example_http::run;
use hyper_util::service::TowerToHyperService;

/// Longest time for which a request may block a thread: a public server would not offer this at all.
const BLOCK: u64 = 5000;

type Visits = Arc<AtomicUsize>;

fn main() -> ExitCode {
    let router = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .route("/hello/{name}", get(hello))
        .route("/echo", post(|body: Body| async { body }))
        .route("/block/{millis}", get(block))
        .route("/unblock/{millis}", get(unblock))
        .with_state(Visits::default());
    run(include_str!("axum.rs"), TowerToHyperService::new(router))
}

async fn hello(Path(name): Path<String>, State(visits): State<Visits>) -> String {
    let number = visits.fetch_add(1, Ordering::Relaxed) + 1;
    format!("hello, {name}: you are visitor {number}\n")
}

/// Blocks as a library does that makes blocking calls. This blocks one thread, and delays no other request.
async fn block(Path(millis): Path<u64>) -> &'static str {
    thread::sleep(Duration::from_millis(BLOCK.min(millis)));
    "done\n"
}

/// The same on a thread for blocking calls.
async fn unblock(Path(millis): Path<u64>) -> &'static str {
    paceline::unblock(move || thread::sleep(Duration::from_millis(BLOCK.min(millis)))).await;
    "done\n"
}
