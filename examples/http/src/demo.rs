//! The servers without arguments: their own clients, beside some with a handler that blocks its thread.

use std::net::SocketAddr;
use std::time::{Duration, Instant};
use std::{io, iter};

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::{http1, http2};
use paceline::hyper::{Executor, Io};
use paceline::net::TcpStream;
use paceline::{Handle, Task, spawn};

const CLIENTS: usize = 100;
const BLOCKING: usize = 4;
const TALK: Duration = Duration::from_secs(1);

pub(crate) async fn talk(addr: SocketAddr) -> io::Result<()> {
    let deadline = Instant::now() + TALK;
    let client = |path| iter::repeat_with(move || spawn(ask(addr, path, deadline)));
    let blocking: Vec<_> = client("/block/20").take(BLOCKING).collect();
    let short: Vec<_> = client("/").take(CLIENTS).collect();

    report(&format!("{CLIENTS} clients"), all(short).await?);
    report(&format!("{BLOCKING} with a handler that blocks for 20 ms"), all(blocking).await?);
    let http2 = streams(addr).await.map_err(io::Error::other)?;
    println!("HTTP/2: {http2} requests at once on one connection");
    println!("\n{}\n", Handle::current().metrics());
    Ok(())
}

async fn all(clients: Vec<Task<Result<Vec<Duration>, hyper::Error>>>) -> io::Result<Vec<Duration>> {
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.await.map_err(io::Error::other)?);
    }
    times.sort_unstable();
    Ok(times)
}

fn report(name: &str, times: Vec<Duration>) {
    let rate = times.len() as f64 / TALK.as_secs_f64();
    println!(
        "{name}: {rate:.0} requests/s, p50 {:.0?}, p99 {:.0?}",
        times[times.len() / 2],
        times[times.len() * 99 / 100]
    );
}

/// Sends requests one after the other on one connection. Returns how long each took: at least one.
async fn ask(addr: SocketAddr, path: &str, deadline: Instant) -> Result<Vec<Duration>, hyper::Error> {
    let stream = TcpStream::connect(addr).await.expect("it listens");
    let (mut sender, connection) = http1::handshake(Io::new(stream)).await?;
    let _connection = spawn(connection);
    let mut times = Vec::new();
    loop {
        sender.ready().await?;
        let start = Instant::now();
        let request = Request::get(path).header("host", "localhost").body(Full::<Bytes>::default());
        let answer = sender.send_request(request.expect("it is well")).await?;
        assert!(answer.status().is_success());
        answer.into_body().collect().await?;
        times.push(start.elapsed());
        if Instant::now() >= deadline {
            return Ok(times);
        }
    }
}

/// Sends many requests on one HTTP/2 connection. Returns how many were answered.
async fn streams(addr: SocketAddr) -> Result<usize, hyper::Error> {
    let stream = TcpStream::connect(addr).await.expect("it listens");
    let (sender, connection) = http2::handshake(Executor, Io::new(stream)).await?;
    let _connection = spawn(connection);
    let requests: Vec<_> = iter::repeat_with(|| {
        let mut sender = sender.clone();
        spawn(async move {
            let request =
                Request::post("http://localhost/echo").body(Full::<Bytes>::from("words".repeat(1000)));
            let answer =
                sender.send_request(request.expect("it is well")).await?.into_body().collect().await?;
            assert_eq!(answer.to_bytes(), "words".repeat(1000));
            Ok::<_, hyper::Error>(())
        })
    })
    .take(100)
    .collect();
    let mut answered = 0;
    for request in requests {
        request.await?;
        answered += 1;
    }
    Ok(answered)
}
