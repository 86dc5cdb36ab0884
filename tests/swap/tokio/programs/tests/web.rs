//! A server of axum and clients of reqwest and tokio-tungstenite, in one process.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::WebSocketUpgrade;
use axum::extract::ws::WebSocket;
use axum::routing::{get, post};
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio_stream::wrappers::ReceiverStream;
use tokio_tungstenite::tungstenite::Message;

struct Server {
    address: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel();
        let routes = Router::new()
            .route("/", get(async || "hello"))
            .route("/echo", post(async |body: Bytes| body))
            .route("/slow", get(async || tokio::time::sleep(Duration::from_secs(60)).await))
            .route("/soon", get(async || tokio::time::sleep(Duration::from_millis(300)).await))
            .route("/numbers", get(numbers))
            .route("/socket", get(async |upgrade: WebSocketUpgrade| upgrade.on_upgrade(echo)));
        let task = tokio::spawn(async {
            let stopped = async { stopped.await.unwrap_or_default() };
            axum::serve(listener, routes).with_graceful_shutdown(stopped).await.unwrap();
        });
        Self { address, stop, task }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        tokio::time::timeout(Duration::from_secs(10), self.task).await.expect("it stops").unwrap();
    }
}

/// A body that is produced while it is sent.
async fn numbers() -> Body {
    let (send, receive) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut tick = tokio::time::interval(Duration::from_millis(5));
        for number in 0..20 {
            tick.tick().await;
            send.send(Ok::<_, std::io::Error>(format!("{number}\n"))).await.unwrap();
        }
    });
    Body::from_stream(ReceiverStream::new(receive))
}

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if socket.send(message).await.is_err() {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients() {
    let server = Server::start().await;
    let client = reqwest::Client::new();
    let mut tasks = JoinSet::new();
    for _ in 0..100 {
        let (client, url) = (client.clone(), server.url("/"));
        tasks.spawn(async move { client.get(url).send().await.unwrap().text().await.unwrap() });
    }
    assert_eq!(tasks.join_all().await, vec!["hello"; 100]);
    drop(client);
    server.stop().await;
}

#[tokio::test]
async fn bodies_that_no_buffer_holds() {
    let server = Server::start().await;
    let body: Vec<u8> = (0..1_500_000_u32).map(|i| (i % 251) as u8).collect();
    let sent = reqwest::Client::new().post(server.url("/echo")).body(body.clone()).send().await.unwrap();
    assert!(sent.bytes().await.unwrap() == body);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_takes_its_time() {
    let server = Server::start().await;
    let text = reqwest::get(server.url("/numbers")).await.unwrap().text().await.unwrap();
    assert!(text.lines().map(|line| line.parse::<u32>().unwrap()).eq(0..20));
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_wait() {
    let server = Server::start().await;
    let client = reqwest::Client::builder().timeout(Duration::from_millis(100)).build().unwrap();
    assert!(client.get(server.url("/slow")).send().await.unwrap_err().is_timeout());
    drop(client);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_in_progress_at_the_stop_is_served() {
    let server = Server::start().await;
    let request = tokio::spawn(reqwest::get(server.url("/soon")));
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.stop().await;
    assert!(request.await.unwrap().unwrap().status().is_success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_sockets() {
    let server = Server::start().await;
    let url = format!("ws://{}/socket", server.address);
    let mut tasks = JoinSet::new();
    for client in 0..10 {
        let url = url.clone();
        tasks.spawn(async move {
            let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
            for number in 0..50 {
                let message = Message::text(format!("{client} {number}"));
                socket.send(message.clone()).await.unwrap();
                assert_eq!(socket.next().await.unwrap().unwrap(), message);
            }
            socket.close(None).await.unwrap();
            while socket.next().await.is_some() {}
        });
    }
    tasks.join_all().await;
    server.stop().await;
}
