//! What tokio has behind `tokio_unstable`, for builds without that cfg: nothing. The items here have the
//! names of those in `unstable/mod.rs`, so that the other modules need no cfg.

use std::future::Future;
use std::io;
use std::rc::Rc;

use super::{Handle, Shared};
use crate::task::{AtHome, JoinHandle, Local, SpawnMeta};

/// The settings of a builder.
#[derive(Debug, Default)]
pub(crate) struct Settings(());

impl Settings {
    pub(super) fn start(&mut self, _workers: usize) -> io::Result<Extras> {
        Ok(Extras)
    }
}

/// The part of a runtime.
#[derive(Debug)]
pub(crate) struct Extras;

impl Extras {
    pub(crate) fn note_panic(&self) {}

    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        false
    }

    pub(super) fn inside<R>(&self, f: impl FnOnce() -> R) -> R {
        super::fence::inside(f)
    }

    pub(super) fn guard<F: Future>(
        _: &Handle,
        future: F,
        _end: impl FnOnce(),
    ) -> impl Future<Output = F::Output> {
        future
    }

    #[cfg(any(feature = "net", all(unix, feature = "process")))]
    #[inline]
    pub(crate) fn note_registration(&self) {}
}

/// The part of a set of tasks that stay on a thread.
#[derive(Debug, Default)]
pub(crate) struct LocalExtras(());

impl LocalExtras {
    pub(crate) fn bind(&self, _: &std::sync::Arc<Shared>) {}

    pub(crate) fn note_panic(&self) {}

    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        false
    }

    pub(crate) fn raise(&self) {}
}

#[track_caller]
pub(super) fn launch<F>(handle: &Handle, future: F, meta: SpawnMeta<'_>) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    handle.launch_in(future, meta, handle.shared.clone())
}

#[track_caller]
pub(crate) fn launch_local<F>(local: &Rc<Local>, future: F, meta: SpawnMeta<'_>) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    local.launch_in(future, meta, |home: AtHome| home)
}
