//! The reason for this crate: short requests stay fast while other handlers block their threads.
//!
//! ```sh
//! cargo run --release --example blocking    # three seconds
//! ```
//!
//! A server with two workers answers 16 clients at once. In the second round there are 4 more clients with a
//! handler that blocks its thread for 20 ms each time. These are twice as many as there are workers, so in a
//! runtime that waits for its own threads all clients wait. Look at the p99 of the short requests, and at the
//! last line: threads were added, because all existing ones were blocked in a handler.

#[path = "common/cli.rs"]
mod cli;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};
use std::{io, iter};

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use paceline::{Async, Runtime};

const SHORT: usize = 16;
const BLOCKING: usize = 4;
const ROUND: Duration = Duration::from_millis(1400);

fn main() -> ExitCode {
    cli::run(include_str!("blocking.rs"), |args| {
        cli::none(args)?;
        Ok(run()?)
    })
}

fn run() -> io::Result<()> {
    let server = Runtime::builder().threads(2).thread_name("server").build()?;
    // The clients have a runtime of their own, so that the metrics are only the server's.
    let clients = Runtime::builder().threads(1).thread_name("clients").build()?;

    let listener = server.block_on(async { Async::<TcpListener>::bind(([127, 0, 0, 1], 0)) })?;
    let addr = listener.get_ref().local_addr()?;
    server.spawn(serve(listener)).detach();

    for blockers in [0, BLOCKING] {
        let deadline = Instant::now() + ROUND;
        let talk = |kind: u8| clients.spawn(talk(addr, kind, deadline));
        let short: Vec<_> = iter::repeat_with(|| talk(b'.')).take(SHORT).collect();
        let blocking: Vec<_> = iter::repeat_with(|| talk(b'B')).take(blockers).collect();
        clients.block_on(async {
            let mut times = Vec::new();
            for task in short {
                times.extend(task.await?);
            }
            for task in blocking {
                task.await?;
            }
            report(blockers, times);
            io::Result::Ok(())
        })?;
    }
    let metrics = server.metrics();
    println!(
        "threads added: {}, times that the deputy stepped in: {}",
        metrics.replacements, metrics.deputy_rescues
    );
    Ok(())
}

fn report(blockers: usize, mut times: Vec<Duration>) {
    times.sort_unstable();
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    let rate = times.len() as f64 / ROUND.as_secs_f64();
    println!(
        "{SHORT} short clients beside {blockers} that block: {rate:6.0} requests/s, p50 {p50:.0?}, p99 {p99:.0?}"
    );
}

async fn serve(listener: Async<TcpListener>) -> io::Result<()> {
    loop {
        let (stream, _peer) = listener.accept().await?;
        paceline::spawn(answer(stream)).detach();
    }
}

/// Answers each byte with itself; a `B` only after it has blocked the thread.
async fn answer(mut stream: Async<TcpStream>) -> io::Result<()> {
    let mut byte = [0];
    while stream.read(&mut byte).await? == 1 {
        if byte == *b"B" {
            thread::sleep(Duration::from_millis(20));
        }
        stream.write_all(&byte).await?;
    }
    Ok(())
}

/// Runs one client. Returns how long each request took: at least one.
async fn talk(addr: SocketAddr, kind: u8, deadline: Instant) -> io::Result<Vec<Duration>> {
    let mut stream = Async::<TcpStream>::connect(addr).await?;
    let mut times = Vec::new();
    loop {
        let start = Instant::now();
        stream.write_all(&[kind]).await?;
        stream.read_exact(&mut [0]).await?;
        times.push(start.elapsed());
        if Instant::now() >= deadline {
            return Ok(times);
        }
    }
}
