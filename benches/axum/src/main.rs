//! An axum server: `/` says hello, `/b` blocks its thread for 20 ms. `axum-hello PORT [--threads N]`; other
//! options are ignored.

use std::env;
use std::io;
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderValue, Response, header::CONTENT_TYPE};
use axum::routing::get;
use axum::serve::ListenerExt;

fn hello() -> Response<axum::body::Body> {
    let mut response = Response::new("Hello, World!".into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

async fn serve(port: u16) -> io::Result<()> {
    let blocks = || async {
        thread::sleep(Duration::from_millis(20));
        hello()
    };
    let routes = Router::new().route("/", get(async || hello())).route("/b", get(blocks));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, routes).await
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().collect();
    let number = |text: Option<&String>| text.and_then(|text| text.parse().ok());
    let port =
        number(arguments.get(1)).ok_or_else(|| io::Error::other("usage: axum-hello PORT [--threads N]"))?;
    let at = arguments.iter().position(|argument| argument == "--threads");
    let threads = at.and_then(|at| number(arguments.get(at + 1))).unwrap_or(2);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads.into()).enable_all().build()?;
    // In a task, as in most programs with a `main` macro.
    runtime.block_on(async { tokio::spawn(serve(port)).await })?
}
