//! [`LocalExecutor`]: an executor whose tasks stay on one thread.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;
use std::rc::Rc;

use super::{Executor, StaticLocalExecutor, Task, boxed_if_large, runs_tasks};
use crate::observed::{SpawnMeta, TaskKind};

/// An executor for futures that are not `Send`. The executor stays on the thread where it was created.
///
/// Its tasks may be woken from anywhere; they are polled by its own thread only.
///
/// # Examples
///
/// ```
/// use std::rc::Rc;
/// use paceline::{LocalExecutor, block_on};
///
/// let executor = LocalExecutor::new();
/// let shared = Rc::new(5);
/// let task = executor.spawn({
///     let shared = shared.clone();
///     async move { *shared + 1 }
/// });
/// assert_eq!(block_on(executor.run(task)), 6);
/// ```
pub struct LocalExecutor<'a> {
    inner: Executor<'a>,
    stays: PhantomData<Rc<()>>,
}

impl<'a> LocalExecutor<'a> {
    /// Creates an executor without tasks.
    ///
    /// ```
    /// use paceline::LocalExecutor;
    ///
    /// thread_local! {
    ///     static LOCAL: LocalExecutor<'static> = const { LocalExecutor::new() };
    /// }
    /// LOCAL.with(|executor| assert!(executor.is_empty()));
    /// ```
    pub const fn new() -> Self {
        Self { inner: Executor::new(), stays: PhantomData }
    }

    /// Returns whether all its tasks are finished.
    ///
    /// ```
    /// assert!(paceline::LocalExecutor::new().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// Spawns a future. Dropping the [`Task`] cancels it.
    ///
    /// ```
    /// let executor = paceline::LocalExecutor::new();
    /// executor.spawn(async { println!("hello") }).detach();
    /// assert!(executor.try_tick());
    /// ```
    #[track_caller]
    pub fn spawn<T: 'a>(&self, future: impl Future<Output = T> + 'a) -> Task<T> {
        let meta = SpawnMeta::new(TaskKind::Local, Location::caller());
        // SAFETY: this executor is neither `Send` nor `Sync`: it spawns, polls and drops on its own thread.
        unsafe { boxed_if_large!(future, meta, self.inner.spawn_at(future, meta)) }
    }

    /// Spawns many futures, and adds their tasks to `handles`.
    ///
    /// ```
    /// let executor = paceline::LocalExecutor::new();
    /// let mut tasks = Vec::new();
    /// executor.spawn_many((0..2).map(|n| async move { n }), &mut tasks);
    /// assert_eq!(tasks.len(), 2);
    /// ```
    #[track_caller]
    pub fn spawn_many<T: 'a, F: Future<Output = T> + 'a>(
        &self,
        futures: impl IntoIterator<Item = F>,
        handles: &mut impl Extend<Task<F::Output>>,
    ) {
        let meta = SpawnMeta::new(TaskKind::Local, Location::caller());
        // SAFETY: as in `spawn`.
        let spawn = |future| unsafe { boxed_if_large!(future, meta, self.inner.spawn_at(future, meta)) };
        handles.extend(futures.into_iter().map(spawn));
    }
}

runs_tasks!(LocalExecutor<'a>, self.inner);

impl LocalExecutor<'static> {
    /// Makes the executor live for ever, which makes spawning cheaper.
    ///
    /// ```
    /// let executor = paceline::LocalExecutor::new().leak();
    /// let task = executor.spawn(async { 3 });
    /// assert_eq!(paceline::block_on(executor.run(task)), 3);
    /// ```
    pub fn leak(self) -> &'static StaticLocalExecutor {
        Box::leak(Box::new(StaticLocalExecutor::of(self.inner)))
    }
}
