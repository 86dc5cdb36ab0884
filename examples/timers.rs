//! Timers: a deadline for a future, a deadline that moves, and an interval.
//!
//! ```sh
//! cargo run --release --example timers    # half a second
//! ```
//!
//! Look at `idle`: one timer, which is armed again on every message instead of created again. That is cheap,
//! because most timers are timeouts and never fire.
//!
//! There is a message every 30 ms, and the channel counts as quiet after 100 ms without one. So all messages
//! are counted, unless the sender's thread gets no core for 70 ms on a busy machine.

#[path = "common/cli.rs"]
mod cli;

use std::future::Future;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use async_channel::Receiver;
use futures_lite::{FutureExt, StreamExt, future};
use paceline::{Timer, block_on, spawn};

/// Returns the future's output, or `None` if it takes longer than `limit`. The future is dropped then.
async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let late = async {
        Timer::after(limit).await;
        None
    };
    async { Some(future.await) }.or(late).await
}

/// Counts messages until none has come for `limit`. Returns their number, and the length of the quiet time.
async fn idle(messages: Receiver<u32>, limit: Duration) -> (u32, Duration) {
    let (mut quiet, mut last) = (Timer::after(limit), Instant::now());
    let mut count = 0;
    loop {
        let message = async { messages.recv().await.ok() };
        let timeout = async {
            (&mut quiet).await;
            None
        };
        match message.or(timeout).await {
            Some(_) => count += 1,
            None => return (count, last.elapsed()),
        }
        last = Instant::now();
        quiet.set_after(limit);
    }
}

fn main() -> ExitCode {
    cli::run(include_str!("timers.rs"), |args| {
        cli::none(args)?;
        run();
        Ok(())
    })
}

fn run() {
    let ms = Duration::from_millis;
    block_on(async {
        println!("within 20 ms, never:  {:?}", within(ms(20), future::pending::<()>()).await);
        println!("within 20 ms, at once: {:?}", within(ms(20), async { "done" }).await);

        let (send, messages) = async_channel::unbounded();
        let counted = spawn(idle(messages, ms(100)));
        let mut clock = Timer::interval(ms(30));
        for number in 0..5 {
            clock.next().await;
            // An error means that the receiver has stopped because it was quiet for too long.
            if send.send(number).await.is_err() {
                break;
            }
        }
        let (count, quiet) = counted.await;
        println!("messages before it was quiet: {count}");
        println!("quiet for {quiet:.0?}");
    });
}
