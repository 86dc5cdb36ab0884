//! Tasks that other code has built with `async-task`.
//!
//! A foreign task is handed over once for each of its polls, as a [`Runnable`]. [`schedule`] wraps this poll
//! in a task of the executor's own, which ends with it. So the queues, permits, counts, reports and the end
//! of an executor treat the poll as they treat any short task. The price is one allocation for each wake.
//! Between its polls the executor does not know a foreign task.
//!
//! While a foreign task is polled, the runner has its address: a task that wakes itself goes to the back, as
//! an own one does, and a drain that it awaits does not take the own task around the poll for the one that
//! waits.

use std::future::Future;
use std::ops::Deref;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use async_task::Runnable;

use super::runner::Runner;
use super::state::State;
use super::{host, task};
use crate::observed::SpawnMeta;
use crate::sync;

/// One poll of a foreign task. Dropping it unpolled cancels the foreign task.
struct ForeignPoll<M>(Option<Runnable<M>>);

/// The runnable is a pointer, and may be moved.
impl<M> Unpin for ForeignPoll<M> {}

impl<M> Future for ForeignPoll<M> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let Some(runnable) = self.0.take() else { return Poll::Ready(()) };
        let waker = runnable.waker();
        host::with_running(|runner| {
            // Dropped by a panic of the poll, too.
            let _noted = runner.map(|runner| NotedPoll::begin(runner, waker.data()));
            runnable.run();
        });
        Poll::Ready(())
    }
}

/// Keeps the address of a foreign task noted in the runner that polls it.
struct NotedPoll<'a>(&'a Runner);

impl<'a> NotedPoll<'a> {
    fn begin(runner: &'a Runner, address: *const ()) -> Self {
        runner.note_foreign(address);
        Self(runner)
    }
}

impl Drop for NotedPoll<'_> {
    fn drop(&mut self) {
        self.0.note_foreign(std::ptr::null());
    }
}

/// Queues one poll of a foreign task where a task that is woken here would be queued. Reports name
/// `scheduled_at` as the line that spawned it.
///
/// # Safety
///
/// If the executor is used on several threads, the foreign task may be polled and dropped on any thread. The
/// executor drops it before what it borrows ends.
pub(super) unsafe fn schedule<S, M>(state: S, runnable: Runnable<M>, scheduled_at: &'static Location<'static>)
where
    S: Deref<Target = State> + Clone + Send + Sync + 'static,
{
    // SAFETY: as the caller promises.
    let _queued = unsafe { schedule_unless(&state, runnable, scheduled_at, || false) };
}

/// Does the same as [`schedule`], unless `has_ended` returns true: then returns the poll, whose drop cancels
/// the foreign task. The poll counts as a task when `has_ended` is called, so an end of the executor that
/// comes later waits for it.
///
/// # Safety
///
/// As for [`schedule`].
pub(crate) unsafe fn schedule_unless<S, M>(
    state: &S,
    runnable: Runnable<M>,
    scheduled_at: &'static Location<'static>,
    has_ended: impl FnOnce() -> bool,
) -> Result<(), Runnable>
where
    S: Deref<Target = State> + Clone + Send + Sync + 'static,
{
    let wakes_itself =
        host::with_running(|runner| runner.is_some_and(|runner| runner.foreign() == runnable.waker().data()));
    // Not observed: this is a poll, and not a task.
    let meta = SpawnMeta::unobserved(scheduled_at);
    // SAFETY: as the caller promises.
    let (poll, task) = unsafe { task::create(state.clone(), ForeignPoll(Some(runnable)), meta) };
    task.detach();
    // ORDER: pairs with the fence in `cancel_to_the_last`: the end sees the count, or this thread sees the
    // end.
    sync::full_fence();
    if has_ended() {
        return Err(poll);
    }
    host::schedule(state, poll, wakes_itself);
    Ok(())
}
