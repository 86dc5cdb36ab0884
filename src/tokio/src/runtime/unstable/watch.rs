//! [`Watched`]: the home of a task whose runtime has hooks for tasks, or measures their polls.

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::latency::Stamp;
use super::meta::{TaskHook, TaskMeta, call};
use crate::context;
use crate::runtime::{RuntimeFlavor, Shared};
use crate::task::{Home, Id};

/// The watch over one task.
pub(super) struct Watch {
    runtime: Arc<Shared>,
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

    /// Polls the task in its home, between the hooks, which are called there, too.
    fn around<R>(&self, home: &impl Home, id: Id, poll: impl FnOnce() -> R) -> R {
        let extras = &self.runtime.extras;
        let meta = self.meta(id, self.stamp.as_ref().map(|stamp| stamp.elapsed()));
        // A thread that is no worker of this runtime polls for worker 0.
        let worker = context::worker_of(&self.runtime).unwrap_or(0);
        if let (Some(latencies), Some(latency)) = (&extras.latencies, meta.latency) {
            latencies.count(worker, latency);
        }
        let call_in_home = |hook: Option<&TaskHook>| {
            if hook.is_some() {
                home.drop_in(id, || call(hook, &meta));
            }
        };
        call_in_home(extras.hooks.before_poll.as_ref());
        let began = extras.poll_times.as_ref().map(|histogram| (histogram, Instant::now()));
        let result = self.seeded(|| home.poll(id, poll));
        if let Some((histogram, began)) = began {
            histogram.count(worker, began.elapsed());
        }
        call_in_home(extras.hooks.after_poll.as_ref());
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
        self.watch.around(&self.inner, id, poll)
    }

    fn drop_in<R>(&self, id: Id, drop: impl FnOnce() -> R) -> R {
        self.inner.drop_in(id, drop)
    }

    fn note_panic(&self, spawned_at: &'static Location<'static>) {
        self.inner.note_panic(spawned_at);
    }

    fn has_ended(&self) -> bool {
        self.inner.has_ended()
    }

    fn begins(&self, id: Id) {
        call(self.watch.runtime.extras.hooks.on_spawn.as_ref(), &self.watch.meta(id, None));
    }

    fn ends(&self, id: Id) {
        call(self.watch.runtime.extras.hooks.on_terminate.as_ref(), &self.watch.meta(id, None));
    }
}
