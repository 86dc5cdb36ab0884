//! [`Shared`]: the state that all handles of a runtime share.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::RuntimeFlavor;
use super::blocking::Blocking;
use super::extras::Extras;
use super::handle::Id;
use super::hooks::Hooks;
use super::workers::{Figures, Workers};
use crate::context::{self, Place, Worker};
use crate::time::Clock;

/// The settings of the builder.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) flavor: RuntimeFlavor,
    pub(crate) workers: usize,
    pub(crate) name: Option<String>,
    /// Tasks spawned locally belong to the runtime.
    pub(crate) is_local: bool,
    pub(crate) has_io: bool,
    pub(crate) has_time: bool,
    pub(crate) hooks: Hooks,
    pub(crate) starts_paused: bool,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) id: Id,
    pub(crate) blocking: Blocking,
    pub(crate) clock: Clock,
    pub(crate) extras: Extras,
    pub(crate) workers: Workers,
    /// Set later: threads of the runtime may run before its builder has the handle.
    paceline: OnceLock<paceline::Handle>,
    is_shut_down: AtomicBool,
    /// A thread acts as the only worker, in a runtime whose `block_on` polls the tasks.
    has_worker: AtomicBool,
    /// The counts of paceline at the shutdown.
    counted: OnceLock<(paceline::Metrics, paceline::Load)>,
}

impl Shared {
    pub(crate) fn new(config: Config, extras: Extras) -> Self {
        let clock = Clock::new(config.flavor == RuntimeFlavor::CurrentThread, config.starts_paused);
        Self {
            workers: Workers::new(config.workers),
            config,
            clock,
            extras,
            id: Id::next(),
            blocking: Blocking::default(),
            paceline: OnceLock::new(),
            is_shut_down: AtomicBool::new(false),
            has_worker: AtomicBool::new(false),
            counted: OnceLock::new(),
        }
    }

    /// Called on a thread of the runtime, or on one that has entered it.
    #[inline]
    pub(crate) fn paceline(&self) -> &paceline::Handle {
        self.paceline.get_or_init(paceline::Handle::current)
    }

    pub(crate) fn bind(&self, paceline: paceline::Handle) {
        self.clock.bind(&paceline);
        let _ = self.paceline.set(paceline);
    }

    #[inline]
    pub(crate) fn is_shut_down(&self) -> bool {
        // ORDER: Acquire pairs with the Release below: a thread that sees the flag sees all earlier effects.
        self.is_shut_down.load(Ordering::Acquire)
    }

    pub(crate) fn shuts_down(&self) {
        self.is_shut_down.store(true, Ordering::Release);
    }

    /// Returns the counts, now or at the end.
    pub(crate) fn metrics(&self) -> paceline::Metrics {
        self.counted.get().map_or_else(|| self.paceline().metrics(), |(metrics, _)| metrics.clone())
    }

    /// Returns the counts by thread, now or at the end.
    pub(crate) fn load(&self) -> paceline::Load {
        self.counted.get().map_or_else(|| self.paceline().load(), |(_, load)| load.clone())
    }

    /// Returns the counts of a worker.
    pub(crate) fn figures(&self, worker: usize) -> Figures {
        self.workers.figures(worker, &self.load())
    }

    /// Returns whether the only queue is that of a worker, which is awake or sleeps in `block_on`.
    pub(crate) fn keeps_one_queue(&self) -> bool {
        self.has_worker.load(Ordering::Relaxed)
    }

    pub(crate) fn stops_counting(&self) {
        let _ = self.counted.set((self.paceline().metrics(), self.paceline().load()));
    }

    /// Makes the thread the only worker until the result is dropped, unless the runtime has workers or
    /// another such thread.
    pub(crate) fn work(&self) -> Option<Working<'_>> {
        let is_alone = self.config.flavor == RuntimeFlavor::CurrentThread;
        let works = is_alone && !self.has_worker.swap(true, Ordering::Relaxed);
        works.then(|| {
            self.workers.begin();
            Working { runtime: self, before: context::set_worker(Some(Worker::of(self, 0))) }
        })
    }

    /// Returns the calls that its futures may make while they are polled.
    #[inline]
    pub(crate) fn place(&self) -> Place {
        match self.config.flavor {
            RuntimeFlavor::CurrentThread => Place::MustNotBlock,
            RuntimeFlavor::MultiThread => Place::MayMove,
        }
    }
}

/// See [`Shared::work`].
pub(crate) struct Working<'a> {
    runtime: &'a Shared,
    before: Option<Worker>,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        context::set_worker(self.before);
        self.runtime.workers.end(0, || self.runtime.load());
        self.runtime.has_worker.store(false, Ordering::Relaxed);
    }
}
