//! [`Relay`]: who sees to what a thread has left that had done its share.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::door::Left;
use super::{SHARE, Strand};

/// A task that is on its way to a strand which was left open. It finds it open, and goes in; or somebody was sooner, who
/// answers for what waits.
pub(super) struct Relay<T: Send + 'static>(pub(super) Option<Strand<T>>);

/// Nothing in it is pinned.
impl<T: Send + 'static> Unpin for Relay<T> {}

impl<T: Send + 'static> Future for Relay<T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let left = match &self.0 {
            Some(strand) => strand.door().take_over().map_or(Left::Free, |inside| inside.drain(SHARE)),
            None => Left::Free,
        };
        if left == Left::Open {
            // Others of the runtime's tasks get their turn; this one is on its way again.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.0 = None;
        Poll::Ready(())
    }
}

/// Its runtime has ended, or could not be started. Nobody else may come, so all of it is seen to here.
impl<T: Send + 'static> Drop for Relay<T> {
    fn drop(&mut self) {
        if let Some(strand) = mem::take(&mut self.0) {
            if let Some(inside) = strand.door().take_over() {
                let left = inside.drain(usize::MAX);
                debug_assert_eq!(left, Left::Free);
            }
        }
    }
}
