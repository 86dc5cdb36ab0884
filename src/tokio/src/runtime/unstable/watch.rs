//! [`Watched`]: the home of a task whose runtime has hooks for tasks, or measures their polls.

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Runtime;
use super::latency::Stamp;
use super::meta::{TaskMeta, call};
use crate::context;
use crate::runtime::{RuntimeFlavor, Shared};
use crate::task::{Home, Id};

/// What is watched of one task.
pub(super) struct Watch {
    runtime: Runtime,
    spawned_at: &'static Location<'static>,
    stamp: Option<Arc<Stamp>>,
}

impl Watch {
    /// Returns `None` if the runtime does not watch its tasks.
    pub(super) fn of(runtime: &Arc<Shared>, spawned_at: &'static Location<'static>) -> Option<Self> {
        let extras = &runtime.extras;
        extras.is_watching(runtime.config.flavor).then(|| Self {
            runtime: runtime.clone(),
            spawned_at,
            stamp: extras.tracks_latency.then(|| Arc::new(Stamp::new())),
        })
    }

    pub(super) fn stamp(&self) -> Option<Arc<Stamp>> {
        self.stamp.clone()
    }

    fn meta(&self, id: Id, latency: Option<Duration>) -> TaskMeta<'static> {
        TaskMeta { id, spawned_at: self.spawned_at, latency, borrows: PhantomData }
    }

    fn around<R>(&self, id: Id, poll: impl FnOnce() -> R) -> R {
        let extras = &self.runtime.extras;
        let meta = self.meta(id, self.stamp.as_ref().map(|stamp| stamp.elapsed()));
        // A thread that is no worker polls for worker 0.
        let worker = context::worker().unwrap_or(0);
        if let (Some(latencies), Some(latency)) = (&extras.latencies, meta.latency) {
            latencies.count(worker, latency);
        }
        call(extras.hooks.before_poll.as_ref(), &meta);
        let result = match &extras.poll_times {
            Some(histogram) => {
                let began = Instant::now();
                let result = self.seeded(poll);
                histogram.count(worker, began.elapsed());
                result
            }
            None => self.seeded(poll),
        };
        call(extras.hooks.after_poll.as_ref(), &meta);
        result
    }

    /// Calls `poll` with the next seed, on a worker of a runtime that has seeds. In a current-thread runtime,
    /// the `block_on` around the poll has one.
    fn seeded<R>(&self, poll: impl FnOnce() -> R) -> R {
        let extras = &self.runtime.extras;
        if extras.seeds.is_some() && self.runtime.config.flavor == RuntimeFlavor::MultiThread {
            extras.inside(poll)
        } else {
            poll()
        }
    }
}

/// The home of a watched task, around its usual one.
pub(super) struct Watched<H> {
    inner: H,
    watch: Watch,
}

impl<H> Watched<H> {
    pub(super) fn new(inner: H, watch: Watch) -> Self {
        Self { inner, watch }
    }
}

impl<H: Home> Home for Watched<H> {
    fn poll<R>(&self, id: Id, poll: impl FnOnce() -> R) -> R {
        self.watch.around(id, || self.inner.poll(id, poll))
    }

    fn drop_in<R>(&self, id: Id, drop: impl FnOnce() -> R) -> R {
        self.inner.drop_in(id, drop)
    }

    fn note_panic(&self, spawned_at: &'static Location<'static>) {
        self.inner.note_panic(spawned_at);
    }

    fn begins(&self, id: Id) {
        call(self.watch.runtime.extras.hooks.on_spawn.as_ref(), &self.watch.meta(id, None));
    }

    fn ends(&self, id: Id) {
        call(self.watch.runtime.extras.hooks.on_terminate.as_ref(), &self.watch.meta(id, None));
    }
}
