//! The roles made visible: which thread leads, follows, processes, is blocked, was added.
//!
//! ```sh
//! cargo run --release --example roles                       # live, in a terminal; keys: b, c, q
//! cargo run --release --example roles | cat                 # without one: three frames as text
//! cargo run --release --example roles -- --svg roles.svg    # a picture of one second
//! ```
//!
//! Press `b`: a handler blocks its thread for two seconds, and a follower leads from then on. Press it three
//! times: no worker is left, and the deputy adds a thread within two ticks, which leaves a second after it is
//! no longer needed. `c` makes a handler compute.
//!
//! | file | the question |
//! |---|---|
//! | `ride.rs` | What is watched? A server with three workers, clients, and handlers that can block |
//! | `record.rs` | What did each thread do, and when? Uses only `Runtime::threads` |
//! | `screen.rs` | What does that look like in a terminal? |
//! | `picture.rs` | And as a picture? |

#![allow(unreachable_pub)]

#[path = "../common/cli.rs"]
mod cli;
mod picture;
mod record;
mod ride;
mod screen;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{fs, thread};

use record::Record;
use ride::{BLOCK, COMPUTE, Ride};

/// How often the threads are looked at: for the screen, and for the picture.
const LOOK: Duration = Duration::from_millis(4);
const CLOSE_LOOK: Duration = Duration::from_micros(250);

fn main() -> ExitCode {
    cli::run(include_str!("main.rs"), |args| match args {
        [] if io::stdin().is_terminal() && io::stdout().is_terminal() => Ok(screen::live(&Ride::start()?)?),
        [] => Ok(frames(&Ride::start()?)?),
        ["--svg", file] => Ok(draw(&Ride::start()?, file)?),
        _ => Err(cli::refuse(args, "--svg FILE, or no arguments")),
    })
}

/// Watches the threads for so long.
fn watch(ride: &Ride, record: &mut Record, lasts: Duration, look: Duration) {
    let start = Instant::now();
    while start.elapsed() < lasts {
        record.look(ride.runtime.threads());
        thread::sleep(look);
    }
}

/// Without a terminal: prints frames with little work, with one blocked handler, and with all workers
/// blocked.
fn frames(ride: &Ride) -> io::Result<()> {
    const MOMENT: Duration = Duration::from_millis(700);
    let mut record = Record::new();
    for (title, handlers) in
        [("calm", 0), ("one handler blocks", 1), ("all workers are blocked", ride::WORKERS)]
    {
        (0..handlers).for_each(|_| ride.ask(BLOCK, MOMENT * 2));
        watch(ride, &mut record, MOMENT, LOOK);
        print!("--- {title}\n{}", screen::frame(ride, &record, 80, false));
        io::stdout().flush()?;
        // Until the blocked workers are back.
        watch(ride, &mut record, if handlers == 0 { Duration::ZERO } else { MOMENT }, LOOK);
    }
    Ok(())
}

/// The same, and handlers that compute, within a second; writes a picture.
fn draw(ride: &Ride, file: &str) -> io::Result<()> {
    let ms = Duration::from_millis;
    // In the first moments threads start.
    watch(ride, &mut Record::new(), ms(200), CLOSE_LOOK);
    let mut record = Record::new();
    watch(ride, &mut record, ms(120), CLOSE_LOOK);
    record.mark("a handler blocks for 150 ms");
    ride.ask(BLOCK, ms(150));
    watch(ride, &mut record, ms(230), CLOSE_LOOK);
    record.mark("three do, for 200 ms");
    (0..ride::WORKERS).for_each(|_| ride.ask(BLOCK, ms(200)));
    watch(ride, &mut record, ms(350), CLOSE_LOOK);
    record.mark("two compute for 150 ms");
    (0..2).for_each(|_| ride.ask(COMPUTE, ms(150)));
    watch(ride, &mut record, ms(300), CLOSE_LOOK);
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{file}: {error}"));
    fs::write(file, picture::svg(&record)).map_err(named)?;
    println!("{} threads in {:.1?}: {file}", record.lanes.len(), record.now());
    println!("{}", ride.runtime.metrics());
    Ok(())
}
