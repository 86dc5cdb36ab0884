//! The client, with events from a hand-made server.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use example_jsonrpc::{Call, Client, Dispatcher, Error, Limits};
use example_testing::PATIENCE;
use futures::StreamExt;
use futures::channel::mpsc;
use paceline::timeout;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const EVENT: &[u8] = b"data: {\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":[\"hello\"]}\n\n";

/// Accepts a request, answers with an event, and continues with `rest`.
fn sends(listener: &TcpListener, rest: &[u8]) -> TcpStream {
    let (mut stream, _) = listener.accept().expect("a client connects");
    let mut byte = [0];
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a request");
        request.extend(byte);
    }
    stream.write_all(&[HEAD, EVENT, rest].concat()).expect("it is connected");
    stream
}

#[test]
fn the_end_of_events_is_told_and_none_is_too_long() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there are ports");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let (tell, mut told) = mpsc::unbounded();
    let hears = move |call: Call| {
        let (tell, method) = (tell.clone(), call.method().to_owned());
        async move {
            let _ = tell.unbounded_send(format!("{method} {}", call.params::<Vec<String>>()?.join(", ")));
            Ok::<_, Error>(())
        }
    };
    let limits = Limits { message: 1000, ..Limits::default() };
    let ours = Arc::new(Dispatcher::new(limits).task("event", hears.clone()).task("end", hears));
    let sender = std::thread::spawn(move || {
        let open = sends(&listener, &[b'x'; 5000]);
        drop(sends(&listener, b""));
        drop(sends(&listener, b"data: {"));
        open
    });
    paceline::block_on(async {
        let client = Client::connect(&url, ours, PATIENCE).await.expect("it connects later");
        for why in ["longer than 1000 bytes", "the server has ended it", "it ends in an event"] {
            client.subscribe("news").await.expect("an answer");
            let mut next = async || timeout(PATIENCE, told.next()).await.expect("in time").expect("more");
            assert_eq!(next().await, "event hello");
            let end = next().await;
            assert!(end.starts_with("end news, ") && end.contains(why), "{end}");
        }
    });
    drop(sender.join());
}
