//! A web server by hand: hyper calls one function from requests to responses.
//!
//! ```sh
//! cargo run --release -p example-http                      # runs its own clients for a second and ends
//! cargo run --release -p example-http -- 127.0.0.1:7080    # serves until Ctrl-C; try `curl http://127.0.0.1:7080/`
//! ```
//!
//! `src/bin/axum.rs` has the same with a router of axum. `src/lib.rs` serves both.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use example_http::run;
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};

/// Longest time for which a request may block a thread: a public server would not offer this at all.
const BLOCK: u64 = 5000;

type Answer = Response<Either<Incoming, Full<Bytes>>>;

fn main() -> ExitCode {
    run(include_str!("main.rs"), service_fn(answer))
}

async fn answer(request: Request<Incoming>) -> Result<Answer, hyper::Error> {
    let path = request.uri().path();
    if request.method() == Method::POST && path == "/echo" {
        // Piece by piece: a body of gigabytes takes no memory.
        return Ok(Response::new(Either::Left(request.into_body())));
    }
    if let Some(millis) = path.strip_prefix("/block/").and_then(|millis| millis.parse().ok()) {
        // Blocks as a library does that makes blocking calls. This blocks one thread, and delays no other
        // request.
        thread::sleep(Duration::from_millis(BLOCK.min(millis)));
        return Ok(text(StatusCode::OK, "done\n"));
    }
    Ok(match path {
        "/" => text(StatusCode::OK, "hello\n"),
        _ => text(StatusCode::NOT_FOUND, "there is /, /echo to POST to, and /block/MILLISECONDS\n"),
    })
}

fn text(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = Response::new(Either::Right(Bytes::from_static(text.as_bytes()).into()));
    *answer.status_mut() = status;
    answer
}
