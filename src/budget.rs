//! The cooperative budget of a poll: how many operations a task may complete before it lets others run.
//!
//! A loop around an operation that never has to wait, such as reads from a peer that floods, would never
//! return from its poll: neither what is polled beside it in the same task, a timeout for example, nor any
//! other task of the thread would get its turn. So each operation of a socket, pipe, timer or channel of this
//! crate [spends](spend) a part of the budget when it completes. With the budget used up, the next one wakes
//! its task and returns `Pending`, and the task continues behind those that are ready.
//!
//! The budget is refilled where a poll of a task or of the future of a `block_on` begins. It is also refilled
//! where it was used up, because another library's executor does not refill it. An operation that waits spends
//! nothing: a future that polls a thousand idle sockets would wake itself for ever otherwise.

use std::cell::Cell;
use std::task::{Poll, Waker};

use crate::sync::thread_local;

/// Operations that a poll may complete: as many as with tokio.
const OPERATIONS: u32 = 128;

thread_local! {
    /// The operations that are left to the poll in progress on this thread.
    static BUDGET: Cell<u32> = const { Cell::new(OPERATIONS) };
}

/// Gives the poll that begins now on this thread a full budget.
#[inline]
pub(crate) fn refill() {
    BUDGET.with(|left| left.set(OPERATIONS));
}

/// Polls an operation, which spends a part of the budget if it completes. If the budget is used up, the
/// operation is not polled: the task is woken, and has to poll it again.
#[inline]
pub(crate) fn spend<R>(waker: &Waker, operation: impl FnOnce() -> Poll<R>) -> Poll<R> {
    BUDGET.with(|left| {
        if left.get() == 0 {
            return give_way(left, waker);
        }
        let result = operation();
        if result.is_ready() {
            left.set(left.get().saturating_sub(1));
        }
        result
    })
}

#[cold]
fn give_way<R>(left: &Cell<u32>, waker: &Waker) -> Poll<R> {
    left.set(OPERATIONS);
    waker.wake_by_ref();
    Poll::Pending
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;
    use crate::waking::WakeCounter;

    #[test]
    fn a_poll_completes_so_many_operations_and_then_gives_way() {
        let (wakes, waker) = WakeCounter::new();
        let complete = || spend(&waker, || Poll::Ready(())).is_ready();
        refill();
        assert!((0..OPERATIONS).all(|_| complete()));
        assert_eq!(wakes.times(), 0);
        assert_eq!(spend(&waker, || -> Poll<()> { unreachable!("it is not polled") }), Poll::Pending);
        assert_eq!(wakes.times(), 1);
        assert!((0..OPERATIONS).all(|_| complete()), "an executor that refills nothing goes on");
        assert!(!complete());
    }

    #[test]
    fn an_operation_that_waits_spends_nothing() {
        let (wakes, waker) = WakeCounter::new();
        refill();
        assert!((0..10 * OPERATIONS).all(|_| spend(&waker, || Poll::<()>::Pending).is_pending()));
        assert!(spend(&waker, || Poll::Ready(())).is_ready());
        assert_eq!(wakes.times(), 0);
    }
}
