//! The data that an executor keeps beside a future: where it was spawned, whether it is known to be slow,
//! and its entry in the list of unfinished tasks.

use std::future::Future;
use std::mem::{self, ManuallyDrop};
use std::ops::Deref;
use std::panic::Location;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use async_task::{Builder, Runnable, ScheduleInfo, Task, WithInfo};

use super::host;
use super::runner::{Caught, Left, Runner};
use super::state::{State, StateRef};
use super::tasks::Ticket;
use crate::flight::{self, PollNote, TaskNumber};
use crate::observed::{SpawnMeta, Watched};
use crate::waking;

/// The mark of a task that was caught once. Each quick poll lowers the mark by one.
const FIRST_MARK: u8 = 2;
/// Upper bound of the mark, for a task that is caught again and again.
const LAST_MARK: u8 = 64;

/// What is known of the polls of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum History {
    /// There was none.
    Fresh,
    /// None was slow lately.
    Quick,
    /// The deputy caught one in this, and the mark says how many quick polls in a row make it forgotten.
    Slow(Caught, u8),
    /// The last one has panicked.
    Panicked,
}

impl History {
    /// Returns the history after another poll, which ends now on `runner`. If the task is known to compute, it
    /// goes to the slow queue when it wakes itself.
    #[cold]
    fn after_poll_on(self, runner: &Runner) -> Self {
        let after = self.after(runner.poll.caught());
        if matches!(after, Self::Slow(Caught::Computing, _)) && runner.may_leave() {
            runner.leave_task(Left::Slow);
        }
        after
    }

    /// Returns the history after another poll, which the deputy caught in this, if it did. A task that is
    /// caught again has its mark doubled.
    fn after(self, caught: Option<Caught>) -> Self {
        match (self, caught) {
            (Self::Slow(_, mark), Some(caught)) => Self::Slow(caught, (mark * 2).min(LAST_MARK)),
            (_, Some(caught)) => Self::Slow(caught, FIRST_MARK),
            (Self::Slow(kind, mark @ 2..), None) => Self::Slow(kind, mark - 1),
            _ => Self::Quick,
        }
    }

    /// Returns as what `runner`, which is about to poll a task with this history, has to leave it to takers. If
    /// not, and the task is slow, has another thread lead meanwhile.
    #[cold]
    fn left_by(self, runner: &Runner) -> Option<Left> {
        match self {
            Self::Fresh if runner.is_standby() && runner.inspects.is_set() => return Some(Left::Unknown),
            Self::Slow(Caught::Computing, _)
                if runner.may_leave() && (runner.is_standby() || !runner.inspects.is_set()) =>
            {
                return Some(Left::Slow);
            }
            Self::Slow(kind, _) => host::cover(kind),
            Self::Fresh | Self::Quick | Self::Panicked => {}
        }
        None
    }
}

/// Size in bytes from which on a future is boxed before it is spawned. `async-task` boxes the futures of
/// tasks that are larger than its limit, so the box here is not an additional allocation.
pub(crate) const LARGE: usize = 2048 - size_of::<Tracked<Watched<()>>>();

/// Evaluates `$spawn` with `$future`, or with a box of it if the future is large; `$meta` gets the size of
/// the future. Each public `spawn` begins with this: the functions below move the future, and a debug build
/// copies it into each of their stack frames.
///
/// A debug build compiles both branches. So the box is of a `dyn Future`, with `: Send` after the name of one
/// that is `Send`: its branch is compiled once for all futures with the same output.
macro_rules! boxed_if_large {
    ($future:ident $(: $bound:ident)?, $meta:ident, $spawn:expr) => {{
        let $meta = $meta.of_size(size_of_val(&$future));
        if size_of_val(&$future) >= $crate::executor::LARGE {
            let $future: ::std::pin::Pin<Box<dyn Future<Output = _> $(+ $bound)? + '_>> = Box::pin($future);
            $spawn
        } else {
            $spawn
        }
    }};
}
pub(crate) use boxed_if_large;

/// A spawned future, and the data beside it. A flat struct, because the fields of a nested struct could not
/// use the padding that a small future leaves, and there may be millions of tasks.
struct Tracked<F> {
    future: ManuallyDrop<F>,
    spawned_at: &'static Location<'static>,
    state: NonNull<State>,
    ticket: Ticket,
    number: TaskNumber,
    history: History,
    /// Whether the future was dropped, after its last poll.
    is_dropped: bool,
}

// SAFETY: the pointer is used as a shared reference to the state, which is `Sync`. The other fields are
// `Send`.
unsafe impl<F: Send> Send for Tracked<F> {}

impl<F: Future> Future for Tracked<F> {
    type Output = F::Output;

    /// Polls the future. A panic is noted when the task is dropped. A task that has to wait for the first
    /// time is listed. A future that is ready is dropped here, so that a panic of its destructor is one of
    /// the poll, as with tokio: code that awaits the task gets it.
    ///
    /// Inside of a runner, the task is first noted there for the deputy. Before a task that is known to be
    /// slow is polled, another thread is woken to lead, if one sleeps. A task that is known to compute is
    /// polled from the slow queue only, by a taker; found elsewhere, it wakes itself, which puts it there. A
    /// task that was never polled, and that a standby has found in the injector, is left to takers, too.
    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future, the only field that is pinned, is never moved out of the struct.
        let this: *mut Self = unsafe { self.get_unchecked_mut() };
        let polling = Polling(this);
        // SAFETY: `self` is an exclusive reference. The guard reads the task only when it is dropped by a
        // panic, after the last use of this reference.
        let this = unsafe { &mut *this };
        // SAFETY: `self` was pinned, and pinning is structural for the future.
        let future = unsafe { Pin::new_unchecked(&mut *this.future) };
        let mut is_left = false;
        let result = host::with_running(|runner| {
            let Some(runner) = runner else { return future.poll(cx) };
            runner.poll.set_place(this.spawned_at);
            if this.history != History::Quick && (this.history != History::Fresh || runner.inspects.is_set())
            {
                if let Some(left) = this.history.left_by(runner) {
                    runner.leave_task(left);
                    is_left = true;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
            let noted = PollNote::begin(this.number, this.spawned_at);
            let result = future.poll(cx);
            noted.end();
            // A single branch, because in most polls neither holds.
            if runner.poll.is_caught() | (this.history != History::Quick) {
                this.history = this.history.after_poll_on(runner);
            }
            result
        });
        if result.is_ready() {
            this.is_dropped = true;
            // SAFETY: the future is not used again: `async-task` does not poll a task that is ready or has
            // panicked, and `drop` looks at the flag.
            unsafe { ManuallyDrop::drop(&mut this.future) };
        } else if this.ticket == Ticket::COUNTED && !is_left {
            // SAFETY: as in `drop`.
            this.ticket = unsafe { this.state.as_ref() }.tasks.list(cx.waker(), this.spawned_at);
        }
        mem::forget(polling);
        result
    }
}

/// A guard for the poll of a task. The poll forgets it at the end, so its drop means that the poll has
/// panicked.
struct Polling<F>(*mut Tracked<F>);

impl<F> Drop for Polling<F> {
    /// Marks the task whose poll a panic has left. Its drop, which comes next, notes the panic.
    fn drop(&mut self) {
        // SAFETY: the task exists until its poll is over. Only this field is written, and no reference is
        // made to the future, to which other code may hold pointers.
        unsafe { (*self.0).history = History::Panicked };
    }
}

impl<F> Drop for Tracked<F> {
    /// Drops the future, unless its last poll has done that, and then counts the end of the task, which may
    /// wake the thread that waits for it. In between, notes a panic of the last poll, or of the destructor.
    ///
    /// A panic of the destructor ends here, because `async-task` aborts the process if this call panics. The
    /// task was cancelled or has panicked before, so no code awaits the panic.
    fn drop(&mut self) {
        // SAFETY: the schedule function of the same task keeps the state alive, and `async-task` drops a
        // task's future, and this struct with it, before the schedule function.
        let state = unsafe { self.state.as_ref() };
        let mut has_panicked = self.history == History::Panicked;
        if !self.is_dropped {
            // In the poll of another own task the place stays, and a foreign task has none after this drop.
            let sets_place = host::with_running(|runner| {
                let runner = runner.filter(|runner| !runner.poll.has_place());
                runner.inspect(|runner| runner.poll.set_place(self.spawned_at)).is_some()
            });
            // SAFETY: the future is not used again. The task counts as unfinished until this drop is over.
            let dropped = waking::catch(|| unsafe { ManuallyDrop::drop(&mut self.future) });
            has_panicked |= dropped.is_none();
            if sets_place {
                host::with_running(|runner| runner.into_iter().for_each(|runner| runner.poll.clear_place()));
            }
        }
        if has_panicked {
            // The task counts as unfinished until the program's hook has returned, too.
            state.note_panic(self.spawned_at);
        }
        flight::ends(self.number);
        state.tasks.leave(self.ticket);
    }
}

/// Creates a task, counts it if the executor tracks its tasks, and schedules it. The task is observed if a
/// subscriber or a dump wants to know of it.
///
/// # Safety
///
/// If the future or its output is not `Send`, the executor is used on one thread only. The executor drops the
/// future before what it borrows ends.
pub(crate) unsafe fn spawn<'a, S, F>(state: S, future: F, meta: SpawnMeta<'_>) -> Task<F::Output>
where
    S: Deref<Target = State> + Clone + Send + Sync + 'static,
    F: Future + 'a,
{
    let number = TaskNumber::next();
    let future = meta.watch_in(future, state.address(), number.get());
    let ticket = if state.tracks_tasks() { state.tasks.enter() } else { Ticket::NONE };
    // SAFETY: as the caller promises.
    let (runnable, task) = unsafe { make(state, future, meta.spawned_at, (ticket, number)) };
    runnable.schedule();
    task
}

/// Creates a task that is not scheduled yet: the caller schedules the [`Runnable`], or drops it. `ticket`
/// says whether the caller has counted the task. A panic of the future resumes where the task is awaited.
///
/// # Safety
///
/// As for [`spawn`].
unsafe fn make<'a, S, F>(
    state: S,
    future: F,
    spawned_at: &'static Location<'static>,
    (ticket, number): (Ticket, TaskNumber),
) -> (Runnable, Task<F::Output>)
where
    S: Deref<Target = State> + Send + Sync + 'static,
    F: Future + 'a,
{
    let at = NonNull::from(&*state);
    flight::spawns(number, spawned_at);
    let future = ManuallyDrop::new(future);
    let history = History::Fresh;
    let future = Tracked { future, spawned_at, state: at, ticket, number, history, is_dropped: false };
    let schedule = move |task: Runnable, info: ScheduleInfo| {
        flight::wakes(number);
        host::schedule(&state, task, info.woken_while_running);
    };
    // SAFETY: as the caller promises; the schedule function is `Send`, `Sync` and `'static`.
    unsafe { Builder::new().propagate_panic(true).spawn_unchecked(|()| future, WithInfo(schedule)) }
}

/// Creates a task of a runtime that was shut down: the task is cancelled already, and its future dropped. The
/// future comes in a box, as a [large](boxed_if_large) one does, so that no code is compiled for it alone.
#[cold]
pub(crate) fn spawn_in_vain<T>(
    state: StateRef,
    future: Pin<Box<dyn Future<Output = T> + Send>>,
    spawned_at: &'static Location<'static>,
) -> Task<T> {
    let future = SpawnMeta::unobserved(spawned_at).watch(future);
    // SAFETY: the future is `Send` and borrows nothing; it has no output.
    let (runnable, task) = unsafe { make(state, future, spawned_at, (Ticket::NONE, TaskNumber::next())) };
    drop(runnable);
    task
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests;
