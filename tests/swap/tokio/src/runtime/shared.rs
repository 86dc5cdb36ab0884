//! [`Shared`]: what all handles of a runtime share.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::RuntimeFlavor;
use super::blocking::Blocking;
use super::handle::Id;
use crate::context::Place;

/// What the builder decided.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) flavor: RuntimeFlavor,
    pub(crate) workers: usize,
    pub(crate) name: Option<String>,
    /// Tasks that are spawned locally are its own.
    pub(crate) is_local: bool,
    pub(crate) has_io: bool,
    pub(crate) has_time: bool,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) id: Id,
    pub(crate) blocking: Blocking,
    /// Its threads may be there before whoever builds it has its handle.
    paceline: OnceLock<paceline::Handle>,
    is_shut_down: AtomicBool,
}

impl Shared {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            id: Id::next(),
            blocking: Blocking::default(),
            paceline: OnceLock::new(),
            is_shut_down: AtomicBool::new(false),
        }
    }

    /// On a thread of the runtime, or of whoever has entered it.
    #[inline]
    pub(crate) fn paceline(&self) -> &paceline::Handle {
        self.paceline.get_or_init(paceline::Handle::current)
    }

    pub(crate) fn is_of(&self, paceline: paceline::Handle) {
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

    /// Where its futures are while they are polled.
    #[inline]
    pub(crate) fn place(&self) -> Place {
        match self.config.flavor {
            RuntimeFlavor::CurrentThread => Place::MustNotBlock,
            RuntimeFlavor::MultiThread => Place::MayMove,
        }
    }
}
