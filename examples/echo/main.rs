//! An echo server with four threads, and thousands of clients that talk to it.
//!
//! ```sh
//! cargo run --release --example echo                              # 300 clients of its own, for two seconds
//! cargo run --release --example echo -- --connections 10000       # 10 000 clients, until Ctrl-C
//! cargo run --release --example echo -- --serve 127.0.0.1:7000    # for other clients, until Ctrl-C; try `nc 127.0.0.1 7000`
//! ```
//!
//! Look at `serve`: one task for each connection, nothing else; and at the end of `run`, which loses no echo.
//! Once a second the program prints the roles of its threads (`watch.rs`). With little work one thread leads
//! and three follow; with much work the awake threads poll tasks, and none needs to lead. The figures at the
//! end show that nearly every poll was direct: made by the thread that saw the event for the task.
//!
//! `clients.rs` has the clients, and raises the limit of open files for them; `times.rs` counts the times of
//! their echoes.

#![allow(unreachable_pub)]

#[path = "../common/cli.rs"]
mod cli;
mod clients;
#[path = "../common/stop.rs"]
mod stop;
mod times;
mod watch;

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use clients::Clients;
use futures::FutureExt as _;
use futures_lite::FutureExt as _;
use paceline::net::{TcpListener, TcpStream};
use paceline::prelude::*;
use paceline::{Runtime, Timer, spawn};

const THREADS: usize = 4;
/// How long other connections have at the end.
const GRACE: Duration = Duration::from_secs(1);
const DEMO: (usize, Duration) = (300, Duration::from_secs(2));

/// Echoes so far.
static ECHOES: AtomicU64 = AtomicU64::new(0);

fn main() -> ExitCode {
    cli::run(include_str!("main.rs"), |args| {
        let own = SocketAddr::from(([127, 0, 0, 1], 0));
        // The address to serve on, and the number of clients.
        let wish = match args {
            [] => Some((own, DEMO.0)),
            ["--serve", addr] => addr.parse().ok().map(|addr| (addr, 0)),
            ["--connections", number] => number.parse().ok().map(|number| (own, number)),
            _ => None,
        };
        let takes = "--connections NUMBER, --serve ADDRESS:PORT, or no arguments";
        let (addr, wanted) = wish.ok_or_else(|| cli::refuse(args, takes))?;
        Ok(run(addr, wanted, args.is_empty())?)
    })
}

fn run(addr: SocketAddr, wanted: usize, is_demo: bool) -> io::Result<()> {
    let runtime = Runtime::builder().threads(THREADS).thread_name("echo").build()?;
    // The clients have a runtime of their own, so that the printed figures are only the server's.
    let outside = Runtime::builder().threads(1).thread_name("client").build()?;
    let entered = outside.handle().enter();
    let stop = stop::asked()?.shared();
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

    // The program's own clients get the echoes that they wait for, even if they are not accepted yet: a
    // connection that is not accepted before the listener is dropped is reset.
    if let Some(figures) = outside.block_on(talks.end()) {
        println!("{figures}");
    }
    // No client is accepted any more, and other clients have some time.
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
            // Perhaps no descriptor is free; that is reported once, and the listener continues.
            Err(error) => eprintln!("{error}"),
        }
    }
}

/// Sends back all that it reads, until the peer closes its side.
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
