//! Connections that end, cleanly or not, beside others that continue.

use std::net::Shutdown;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, server};
use paceline::hyper::{Io, Timer};
use paceline::net::TcpStream;
use paceline::prelude::{AsyncReadExt, AsyncWriteExt};
use paceline::{Runtime, spawn};

use crate::scene::*;
use crate::setups::{Latch, SOON, for_each_builder, for_each_setup};

/// Runs `scene` in a runtime, which must have no tasks left afterwards.
fn leaves_no_task(scene: impl AsyncFn() + Send + Sync + Copy + 'static) {
    for_each_builder(move |setup| {
        let runtime: Runtime = setup.build();
        runtime.block_on(scene());
        let drained = runtime.block_on(runtime.drain(SOON));
        assert_eq!(drained.cancelled, 0, "{drained:?}");
    });
}

#[test]
fn a_peer_that_resets_amid_a_body_is_an_error_of_its_own() {
    leaves_no_task(async || {
        let (listener, addr) = listen().await;
        let (mut beside, client) = connect1(addr).await;
        let neighbour = serve1(accept(&listener).await);

        let stream = std::net::TcpStream::connect(addr).unwrap();
        let service = service_fn(async |request: Request<Incoming>| {
            request.into_body().collect().await.map(|_| Response::new(text("all of it")))
        });
        let http = server::conn::http1::Builder::new();
        let server = spawn(http.serve_connection(accept(&listener).await, service));
        let mut raw = &stream;
        std::io::Write::write_all(&mut raw, b"POST /length HTTP/1.1\r\ncontent-length: 1000000\r\n\r\nabc")
            .unwrap();
        assert_eq!(body(beside.send_request(get("/one"))).await.unwrap(), "/one");
        reset(stream).await;
        let error = server.await.unwrap_err();
        assert!(chain(&error).to_lowercase().contains("reset"), "{}", chain(&error));

        beside.ready().await.unwrap();
        assert_eq!(body(beside.send_request(get("/two"))).await.unwrap(), "/two");
        drop(beside);
        client.await.unwrap();
        neighbour.await.unwrap();
    });
}

/// Closes with a reset, so that the peer notices at once.
async fn reset(stream: std::net::TcpStream) {
    TcpStream::try_from(stream).unwrap().set_linger(Some(Duration::ZERO)).unwrap();
}

/// The client's side: the rest of an answer never comes.
#[test]
fn an_answer_that_is_reset_is_an_error() {
    leaves_no_task(async || {
        let (listener, addr) = listen().await;
        let (mut sender, client) = connect1(addr).await;
        let mut peer = accept(&listener).await.into_inner();
        let answer = spawn(async move { body(sender.send_request(get("/"))).await });
        assert_ne!(peer.read(&mut [0; 1000]).await.unwrap(), 0);
        peer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc").await.unwrap();
        peer.set_linger(Some(Duration::ZERO)).unwrap();
        drop(peer);
        let error = answer.await.unwrap_err();
        assert!(chain(&error).to_lowercase().contains("reset"), "{}", chain(&error));
        let _ = client.await;
    });
}

/// A broken HTTP/2 connection ends the tasks of its streams, and no others.
#[test]
fn streams_end_with_their_connection() {
    leaves_no_task(async || {
        let (listener, addr) = listen().await;
        let (mut beside, client) = connect2(addr).await;
        let neighbour = serve2(accept(&listener).await);
        let (mut sender, gone) = connect2(addr).await;
        let io = accept(&listener).await;
        let socket = io.get_ref().clone();
        let server = serve2(io);
        let streams: Vec<_> = (0..10).map(|_| sender.send_request(get("/never"))).collect();
        // An answer to the last request shows that the others have begun.
        assert_eq!(body(sender.send_request(get("/"))).await.unwrap(), "/");
        socket.shutdown(Shutdown::Both).unwrap();
        for stream in streams {
            assert!(stream.await.is_err());
        }
        let _ = (gone.await, server.await);
        assert_eq!(body(beside.send_request(get("/two"))).await.unwrap(), "/two");
        drop(beside);
        client.await.unwrap();
        neighbour.await.unwrap();
    });
}

/// A connection that is told to end answers the requests that have begun, and ends.
#[test]
fn a_graceful_end_answers_what_was_asked() {
    for_each_setup(|runtime| {
        runtime.block_on(async {
            let (listener, addr) = listen().await;
            let (mut sender, client) = connect1(addr).await;
            let begun = Latch::new();
            let told = begun.clone();
            let service = service_fn(move |_| {
                told.open();
                async {
                    paceline::Timer::after(SLOW).await;
                    Ok::<_, std::convert::Infallible>(Response::new(text("late")))
                }
            });
            let mut http = server::conn::http1::Builder::new();
            let connection = http.timer(Timer).serve_connection(accept(&listener).await, service);
            let (end, ending) = async_channel::bounded::<()>(1);
            let server = spawn(async move {
                let mut connection = std::pin::pin!(connection);
                let first = futures_lite::future::or(async { Some(connection.as_mut().await) }, async {
                    ending.recv().await.unwrap();
                    None
                });
                assert!(first.await.is_none(), "it ended by itself");
                connection.as_mut().graceful_shutdown();
                connection.await
            });
            let answer = spawn(async move { body(sender.send_request(get("/"))).await });
            paceline::unblock(move || begun.wait()).await;
            end.send(()).await.unwrap();
            assert_eq!(answer.await.unwrap(), "late");
            server.await.unwrap();
            client.await.unwrap();

            // A connection that waits for a request ends at once.
            let _idle = Io::new(TcpStream::connect(addr).await.unwrap());
            let connection = http.serve_connection(accept(&listener).await, service_fn(answer_never));
            let mut connection = std::pin::pin!(connection);
            connection.as_mut().graceful_shutdown();
            connection.await.unwrap();
        });
    });
}

async fn answer_never(_: Request<Incoming>) -> Result<Response<Body>, std::convert::Infallible> {
    unreachable!("no request is sent")
}
