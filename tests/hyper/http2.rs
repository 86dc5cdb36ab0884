//! HTTP/2.

use std::io::Write;
use std::time::{Duration, Instant};

use futures::future::join_all;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode, server, upgrade};
use paceline::hyper::{Executor, Timer};
use paceline::spawn;

use crate::http1::echoes;
use crate::scene::*;
use crate::setups::{for_each_setup, for_setups};

#[test]
fn streams_share_a_connection() {
    for_each_setup(|runtime| {
        runtime.block_on(async {
            let (listener, addr) = listen().await;
            let (sender, client) = connect2(addr).await;
            let server = serve2(accept(&listener).await);
            // One after the other, the requests for `/together` would wait for ever.
            let requests = (0..TOGETHER).map(|number| {
                let mut sender = sender.clone();
                spawn(async move {
                    sender.ready().await.unwrap();
                    let path = format!("/{number}");
                    assert_eq!(body(sender.send_request(get(&path))).await.unwrap(), path);
                    assert_eq!(body(sender.send_request(get("/together"))).await.unwrap(), "/together");
                })
            });
            join_all(requests).await;
            drop(sender);
            client.await.unwrap();
            server.await.unwrap();
        });
    });
}

#[test]
fn large_bodies_go_both_ways() {
    for_each_setup(|runtime| {
        runtime.block_on(async {
            let (listener, addr) = listen().await;
            let (sender, _client) = connect2(addr).await;
            let _server = serve2(accept(&listener).await);
            let sent = large();
            join_all((0..2).map(|_| async {
                let got = body(sender.clone().send_request(post("/echo", sent.clone()))).await.unwrap();
                assert!(got == sent, "{} bytes of {}", got.len(), sent.len());
            }))
            .await;
        });
    });
}

#[test]
fn a_stream_becomes_a_tunnel() {
    for_each_setup(|runtime| {
        runtime.block_on(async {
            let (listener, addr) = listen().await;
            let (mut sender, _client) = connect2(addr).await;
            let _server = serve2(accept(&listener).await);
            let request = Request::builder().method(Method::CONNECT).uri("there:80");
            let response = sender.send_request(request.body(Sent::default()).unwrap()).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            echoes(upgrade::on(response).await.unwrap()).await;
            // The connection still has other streams.
            assert_eq!(body(sender.send_request(get("/beside"))).await.unwrap(), "/beside");
        });
    });
}

/// A peer that answers no ping is disconnected. A peer that answers is not, regardless of the duration of its
/// request. Measures that it answers within a second: that timers fire at their deadlines is exact in
/// `tests/clock.rs`.
#[test]
#[ignore = "timed: pings are answered within a second"]
fn a_peer_that_answers_no_ping_is_given_up() {
    const PAUSE: Duration = Duration::from_millis(20);
    const LIMIT: Duration = Duration::from_secs(1);
    for_setups(
        |setup| setup.threads == 2,
        |_, runtime| {
            runtime.block_on(async {
                let (listener, addr) = listen().await;
                let mut http = server::conn::http2::Builder::new(Executor);
                http.timer(Timer).keep_alive_interval(PAUSE).keep_alive_timeout(LIMIT);

                let (mut sender, _client) = connect2(addr).await;
                let alive = spawn(http.serve_connection(accept(&listener).await, service_fn(answer)));

                let mut silent = std::net::TcpStream::connect(addr).unwrap();
                silent.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
                let start = Instant::now();
                let given_up = spawn(http.serve_connection(accept(&listener).await, service_fn(answer)));
                let error = given_up.await.unwrap_err();
                assert!(error.is_timeout() || chain(&error).contains("timed out"), "{}", chain(&error));
                assert!(start.elapsed() >= LIMIT, "{:?}", start.elapsed());

                assert_eq!(body(sender.send_request(get("/slow"))).await.unwrap(), "/slow");
                drop(sender);
                // h2 reports an error if a connection closes with an unanswered ping, so the result depends
                // on timing.
                let _ = alive.await;
            });
        },
    );
}
