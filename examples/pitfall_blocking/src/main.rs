//! The pitfall: a handler that blocks its thread, side by side on tokio, smol and paceline.
//!
//! ```sh
//! cargo run --release -p example-pitfall-blocking         # ten seconds
//! cargo run --release -p example-pitfall-blocking -- 5    # rounds of five seconds each
//! ```
//!
//! Each runtime has two worker threads and the same handler (`servers.rs`). The handler answers at once, or
//! sleeps for 20 ms before, as a library does that reads a file, looks up a name, or takes a lock. 16 clients
//! request immediate answers all the time: first alone, then beside 4 clients with the slow answer. The
//! clients are plain threads with plain sockets (`load.rs`), so that no runtime has an advantage.
//!
//! All three have a way to avoid this (`spawn_blocking`, `unblock`). The table shows the cost of a program
//! that does not use it.

#[path = "../../common/cli.rs"]
mod cli;
mod load;
mod servers;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use load::{Figures, load};
use servers::Server;

/// Clients with immediate answers, and clients with a handler that blocks.
const SHORT: usize = 16;
const BLOCKED: usize = 4;
/// Worker threads of each runtime.
const THREADS: usize = 2;

fn main() -> ExitCode {
    cli::run(include_str!("main.rs"), |args| {
        let seconds = match args {
            [] => Some(1.6),
            [seconds] => seconds.parse().ok(),
            _ => None,
        };
        let round = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let takes = "the SECONDS that a round lasts, or no arguments";
        Ok(run(round.ok_or_else(|| cli::refuse(args, takes))?)?)
    })
}

fn run(round: Duration) -> io::Result<()> {
    println!(
        "{SHORT} clients alone, then beside {BLOCKED} with a handler that blocks for {:?}; {THREADS} workers\n",
        servers::PAUSE
    );
    println!(
        "runtime       alone: requests/s        p99      beside: requests/s        p50        p99      worst"
    );
    compare("tokio", servers::on_tokio()?, round)?;
    compare("smol", servers::on_smol()?, round)?;
    compare("paceline", servers::on_paceline()?, round)
}

/// Runs two rounds with one runtime, and prints its row.
fn compare(name: &str, server: Server, round: Duration) -> io::Result<()> {
    let alone = load(server.addr, SHORT, 0, round)?;
    let beside = load(server.addr, SHORT, BLOCKED, round)?;
    println!("{}", row(name, &alone, &beside));
    if let Some(last_words) = (server.stop)() {
        println!("\n{last_words}");
    }
    Ok(())
}

fn row(name: &str, alone: &Figures, beside: &Figures) -> String {
    let ms = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
    format!(
        "{name:9} {:22.0} {:>10} {:23.0} {:>10} {:>10} {:>10}",
        alone.per_second,
        ms(alone.p99),
        beside.per_second,
        ms(beside.p50),
        ms(beside.p99),
        ms(beside.worst)
    )
}
