//! [`Handle`]: a reference to a runtime, to spawn on it or enter it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::extras;
use super::{RuntimeFlavor, RuntimeMetrics, Shared, TryCurrentError, blocking};
use crate::context::{self, Entry, Frame, Place};
use crate::task::{self, Home, JoinHandle, SpawnMeta, TaskKind};
use crate::time;

/// A larger future is boxed instead of being moved through the frames, each of which has room for it in
/// builds without optimization.
const LARGE: usize = if cfg!(debug_assertions) { 2048 } else { 16384 };

/// A reference to a runtime, which does not keep it running.
#[derive(Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
}

impl Handle {
    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Makes this the current runtime on this thread, until the guard is dropped.
    #[track_caller]
    pub fn enter(&self) -> EnterGuard<'_> {
        let paceline = self.paceline().try_enter();
        EnterGuard { _entry: Entry::new(self.clone()), _paceline: paceline, lifetime: PhantomData }
    }

    #[track_caller]
    pub fn current() -> Self {
        context::expect()
    }

    pub fn try_current() -> Result<Self, TryCurrentError> {
        context::try_current()
    }

    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_as(future, SpawnMeta::new(TaskKind::Task, Location::caller()))
    }

    /// [`spawn`](Self::spawn) of a task that `meta` describes.
    #[track_caller]
    pub(crate) fn spawn_as<F>(&self, future: F, meta: SpawnMeta<'_>) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let meta = meta.of_size(size_of::<F>());
        // A condition in a `const` block: a debug build compiles only the branch that is taken.
        if const { size_of::<F>() > LARGE } {
            let future: Pin<Box<dyn Future<Output = F::Output> + Send>> = Box::pin(future);
            self.launch(future, meta)
        } else {
            self.launch(future, meta)
        }
    }

    #[track_caller]
    fn launch<F>(&self, future: F, meta: SpawnMeta<'_>) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        extras::launch(self, future, meta.of_inner_size(size_of::<F>()))
    }

    /// Spawns a task that is polled in `home`.
    #[track_caller]
    pub(super) fn launch_in<F, H>(&self, future: F, meta: SpawnMeta<'_>, home: H) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        H: Home + Send + 'static,
    {
        let (future, handle) = task::future(future, meta, home);
        // paceline does not observe the task, because the future inside is observed.
        self.paceline().spawn_with(future, SpawnMeta::unobserved(Location::caller())).detach();
        handle
    }

    /// Drops a future, and returns the handle of a task that was cancelled.
    #[cfg(tokio_unstable)]
    pub(super) fn cancel<F: Future>(&self, future: F) -> JoinHandle<F::Output> {
        task::future(future, SpawnMeta::unobserved(Location::caller()), self.shared.clone()).1
    }

    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        match self.try_spawn_blocking(f, None) {
            Ok(handle) => handle,
            Err(error) => panic!("OS can't spawn worker thread: {error}"),
        }
    }

    /// [`spawn_blocking`](Self::spawn_blocking) of a closure with that name, for callers that report errors
    /// instead of panicking.
    #[track_caller]
    pub(crate) fn try_spawn_blocking<F, R>(&self, f: F, name: Option<&str>) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let meta = SpawnMeta::new(TaskKind::Blocking, Location::caller()).named(name);
        blocking::spawn(&self.shared, f, meta)
    }

    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.drive(future, Place::MayMove)
    }

    /// Runs a future on this thread, which must not already poll a future.
    #[track_caller]
    pub(super) fn drive<F: Future>(&self, future: F, place: Place) -> F::Output {
        assert!(
            context::place() == Place::Outside,
            "Cannot start a runtime from within a runtime. This happens because a function (like `block_on`) attempted to block \
             the current thread while the thread is being used to drive asynchronous tasks. If you are in an async function, use \
             `.await` on the future instead of blocking on it."
        );
        let _frame = Frame::begin(&self.shared, context::task_id(), place);
        if const { size_of::<F>() > LARGE } { self.run(Box::pin(future)) } else { self.run(future) }
    }

    #[track_caller]
    fn run<F: Future>(&self, future: F) -> F::Output {
        // Taken here, because a closure cannot be `#[track_caller]`.
        let caller = Location::caller();
        self.shared.extras.inside(|| {
            let mut future = pin!(future);
            let future = poll_fn(|cx| {
                super::begin_poll();
                future.as_mut().poll(cx)
            });
            // After the shutdown, a future that does not need the runtime still works.
            let runtime = (!self.is_shut_down()).then(|| self.paceline());
            paceline::Handle::block_on_from(runtime, future, caller)
        })
    }

    pub fn runtime_flavor(&self) -> RuntimeFlavor {
        self.shared.config.flavor
    }

    pub fn id(&self) -> Id {
        self.shared.id
    }

    pub fn name(&self) -> Option<&str> {
        self.shared.config.name.as_deref()
    }

    pub fn metrics(&self) -> RuntimeMetrics {
        RuntimeMetrics::of(self.clone())
    }
}

/// The functions for other modules.
#[allow(dead_code, reason = "by those of them that are compiled in")]
impl Handle {
    pub(crate) fn has_io(&self) -> bool {
        self.shared.config.has_io
    }

    pub(crate) fn has_time(&self) -> bool {
        self.shared.config.has_time
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.shared.is_shut_down()
    }

    pub(crate) fn clock(&self) -> &time::Clock {
        &self.shared.clock
    }

    pub(crate) fn paceline(&self) -> &paceline::Handle {
        self.shared.paceline()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("id", &self.shared.id).field("config", &self.shared.config).finish()
    }
}

// Its hooks are called, but their state cannot be inspected through a handle.
impl std::panic::UnwindSafe for Handle {}
impl std::panic::RefUnwindSafe for Handle {}

/// A runtime is entered on this thread until this is dropped.
#[derive(Debug)]
#[must_use = "Creating and dropping a guard does nothing"]
pub struct EnterGuard<'a> {
    _entry: Entry,
    _paceline: Option<paceline::EnterGuard>,
    lifetime: PhantomData<&'a Handle>,
}

// SAFETY: a shared reference to it allows only `Debug`.
unsafe impl Sync for EnterGuard<'_> {}

/// Identifies a runtime.
#[derive(Clone, Copy, Debug, Hash, Eq, PartialEq)]
pub struct Id(NonZeroU64);

impl Id {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // ORDER: Relaxed, because only the number's uniqueness matters.
        Self(NonZeroU64::new(NEXT.fetch_add(1, Ordering::Relaxed)).unwrap_or(NonZeroU64::MIN))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
