//! What an executor adds to a task: where it was spawned, whether it is known to be slow, and its entry on the
//! list of unfinished tasks.

use std::future::Future;
use std::ops::Deref;
use std::panic::Location;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use async_task::{Builder, Runnable, ScheduleInfo, Task, WithInfo};
use pin_project_lite::pin_project;

use super::hosting;
use super::state::{State, StateRef};
use super::tasks::Ticket;

/// The mark of a task that was caught once; each quick poll takes one off (it wears off).
const FIRST_MARK: u8 = 2;
/// The mark of a task that is caught again and again.
const LAST_MARK: u8 = 64;

pin_project! {
    /// A spawned future.
    struct Tracked<F> {
        #[pin]
        future: F,
        place: &'static Location<'static>,
        slow: u8,
        // Last: a task counts as unfinished until its future is dropped.
        entry: Option<Entry>,
    }
}

/// An entry on the executor's list; dropping it takes the task off.
struct Entry {
    state: NonNull<State>,
    ticket: Ticket,
}

// SAFETY: it is no more than a reference to the state, which is `Sync`.
unsafe impl Send for Entry {}

impl Drop for Entry {
    fn drop(&mut self) {
        // SAFETY: the schedule function of the same task keeps the state alive, and a task drops its future, and
        // this with it, before its schedule function.
        unsafe { self.state.as_ref() }.tasks.leave(self.ticket);
    }
}

impl<F: Future> Future for Tracked<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        hosting::with_running(|runner| {
            let Some(runner) = runner else { return this.future.poll(cx) };
            runner.task_begins(this.place);
            if *this.slow > 0 {
                hosting::cover();
            }
            let result = this.future.poll(cx);
            if runner.take_caught() {
                *this.slow = this.slow.saturating_mul(2).clamp(FIRST_MARK, LAST_MARK);
            } else if *this.slow > 0 {
                *this.slow -= 1;
            }
            result
        })
    }
}

/// Makes a task of `future` and schedules it.
///
/// # Safety
///
/// If the future or its output is not `Send`, the executor is used on one thread only. The executor drops the
/// future before what it borrows ends.
pub(super) unsafe fn spawn<'a, S, F>(
    state: S,
    future: F,
    place: &'static Location<'static>,
) -> Task<F::Output>
where
    S: Deref<Target = State> + Clone + Send + Sync + 'static,
    F: Future + 'a,
{
    let make = |entry| {
        let future = Tracked { future, place, slow: 0, entry };
        let owner = state.clone();
        let schedule = move |task: Runnable, info: ScheduleInfo| owner.schedule(task, info);
        // SAFETY: as the caller promises; the schedule function is `Send`, `Sync` and `'static`.
        unsafe { Builder::new().propagate_panic(true).spawn_unchecked(|()| future, WithInfo(schedule)) }
    };
    let (runnable, task) = if state.tracks_tasks() {
        let at = NonNull::from(&*state);
        state.tasks.enter(|ticket| {
            let (runnable, task) = make(Some(Entry { state: at, ticket }));
            (runnable.waker(), (runnable, task))
        })
    } else {
        make(None)
    };
    runnable.schedule();
    task
}

/// The same for either kind of reference.
///
/// # Safety
///
/// As for [`spawn`].
#[inline]
pub(crate) unsafe fn spawn_at<'a, F: Future + 'a>(
    state: &StateRef,
    future: F,
    place: &'static Location<'static>,
) -> Task<F::Output> {
    match state {
        // SAFETY: as the caller promises.
        StateRef::Shared(state) => unsafe { spawn(state.clone(), future, place) },
        // SAFETY: as the caller promises.
        StateRef::Static(state) => unsafe { spawn(*state, future, place) },
    }
}
