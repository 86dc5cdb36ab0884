//! Executors that live for ever. They keep no list of their tasks, so spawning costs less.

use std::cell::UnsafeCell;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};

use super::lazy::LazyState;
use super::state::State;
use super::{Executor, Run, StateRef, Task, run, task};

/// An [`Executor`] that is never dropped: in a `static`, or [leaked](Executor::leak).
///
/// # Examples
///
/// ```
/// use paceline::{StaticExecutor, block_on};
///
/// static EXECUTOR: StaticExecutor = StaticExecutor::new();
/// let task = EXECUTOR.spawn(async { 6 * 7 });
/// assert_eq!(block_on(EXECUTOR.run(task)), 42);
/// ```
pub struct StaticExecutor {
    state: LazyState,
}

// SAFETY: everything in the state is synchronized, and tasks are `Send`.
unsafe impl Send for StaticExecutor {}
// SAFETY: as above.
unsafe impl Sync for StaticExecutor {}
impl UnwindSafe for StaticExecutor {}
impl RefUnwindSafe for StaticExecutor {}

/// A [`LocalExecutor`](super::LocalExecutor) that is never dropped.
///
/// # Examples
///
/// ```
/// use paceline::{StaticLocalExecutor, block_on};
///
/// thread_local! {
///     static EXECUTOR: &'static StaticLocalExecutor = Box::leak(Box::new(StaticLocalExecutor::new()));
/// }
/// EXECUTOR.with(|executor| {
///     let task = executor.spawn(async { 1 });
///     assert_eq!(block_on(executor.run(task)), 1);
/// });
/// ```
pub struct StaticLocalExecutor {
    state: LazyState,
    stays: PhantomData<(UnsafeCell<()>, *const ())>,
}

// SAFETY: tasks come only through a `&'static self`, after which the executor can neither be moved nor, not being
// `Sync`, be seen by another thread.
unsafe impl Send for StaticLocalExecutor {}

impl UnwindSafe for StaticLocalExecutor {}
impl RefUnwindSafe for StaticLocalExecutor {}

/// Takes an executor's state out of it, for ever.
fn leaked_state(executor: Executor<'static>) -> LazyState {
    let executor = ManuallyDrop::new(executor);
    // SAFETY: the executor is never used or dropped again, so the state is moved out once.
    let mut state = unsafe { std::ptr::read(&executor.state) };
    state.stop_tracking();
    state
}

impl StaticExecutor {
    /// An executor without tasks.
    ///
    /// ```
    /// static EXECUTOR: paceline::StaticExecutor = paceline::StaticExecutor::new();
    /// assert!(!EXECUTOR.try_tick());
    /// ```
    pub const fn new() -> Self {
        Self { state: LazyState::new(false) }
    }

    pub(super) fn leak(executor: Executor<'static>) -> &'static Self {
        Box::leak(Box::new(Self { state: leaked_state(executor) }))
    }

    fn forever(&'static self) -> &'static State {
        self.state.get()
    }

    /// Spawns a future. Dropping the [`Task`] cancels it.
    ///
    /// ```
    /// # static EXECUTOR: paceline::StaticExecutor = paceline::StaticExecutor::new();
    /// EXECUTOR.spawn(async { println!("hello") }).detach();
    /// assert!(EXECUTOR.try_tick());
    /// ```
    #[track_caller]
    pub fn spawn<T: Send + 'static>(
        &'static self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        // SAFETY: the future is `Send` and borrows nothing.
        unsafe { task::spawn(self.forever(), future, Location::caller()) }
    }

    /// Spawns a future that borrows.
    ///
    /// # Safety
    ///
    /// The task is finished, or cancelled and its future dropped, before what it borrows ends.
    ///
    /// ```
    /// # static EXECUTOR: paceline::StaticExecutor = paceline::StaticExecutor::new();
    /// let number = 5;
    /// // SAFETY: the task is awaited before `number` is gone.
    /// let task = unsafe { EXECUTOR.spawn_scoped(async { number + 1 }) };
    /// assert_eq!(paceline::block_on(EXECUTOR.run(task)), 6);
    /// ```
    #[track_caller]
    pub unsafe fn spawn_scoped<'a, T: Send + 'a>(
        &'static self,
        future: impl Future<Output = T> + Send + 'a,
    ) -> Task<T> {
        // SAFETY: the future is `Send`; the caller promises the rest.
        unsafe { task::spawn(self.forever(), future, Location::caller()) }
    }

    /// Runs one task, if one is scheduled.
    ///
    /// ```
    /// # static EXECUTOR: paceline::StaticExecutor = paceline::StaticExecutor::new();
    /// assert!(!EXECUTOR.try_tick());
    /// ```
    pub fn try_tick(&self) -> bool {
        self.state.get().any_task().map(|task| task.run()).is_some()
    }

    /// Runs one task, waiting for one to be scheduled.
    ///
    /// ```
    /// # static EXECUTOR: paceline::StaticExecutor = paceline::StaticExecutor::new();
    /// let task = EXECUTOR.spawn(async { 1 });
    /// paceline::block_on(EXECUTOR.tick());
    /// assert!(task.is_finished());
    /// ```
    pub async fn tick(&self) {
        run::tick(self.state.get()).await;
    }

    /// Runs tasks until `future` is done.
    ///
    /// ```
    /// # static EXECUTOR: paceline::StaticExecutor = paceline::StaticExecutor::new();
    /// assert_eq!(paceline::block_on(EXECUTOR.run(async { 1 })), 1);
    /// ```
    pub async fn run<T>(&self, future: impl Future<Output = T>) -> T {
        Run::new(StateRef::Shared(self.state.shared()), future).await
    }
}

impl StaticLocalExecutor {
    /// An executor without tasks.
    ///
    /// ```
    /// let executor = paceline::StaticLocalExecutor::new();
    /// assert!(!executor.try_tick());
    /// ```
    pub const fn new() -> Self {
        Self { state: LazyState::new(false), stays: PhantomData }
    }

    pub(super) fn leak(executor: Executor<'static>) -> &'static Self {
        Box::leak(Box::new(Self { state: leaked_state(executor), stays: PhantomData }))
    }

    fn forever(&'static self) -> &'static State {
        self.state.get()
    }

    /// Spawns a future. Dropping the [`Task`] cancels it.
    ///
    /// ```
    /// let executor = paceline::LocalExecutor::new().leak();
    /// executor.spawn(async { println!("hello") }).detach();
    /// assert!(executor.try_tick());
    /// ```
    #[track_caller]
    pub fn spawn<T: 'static>(&'static self, future: impl Future<Output = T> + 'static) -> Task<T> {
        // SAFETY: the executor is neither `Send` nor `Sync`; the future borrows nothing.
        unsafe { task::spawn(self.forever(), future, Location::caller()) }
    }

    /// Spawns a future that borrows.
    ///
    /// # Safety
    ///
    /// The task is finished, or cancelled and its future dropped, before what it borrows ends.
    ///
    /// ```
    /// let executor = paceline::LocalExecutor::new().leak();
    /// let number = 5;
    /// // SAFETY: the task is awaited before `number` is gone.
    /// let task = unsafe { executor.spawn_scoped(async { number + 1 }) };
    /// assert_eq!(paceline::block_on(executor.run(task)), 6);
    /// ```
    #[track_caller]
    pub unsafe fn spawn_scoped<'a, T: 'a>(&'static self, future: impl Future<Output = T> + 'a) -> Task<T> {
        // SAFETY: the executor is neither `Send` nor `Sync`; the caller promises the rest.
        unsafe { task::spawn(self.forever(), future, Location::caller()) }
    }

    /// Runs one task, if one is scheduled.
    ///
    /// ```
    /// assert!(!paceline::StaticLocalExecutor::new().try_tick());
    /// ```
    pub fn try_tick(&self) -> bool {
        self.state.get().any_task().map(|task| task.run()).is_some()
    }

    /// Runs one task, waiting for one to be scheduled.
    ///
    /// ```
    /// let executor = paceline::LocalExecutor::new().leak();
    /// let task = executor.spawn(async { 1 });
    /// paceline::block_on(executor.tick());
    /// assert!(task.is_finished());
    /// ```
    pub async fn tick(&self) {
        run::tick(self.state.get()).await;
    }

    /// Runs tasks until `future` is done.
    ///
    /// ```
    /// let executor = paceline::StaticLocalExecutor::new();
    /// assert_eq!(paceline::block_on(executor.run(async { 1 })), 1);
    /// ```
    pub async fn run<T>(&self, future: impl Future<Output = T>) -> T {
        Run::new(StateRef::Shared(self.state.shared()), future).await
    }
}

impl Default for StaticExecutor {
    fn default() -> Self {
        Self::new()
    }
}

impl Default for StaticLocalExecutor {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for StaticExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::debug(f, "StaticExecutor", &self.state)
    }
}

impl fmt::Debug for StaticLocalExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::debug(f, "StaticLocalExecutor", &self.state)
    }
}
