//! Executors that live for ever. These executors keep no list of their tasks, so spawning costs less.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{Location, RefUnwindSafe};

use async_task::Runnable;

use super::{Executor, State, Task, boxed_if_large, foreign, runs_tasks, task};
use crate::observed::{SpawnMeta, TaskKind};

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
    inner: Executor<'static>,
}

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
    inner: StaticExecutor,
    /// `Send` but not `Sync`. Tasks are spawned only through a `&'static self`. Such an executor cannot be
    /// moved any more, and another thread cannot have a reference to it.
    stays: PhantomData<Cell<()>>,
}

impl RefUnwindSafe for StaticLocalExecutor {}

impl StaticExecutor {
    /// An executor without tasks.
    ///
    /// ```
    /// static EXECUTOR: paceline::StaticExecutor = paceline::StaticExecutor::new();
    /// assert!(!EXECUTOR.try_tick());
    /// ```
    pub const fn new() -> Self {
        Self { inner: Executor::with_tracking(false) }
    }

    /// Converts an executor that will never be dropped. Tasks that are spawned from now on are not tracked.
    pub(super) fn of(mut executor: Executor<'static>) -> Self {
        executor.tracks_tasks = false;
        if let Some(state) = executor.state.get() {
            state.tracks_tasks.set(false);
        }
        Self { inner: executor }
    }

    /// Returns the reference to the state that its tasks hold, which is not counted.
    #[inline]
    fn forever(&'static self) -> &'static State {
        self.inner.state()
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
        let meta = SpawnMeta::new(TaskKind::Task, Location::caller());
        // SAFETY: the future is `Send` and borrows nothing.
        unsafe { boxed_if_large!(future: Send, meta, task::spawn(self.forever(), future, meta)) }
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
        let meta = SpawnMeta::new(TaskKind::Task, Location::caller());
        // SAFETY: the future is `Send`; the caller promises the rest.
        unsafe { boxed_if_large!(future: Send, meta, task::spawn(self.forever(), future, meta)) }
    }

    /// Has one poll of a task run here that other code has built with `async-task`: see
    /// [`Executor::schedule`].
    ///
    /// ```
    /// # static EXECUTOR: paceline::StaticExecutor = paceline::StaticExecutor::new();
    /// let (runnable, task) = async_task::spawn(async { 6 * 7 }, |runnable| EXECUTOR.schedule(runnable));
    /// runnable.schedule();
    /// assert_eq!(paceline::block_on(EXECUTOR.run(task)), 42);
    /// ```
    pub fn schedule(&'static self, runnable: Runnable) {
        foreign::schedule(self.forever(), runnable);
    }
}

runs_tasks!(StaticExecutor, self.inner);
runs_tasks!(StaticLocalExecutor, self.inner.inner);

impl StaticLocalExecutor {
    /// An executor without tasks.
    ///
    /// ```
    /// let executor = paceline::StaticLocalExecutor::new();
    /// assert!(!executor.try_tick());
    /// ```
    pub const fn new() -> Self {
        Self { inner: StaticExecutor::new(), stays: PhantomData }
    }

    pub(super) fn of(executor: Executor<'static>) -> Self {
        Self { inner: StaticExecutor::of(executor), stays: PhantomData }
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
        let meta = SpawnMeta::new(TaskKind::Local, Location::caller());
        // SAFETY: the executor is neither `Send` nor `Sync`; the future borrows nothing.
        unsafe { boxed_if_large!(future, meta, task::spawn(self.inner.forever(), future, meta)) }
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
        let meta = SpawnMeta::new(TaskKind::Local, Location::caller());
        // SAFETY: the executor is neither `Send` nor `Sync`; the caller promises the rest.
        unsafe { boxed_if_large!(future, meta, task::spawn(self.inner.forever(), future, meta)) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Executor, StaticExecutor, StaticLocalExecutor};
    use crate::LocalExecutor;
    use std::panic::{RefUnwindSafe, UnwindSafe};

    /// The auto traits that the public types promise, and that follow from their fields.
    #[test]
    fn auto_traits() {
        fn assert_unwind_safe<T: UnwindSafe + RefUnwindSafe>() {}
        fn assert_send<T: Send>() {}
        fn assert_sync<T: Sync>() {}
        assert_unwind_safe::<(Executor<'_>, StaticExecutor)>();
        assert_unwind_safe::<(LocalExecutor<'_>, StaticLocalExecutor)>();
        assert_send::<(Executor<'_>, StaticExecutor, StaticLocalExecutor)>();
        assert_sync::<(Executor<'_>, StaticExecutor)>();
    }
}
