//! A `block_on` without a pool.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Station;
use super::stay::StayGuard;

/// Drives `future`, which the caller has polled once, to its end on a thread that gets no reactor, because
/// the process has no descriptor left. Polls it again each time it was woken; an operation that needs the
/// reactor tries again then. In between the thread parks without a limit, so only other threads can wake
/// the future.
pub(super) fn drive<F: Future>(
    station: &Station,
    stay: &StayGuard<'_>,
    mut future: Pin<&mut F>,
    cx: &mut Context<'_>,
) -> F::Output {
    loop {
        if stay.take_woken() {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return output;
            }
        }
        stay.clear_up();
        if !stay.is_woken() && stay.try_rest() {
            let _ = station.seat.park(None);
            stay.host.rise();
        }
    }
}
