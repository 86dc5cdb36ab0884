//! Timers: a deadline for a future, a deadline that moves, and a clock that ticks.
//!
//! ```sh
//! cargo run --release --example timers    # half a second
//! ```
//!
//! Look at `idle`: one timer, armed again on every message instead of made again. That is cheap, because most timers
//! are timeouts and never fire.

use std::future::Future;
use std::time::{Duration, Instant};

use async_channel::Receiver;
use futures_lite::{FutureExt, StreamExt, future};
use paceline::{Timer, block_on, spawn};

/// What the future gives, or `None` if it takes longer than `limit`. The future is dropped then.
async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let late = async {
        Timer::after(limit).await;
        None
    };
    async { Some(future.await) }.or(late).await
}

/// Counts messages until none has come for `limit`.
async fn idle(messages: Receiver<u32>, limit: Duration) -> u32 {
    let mut quiet = Timer::after(limit);
    let mut count = 0;
    loop {
        let message = async { messages.recv().await.ok() };
        let timeout = async {
            (&mut quiet).await;
            None
        };
        match message.or(timeout).await {
            Some(_) => count += 1,
            None => return count,
        }
        quiet.set_after(limit);
    }
}

fn main() {
    let ms = Duration::from_millis;
    block_on(async {
        println!("within 20 ms, never:  {:?}", within(ms(20), future::pending::<()>()).await);
        println!("within 20 ms, at once: {:?}", within(ms(20), async { "done" }).await);

        let (send, messages) = async_channel::unbounded();
        let counted = spawn(idle(messages, ms(100)));
        let mut clock = Timer::interval(ms(30));
        for number in 0..5 {
            clock.next().await;
            // The other side stops listening only when it has heard nothing for longer than this.
            let _ = send.send(number).await;
        }
        let quiet_since = Instant::now();
        println!("messages before it was quiet: {}", counted.await);
        println!("quiet for {:.0?}", quiet_since.elapsed());
    });
}
