//! The cooperative budget with which each poll begins.
//!
//! The real tokio's channels, and other users of `coop`, read a thread-local of the real tokio, which is
//! unlimited unless a real runtime polls. No public function sets that thread-local, but one restores it:
//! `poll_proceed` returns a `RestoreOnPending`, which remembers the budget from before the call, and whose
//! drop writes it into the thread-local of the dropping thread. So one such value is taken, once in a
//! process, from a poll that the real tokio began with a full budget (a task of its `LocalSet`, which needs
//! no runtime), and a copy of it is dropped whenever a poll must begin with a full budget: a nanosecond.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::mem::{self, ManuallyDrop};
use std::pin::pin;
use std::ptr;
use std::rc::Rc;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};

use real::task::coop::{RestoreOnPending, poll_proceed};

/// A value that remembers a full budget. `None` if the real tokio works otherwise than described, which a
/// test would notice.
struct Full(Option<ManuallyDrop<RestoreOnPending>>);

// A copy equals the original only if the value owns nothing: a type smaller than a pointer owns nothing.
const _: () = assert!(mem::size_of::<RestoreOnPending>() < mem::size_of::<usize>());

// SAFETY: only `refill` uses the value, and reads the few bytes of the remembered budget. A copy acts on
// purpose on another thread than that of its creation: each thread's budget is filled as that thread
// requests.
unsafe impl Send for Full {}
// SAFETY: as above; the value is never written to after its creation.
unsafe impl Sync for Full {}

static FULL: OnceLock<Full> = OnceLock::new();

/// Gives the poll that begins now on this thread a full budget.
#[inline]
pub(crate) fn refill() {
    if let Some(full) = &FULL.get_or_init(find).0 {
        // SAFETY: a copy of a value that owns nothing and is never dropped itself; the copy's drop reads only
        // the copy.
        drop(unsafe { ptr::read(&raw const **full) });
    }
}

/// Calls `f` and restores the thread's budget afterwards: for polls on a thread whose budget may belong to
/// another poll.
pub(crate) fn with_budget<R>(f: impl FnOnce() -> R) -> R {
    let mut f = Some(f);
    let once = poll_fn(|_| Poll::Ready(f.take().map(|f| f())));
    // Its poll saves the budget, and restores it.
    let once = pin!(real::task::coop::unconstrained(once));
    match once.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Some(result)) => result,
        Poll::Ready(None) | Poll::Pending => unreachable!("it is polled once, and is ready at once"),
    }
}

#[cold]
fn find() -> Full {
    let found = Rc::new(Cell::new(None));
    let tasks = real::task::LocalSet::new();
    let finds = found.clone();
    tasks.spawn_local(poll_fn(move |cx| poll_proceed(cx).map(|full| finds.set(Some(full)))));
    let _ = with_budget(|| pin!(tasks).poll(&mut Context::from_waker(Waker::noop())));
    // Moved out of the future, because the thread-local of the real tokio no longer has the full budget.
    Full(found.take().map(ManuallyDrop::new))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how often the current poll may proceed.
    fn left() -> usize {
        let mut cx = Context::from_waker(Waker::noop());
        let used = (0..10_000).take_while(|_| match poll_proceed(&mut cx) {
            Poll::Ready(proceeds) => {
                proceeds.made_progress();
                true
            }
            Poll::Pending => false,
        });
        used.count()
    }

    #[test]
    fn a_poll_begins_with_a_full_budget_and_leaves_none_behind() {
        assert_eq!(left(), 10_000, "it is without limit outside");
        for _ in 0..3 {
            let inside = with_budget(|| {
                refill();
                (left(), real::task::coop::has_budget_remaining())
            });
            assert_eq!(inside, (128, false));
        }
        assert_eq!(left(), 10_000);
        let elsewhere = std::thread::spawn(|| {
            refill();
            left()
        });
        assert_eq!(elsewhere.join().unwrap(), 128);
    }

    #[test]
    fn a_poll_inside_of_another_does_not_touch_its_budget() {
        with_budget(|| {
            refill();
            let mut cx = Context::from_waker(Waker::noop());
            for _ in 0..100 {
                let Poll::Ready(proceeds) = poll_proceed(&mut cx) else { panic!("it is not used up") };
                proceeds.made_progress();
            }
            with_budget(|| {
                refill();
                assert_eq!(left(), 128);
            });
            assert_eq!(left(), 28);
        });
    }
}
