//! [`Shared`]: what all handles of a runtime share.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::RuntimeFlavor;
use super::blocking::Blocking;
use super::handle::Id;
use super::hooks::Hooks;
use crate::context::{self, Place};
use crate::time::Clock;

/// What the builder decided.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) flavor: RuntimeFlavor,
    pub(crate) workers: usize,
    pub(crate) max_blocking_threads: usize,
    pub(crate) name: Option<String>,
    /// Tasks that are spawned locally are its own.
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
    /// Its threads may be there before whoever builds it has its handle.
    paceline: OnceLock<paceline::Handle>,
    is_shut_down: AtomicBool,
    /// Somebody is its only worker, where that is whoever is in its `block_on`.
    has_worker: AtomicBool,
    /// What paceline had counted when it was shut down.
    counted: OnceLock<paceline::Metrics>,
}

impl Shared {
    pub(crate) fn new(config: Config) -> Self {
        let clock = Clock::new(config.flavor == RuntimeFlavor::CurrentThread, config.starts_paused);
        Self {
            config,
            clock,
            id: Id::next(),
            blocking: Blocking::default(),
            paceline: OnceLock::new(),
            is_shut_down: AtomicBool::new(false),
            has_worker: AtomicBool::new(false),
            counted: OnceLock::new(),
        }
    }

    /// On a thread of the runtime, or of whoever has entered it.
    #[inline]
    pub(crate) fn paceline(&self) -> &paceline::Handle {
        self.paceline.get_or_init(paceline::Handle::current)
    }

    pub(crate) fn is_of(&self, paceline: paceline::Handle) {
        self.clock.is_of(&paceline);
        let _ = self.paceline.set(paceline);
    }

    #[inline]
    pub(crate) fn is_shut_down(&self) -> bool {
        // ORDER: Acquire pairs with the Release below: who sees it sees what was done before.
        self.is_shut_down.load(Ordering::Acquire)
    }

    pub(crate) fn shuts_down(&self) {
        self.is_shut_down.store(true, Ordering::Release);
    }

    /// What was counted, now or at its end.
    pub(crate) fn metrics(&self) -> paceline::Metrics {
        self.counted.get().cloned().unwrap_or_else(|| self.paceline().metrics())
    }

    pub(crate) fn stops_counting(&self) {
        let _ = self.counted.set(self.paceline().metrics());
    }

    /// The thread is its only worker, from now on until what is returned is dropped; unless there are workers, or another one is.
    pub(crate) fn work(&self) -> Option<Working<'_>> {
        let is_alone = self.config.flavor == RuntimeFlavor::CurrentThread;
        let works = is_alone && !self.has_worker.swap(true, Ordering::Relaxed);
        works.then(|| Working { runtime: self, before: context::is_worker(Some(0)) })
    }

    /// Where its futures are while they are polled.
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
    before: Option<usize>,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        context::is_worker(self.before);
        self.runtime.has_worker.store(false, Ordering::Relaxed);
    }
}
