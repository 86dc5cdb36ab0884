//! Executors: tasks, and the runners that poll them. Executors know wakers, but not the poller of the
//! reactor.
//!
//! | part | what it is |
//! |---|---|
//! | [`Executor`], [`LocalExecutor`], [`StaticExecutor`], [`StaticLocalExecutor`] | the public types |
//! | [`state`] | the shared state of an executor's tasks and runners: the injector and the lists |
//! | [`run`], [`turns`] | the futures behind `run` and `tick`; which task comes next |
//! | [`member`] | the place of a `run` in the executor, and in a `block_on` |
//! | [`runner`] | a `run` in progress: its slot, its ring, and its state for the deputy |
//! | [`slot`] | the direct slot |
//! | [`host`] | the executor's view of a `block_on`: which runners it hosts |
//! | [`sleeper`], [`idle`] | a runner or ticker that waits for tasks; waking one of them |
//! | [`task`], [`tasks`] | the data beside a spawned future; the count and the list of unfinished tasks |
//! | [`foreign`] | tasks that other code has built with `async-task` |
//! | [`listing`] | the list of unfinished tasks |
//! | [`ends`], [`vigil`] | the end of a runtime: waiting for tasks, and cancelling them |
//! | [`account`] | what a deputy looks at |

mod account;
mod ends;
mod foreign;
mod host;
mod idle;
mod listing;
mod local;
mod member;
mod run;
mod runner;
mod sleeper;
mod slot;
mod state;
mod statics;
#[cfg(feature = "trace")]
#[path = "../trace/survey.rs"]
mod survey;
mod task;
mod tasks;
mod turns;
mod vigil;

#[doc = include_str!("fallible.md")]
pub use async_task::FallibleTask;
#[doc = include_str!("task.md")]
pub use async_task::Task;
pub use local::LocalExecutor;
pub use statics::{StaticExecutor, StaticLocalExecutor};

pub(crate) use account::{Account, Queues, Waiting};
pub(crate) use foreign::schedule;
pub(crate) use host::{
    Host, HostGuard, Hosted, Runners, Surroundings, here, is_awaited_on_top, place, wake_root_on_top,
};
pub(crate) use run::Run;
pub(crate) use runner::{Caught, PollCounters, Runner, TaskPoll};
pub(crate) use state::{Notices, State, StateRef};
#[cfg(feature = "trace")]
pub(crate) use survey::TaskSurvey;
pub(crate) use task::{LARGE, boxed_if_large, spawn, spawn_in_vain};

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, OnceLock};

use async_task::Runnable;

use crate::observed::{SpawnMeta, TaskKind};

/// Implements what all executors have: methods that run tasks, a default, and a debug form. `$inner` leads to
/// the [`Executor`] in the type.
macro_rules! runs_tasks {
    ($name:ident $(<$borrow:lifetime>)?, self$($inner:tt)*) => {
        impl$(<$borrow>)? $name$(<$borrow>)? {
            /// Runs one task, if one is scheduled, also a task in the queue of a [`run`](Self::run) in
            /// progress.
            ///
            /// ```
            /// let executor = paceline::Executor::new();
            /// assert!(!executor.try_tick());
            /// executor.spawn(async {}).detach();
            /// assert!(executor.try_tick());
            /// ```
            pub fn try_tick(&self) -> bool {
                let task = self$($inner)*.state.get().and_then(|state| state.any_task());
                task.map($crate::executor::host::run_beside).is_some()
            }

            /// Runs one task, waiting for one to be scheduled.
            ///
            /// ```
            /// let executor = paceline::Executor::new();
            /// let task = executor.spawn(async { 1 });
            /// paceline::block_on(executor.tick());
            /// assert!(task.is_finished());
            /// ```
            ///
            /// # Cancel safety
            ///
            /// A task is taken only when it is run.
            pub async fn tick(&self) {
                $crate::executor::run::tick(self$($inner)*.state()).await;
            }

            /// Runs tasks until `future` is done. If the executor can be shared between threads, any number
            /// of them may do so at once.
            ///
            /// Inside paceline's own [`block_on`](crate::block_on()), a task that an event wakes is polled by
            /// the thread that saw the event.
            ///
            /// ```
            /// let executor = paceline::Executor::new();
            /// let task = executor.spawn(async { 1 });
            /// assert_eq!(paceline::block_on(executor.run(async { task.await + 1 })), 2);
            /// ```
            ///
            /// # Cancel safety
            ///
            /// Dropping the future returns the tasks in its queue to the executor.
            pub async fn run<T>(&self, future: impl Future<Output = T>) -> T {
                // The runner joins at the first poll.
                $crate::executor::Run::new(self$($inner)*.state().clone().into(), future).await
            }
        }

        impl$(<$borrow>)? Default for $name$(<$borrow>)? {
            fn default() -> Self {
                Self::new()
            }
        }

        impl$(<$borrow>)? fmt::Debug for $name$(<$borrow>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}
use runs_tasks;

runs_tasks!(Executor<'a>, self);

/// An executor: spawn futures onto it, and [`run`](Executor::run) it on as many threads as you like.
///
/// An executor allocates nothing until it is used, so it can be a constant. Dropping it cancels its tasks.
///
/// # Examples
///
/// ```
/// use paceline::{Executor, block_on};
///
/// let executor = Executor::new();
/// let task = executor.spawn(async { 6 * 7 });
/// assert_eq!(block_on(executor.run(task)), 42);
/// ```
pub struct Executor<'a> {
    /// Created on first use. Std's cell in all modes, because executors are created in constants, which
    /// loom's atomics do not support.
    state: OnceLock<Arc<State>>,
    /// Whether the executor can be dropped, and so has to know its tasks.
    tracks_tasks: bool,
    /// Invariant in `'a`: a task may borrow for exactly that long.
    borrows: PhantomData<fn(&'a ()) -> &'a ()>,
}

impl UnwindSafe for Executor<'_> {}
impl RefUnwindSafe for Executor<'_> {}

impl<'a> Executor<'a> {
    /// Creates an executor without tasks.
    ///
    /// ```
    /// static EXECUTOR: paceline::Executor<'static> = paceline::Executor::new();
    /// assert!(EXECUTOR.is_empty());
    /// ```
    pub const fn new() -> Self {
        Self::with_tracking(true)
    }

    const fn with_tracking(tracks_tasks: bool) -> Self {
        Self { state: OnceLock::new(), tracks_tasks, borrows: PhantomData }
    }

    #[inline]
    fn state(&self) -> &Arc<State> {
        self.state.get_or_init(|| State::new(self.tracks_tasks, false))
    }

    /// Returns whether all its tasks are finished.
    ///
    /// ```
    /// let executor = paceline::Executor::new();
    /// let task = executor.spawn(async {});
    /// assert!(!executor.is_empty());
    /// assert!(executor.try_tick());
    /// assert!(executor.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.state.get().is_none_or(|state| state.unfinished() == Some(0))
    }

    /// Spawns a future. Dropping the [`Task`] cancels it; [`Task::detach`] lets it run on its own.
    ///
    /// ```
    /// let executor = paceline::Executor::new();
    /// let task = executor.spawn(async { "done" });
    /// assert_eq!(paceline::block_on(executor.run(task)), "done");
    /// ```
    #[track_caller]
    pub fn spawn<T: Send + 'a>(&self, future: impl Future<Output = T> + Send + 'a) -> Task<T> {
        let meta = SpawnMeta::new(TaskKind::Task, Location::caller());
        // SAFETY: the future and its output are `Send`; dropping the executor drops the future.
        unsafe { boxed_if_large!(future: Send, meta, self.spawn_at(future, meta)) }
    }

    /// Spawns many futures, and adds their tasks to `handles`.
    ///
    /// ```
    /// let executor = paceline::Executor::new();
    /// let mut tasks = Vec::new();
    /// executor.spawn_many((0..3).map(|n| async move { n * n }), &mut tasks);
    /// let sum = async {
    ///     let mut sum = 0;
    ///     for task in tasks {
    ///         sum += task.await;
    ///     }
    ///     sum
    /// };
    /// assert_eq!(paceline::block_on(executor.run(sum)), 5);
    /// ```
    #[track_caller]
    pub fn spawn_many<T: Send + 'a, F: Future<Output = T> + Send + 'a>(
        &self,
        futures: impl IntoIterator<Item = F>,
        handles: &mut impl Extend<Task<F::Output>>,
    ) {
        let meta = SpawnMeta::new(TaskKind::Task, Location::caller());
        // SAFETY: as in `spawn`.
        let spawn = |future| unsafe { boxed_if_large!(future: Send, meta, self.spawn_at(future, meta)) };
        handles.extend(futures.into_iter().map(spawn));
    }

    /// Spawns a future.
    ///
    /// # Safety
    ///
    /// If the future or its output is not `Send`, the executor is used on one thread only.
    unsafe fn spawn_at<T: 'a>(&self, future: impl Future<Output = T> + 'a, meta: SpawnMeta<'_>) -> Task<T> {
        // SAFETY: as the caller promises; `Drop` cancels all tasks before `'a` ends.
        unsafe { task::spawn(self.state().clone(), future, meta) }
    }

    /// Has one poll of a task run here that other code has built with `async-task`.
    ///
    /// Call this in the schedule function of the task, which `async-task` calls for each wake. The task may
    /// be polled, and dropped, on any thread that runs this executor.
    ///
    /// If the wake comes from an event that this thread handles, the thread polls the task itself next, as
    /// with the executor's own tasks. A task that wakes itself goes to the back of the queue.
    ///
    /// The executor does not count such a task: [`is_empty`](Self::is_empty) may be true while it is
    /// scheduled, and dropping the executor cancels it only if it is scheduled. A panic
    /// that leaves the poll is lost; give the task `propagate_panic` to get it where the task is awaited.
    ///
    /// Use an executor that is never dropped, or a [`Handle`](crate::Handle). A schedule function runs where
    /// the task is woken, perhaps under a lock that the future takes when it is dropped: it should not be the
    /// last to own an executor.
    ///
    /// ```
    /// use paceline::{Executor, block_on};
    ///
    /// static EXECUTOR: Executor<'static> = Executor::new();
    /// let (runnable, task) = async_task::spawn(async { 6 * 7 }, |runnable| EXECUTOR.schedule(runnable));
    /// runnable.schedule();
    /// assert_eq!(block_on(EXECUTOR.run(task)), 42);
    /// ```
    pub fn schedule(&self, runnable: Runnable) {
        foreign::schedule(self.state(), runnable);
    }
}

impl Executor<'static> {
    /// Makes the executor live for ever, which makes spawning cheaper.
    ///
    /// ```
    /// let executor = paceline::Executor::new().leak();
    /// let task = executor.spawn(async { 3 });
    /// assert_eq!(paceline::block_on(executor.run(task)), 3);
    /// ```
    pub fn leak(self) -> &'static StaticExecutor {
        Box::leak(Box::new(StaticExecutor::of(self)))
    }
}

impl Drop for Executor<'_> {
    /// Cancels all unfinished tasks. Waits, for a limited time, for tasks that other threads are just waking.
    fn drop(&mut self) {
        if let Some(state) = self.state.get() {
            state.cancel_to_the_last();
        }
    }
}
