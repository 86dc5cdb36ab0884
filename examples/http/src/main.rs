//! A web server by hand: one function from requests to responses, which hyper calls.
//!
//! ```sh
//! cargo run --release -p example-http                      # has clients of its own for a second and ends
//! cargo run --release -p example-http -- 127.0.0.1:7080    # serves until Ctrl-C; try `curl http://127.0.0.1:7080/`
//! ```
//!
//! The same by a router of axum's: `src/bin/axum.rs`. What serves both: `src/lib.rs`.

use std::thread;
use std::time::Duration;

use example_http::{AnyError, run};
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};

/// Whoever asks for it has a thread of the server's for as long: no open server would offer that, and this one has a limit.
const BLOCK: u64 = 5000;

type Answer = Response<Either<Incoming, Full<Bytes>>>;

fn main() -> Result<(), AnyError> {
    run(service_fn(answer))
}

async fn answer(request: Request<Incoming>) -> Result<Answer, hyper::Error> {
    let path = request.uri().path();
    if request.method() == Method::POST && path == "/echo" {
        // As it comes: a body of gigabytes takes no memory.
        return Ok(Response::new(Either::Left(request.into_body())));
    }
    if let Some(millis) = path.strip_prefix("/block/").and_then(|millis| millis.parse().ok()) {
        // As a library may that does I/O of its own. It costs this thread, and nobody else notices.
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
