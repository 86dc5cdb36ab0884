//! Servers with other limits: which peer has a place, and for how long.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use example_jsonrpc::{Client, Dispatcher, Error, Limits, Protocol, Server};
use example_testing::PATIENCE;
use paceline::net::TcpListener;

/// An echo server with so many places, with lines and with WebSocket.
async fn served(limits: Limits, places: usize) -> (Server, [SocketAddr; 2]) {
    let echo = async |call: example_jsonrpc::Call| Ok::<_, Error>(call.into_params());
    let server = Server::new(Arc::new(Dispatcher::new(limits).task("echo", echo)), places);
    let mut addrs = Vec::new();
    for protocol in [Protocol::Framed, Protocol::WebSocket] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there are ports");
        addrs.push(listener.local_addr().expect("it is bound"));
        server.listen(listener, protocol);
    }
    (server, addrs.try_into().expect("there are two"))
}

#[test]
fn an_idle_listener_takes_no_place() {
    paceline::block_on(async {
        let (server, [lines, ws]) = served(Limits::default(), 1).await;
        for url in [format!("tcp://{lines}"), format!("ws://{ws}"), format!("tcp://{lines}")] {
            let none = Arc::new(Dispatcher::new(Limits::default()));
            let client = Client::connect(&url, none, PATIENCE).await.expect("it listens");
            let echo: [u8; 1] = client.call("echo", &[1]).await.expect("an answer");
            assert_eq!(echo, [1]);
            client.close().await.expect("it is connected");
        }
        server.stop(PATIENCE).await.expect("no client is connected");
    });
}

#[test]
fn half_a_message_of_websocket_has_its_time() {
    paceline::block_on(async {
        let limits = Limits { partial: Duration::from_millis(100), ..Limits::default() };
        let (_server, [_, ws]) = served(limits, 9).await;
        let last = paceline::unblock(move || {
            let mut stream = std::net::TcpStream::connect(ws).expect("it listens");
            stream.set_read_timeout(Some(PATIENCE)).expect("a socket takes it");
            let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n";
            let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
            let request = format!("GET / HTTP/1.1\r\nHost: {ws}\r\n{upgrade}{key}\r\n");
            stream.write_all(request.as_bytes()).expect("it is connected");
            let mut answer = Vec::new();
            while !answer.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("it is answered");
                answer.extend(byte);
            }
            // Silent for longer than an incomplete message may be.
            std::thread::sleep(Duration::from_millis(300));
            stream.write_all(b"\x81\x8a\0\0\0\0half").expect("it is connected");
            let mut last = Vec::new();
            stream.read_to_end(&mut last).map(|_| last)
        });
        // A close frame.
        assert_eq!(last.await.expect("the end")[0], 0x88);
    });
}

#[test]
fn a_handshake_does_not_keep_a_server_that_stops() {
    paceline::block_on(async {
        let limits = Limits { send: 9 * PATIENCE, ..Limits::default() };
        let (server, [lines, ws]) = served(limits, 9).await;
        let silent = paceline::net::TcpStream::connect(ws).await.expect("it listens");
        // So that the server knows the connection by then.
        let none = Arc::new(Dispatcher::new(Limits::default()));
        let client = Client::connect(&format!("tcp://{lines}"), none, PATIENCE).await.expect("it listens");
        client.call::<[u8; 1]>("echo", &[1]).await.expect("an answer");
        server.stop(PATIENCE).await.expect("nothing was asked");
        drop(silent);
    });
}
