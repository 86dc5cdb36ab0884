//! An echo server with four threads, and thousands of clients that talk to it.
//!
//! ```sh
//! cargo run --release --example echo                              # 300 clients of its own, for two seconds
//! cargo run --release --example echo -- --connections 10000       # so many, until Ctrl-C
//! cargo run --release --example echo -- --serve 127.0.0.1:7000    # for others, until Ctrl-C; try `nc 127.0.0.1 7000`
//! ```
//!
//! Look at `serve`: one task for each connection, nothing else; and at the end of `main`, which loses no echo. Once a second it prints what the
//! threads were at (`watch.rs`): where little is to be done one of them leads and three follow, and where much is, whoever is
//! awake polls, and nobody need lead. The figures at the end say that nearly every poll was direct: made by the thread that saw the
//! event which the task was waiting for.
//!
//! `clients.rs` has the clients, and what the limit of open files has to do with them; `times.rs` counts what their echoes took.

#![allow(unreachable_pub)]

mod clients;
mod times;
mod watch;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use std::{env, io, process};

use clients::Clients;
use futures::FutureExt as _;
use futures_lite::FutureExt as _;
use paceline::net::{TcpListener, TcpStream};
use paceline::prelude::*;
use paceline::{Runtime, Timer, spawn};

const THREADS: usize = 4;
/// How long the connections that are left have when it ends.
const GRACE: Duration = Duration::from_secs(1);
const DEMO: (usize, Duration) = (300, Duration::from_secs(2));

/// Echoes so far.
static ECHOES: AtomicU64 = AtomicU64::new(0);

fn main() -> io::Result<()> {
    let (addr, wanted) = arguments();
    let is_demo = env::args().len() == 1;
    let runtime = Runtime::builder().threads(THREADS).thread_name("echo").build()?;
    // Whoever is no part of the server has a runtime of its own, so that what is printed is the server's doing.
    let outside = Runtime::builder().threads(1).thread_name("client").build()?;
    let entered = outside.handle().enter();
    let stop = stop_signal().shared();
    drop(entered);

    let files = clients::allow_files();
    let listener = runtime.block_on(TcpListener::bind(addr))?;
    let addr = listener.local_addr()?;
    println!("echoing on {addr} with {THREADS} threads{}", if is_demo { "" } else { ", until Ctrl-C" });
    let server = runtime.spawn(serve(listener));

    let clients = outside.block_on(outside.spawn(Clients::connect(addr, wanted, files, stop.clone())));
    let watch = watch::start(runtime.handle());
    let talks = clients.talk(&outside);
    outside.block_on(async {
        let talked = async {
            Timer::after(if is_demo { DEMO.1 } else { Duration::MAX }).await;
        };
        stop.or(talked).await;
    });

    // Own clients have the echo that they wait for, though they may not even be accepted yet: whoever is not when the listener goes is reset.
    if let Some(figures) = outside.block_on(talks.end()) {
        println!("{figures}");
    }
    // Nobody is accepted any more, and others have some time.
    drop(server);
    println!("{}", runtime.block_on(runtime.drain(GRACE)));
    watch.end();
    println!("\n{}", runtime.metrics());
    Ok(())
}

/// Accepts connections, and spawns a task for each.
async fn serve(listener: TcpListener) {
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
        ECHOES.fetch_add(1, Relaxed);
    }
}

/// Where to serve, and how many clients are to come.
fn arguments() -> (SocketAddr, usize) {
    let own = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut args = env::args().skip(1);
    let wish = match (args.next().as_deref(), args.next(), args.next()) {
        (None, ..) => Some((own, DEMO.0)),
        (Some("--serve"), Some(addr), None) => addr.parse().ok().map(|addr| (addr, 0)),
        (Some("--connections"), Some(number), None) => number.parse().ok().map(|number| (own, number)),
        _ => None,
    };
    wish.unwrap_or_else(|| {
        eprintln!("usage: echo [--connections NUMBER | --serve ADDRESS:PORT]");
        process::exit(2)
    })
}

/// Ready at Ctrl-C. It is listened for from the call on.
#[cfg(unix)]
fn stop_signal() -> impl Future<Output = ()> {
    let signal = paceline::signal::ctrl_c();
    async move {
        if let Err(error) = signal.await {
            eprintln!("no signal can be waited for: {error}");
        }
    }
}

#[cfg(not(unix))]
fn stop_signal() -> impl Future<Output = ()> {
    std::future::pending()
}
