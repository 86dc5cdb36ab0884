//! reqwest: an HTTP client that connects with tokio's sockets.

use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use paceline::hyper::Io;
use paceline::net::TcpListener;
use paceline::{Timer, block_on, spawn};
use reqwest::Client;

use crate::Outcome;

/// Answers in capitals, or very late.
async fn shout(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    if request.uri().path() == "/slow" {
        Timer::after(Duration::from_secs(60)).await;
    }
    let question = request.into_body().collect().await?.to_bytes();
    Ok(Response::new(question.to_ascii_uppercase().into()))
}

async fn serve(listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _peer)) => {
                spawn(http1::Builder::new().serve_connection(Io::new(stream), service_fn(shout))).detach()
            }
            // Perhaps no descriptor is free; that is reported once, and the listener continues.
            Err(error) => eprintln!("{error}"),
        }
    }
}

pub(crate) fn run() -> Outcome {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let _server = spawn(serve(listener));

        let client = Client::builder().no_proxy().timeout(Duration::from_secs(30)).build()?;
        let asks = |n| {
            let request = client.post(format!("http://{addr}/")).body(format!("hello {n}"));
            spawn(async move { request.send().await?.error_for_status()?.text().await })
        };
        for (n, task) in (0..20).map(asks).enumerate().collect::<Vec<_>>() {
            assert_eq!(task.await?, format!("HELLO {n}"));
        }

        let slow = client.get(format!("http://{addr}/slow")).timeout(Duration::from_millis(20));
        assert!(slow.send().await.expect_err("the answer is late").is_timeout());
        Ok(())
    })
}
