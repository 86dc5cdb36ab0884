//! An echo server, and a few hundred clients that talk to it.
//!
//! ```sh
//! cargo run --release --example echo                   # talks to itself for a second and ends
//! cargo run --release --example echo 127.0.0.1:7000    # serves until Ctrl-C; try `nc 127.0.0.1 7000`
//! ```
//!
//! Look at `serve`: one task for each connection, nothing else. And look at the first line that is printed last: nearly
//! every poll was direct, that is, made by the thread that saw the event which the task was waiting for.

use std::net::SocketAddr;
use std::time::{Duration, Instant};
use std::{env, io};

use paceline::net::{TcpListener, TcpStream};
use paceline::prelude::*;
use paceline::{block_on, spawn};

const CLIENTS: usize = 300;
const TALK: Duration = Duration::from_secs(1);

fn main() -> io::Result<()> {
    match env::args().nth(1) {
        Some(addr) => block_on(async {
            let listener = TcpListener::bind(addr).await?;
            println!("echoing on {}, until Ctrl-C", listener.local_addr()?);
            serve(listener).await
        }),
        None => block_on(demo()),
    }
}

/// Accepts connections, and spawns a task for each.
async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        match listener.accept().await {
            Ok((stream, _peer)) => spawn(echo(stream)).detach(),
            // No descriptor left, perhaps, which is told once: the listener itself works on.
            Err(error) => eprintln!("{error}"),
        }
    }
}

/// Sends back what it reads, until the peer is done.
async fn echo(mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            n => stream.write_all(&buffer[..n]).await?,
        }
    }
}

async fn demo() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let addr = listener.local_addr()?;
    // Dropping this task, at the end of the function, cancels it.
    let _server = spawn(serve(listener));

    let deadline = Instant::now() + TALK;
    let clients: Vec<_> = (0..CLIENTS).map(|_| spawn(talk(addr, deadline))).collect();
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.await?);
    }
    times.sort_unstable();

    let per_second = times.len() as f64 / TALK.as_secs_f64();
    println!("{CLIENTS} clients, {} echoes, {per_second:.0} a second", times.len());
    println!("p50 {:?}, p99 {:?}", times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("\n{}", paceline::metrics());
    Ok(())
}

/// Sends and waits for the echo, again and again. Returns how long each took: at least one.
async fn talk(addr: SocketAddr, deadline: Instant) -> io::Result<Vec<Duration>> {
    let mut stream = TcpStream::connect(addr).await?;
    let mut times = Vec::new();
    let mut answer = [0; 5];
    loop {
        let start = Instant::now();
        stream.write_all(b"hello").await?;
        stream.read_exact(&mut answer).await?;
        assert_eq!(&answer, b"hello");
        times.push(start.elapsed());
        if Instant::now() >= deadline {
            return Ok(times);
        }
    }
}
