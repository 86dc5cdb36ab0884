//! [`Runtime`]: keeps a runtime running, and ends it.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::extras::Extras;
use super::simulated::system_clocks;
use super::{EnterGuard, Handle, RuntimeMetrics, Shared};
use crate::context::{self, Place};
use crate::task::JoinHandle;

/// The kind of a runtime.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuntimeFlavor {
    CurrentThread,
    MultiThread,
}

impl Clone for RuntimeFlavor {
    fn clone(&self) -> Self {
        *self
    }
}

impl Copy for RuntimeFlavor {}

/// Tasks, and the threads that poll them. Dropping it stops them all.
#[derive(Debug)]
pub struct Runtime {
    handle: Handle,
    /// `None` after the shutdown.
    paceline: Option<paceline::Runtime>,
}

/// How long the end of a runtime waits for blocking closures.
#[derive(Clone, Copy, Debug)]
enum Patience {
    Endless,
    Until(Instant),
    None,
}

impl Runtime {
    #[cfg(feature = "rt-multi-thread")]
    pub fn new() -> std::io::Result<Self> {
        super::Builder::new_multi_thread().enable_all().build()
    }

    pub(super) fn of(shared: Arc<Shared>, paceline: paceline::Runtime) -> Self {
        Self { handle: Handle::of(shared), paceline: Some(paceline) }
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle.spawn(future)
    }

    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.handle.spawn_blocking(f)
    }

    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let _works = self.handle.shared.work();
        self.handle.drive(Extras::guard(&self.handle, future, || {}), self.handle.shared.place())
    }

    pub fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    pub fn metrics(&self) -> RuntimeMetrics {
        self.handle.metrics()
    }

    /// # Panics
    ///
    /// If a future is being polled on this thread, as for a drop.
    pub fn shutdown_timeout(mut self, duration: Duration) {
        let _clocks = system_clocks();
        let until = Instant::now().checked_add(duration);
        self.end(match until {
            _ if duration.is_zero() => Patience::None,
            Some(until) => Patience::Until(until),
            None => Patience::Endless,
        });
    }

    pub fn shutdown_background(mut self) {
        self.end(Patience::None);
    }

    fn end(&mut self, patience: Patience) {
        let Some(paceline) = self.paceline.take() else { return };
        let _clocks = system_clocks();
        let shared = &self.handle.shared;
        shared.shuts_down();
        let may_wait = context::place() == Place::Outside;
        let timeout = match patience {
            Patience::Endless if may_wait => Duration::MAX,
            Patience::Until(until) if may_wait => until.saturating_duration_since(Instant::now()),
            _ => Duration::ZERO,
        };
        // Threads that are still busy end after their polls.
        let _ = paceline.shutdown(timeout);
        shared.blocking.close();
        shared.stops_counting();
        // Its tasks, which may wait for time until then, have been dropped.
        shared.clock.shut_down();
        drop(paceline);
        match patience {
            Patience::None => {}
            _ if !may_wait => assert!(
                std::thread::panicking(),
                "Cannot drop a runtime in a context where blocking is not allowed. This happens when a runtime is dropped from \
                 within an asynchronous context."
            ),
            Patience::Endless => shared.blocking.wait(None),
            Patience::Until(until) => shared.blocking.wait(Some(until)),
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.end(Patience::Endless);
    }
}

impl std::panic::UnwindSafe for Runtime {}
impl std::panic::RefUnwindSafe for Runtime {}
