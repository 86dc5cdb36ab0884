//! From an event to the task that waits for it.
//!
//! Hypothesis: a request costs its read, its write and a share of one wait; between the event and the task
//! there is one turn of leadership without contention, and the slot.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use paceline::{Async, block_on};

use super::{Rounds, in_task, own_waker, woken};

/// A connected pair, one byte at a time.
pub(super) struct Wire(Async<UnixStream>);

impl Wire {
    pub(super) fn pair() -> (Self, Self) {
        let (near, far) = Async::<UnixStream>::pair().expect("a pair of sockets can be created");
        (Self(near), Self(far))
    }

    /// The near end is a plain socket, since a source would also report that there is room to write.
    pub(super) fn from_plain() -> (UnixStream, Self) {
        let (near, far) = UnixStream::pair().expect("a pair of sockets can be created");
        (near, Self(Async::new(far).expect("a socket can be registered")))
    }

    async fn send(&mut self) {
        self.0.write_all(b"x").await.expect("the other end is open");
    }

    /// Returns false if the other end is closed. The buffer is larger than the message, so the read ends
    /// short and the next one waits for an event.
    pub(super) async fn receive(&mut self) -> bool {
        self.0.read(&mut [0; 16]).await.expect("a socket can be read") > 0
    }

    /// Answers each byte with one.
    pub(super) async fn echo(mut self) {
        while self.receive().await {
            self.send().await;
        }
    }

    /// Sends a byte per round, each after the previous one was answered.
    pub(super) async fn exchanges(mut self, mut rounds: Rounds) -> Duration {
        for () in &mut rounds {
            self.send().await;
            assert!(self.receive().await);
        }
        rounds.took()
    }
}

pub(super) fn exchange(rounds: Rounds) -> Duration {
    in_task(|executor| async move {
        let (near, far) = Wire::pair();
        let _echo = executor.spawn(far.echo());
        near.exchanges(rounds).await
    })
}

pub(super) fn lead(mut rounds: Rounds) -> Duration {
    block_on(async {
        let (mut near, mut far) = Wire::from_plain();
        for () in &mut rounds {
            // In this order: a byte that has already arrived needs no event.
            future::zip(far.receive(), async { near.write_all(b"x").expect("the other end is open") }).await;
        }
        rounds.took()
    })
}

/// Events that the thread finds at once.
const BATCH: usize = 16;

/// An operation is one event. All bytes are written before the thread looks, and the last task that has its
/// byte wakes the one that writes.
pub(super) fn batch(mut rounds: Rounds) -> Duration {
    in_task(|executor| async move {
        let (mut near, far): (Vec<_>, Vec<_>) = (0..BATCH).map(|_| Wire::from_plain()).unzip();
        let (left, writer) = (Arc::new(AtomicUsize::new(0)), own_waker().await);
        let receive = |mut wire: Wire| {
            let (left, writer) = (left.clone(), writer.clone());
            executor.spawn(async move {
                while wire.receive().await {
                    if left.fetch_sub(1, SeqCst) == 1 {
                        writer.wake_by_ref();
                    }
                }
            })
        };
        let _tasks: Vec<_> = far.into_iter().map(receive).collect();
        loop {
            let events = rounds.by_ref().take(BATCH).count();
            if events == 0 {
                return rounds.took();
            }
            left.store(events, SeqCst);
            near[..events].iter_mut().for_each(|near| near.write_all(b"x").expect("the other end is open"));
            woken().await;
        }
    })
}
