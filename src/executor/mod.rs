//! Executors: tasks, and who polls them. They know wakers, never the poller.
//!
//! | part | what it is |
//! |---|---|
//! | [`Executor`], [`LocalExecutor`], [`StaticExecutor`], [`StaticLocalExecutor`] | the public types |
//! | [`state`] | what one executor's tasks and runners share: the injector and the lists |
//! | [`run`], [`turns`] | the futures behind `run` and `tick`; which task comes next |
//! | [`runner`] | one `run` in progress: slot, ring, and what the deputy may know |
//! | [`slot`] | the direct slot |
//! | [`host`] | a `block_on` as the executor sees it: which runners it hosts |
//! | [`sleeper`], [`idle`] | a runner or ticker that waits for tasks; waking one of them |
//! | [`task`], [`tasks`] | what is kept of a task |
//! | [`ends`], [`vigil`], [`drops`] | the end of a runtime: who waits for the last task to end, what is cancelled, which destructor blocks |
//! | [`account`], [`oversight`] | what a deputy looks at, and who gets one |

mod account;
mod drops;
mod ends;
mod host;
mod idle;
mod local;
mod oversight;
mod run;
mod runner;
mod sleeper;
mod slot;
mod state;
mod statics;
mod task;
mod tasks;
mod turns;
mod vigil;

pub use async_task::{FallibleTask, Task};
pub use local::LocalExecutor;
pub use statics::{StaticExecutor, StaticLocalExecutor};

pub(crate) use account::Account;
pub(crate) use ends::Inside;
pub(crate) use host::{Host, Hosted, Runners, Surroundings, is_awaited_on_top, run_beside};
pub(crate) use oversight::Overseer;
pub(crate) use run::Run;
pub(crate) use runner::{Beat, Caught, Counters, Runner};
pub(crate) use state::{State, StateRef};
pub(crate) use task::{spawn_at, spawn_in_vain};

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, OnceLock};

/// An executor: spawn futures onto it, and [`run`](Executor::run) it on as many threads as you like.
///
/// It is made of nothing until it is used, so it can be a constant. Dropping it cancels its tasks.
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
    /// Made on first use. Std's cell in all modes: an executor is made in constants, where loom's atomics cannot be.
    state: OnceLock<Arc<State>>,
    /// Whether it can be dropped, and so must know its tasks.
    tracks_tasks: bool,
    /// Invariant in `'a`: a task may borrow for exactly that long.
    borrows: PhantomData<fn(&'a ()) -> &'a ()>,
}

impl UnwindSafe for Executor<'_> {}
impl RefUnwindSafe for Executor<'_> {}

impl<'a> Executor<'a> {
    /// An executor without tasks.
    ///
    /// ```
    /// static EXECUTOR: paceline::Executor<'static> = paceline::Executor::new();
    /// assert!(EXECUTOR.is_empty());
    /// ```
    pub const fn new() -> Self {
        Self::that_tracks(true)
    }

    const fn that_tracks(tracks_tasks: bool) -> Self {
        Self { state: OnceLock::new(), tracks_tasks, borrows: PhantomData }
    }

    #[inline]
    fn state(&self) -> &Arc<State> {
        self.state.get_or_init(|| State::new(self.tracks_tasks, false))
    }

    /// Whether all its tasks are finished.
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
        // SAFETY: the future and its output are `Send`; dropping the executor drops the future.
        unsafe { self.spawn_at(future, Location::caller()) }
    }

    /// Spawns many futures and collects their tasks.
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
        let caller = Location::caller();
        // SAFETY: as in `spawn`.
        handles.extend(futures.into_iter().map(|future| unsafe { self.spawn_at(future, caller) }));
    }

    /// # Safety
    ///
    /// If the future or its output is not `Send`, the executor is used on one thread only.
    unsafe fn spawn_at<T: 'a>(
        &self,
        future: impl Future<Output = T> + 'a,
        caller: &'static Location<'static>,
    ) -> Task<T> {
        // SAFETY: as the caller promises; `Drop` cancels all tasks before `'a` ends.
        unsafe { task::spawn(self.state().clone(), future, caller) }
    }

    /// Runs one task, if one is scheduled. It may sit in the queue of any [`run`](Self::run) in progress.
    ///
    /// ```
    /// let executor = paceline::Executor::new();
    /// assert!(!executor.try_tick());
    /// executor.spawn(async {}).detach();
    /// assert!(executor.try_tick());
    /// ```
    pub fn try_tick(&self) -> bool {
        let task = self.state.get().and_then(|state| state.any_task());
        task.map(host::run_beside).is_some()
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
        run::tick(self.state()).await;
    }

    /// Runs tasks until `future` is done. Any thread may poll this, any number at once.
    ///
    /// Inside paceline's own [`block_on`](crate::block_on()), a task that an event wakes is polled by the thread
    /// that saw the event.
    ///
    /// ```
    /// let executor = paceline::Executor::new();
    /// let task = executor.spawn(async { 1 });
    /// assert_eq!(paceline::block_on(executor.run(async { task.await + 1 })), 2);
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping it gives the tasks it was going to poll back to the executor.
    pub async fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.start(future).await
    }

    /// What each kind of executor awaits in its `run`: an `async fn`, so that the runner joins at the first poll.
    fn start<F: Future>(&self, future: F) -> Run<F> {
        Run::new(StateRef::Shared(self.state().clone()), future)
    }

    /// Describes it without taking a lock that could be held (P7).
    fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct(name);
        match self.state.get() {
            None => fields.field("state", &"unused"),
            Some(state) => fields.field("injector", &state.injected()),
        };
        fields.finish_non_exhaustive()
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
    fn drop(&mut self) {
        if let Some(state) = self.state.get() {
            state.cancel_to_the_last();
        }
    }
}

impl Default for Executor<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Executor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe("Executor", f)
    }
}
