//! Waiting for an operation whose `WouldBlock` proves nothing about the descriptor.
//!
//! The operation is somebody else's code. It may say `WouldBlock` with bytes still queued, because it wants a whole
//! message, or because a condition of its own does not hold yet. So interest is armed again for each wait, which
//! reports a descriptor that is ready *now*, and the operation runs again whenever the task is polled, for whatever
//! reason it was woken.

use crate::reactor::{BlindWait, Direction, Source};
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

/// Runs `op` until it says something else than `WouldBlock`; any number of these may wait at once.
pub(super) async fn retry<R>(
    source: &Source,
    dir: Direction,
    mut op: impl FnMut() -> io::Result<R>,
) -> io::Result<R> {
    let mut wait = None;
    poll_fn(move |cx| {
        loop {
            match op() {
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
            // A wait that is still armed from an earlier poll covers what came since, so it is kept.
            ready!(wait.get_or_insert_with(|| BlindWait::new(dir)).poll(source, cx))?;
            wait = None;
        }
    })
    .await
}

/// The polled form of [`retry`], one waiter a direction.
pub(super) fn poll_retry<R>(
    source: &Source,
    dir: Direction,
    cx: &mut Context<'_>,
    mut op: impl FnMut() -> io::Result<R>,
) -> Poll<io::Result<R>> {
    loop {
        match op() {
            Err(err) if err.kind() == io::ErrorKind::WouldBlock => {}
            result => return Poll::Ready(result),
        }
        ready!(source.poll_blind(dir, cx))?;
    }
}
