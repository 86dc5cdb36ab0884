//! The program without arguments: serves on all transports, and is its own client on each.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use example_jsonrpc::{Call, CallError, Client, Dispatcher, Error, Limits, Protocol, Server};
use paceline::{Handle, Task, Timer, spawn};

use crate::{CONNECTIONS, end, service, tcp};

/// Tasks that call on each client at once, and calls of each task.
const CALLERS: usize = 50;
const CALLS: usize = 100;
/// How long a call may take: far longer than necessary.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) async fn run() -> io::Result<()> {
    let server = Server::new(service::dispatcher(Limits::default()), CONNECTIONS);
    let framed = tcp(&server, "127.0.0.1:0", Protocol::Framed).await?;
    let http = tcp(&server, "127.0.0.1:0", Protocol::Http).await?;
    let ws = tcp(&server, "127.0.0.1:0", Protocol::WebSocket).await?;
    let mut urls = vec![
        format!("tcp://{framed}"),
        format!("tcp+lengths://{framed}"),
        format!("http://{http}"),
        format!("ws://{ws}"),
    ];
    let path = std::env::temp_dir().join(format!("paceline-jsonrpc-{}", std::process::id()));
    let path = path.to_string_lossy().into_owned();
    let _path = crate::unix(&server, &path).inspect(|_| {
        urls.push(format!("unix:{path}"));
        urls.push(format!("unix+lengths:{path}"));
    });

    let heard = Arc::<AtomicUsize>::default();
    let mut clients = Vec::new();
    for url in &urls {
        let client = Arc::new(Client::connect(url, ours(&heard), LIMIT).await?);
        client.subscribe("news").await.map_err(io::Error::other)?;
        let start = Instant::now();
        calls(&client).await.map_err(io::Error::other)?;
        let rate = (CALLERS * CALLS) as f64 / start.elapsed().as_secs_f64();
        println!("{:44} {rate:8.0} calls/s", format!("{url}:"));
        clients.push(client);
    }

    // Each client publishes, and each client gets all events.
    for client in &clients {
        let told: usize = client.call("publish", &("news", "hello")).await.map_err(io::Error::other)?;
        assert_eq!(told, clients.len());
    }
    while heard.load(Ordering::Relaxed) < clients.len() * clients.len() {
        Timer::after(Duration::from_millis(1)).await;
    }
    println!("{} events heard by {} clients", heard.load(Ordering::Relaxed), clients.len());

    // The server calls its client while that client waits for the server.
    let name: String = clients[0].call("ask", &("name", ())).await.map_err(io::Error::other)?;
    println!("the server asked its client for a name: {name}");

    let start = Instant::now();
    let late = clients[0].call::<String>("nap", &[1000]).await;
    println!("a handler that sleeps for a second, and has 50 ms: {late:?} after {:.0?}", start.elapsed());
    println!("\n{}\n", Handle::current().metrics());
    for client in clients {
        Arc::into_inner(client).expect("the callers have ended").close().await?;
    }
    end(server).await;
    Ok(())
}

/// Returns the methods of the client.
fn ours(heard: &Arc<AtomicUsize>) -> Arc<Dispatcher> {
    let heard = heard.clone();
    let hears = move |call: Call| {
        heard.fetch_add(1, Ordering::Relaxed);
        async move { call.params::<[String; 1]>().map(drop) }
    };
    let name = async |_| Ok::<_, Error>("a client");
    Arc::new(Dispatcher::new(Limits::default()).task("event", hears).task("name", name))
}

async fn calls(client: &Arc<Client>) -> Result<(), CallError> {
    let caller = |caller: usize| -> Task<Result<(), CallError>> {
        let client = client.clone();
        spawn(async move {
            for number in 0..CALLS {
                let sum: usize = client.call("sum", &[caller, number]).await?;
                assert_eq!(sum, caller + number);
            }
            Ok(())
        })
    };
    for task in (0..CALLERS).map(caller).collect::<Vec<_>>() {
        task.await?;
    }
    Ok(())
}
