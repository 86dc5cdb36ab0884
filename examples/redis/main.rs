//! A small redis: framing, a connection limit, publish and subscribe, keys that expire, and a graceful stop.
//!
//! ```sh
//! cargo run --release --example redis                   # talks to itself for a moment and ends
//! cargo run --release --example redis 127.0.0.1:6380    # serves until Ctrl-C or SIGTERM; try `redis-cli -p 6380`
//! cargo run --release --example redis 127.0.0.1:6380 5  # the same for 5 connections at a time, instead of 10 000
//! ```
//!
//! One page for each question:
//!
//! | file | the question |
//! |---|---|
//! | `server.rs` | How are connections accepted, limited, and told to stop? |
//! | `connection.rs` | How does one task wait for bytes, for messages and for the stop? |
//! | `resp.rs` | How does a stream of bytes, cut anywhere, become commands? |
//! | `reply.rs`, `command.rs` | How are commands answered? |
//! | `store.rs` | How is state shared, and how do keys expire without a thread? |
//! | `channels.rs` | Why does a slow subscriber harm neither the others nor the memory? |
//! | `demo.rs` | How does a client see the server? |

#![allow(unreachable_pub)]

mod channels;
#[path = "../common/cli.rs"]
mod cli;
mod command;
mod connection;
mod demo;
mod reply;
mod resp;
mod server;
#[path = "../common/stop.rs"]
mod stop;
mod store;

use std::io;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use paceline::{Runtime, Tuning};
use server::{Server, Shared};

/// Connections at a time.
const LIMIT: usize = 10_000;
/// How long connections have to end when the server is told to stop.
const GRACE: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    cli::run(include_str!("main.rs"), |args| {
        // The address, and the number of connections at a time.
        let serve = match args {
            [] => return Ok(demo::run(&runtime()?)?),
            [address] if !address.starts_with('-') => Some((address, LIMIT)),
            [address, limit] if !address.starts_with('-') => limit.parse().ok().map(|limit| (address, limit)),
            _ => None,
        };
        let takes = "ADDRESS:PORT [MAX_CONNECTIONS], or no arguments";
        let (address, limit) = serve.ok_or_else(|| cli::refuse(args, takes))?;
        if limit == 0 {
            return Err(cli::refuse(
                args,
                "a MAX_CONNECTIONS of at least 1, because none would be served otherwise",
            ));
        }
        Ok(run(address, limit)?)
    })
}

fn runtime() -> io::Result<Runtime> {
    // As many threads as cores, or PACELINE_THREADS of them. With many clients, staying awake between their
    // commands takes a tenth to a quarter more processor time without any gain; with a single client it may
    // gain a third more commands.
    Runtime::builder().tuning(Tuning::default().spin(Duration::ZERO)).build()
}

fn run(address: &str, limit: usize) -> io::Result<()> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let server = Server::bind(address, limit).await?;
        // From here on Ctrl-C stops the server gracefully; before, it ends the program.
        let stop = stop::asked()?;
        let shared = server.shared();
        println!("serving on {}, until Ctrl-C or SIGTERM", server.local_addr()?);
        server.serve(stop).await;
        println!("{}", runtime.drain(GRACE).await);
        println!("{}", totals(&shared));
        Ok(())
    })
}

fn totals(shared: &Shared) -> String {
    let totals = &shared.totals;
    let [served, refused, commands] =
        [&totals.served, &totals.refused, &totals.commands].map(|total| total.load(Relaxed));
    format!("{served} connections were served, {refused} refused; {commands} commands were answered")
}
