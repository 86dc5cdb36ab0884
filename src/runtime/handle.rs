//! [`Handle`]: a reference to a runtime, for code that does not run on its threads.

use std::future::Future;
use std::panic::Location;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{crew_of, or_panic, spawn_in};
use crate::current::current_pool;
use crate::end;
use crate::executor::{StateRef, Task, boxed_if_large, spawn_in_vain};
use crate::insight::{DrainReport, Stall};
use crate::observed::{SpawnMeta, TaskKind};
use crate::pool::block_on::PoolSource;
use crate::pool::serve::block_on_in;
use crate::pool::{EnterGuard, Pool};
use crate::simulated;
use crate::sync::{self, Instant};

/// A reference to a runtime, for code that does not run on its threads. A handle is cheap to clone and does
/// not keep the runtime alive.
///
/// After [`shutdown`](crate::Runtime::shutdown) or [`drain`](crate::Handle::drain), and after the runtime
/// was dropped:
///
/// | call | after shutdown or drain | after the drop |
/// |---|---|---|
/// | [`spawn`](Handle::spawn) | returns a task that is cancelled | returns a task that is cancelled |
/// | [`schedule`](Handle::schedule) | cancels the task | cancels the task |
/// | [`block_on`](Handle::block_on), [`enter`](Handle::enter) | work, with sources and timers | panic |
/// | [`metrics`](Handle::metrics) | returns what was counted | returns zeros |
/// | [`threads`](Handle::threads) | returns the stuck threads, if any | returns none |
/// | [`tasks`](Handle::tasks) | returns the stuck tasks, if any | returns none |
/// | [`drain`](Handle::drain) | returns the report | returns an empty report |
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
#[derive(Clone, Debug)]
pub struct Handle {
    pool: Weak<Pool>,
}

impl Handle {
    pub(super) fn of(pool: &Arc<Pool>) -> Self {
        Self { pool: Arc::downgrade(pool) }
    }

    /// Returns the runtime on which free functions act here: the runtime of this thread or task, or the one
    /// that was entered, or else the default instance.
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
    /// If that is the default instance, it does not exist yet, and the process has no descriptor left to make
    /// it.
    pub fn current() -> Handle {
        Self::of(&or_panic(current_pool()))
    }

    /// Returns handles to all runtimes of this process that were not dropped: the default instance first, if
    /// there is one, and then the others in the order in which they were built. This is for a thread that is
    /// in none of them and examines all: one that handles a signal, for example, or serves metrics.
    ///
    /// Runtimes that other crates build are included. In a child of `fork`, so are those of its parent, which
    /// it cannot use.
    ///
    /// ```
    /// use paceline::Handle;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(3).build()?;
    /// let workers: usize = Handle::all().iter().map(|handle| handle.metrics().workers).sum();
    /// assert!(workers >= 3);
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn all() -> Vec<Handle> {
        Pool::all().iter().map(Self::of).collect()
    }

    /// Adds a hook for stalls to a runtime that runs, as [`Builder::on_stall`](crate::Builder::on_stall) does
    /// before. Each hook of a runtime is called with each report. This is for runtimes that other code has
    /// built: the default instance, and those of a program that was moved from tokio without a change. Does
    /// nothing once the runtime was dropped.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use paceline::Handle;
    ///
    /// let (tell, told) = mpsc::channel();
    /// paceline::block_on(async {
    ///     Handle::current().on_stall(move |stall| _ = tell.send(stall.to_string()));
    /// });
    /// let (end, ended) = mpsc::channel::<()>();
    /// paceline::spawn(async move { drop(ended.recv()) }).detach();
    /// println!("{}", told.recv().unwrap());
    /// drop(end);
    /// ```
    pub fn on_stall(&self, hook: impl Fn(&Stall) + Send + Sync + 'static) {
        if let Some(Ok(crew)) = self.pool().as_ref().map(crew_of) {
            sync::lock(&crew.config.on_stall).push(Arc::new(hook));
        }
    }

    /// Returns the pool, unless the runtime was dropped.
    pub(crate) fn pool(&self) -> Option<Arc<Pool>> {
        self.pool.upgrade().filter(|pool| !pool.ended.is_set())
    }

    /// Returns whether a task that is spawned now can still run: the runtime was neither dropped nor shut
    /// down nor drained.
    pub(crate) fn accepts(&self) -> bool {
        self.pool().is_some_and(|pool| !pool.crew().is_some_and(|crew| crew.parting.is_stopped()))
    }

    /// Returns the pool. Panics, with the name of the method `what`, if the runtime was dropped. Aborts the
    /// child of a fork.
    #[track_caller]
    fn expect_pool(&self, what: &str) -> Arc<Pool> {
        let Some(pool) = self.pool() else {
            panic!(
                "`Handle::{what}`: the runtime of this handle was dropped; keep the `Runtime` for as long as it is used"
            )
        };
        pool.reactor.assert_not_inherited();
        pool
    }

    /// Spawns a future onto the runtime's workers. Dropping the [`Task`] cancels it; [`Task::detach`] lets it
    /// run on its own. Once the runtime is shut down, drained or dropped, the future is dropped at once, and
    /// awaiting the task panics; [`Task::fallible`] returns `None` instead.
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
    /// For the default instance: if its workers cannot be started.
    #[track_caller]
    pub fn spawn<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Task<T> {
        self.spawn_with(future, SpawnMeta::new(TaskKind::Task, Location::caller()))
    }

    /// Like [`spawn`](Handle::spawn), for a task that `meta` describes. This is for the package that replaces
    /// tokio, which observes its tasks itself.
    #[doc(hidden)]
    #[track_caller]
    pub fn spawn_with<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
        meta: SpawnMeta<'_>,
    ) -> Task<T> {
        boxed_if_large!(future: Send, meta, self.spawn_from(future, meta))
    }

    /// Spawns a future. After the end of the runtime drops the future, and returns a task that is cancelled.
    #[track_caller]
    fn spawn_from<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
        meta: SpawnMeta<'_>,
    ) -> Task<T> {
        match self.pool() {
            Some(pool) => spawn_in(Ok(pool), future, meta),
            None => spawn_in_vain(StateRef::shared(), Box::pin(future), meta.spawned_at),
        }
    }

    /// Runs a future on the current thread until it is done. Tasks that it spawns run on the runtime's
    /// workers. If the runtime is dropped meanwhile, the future goes on: its timers fire, its sources return
    /// errors, its tasks are cancelled.
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
    /// If the runtime was dropped, or if the future panics.
    #[track_caller]
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let pool = self.expect_pool("block_on");
        block_on_in(PoolSource::Given(pool), pin!(Some(future)), Location::caller())
    }

    /// Like [`Handle::block_on`], or like [`block_on`](crate::block_on()) without a handle, for a call at
    /// `caller` in the user's source. This is for the package that replaces tokio, which calls it in a
    /// closure, and a closure cannot be `#[track_caller]`.
    #[doc(hidden)]
    #[track_caller]
    pub fn block_on_from<T>(
        handle: Option<&Handle>,
        future: impl Future<Output = T>,
        caller: &'static Location<'static>,
    ) -> T {
        let pool = handle.map(|handle| handle.expect_pool("block_on"));
        block_on_in(
            pool.map_or(PoolSource::Current(current_pool), PoolSource::Given),
            pin!(Some(future)),
            caller,
        )
    }

    /// Counts a panic of a task of the runtime, and tells the program of it, by the hook or by a line. Does
    /// nothing once the runtime was dropped. This is for the package that replaces tokio, whose tasks catch
    /// their panics, so that no panic leaves the poll.
    #[doc(hidden)]
    pub fn note_panic(&self, spawned_at: &'static Location<'static>) {
        if let Some(crew) = self.pool().as_ref().and_then(|pool| pool.crew()) {
            crew.state.note_panic(spawned_at);
        }
    }

    /// Fires the events that are ready, unless another thread leads, and returns whether there were any. This
    /// is for the package that replaces tokio, whose paused clock moves only if there are none.
    #[doc(hidden)]
    pub fn fire_ready_events(&self) -> bool {
        self.pool().is_some_and(|pool| pool.take_turn().is_some_and(|events| events > 0))
    }

    /// Makes free functions on this thread act on this runtime until the returned guard is dropped:
    /// [`spawn`](crate::spawn()), [`block_on`](crate::block_on()), [`Async::new`](crate::Async::new),
    /// [`Timer`](crate::Timer), [`unblock`](crate::unblock()), [`Unblock`](crate::Unblock) and
    /// [`Job::submit`](crate::blocking::Job::submit).
    ///
    /// Guards may be nested and dropped in any order: the latest of those that still exist counts. A
    /// `block_on` of a runtime that begins while there is a guard acts on its own runtime, and so do that
    /// runtime's tasks. A guard that is made inside of a `block_on` and outlives it stays in force.
    ///
    /// While the guard exists, it keeps alive what sources need, but not the runtime. If the runtime is
    /// dropped, spawned tasks are cancelled, and creating a source returns an error.
    ///
    /// ```
    /// use paceline::Timer;
    /// use std::time::Duration;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).thread_name("mine").build()?;
    /// let entered = runtime.handle().enter();
    /// let task = paceline::spawn(async { std::thread::current().name().map(String::from) });
    /// assert!(paceline::block_on(task).expect("workers have names").starts_with("mine-"));
    /// drop(entered);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The guard stays on its thread:
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
    pub fn enter(&self) -> EnterGuard {
        EnterGuard::new(self.expect_pool("enter"))
    }

    /// Like [`enter`](Handle::enter), but returns `None` if the runtime was dropped.
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
    pub fn try_enter(&self) -> Option<EnterGuard> {
        let pool = self.pool()?;
        pool.reactor.assert_not_inherited();
        Some(EnterGuard::new(pool))
    }

    /// Ends the runtime gracefully, and reports. The deadline is `timeout` after this call.
    ///
    /// 1. From the first poll of the returned future, no task is accepted from outside: a future that is
    ///    spawned there is cancelled at once, and its [`fallible`](Task::fallible) form returns `None`. The
    ///    remaining tasks may spawn others until the deadline, so a handler can finish its work.
    /// 2. Until the deadline the remaining work may finish: tasks, those that they spawn, and closures that
    ///    [block](crate::blocking), including those that wait for a thread or that remaining tasks submit.
    ///    Streams that block belong to their tasks. A `timeout` of zero leaves no time; one that is too long
    ///    for the clock sets no limit.
    /// 3. Then the rest is cancelled: each future is dropped at its next await. Destructors run on the
    ///    runtime's threads, and on one more that is started for that. A destructor that blocks holds up
    ///    those behind it on its thread. Closures that have not begun never run, and the tokens of running
    ///    [jobs](crate::blocking::Job) report the cancellation.
    /// 4. The report says how many tasks finished and how many were cancelled. The tasks whose poll still
    ///    keeps their thread are named, and so are the closures that still run. A thread is reported after 25
    ///    milliseconds asleep, or of processor time, without progress in a poll. A thread that only waits for
    ///    a core has up to five seconds; one in a destructor or a hook has half a second, and all destructors
    ///    have ten seconds while any of them returns. A stuck task is cancelled when its poll ends.
    ///
    /// The drain ends as soon as neither a task nor a closure is left. Then the runtime is in the same state
    /// as after [`shutdown`](crate::Runtime::shutdown), and dropping it does not wait.
    ///
    /// Await the future in a `block_on` of a thread that is not the runtime's, as `main` does, or in a task
    /// of another runtime. A task of this runtime may begin the drain, and does not hold it up by awaiting
    /// it, but the task is cancelled with the others, and does not get the report. (In a `block_on` inside of
    /// such a task it does, and the thread counts as stuck. A task that awaits it in an executor of its own
    /// holds the drain up until the deadline.)
    ///
    /// Do not await the future in a closure that [blocks](crate::blocking) for this runtime: the drain waits
    /// for that closure. The drain also does not see that some other task or closure waits for a task that
    /// awaits it: if the deadline never comes, each waits for the other.
    ///
    /// All drains of a runtime, at the same time or later, return the same report; the earliest of their
    /// deadlines counts. A shutdown, or a drop of the runtime, is a drain whose deadline is now: if the
    /// runtime is shut down or dropped meanwhile, the rest is cancelled, and the report comes then.
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::Timer;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(2).build()?;
    /// runtime.spawn(Timer::after(Duration::from_millis(5))).detach();
    /// runtime.spawn(Timer::after(Duration::from_secs(3600))).detach();
    /// let report = runtime.block_on(runtime.drain(Duration::from_millis(50)));
    /// assert!(report.cancelled > 0);
    /// assert_eq!(runtime.block_on(runtime.spawn(async {}).fallible()), None);
    /// println!("{report}");    // drained in 50ms: 1 task finished, 1 was cancelled
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The default instance is drained in the same way, and is not replaced: for the rest of the process,
    /// [`spawn`](crate::spawn()) outside of any other runtime cancels the task at once, and so does
    /// [`unblock`](crate::unblock()). Sources, timers and [`block_on`](crate::block_on()) still work, so
    /// `main` continues after the drain. To stop a program on Ctrl-C:
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::{Handle, Timer, block_on, spawn};
    ///
    /// block_on(async {
    ///     spawn(async {
    ///         Timer::after(Duration::from_millis(5)).await;
    ///         println!("the last request is answered");
    ///     })
    ///     .detach();
    ///     // paceline::signal::ctrl_c().await?;
    ///     let report = Handle::current().drain(Duration::from_secs(5)).await;
    ///     println!("{report}");    // drained in 5ms: 1 task finished
    ///     assert_eq!((report.finished, report.cancelled), (1, 0));
    /// });
    /// ```
    ///
    /// A second Ctrl-C during the drain is ignored unless the program waits for it. With `or` of
    /// `futures-lite`, the second one ends the process:
    ///
    /// ```no_run
    /// use std::io;
    /// use std::time::Duration;
    /// use futures_lite::future::or;
    /// use paceline::{Handle, block_on, signal};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// block_on(async {
    ///     signal::ctrl_c().await?;
    ///     let drain = async { io::Result::Ok(Handle::current().drain(Duration::from_secs(5)).await) };
    ///     let second = async {
    ///         signal::ctrl_c().await?;
    ///         std::process::exit(130)
    ///     };
    ///     println!("{}", or(drain, second).await?);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If the future is polled before the report is made, in a closure of [`unblock`](crate::unblock()) or of
    /// a [`Job`](crate::blocking::Job) that runs on this runtime's threads. A first poll there does not begin
    /// the drain. Await it on a thread of your own instead.
    ///
    /// If the process cannot start the thread that conducts the drain. Then the runtime accepts no tasks from
    /// outside, and goes on; a [`shutdown`](crate::Runtime::shutdown) ends it.
    ///
    /// # Cancel safety
    ///
    /// Once it was polled, the drain goes on even if the future is dropped; call `drain` again for the
    /// report.
    pub fn drain(&self, timeout: Duration) -> impl Future<Output = DrainReport> + Send + use<> {
        let pool = self.pool();
        let _clocks = simulated::system_clocks();
        let deadline = Instant::now().checked_add(timeout);
        async move {
            let Some(pool) = pool else { return DrainReport::default() };
            // The default instance may have no crew yet: it is made here and closed, so tasks that are
            // spawned later are cancelled. If it cannot be made, nothing can be spawned.
            let Ok(crew) = crew_of(&pool) else { return DrainReport::default() };
            end::drain(&pool, crew, deadline).await
        }
    }
}
