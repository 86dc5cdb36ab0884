//! [`Relay`]: the task that runs the operations that a thread left behind after its share.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::door::DoorExit;
use super::{SHARE, Strand};

/// A task on its way to a strand that was left open. If the strand is still open, the relay enters; else
/// another thread has entered, and answers for the waiting operations.
pub(super) struct Relay<T: Send + 'static> {
    pub(super) strand: Option<Strand<T>>,
    /// Whether the relay is a task of the default instance: then there is no other runtime to continue on.
    pub(super) is_last: bool,
}

/// The relay pins none of its fields.
impl<T: Send + 'static> Unpin for Relay<T> {}

impl<T: Send + 'static> Future for Relay<T> {
    type Output = ();

    /// Enters if the strand is still open, and runs a share of the operations. If others are left, wakes
    /// itself for the next share.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let inside = self.strand.as_ref().and_then(|strand| strand.0.door.take_over());
        if inside.is_some_and(|inside| inside.drain(SHARE) == DoorExit::Open) {
            // The runtime's other tasks get their turn first; this relay is on its way again.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.strand = None;
        Poll::Ready(())
    }
}

impl<T: Send + 'static> Drop for Relay<T> {
    /// Does nothing if the relay is done, or if another thread has entered the strand. Otherwise the relay's
    /// runtime has ended, or accepts no tasks any more: runs a share of the operations here, and leaves the
    /// rest to a relay on the default instance, because this thread has something else to do. If this is the
    /// relay on the default instance, which was drained or cannot be started, runs all that is left.
    fn drop(&mut self) {
        let Some(strand) = mem::take(&mut self.strand) else { return };
        let Some(inside) = strand.0.door.take_over() else { return };
        let share = if self.is_last { usize::MAX } else { SHARE };
        if inside.drain(share) == DoorExit::Open {
            strand.send_relay(Relay { strand: Some(strand.clone()), is_last: true });
        }
    }
}
