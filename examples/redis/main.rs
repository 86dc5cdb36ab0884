//! A small redis: framing, a connection limit, publish and subscribe, keys that expire, and a graceful stop.
//!
//! ```sh
//! cargo run --release --example redis                   # talks to itself for a moment and ends
//! cargo run --release --example redis 127.0.0.1:6380    # serves until Ctrl-C or SIGTERM; try `redis-cli -p 6380`
//! ```
//!
//! One page for each question:
//!
//! | file | the question |
//! |---|---|
//! | `server.rs` | How are connections accepted, limited, and told to stop? |
//! | `connection.rs` | How does one task wait for bytes, for messages and for the stop? |
//! | `resp.rs` | How does a stream of bytes, cut anywhere, become commands? |
//! | `reply.rs`, `command.rs` | What is answered? |
//! | `store.rs` | How is state shared, and how do keys expire without a thread? |
//! | `channels.rs` | How does one subscriber who is slow harm neither the others nor the memory? |
//! | `demo.rs` | What does it look like from outside? |

#![allow(unreachable_pub)]

mod channels;
mod command;
mod connection;
mod demo;
mod reply;
mod resp;
mod server;
mod store;

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::{env, io};

use paceline::Runtime;
use server::{Server, Shared};

/// Connections at a time.
const LIMIT: usize = 10_000;
/// How long connections have to end when the server is told to.
const GRACE: Duration = Duration::from_secs(5);

fn main() -> io::Result<()> {
    // As many threads as cores, or as PACELINE_THREADS says. With many clients, to stay awake between their commands takes a tenth to a
    // quarter more processor time and brings nothing; with a single one it may bring a third more commands.
    let runtime = Runtime::builder().spin(Duration::ZERO).build()?;
    let mut args = env::args().skip(1);
    let Some(address) = args.next() else { return demo::run(&runtime) };
    let limit = args.next().map_or(Ok(LIMIT), |limit| limit.parse());
    let limit = limit.map_err(|_| io::Error::other("usage: redis [ADDRESS [MAX_CONNECTIONS]]"))?;

    runtime.block_on(async {
        let stop = stop_signal()?;
        let server = Server::bind(&address, limit).await?;
        let shared = server.shared();
        println!("serving on {}, until Ctrl-C or SIGTERM", server.local_addr()?);
        server.serve(stop).await;
        println!("{}", runtime.drain(GRACE).await);
        println!("{}", totals(&shared));
        Ok(())
    })
}

/// Ready when the process is asked to end. It is listened for from the call on.
#[cfg(unix)]
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    use paceline::signal::{Signal, Signals};

    let mut signals = Signals::new([Signal::Interrupt, Signal::Terminate])?;
    Ok(async move {
        if let Err(error) = signals.next().await {
            eprintln!("no signal can be waited for: {error}");
        }
    })
}

#[cfg(not(unix))]
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    Ok(std::future::pending())
}

fn totals(shared: &Shared) -> String {
    let totals = &shared.totals;
    let [served, refused, commands] =
        [&totals.served, &totals.refused, &totals.commands].map(|total| total.load(Relaxed));
    format!("{served} connections were served, {refused} refused; {commands} commands were answered")
}
