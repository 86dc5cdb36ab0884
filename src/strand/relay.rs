//! [`Relay`]: who sees to what a thread has left that had done its share.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::door::Left;
use super::{SHARE, Strand};

/// A task that is on its way to a strand which was left open. It finds it open, and goes in; or somebody was sooner, who
/// answers for what waits.
pub(super) struct Relay<T: Send + 'static> {
    strand: Option<Strand<T>>,
    /// It is a task of the default instance, which does not end.
    is_last: bool,
}

impl<T: Send + 'static> Relay<T> {
    pub(super) fn new(strand: &Strand<T>) -> Self {
        Self { strand: Some(strand.clone()), is_last: false }
    }
}

/// Nothing in it is pinned.
impl<T: Send + 'static> Unpin for Relay<T> {}

impl<T: Send + 'static> Future for Relay<T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let left = match &self.strand {
            Some(strand) => strand.door().take_over().map_or(Left::Free, |inside| inside.drain(SHARE)),
            None => Left::Free,
        };
        if left == Left::Open {
            // Others of the runtime's tasks get their turn; this one is on its way again.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.strand = None;
        Poll::Ready(())
    }
}

/// Its runtime has ended, or takes no tasks any more: the default instance goes on, for who is here has something else to do.
/// Where that cannot be started nobody else may come, so all of it is seen to here.
impl<T: Send + 'static> Drop for Relay<T> {
    fn drop(&mut self) {
        let Some(strand) = mem::take(&mut self.strand) else { return };
        let Some(inside) = strand.door().take_over() else { return };
        let share = if self.is_last { usize::MAX } else { SHARE };
        if inside.drain(share) == Left::Open {
            strand.sends(Relay { strand: Some(strand.clone()), is_last: true });
        }
    }
}
