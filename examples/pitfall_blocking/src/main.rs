//! The pitfall: a handler that blocks its thread, side by side on tokio, smol and paceline.
//!
//! ```sh
//! cargo run --release -p example-pitfall-blocking         # ten seconds
//! cargo run --release -p example-pitfall-blocking -- 5    # rounds of five seconds each
//! ```
//!
//! Each runtime has two worker threads and the same handler (`servers.rs`), which answers at once, or sleeps for 20 ms before, as a library
//! does that reads a file, looks up a name, or takes a lock. 16 clients want the former, all the time: first alone, then beside
//! 4 that want the latter. The clients are plain threads with plain sockets (`load.rs`), so that none of the three plays at home.
//!
//! All three have a way to do it right (`spawn_blocking`, `unblock`). This is what it costs where somebody did not.

mod load;
mod servers;

use std::time::Duration;
use std::{env, io, process};

use load::{Figures, load};
use servers::Server;

/// Clients that are answered at once, and clients whose handler blocks.
const SHORT: usize = 16;
const BLOCKED: usize = 4;
/// Worker threads of each runtime.
const THREADS: usize = 2;

fn main() -> io::Result<()> {
    let seconds = env::args().nth(1).map_or(Ok(1.6), |seconds| seconds.parse::<f64>());
    let round =
        seconds.ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or_else(|| {
            eprintln!("usage: pitfall_blocking [SECONDS OF A ROUND]");
            process::exit(2)
        });

    println!(
        "{SHORT} clients alone, then beside {BLOCKED} whose handler blocks for {:?}; {THREADS} workers\n",
        servers::PAUSE
    );
    println!(
        "runtime       alone: requests/s        p99      beside: requests/s        p50        p99      worst"
    );
    compare("tokio", servers::on_tokio()?, round)?;
    compare("smol", servers::on_smol()?, round)?;
    compare("paceline", servers::on_paceline()?, round)
}

/// Two rounds with one of them, and its row.
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
