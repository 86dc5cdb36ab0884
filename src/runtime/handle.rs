//! [`Handle`]: a runtime, for code that is not on its threads.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{Metrics, spawn_in};
use crate::executor::{StateRef, Task, spawn_in_vain};
use crate::pool::block_on::block_on_in;
use crate::pool::{Drained, Entry, Pool, ThreadInfo};
use crate::sync::Instant;

/// A reference to a runtime, for code that is not on its threads. Cheap to clone, and does not keep the runtime alive.
///
/// | call | after [`shutdown`](crate::Runtime::shutdown) or [`drain`](crate::Runtime::drain) | after the runtime was dropped |
/// |---|---|---|
/// | [`spawn`](Handle::spawn) | a task that is cancelled | a task that is cancelled |
/// | [`block_on`](Handle::block_on), [`enter`](Handle::enter) | work: sources and timers do | panic, and say so |
/// | [`metrics`](Handle::metrics) | what was counted | all zero |
/// | [`threads`](Handle::threads) | none, or who is stuck | none |
/// | [`drain`](Handle::drain) | the report | an empty report |
///
/// # Examples
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// let runtime = paceline::Runtime::builder().threads(1).build()?;
/// let handle = runtime.handle();
/// let task = handle.spawn(async { 6 * 7 });
/// assert_eq!(handle.block_on(task), 42);
///
/// drop(runtime);
/// assert_eq!(paceline::block_on(handle.spawn(async { 6 * 7 }).fallible()), None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Handle {
    pool: Weak<Pool>,
}

impl Handle {
    pub(super) fn of(pool: &Arc<Pool>) -> Self {
        Self { pool: Arc::downgrade(pool) }
    }

    /// The runtime on which free functions act here: that whose thread or task this is, or that was entered; else the default
    /// instance.
    ///
    /// ```
    /// use paceline::Handle;
    ///
    /// let handle = Handle::current();
    /// let other = std::thread::spawn(move || handle.block_on(handle.spawn(async { 1 })));
    /// assert_eq!(other.join().unwrap(), 1);
    /// ```
    ///
    /// # Panics
    ///
    /// If that is the default instance, it is not there yet, and the process has no descriptor left to make it.
    pub fn current() -> Handle {
        match Pool::current() {
            Ok(pool) => Self::of(&pool),
            Err(error) => panic!("the default instance cannot be started: {error}"),
        }
    }

    /// The runtime, unless it was dropped.
    fn pool(&self) -> Option<Arc<Pool>> {
        self.pool.upgrade().filter(|pool| !pool.is_ended())
    }

    /// Whether what is spawned has a chance to run.
    pub(crate) fn accepts(&self) -> bool {
        self.pool().is_some_and(|pool| !pool.crew().is_some_and(|crew| crew.is_stopped()))
    }

    #[track_caller]
    fn expect_pool(&self, what: &str) -> Arc<Pool> {
        let Some(pool) = self.pool() else {
            panic!(
                "`Handle::{what}`: the runtime of this handle was dropped; keep the `Runtime` for as long as it is used"
            )
        };
        pool.assert_not_inherited();
        pool
    }

    /// Spawns a future onto the runtime, as [`Runtime::spawn`](crate::Runtime::spawn) does. Once that is shut down, drained or
    /// dropped, the future is dropped at once, and awaiting the task panics; [`Task::fallible`] gives `None` instead.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # let runtime = paceline::Runtime::builder().threads(1).build()?;
    /// let handle = runtime.handle();
    /// assert_eq!(paceline::block_on(handle.spawn(async { "done" })), "done");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Of the default instance: if its workers cannot be started.
    #[track_caller]
    pub fn spawn<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Task<T> {
        let caller = Location::caller();
        match self.pool() {
            Some(pool) => spawn_in(Ok(pool), future, caller),
            // SAFETY: the future is `Send` and borrows nothing.
            None => unsafe { spawn_in_vain(&StateRef::shared(), future, caller) },
        }
    }

    /// Runs a future on the current thread until it is done, as [`Runtime::block_on`](crate::Runtime::block_on) does. If the
    /// runtime is dropped meanwhile, the future goes on: its timers fire, its sources are errors, its tasks are cancelled.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # let runtime = paceline::Runtime::builder().threads(1).build()?;
    /// let handle = runtime.handle();
    /// assert_eq!(handle.block_on(async { paceline::spawn(async { 1 }).await + 1 }), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If the runtime was dropped; or if the future panics.
    #[track_caller]
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let pool = self.expect_pool("block_on");
        block_on_in(Some(&pool), future)
    }

    /// From now on free functions act on this runtime on this thread, until the guard is dropped: [`spawn`](crate::spawn()),
    /// [`block_on`](crate::block_on()), [`Async::new`](crate::Async::new), [`Timer`](crate::Timer), [`unblock`](crate::unblock()),
    /// [`Unblock`](crate::Unblock) and [`Job::submit`](crate::blocking::Job::submit).
    ///
    /// Guards may be nested, and dropped in any order: what counts is the last one made of those that are left. A `block_on` of a
    /// runtime, and its tasks, that begin while there is a guard have their own runtime, as ever. One that is made in a `block_on` and
    /// outlives it stays in force after it.
    ///
    /// While the guard is there, it keeps what sources need; but not the runtime, which may be dropped: then what is spawned
    /// is cancelled, and a new source is an error.
    ///
    /// ```
    /// use paceline::Timer;
    /// use std::time::Duration;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).thread_name("mine").build()?;
    /// let entered = runtime.handle().enter();
    /// let task = paceline::spawn(async { std::thread::current().name().map(String::from) });
    /// assert_eq!(paceline::block_on(task).as_deref(), Some("mine-1"));
    /// drop(entered);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It stays on its thread:
    ///
    /// ```compile_fail
    /// # let runtime = paceline::Runtime::builder().threads(1).build().unwrap();
    /// let entered = runtime.handle().enter();
    /// std::thread::spawn(move || drop(entered));
    /// ```
    ///
    /// # Panics
    ///
    /// If the runtime was dropped.
    #[track_caller]
    pub fn enter(&self) -> Entered {
        Entered { _entry: Entry::new(self.expect_pool("enter")) }
    }

    /// [`enter`](Handle::enter), unless the runtime was dropped: for who cannot know.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).build()?;
    /// let handle = runtime.handle();
    /// assert!(handle.try_enter().is_some());
    /// drop(runtime);
    /// assert!(handle.try_enter().is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_enter(&self) -> Option<Entered> {
        let pool = self.pool()?;
        pool.assert_not_inherited();
        Some(Entered { _entry: Entry::new(pool) })
    }

    /// What the runtime has done so far, and has right now; all zero once it was dropped.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # let runtime = paceline::Runtime::builder().threads(1).build()?;
    /// let handle = runtime.handle();
    /// assert_eq!(handle.metrics().workers, 1);
    /// drop(runtime);
    /// assert_eq!(handle.metrics().workers, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn metrics(&self) -> Metrics {
        self.pool().map_or_else(Metrics::default, |pool| Metrics::of(&pool))
    }

    /// What each thread of the runtime is at: see [`Runtime::threads`](crate::Runtime::threads). None once it was dropped.
    ///
    /// ```
    /// use paceline::Handle;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(2).build()?;
    /// let asks = runtime.spawn(async { Handle::current().threads() });
    /// let threads = runtime.block_on(asks);
    /// assert!(threads.iter().any(|thread| thread.spawned_at.is_some_and(|at| at.file() == file!())));
    /// # Ok(())
    /// # }
    /// ```
    pub fn threads(&self) -> Vec<ThreadInfo> {
        self.pool().map_or(Vec::new(), |pool| pool.threads())
    }

    /// Ends the runtime without haste, and reports: see [`Runtime::drain`](crate::Runtime::drain). This is how one of its own tasks
    /// does it, by [`Handle::current`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::Handle;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).build()?;
    /// runtime.spawn(std::future::pending::<()>()).detach();
    /// let last = runtime.spawn(async { Handle::current().drain(Duration::from_millis(1)).await.cancelled });
    /// assert_eq!(runtime.block_on(last), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If it is the default instance, which stays until the process ends, and does not keep account of its tasks. Build a
    /// [`Runtime`](crate::Runtime) for what is to be drained.
    #[track_caller]
    pub fn drain(&self, deadline: Duration) -> impl Future<Output = Drained> + Send + use<> {
        let pool = self.pool();
        let ends = pool
            .as_ref()
            .is_none_or(|pool| pool.crew().is_some_and(|crew| crew.state().unfinished().is_some()));
        assert!(
            ends,
            "the default instance is not drained: it stays until the process ends. Build a `Runtime` for that"
        );
        let deadline = Instant::now().checked_add(deadline);
        async move {
            match pool {
                Some(pool) => super::drain(pool, deadline).await,
                None => Drained::default(),
            }
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pool = self.pool();
        f.debug_struct("Handle")
            .field("crew", &pool.as_ref().and_then(|pool| pool.crew()))
            .finish_non_exhaustive()
    }
}

/// A runtime is entered on this thread, until this is dropped: see [`Handle::enter`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let runtime = paceline::Runtime::builder().threads(1).build()?;
/// let entered: paceline::Entered = runtime.handle().enter();
/// paceline::block_on(paceline::spawn(async {}));
/// drop(entered);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "what is entered is left when this is dropped"]
pub struct Entered {
    _entry: Entry,
}
