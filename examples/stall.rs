//! Which task blocks its thread, and for how long: `on_stall`.
//!
//! ```sh
//! cargo run --release --example stall    # one second
//! ```
//!
//! Look at the printed lines: they name the `spawn` of the task that blocks. The other task continues to
//! tick.
//!
//! On a busy machine a tick is also late if its thread waits for a core. To distinguish that from the
//! blocking task, a thread outside of the runtime sleeps for the same ticks.

#[path = "common/cli.rs"]
mod cli;

use std::io;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use paceline::{Runtime, Timer};

const TICK: Duration = Duration::from_millis(10);
const TICKS: usize = 90;

fn main() -> ExitCode {
    cli::run(include_str!("stall.rs"), |args| {
        cli::none(args)?;
        Ok(run()?)
    })
}

fn run() -> io::Result<()> {
    let runtime = Runtime::builder().threads(2).on_stall(|stall| println!("stall: {stall}")).build()?;

    let patient = runtime.spawn(async {
        let mut worst = Duration::ZERO;
        for _ in 0..TICKS {
            let before = Instant::now();
            Timer::after(TICK).await;
            worst = worst.max(before.elapsed());
        }
        worst
    });
    let plain = thread::spawn(|| {
        let ticks = (0..TICKS).map(|_| {
            let before = Instant::now();
            thread::sleep(TICK);
            before.elapsed()
        });
        ticks.max().unwrap_or_default()
    });

    // The task to be found: it blocks its thread instead of awaiting a timer.
    let guilty = runtime.spawn(async {
        for pause in [15, 150, 400] {
            Timer::after(Duration::from_millis(50)).await;
            thread::sleep(Duration::from_millis(pause));
        }
    });

    runtime.block_on(guilty);
    let worst = runtime.block_on(patient);
    println!("meanwhile no tick of {TICK:.0?} took longer than {worst:.1?}");
    let plain = plain.join().expect("it only sleeps");
    println!("of a thread that sleeps, and is not the runtime's, none took longer than {plain:.1?}");
    println!("stalls counted: {}", runtime.metrics().stalls);
    Ok(())
}
