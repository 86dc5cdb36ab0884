//! AMQP with a private RabbitMQ: Debian's package `rabbitmq-server`, and Python's `pika`.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use example_jsonrpc::{Call, CallError, Client, Dispatcher, Error, Limits, Peer};
use example_testing::{PATIENCE, Server, skip};
use paceline::Timer;
use paceline::net::TcpStream;

use crate::Node;
use crate::python::Python;

/// Some seconds on an idle machine.
const BOOT: Duration = Duration::from_secs(90);

struct Broker(Server);

impl Broker {
    fn start() -> Option<Self> {
        if !Path::new("/usr/lib/rabbitmq/bin/rabbitmq-server").exists() {
            skip("there is no RabbitMQ (Debian's package rabbitmq-server)");
            return None;
        }
        let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/broker");
        let broker = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/broker");
        Some(Self(Server::start_within(BOOT, broker, &[folder])))
    }

    fn url(&self) -> String {
        format!("amqp://{}?queue=rpc", self.0.addr())
    }
}

/// Its children end with it only if it is asked to end.
impl Drop for Broker {
    fn drop(&mut self) {
        self.0.terminate();
        self.0.ended();
    }
}

#[test]
fn a_broker_is_as_good_as_a_connection() {
    let Some(broker) = Broker::start() else { return };
    let url = broker.url();
    let node = Node::start(&["--amqp", &url, "--max-message", "100000"]);
    if let Some(python) = Python::with("pika") {
        python.scene(&["table", &url]);
        python.scene(&["basics", &url]);
        python.scene(&["duplicates", &url]);
        python.scene(&["load", &url, &crate::calls()]);
        python.scene(&["push", &format!("lines://{}", node.on("tcp")), &url]);
    }
    paceline::block_on(nodes_call_each_other(&url));

    paceline::block_on(a_place_is_a_queues_too(&url));
    // A server that stops returns unstarted calls to the queue, and answers started ones, including one that
    // calls its caller in turn.
    let stopped = paceline::block_on(async {
        let terminates = Arc::new(node);
        let name = move |_| {
            terminates.server.terminate();
            let (tcp, start) = (terminates.on("tcp"), Instant::now());
            async move {
                // Until the server has begun to stop.
                while TcpStream::connect(&tcp).await.is_ok() {
                    assert!(start.elapsed() < PATIENCE, "it listens still");
                    Timer::after(Duration::from_millis(5)).await;
                }
                Ok::<_, Error>("a client")
            }
        };
        let ours = Arc::new(Dispatcher::new(Limits::default()).task("name", name));
        let client = Client::connect(&url, ours, PATIENCE).await.expect("it is there");
        client.call::<String>("ask", &("name", ())).await
    });
    assert_eq!(stopped.expect("an answer"), "a client");
    is_missed(broker, &url);
}

/// The client is called in turn, gets events, and does not wait for a missing peer.
async fn nodes_call_each_other(url: &str) {
    let heard = Arc::<AtomicUsize>::default();
    let hears = heard.clone();
    let event = move |call: Call| {
        hears.fetch_add(1, Ordering::Relaxed);
        async move { call.params::<[String; 1]>().map(drop) }
    };
    let name = async |_| Ok::<_, Error>("a client");
    let ours = || Dispatcher::new(Limits::default());
    let ours = [ours().task("event", event).task("name", name), ours()].map(Arc::new);
    let limit = Duration::from_secs(20);
    let [hearer, speaker] = ours.map(|ours| Client::connect(url, ours, limit));
    let (hearer, speaker) = (hearer.await.expect("it is there"), speaker.await.expect("it is there"));
    assert_eq!(hearer.call::<String>("ask", &("name", ())).await.expect("an answer"), "a client");
    hearer.subscribe("news").await.expect("an answer");
    assert_eq!(speaker.call::<usize>("publish", &("news", "hello")).await.expect("an answer"), 1);
    until("it is heard", async || heard.load(Ordering::Relaxed) > 0).await;
    hearer.close().await.expect("the broker is there");
    // The broker reports that the queue no longer exists.
    let publish = async || speaker.call::<usize>("publish", &("news", "hello?")).await.expect("an answer");
    until("no subscriber is left", async || publish().await == 0).await;

    let missing = url.replace("queue=rpc", "queue=missing");
    let none = Arc::new(Dispatcher::new(Limits::default()));
    let missing = Client::connect(&missing, none, limit).await.expect("the broker is there");
    assert!(missing.call::<()>("echo", &()).await.is_err(), "there is no such queue");
}

/// Waits for a condition.
async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let start = Instant::now();
    while !is_so().await {
        assert!(start.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        Timer::after(Duration::from_millis(5)).await;
    }
}

/// The owner of a queue takes a place, as a connection does.
async fn a_place_is_a_queues_too(url: &str) {
    let url = url.replace("queue=rpc", "queue=places");
    let known = Arc::<Mutex<Option<Peer>>>::default();
    let knows = known.clone();
    let stay = move |call: Call| {
        *knows.lock().expect("the lock is not poisoned") = call.peer().cloned().ok();
        async { Ok(()) }
    };
    let echo = async |call: Call| Ok::<_, Error>(call.into_params());
    let dispatcher = Dispatcher::new(Limits::default()).task("stay", stay).task("echo", echo);
    let server = example_jsonrpc::Server::new(Arc::new(dispatcher), 1);
    server.listen_amqp(&url).await.expect("the broker is there");
    let client = async || {
        let none = Arc::new(Dispatcher::new(Limits::default()));
        Client::connect(&url, none, PATIENCE).await.expect("the broker is there")
    };
    let (one, other) = (client().await, client().await);
    one.call::<()>("stay", &()).await.expect("an answer");
    let busy = other.call::<()>("echo", &()).await;
    assert!(matches!(busy, Err(CallError::Error(Error { code: Error::BUSY, .. }))), "{busy:?}");
    one.call::<()>("echo", &()).await.expect("it has its place");
    known.lock().expect("the lock is not poisoned").take();
    until("there is a place", async || other.call::<()>("echo", &()).await.is_ok()).await;
    server.stop(PATIENCE).await.expect("nothing runs");
}

/// A server that loses its broker.
fn is_missed(broker: Broker, url: &str) {
    let node = Node::start(&["--amqp", url]);
    let client = paceline::block_on(async {
        let none = Arc::new(Dispatcher::new(Limits::default()));
        let client = Client::connect(url, none, Duration::from_secs(20)).await.expect("it is there");
        assert_eq!(client.call::<i64>("sum", &[1, 2]).await.expect("an answer"), 3);
        client
    });
    drop(broker);
    node.server.says("the broker is gone");
    node.server.says("cannot reach the broker");
    assert!(paceline::block_on(client.call::<i64>("sum", &[1, 2])).is_err());
    // Other clients are served as before.
    let again = paceline::block_on(async {
        let none = Arc::new(Dispatcher::new(Limits::default()));
        let tcp = format!("tcp://{}", node.on("tcp"));
        let client = Client::connect(&tcp, none, Duration::from_secs(20)).await.expect("it listens");
        client.call::<i64>("sum", &[1, 2]).await
    });
    assert_eq!(again.expect("an answer"), 3);
}
