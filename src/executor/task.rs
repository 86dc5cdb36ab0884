//! What an executor adds to a task: where it was spawned, whether it is known to be slow, and its entry on the
//! list of unfinished tasks.

use std::future::Future;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::Location;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use async_task::{Builder, Runnable, ScheduleInfo, Task, WithInfo};

use super::host;
use super::runner::Caught;
use super::state::{State, StateRef};
use super::tasks::Ticket;

/// The mark of a task that was caught once; each quick poll takes one off (it wears off).
const FIRST_MARK: u8 = 2;
/// The mark of a task that is caught again and again.
const LAST_MARK: u8 = 64;
/// Beside the mark: the task computed when it was caught.
const COMPUTES: u8 = 128;
/// The mark of a task that was never polled: it may compute, for all that is known.
const NEW: u8 = COMPUTES;

/// A spawned future, and what is kept beside it. One flat struct: fields of a struct inside could not use the padding
/// that a small future leaves, and there may be millions of these.
struct Tracked<F> {
    future: ManuallyDrop<F>,
    spawned_at: &'static Location<'static>,
    state: NonNull<State>,
    ticket: Ticket,
    slow: u8,
}

// SAFETY: the pointer is no more than a reference to the state, which is `Sync`.
unsafe impl<F: Send> Send for Tracked<F> {}

impl<F: Future> Future for Tracked<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is never moved out of `this`; nothing else in it is pinned.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: `this` was pinned, and so is the future inside it.
        let future = unsafe { Pin::new_unchecked(&mut *this.future) };
        let result = host::with_running(|runner| {
            let Some(runner) = runner else {
                if this.slow == NEW {
                    this.slow = 0;
                }
                return future.poll(cx);
            };
            runner.task_begins(this.spawned_at, cx.waker());
            if this.slow > 0 {
                if this.slow & COMPUTES == 0 {
                    host::cover(Caught::Blocking);
                } else if runner.is_reserve() && (this.slow != NEW || runner.sifts.is_set()) {
                    // It is to be polled by somebody else, if at all while others compute. That wears off, too: a quick one that was
                    // caught in a bad moment would never show again that it is quick.
                    runner.sifts.take();
                    if this.slow != NEW {
                        this.slow = learn(this.slow, None);
                    }
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                } else if this.slow != NEW {
                    host::cover(Caught::Computing);
                }
            }
            let result = future.poll(cx);
            if runner.is_caught() | (this.slow > 0) {
                let is_quick = this.slow == NEW && !runner.is_caught();
                this.slow = if is_quick { 0 } else { learn(this.slow, runner.take_caught()) };
            }
            result
        });
        if result.is_pending() && this.ticket == Ticket::COUNTED {
            // SAFETY: as in `drop`.
            this.ticket = unsafe { this.state.as_ref() }.tasks.list(cx.waker());
        }
        result
    }
}

/// What a mark becomes after a poll in which the deputy caught the task, or did not.
#[cold]
fn learn(slow: u8, caught: Option<Caught>) -> u8 {
    let (mark, kind) = (slow & !COMPUTES, slow & COMPUTES);
    let Some(caught) = caught else {
        let worn = mark.saturating_sub(1);
        return if worn == 0 { 0 } else { worn | kind };
    };
    let kind = if caught == Caught::Computing { COMPUTES } else { 0 };
    (mark * 2).clamp(FIRST_MARK, LAST_MARK) | kind
}

impl<F> Drop for Tracked<F> {
    fn drop(&mut self) {
        /// Takes the task off its executor's list, whatever the future's drop does.
        struct Leave<'a>(&'a State, Ticket, bool);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                if self.2 {
                    self.0.drops.end();
                }
                self.0.tasks.leave(self.1);
            }
        }
        // SAFETY: the schedule function of the same task keeps the state alive, and a task drops its future, and
        // this with it, before its schedule function.
        let state = unsafe { self.state.as_ref() };
        let is_watched = state.drops.are_watched();
        let _leave = Leave(state, self.ticket, is_watched);
        if is_watched {
            state.drops.begin(self.spawned_at);
        }
        // SAFETY: the future is not used again. It counts as unfinished until here.
        unsafe { ManuallyDrop::drop(&mut self.future) };
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
    spawned_at: &'static Location<'static>,
) -> Task<F::Output>
where
    S: Deref<Target = State> + Clone + Send + Sync + 'static,
    F: Future + 'a,
{
    let ticket = if state.tracks_tasks() { state.tasks.enter() } else { Ticket::NONE };
    // SAFETY: as the caller promises.
    let (runnable, task) = unsafe { make(state, future, spawned_at, ticket) };
    runnable.schedule();
    task
}

/// # Safety
///
/// As for [`spawn`].
unsafe fn make<'a, S, F>(
    state: S,
    future: F,
    spawned_at: &'static Location<'static>,
    ticket: Ticket,
) -> (Runnable, Task<F::Output>)
where
    S: Deref<Target = State> + Send + Sync + 'static,
    F: Future + 'a,
{
    let at = NonNull::from(&*state);
    let future = Tracked { future: ManuallyDrop::new(future), spawned_at, state: at, ticket, slow: NEW };
    let schedule = move |task: Runnable, info: ScheduleInfo| host::schedule(&state, task, info);
    // SAFETY: as the caller promises; the schedule function is `Send`, `Sync` and `'static`.
    unsafe { Builder::new().propagate_panic(true).spawn_unchecked(|()| future, WithInfo(schedule)) }
}

/// Makes a task of a runtime that was shut down: it is cancelled already, and its future dropped.
///
/// # Safety
///
/// As for [`spawn`].
pub(crate) unsafe fn spawn_in_vain<'a, F: Future + 'a>(
    state: &StateRef,
    future: F,
    spawned_at: &'static Location<'static>,
) -> Task<F::Output> {
    // SAFETY: as the caller promises.
    let (runnable, task) = unsafe { make(state.clone(), future, spawned_at, Ticket::NONE) };
    drop(runnable);
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
    spawned_at: &'static Location<'static>,
) -> Task<F::Output> {
    match state {
        // SAFETY: as the caller promises.
        StateRef::Shared(state) => unsafe { spawn(state.clone(), future, spawned_at) },
        // SAFETY: as the caller promises.
        StateRef::Static(state) => unsafe { spawn(*state, future, spawned_at) },
    }
}
