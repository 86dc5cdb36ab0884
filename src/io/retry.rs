//! Waiting for an operation whose `WouldBlock` says nothing about the descriptor.
//!
//! The operation is somebody else's code. It may say `WouldBlock` with bytes still queued, because it wants a whole
//! message, or because a condition of its own does not hold yet. So interest is armed again for each wait, which
//! reports a descriptor that is ready *now*, and the operation runs again whenever the task is polled, for whatever
//! reason it was woken.

use crate::reactor::{BlindWait, Direction, Source};
use std::future::poll_fn;
use std::io;
use std::task::{Poll, ready};

/// Runs `op` until it says something else than `WouldBlock`; any number of these may wait at once.
pub(super) async fn retry<R>(
    source: &Source,
    dir: Direction,
    mut op: impl FnMut() -> io::Result<R>,
) -> io::Result<R> {
    let mut armed = None;
    poll_fn(move |cx| {
        poll_retry(&mut op, || {
            // A wait that is still armed from an earlier poll covers what came since, so it is kept.
            let result = ready!(armed.get_or_insert_with(|| BlindWait::new(dir)).poll(source, cx));
            armed = None;
            Poll::Ready(result)
        })
    })
    .await
}

/// Runs `op` until it says something else than `WouldBlock`, or `wait` has begun a wait.
pub(super) fn poll_retry<R>(
    mut op: impl FnMut() -> io::Result<R>,
    mut wait: impl FnMut() -> Poll<io::Result<()>>,
) -> Poll<io::Result<R>> {
    loop {
        match op() {
            Err(err) if err.kind() == io::ErrorKind::WouldBlock => ready!(wait())?,
            result => return Poll::Ready(result),
        }
    }
}
