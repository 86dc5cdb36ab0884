//! Closures that block: they return, panic, are dropped, or are late.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::panic::AssertUnwindSafe;
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, AsyncWriteExt, FutureExt, future};
use paceline::blocking::{Job, JobError};
use paceline::{Unblock, unblock};

use crate::panics::assert_on_purpose;
use crate::scene::{Dice, Scene, Tally, some_wait};

/// Closures; their captures are dropped once, whether they run or not.
pub async fn closures(_: Scene, mut dice: Dice) {
    let count = 1 + dice.roll(20) as usize;
    let dropped = Tally::new(count);
    let mut awaited = Vec::new();
    for number in 0..count {
        let guard = dropped.guard(number);
        let (sleeps, panics) = (dice.micros(600), dice.roll(8) == 0);
        let closure = move || {
            let _guard = guard;
            thread::sleep(sleeps);
            assert!(!panics, "on purpose");
            number
        };
        // A panic of a detached closure is caught there.
        match dice.roll(4) {
            0 => unblock(closure).detach(),
            1 => drop(unblock(closure)),
            2 => _ = unblock(closure).cancel().catch_on_purpose().await,
            _ => awaited.push((number, panics, unblock(closure))),
        }
    }
    for (number, panics, task) in awaited {
        match task.catch_on_purpose().await {
            Some(result) => assert!(result == number && !panics),
            None => assert!(panics, "a closure panicked"),
        }
    }
    dropped.wait_until_complete();
}

trait CatchOnPurpose: Future + Sized {
    /// Returns `None` for a panic on purpose.
    async fn catch_on_purpose(self) -> Option<Self::Output> {
        AssertUnwindSafe(self)
            .catch_unwind()
            .await
            .map_err(|panic| assert_on_purpose(Err::<(), _>(panic)))
            .ok()
    }
}

impl<F: Future> CatchOnPurpose for F {}

/// Jobs with deadlines, long and short and past; cancelled by their handle, or by the token that they check.
pub async fn deadlines(_: Scene, mut dice: Dice) {
    let count = 1 + dice.roll(12) as usize;
    let dropped = Tally::new(count);
    let mut awaited = Vec::new();
    for number in 0..count {
        let (guard, lasts, panics) = (dropped.guard(number), dice.micros(8_000), dice.roll(8) == 0);
        let (looks, way) = (dice.coin(), dice.roll(6));
        let job = Job::with_token(move |token| {
            let start = Instant::now();
            while start.elapsed() < lasts && !(looks && token.is_cancelled()) {
                thread::sleep(Duration::from_millis(1).min(lasts));
            }
            // Perhaps after its deadline, when no task gets the panic.
            assert!(!panics, "on purpose");
            // The result of a detached job may stay for as long as the reactor knows its deadline.
            (way > 0).then_some(guard)
        });
        let submitted = Instant::now();
        let (job, timeout) = match dice.roll(6) {
            0 => (job, None),
            1 => (job.timeout(Duration::ZERO), Some(Duration::ZERO)),
            2 => (job.timeout(Duration::MAX), None),
            3 => (job.deadline(submitted), Some(Duration::ZERO)),
            _ => {
                let timeout = dice.micros(12_000);
                (job.name("in a hurry").timeout(timeout), Some(timeout))
            }
        };
        let handle = job.submit();
        match way {
            0 => handle.detach(),
            1 => drop(handle),
            2 => {
                handle.cancel();
                awaited.push((handle, submitted, timeout, panics, true));
            }
            _ => awaited.push((handle, submitted, timeout, panics, false)),
        }
        if dice.roll(4) == 0 {
            some_wait(&mut dice).await;
        }
    }
    for (handle, submitted, timeout, panics, cancelled) in awaited {
        match handle.catch_on_purpose().await {
            None => assert!(panics, "a job panicked"),
            Some(Ok(_guard)) => assert!(!panics),
            Some(Err(JobError::TimedOut { .. })) => {
                let timeout = timeout.expect("a job without a deadline is not late");
                assert!(submitted.elapsed() >= timeout, "a deadline passed early");
            }
            Some(Err(JobError::Cancelled { .. })) => assert!(cancelled, "this job was not cancelled"),
            Some(Err(error)) => panic!("{error}"),
        }
    }
    dropped.wait_until_complete();
}

/// Sends bytes through a pipe that blocks, in both directions. A system thread answers: a pool may have only
/// one thread.
pub async fn pipes(_: Scene, mut dice: Dice) {
    let (near, mut far) = UnixStream::pair().unwrap();
    let capacity = 1 + dice.roll(4_000) as usize;
    let length = dice.roll(20 * capacity as u64) as usize;
    let sent: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
    let breaks_off = dice.roll(4) == 0;
    let mut near = Unblock::with_capacity(capacity, near);
    let (tell, told) = async_channel::bounded(1);
    thread::spawn(move || {
        let mut got = vec![0; length];
        far.read_exact(&mut got).unwrap();
        let written = far.write_all(&got).and_then(|()| far.write_all(b"end"));
        assert!(written.is_ok() || breaks_off, "{written:?}");
        tell.send_blocking(()).unwrap();
    });
    near.write_all(&sent).await.unwrap();
    near.flush().await.unwrap();
    if breaks_off {
        let _ = future::poll_once(near.read(&mut [0])).await;
        drop(near);
        return told.recv().await.unwrap();
    }
    let mut got = Vec::new();
    near.read_to_end(&mut got).await.unwrap();
    told.recv().await.unwrap();
    assert!(got.strip_suffix(b"end") == Some(&sent[..]), "what was read is not what was written");
}
