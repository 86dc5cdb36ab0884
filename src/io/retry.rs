//! Waiting for an operation whose `WouldBlock` is no evidence for the descriptor's state.
//!
//! The operation is code of the caller, which may return `WouldBlock` with bytes still queued: because it
//! needs a whole message, or because a condition of its own does not hold yet. So each wait arms interest
//! again, which reports a descriptor that is ready *already*, and each poll of the task runs the operation
//! again, for whatever reason the task was woken.

use crate::budget;
use crate::reactor::{Direction, Source};
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

/// Runs `op` until it returns something other than `WouldBlock`: each time that the source reports, and at
/// each poll of the task. Any number of tasks may wait at once. Returns the error of a wait, too.
pub(super) async fn retry<R>(
    source: &Source,
    dir: Direction,
    mut op: impl FnMut() -> io::Result<R>,
) -> io::Result<R> {
    // A wait that is still armed from an earlier poll covers all events since then, so it is kept.
    let mut after = None;
    let mut poll = move |cx: &mut Context<'_>| poll_retry(&mut op, || source.poll_blind(dir, &mut after, cx));
    poll_fn(move |cx| budget::spend(cx.waker(), || poll(cx))).await
}

/// Runs `op` until it returns something other than `WouldBlock`, or until `wait` has begun a wait or fails.
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
