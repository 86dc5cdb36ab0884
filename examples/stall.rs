//! Which task blocks its thread, and for how long: `on_stall`.
//!
//! ```sh
//! cargo run --release --example stall    # one second
//! ```
//!
//! Look at the lines that are printed: they name the `spawn` of the guilty task. The other one ticks on.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use paceline::{Runtime, Timer};

fn main() -> io::Result<()> {
    let runtime = Runtime::builder().threads(2).on_stall(|stall| println!("stall: {stall}")).build()?;

    let patient = runtime.spawn(async {
        let mut worst = Duration::ZERO;
        for _ in 0..90 {
            let before = Instant::now();
            Timer::after(Duration::from_millis(10)).await;
            worst = worst.max(before.elapsed());
        }
        worst
    });

    // The task to be found: it goes off to wait as a thread does, not as a task does.
    let guilty = runtime.spawn(async {
        for pause in [15, 150, 400] {
            Timer::after(Duration::from_millis(50)).await;
            thread::sleep(Duration::from_millis(pause));
        }
    });

    runtime.block_on(guilty);
    let worst = runtime.block_on(patient);
    println!("meanwhile no tick of 10 ms took longer than {worst:.1?}");
    println!("stalls counted: {}", runtime.metrics().stalls);
    Ok(())
}
