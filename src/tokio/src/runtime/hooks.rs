//! The hooks of the builder for threads that start, stop, sleep or wake; and the number of a worker.

use std::cell::{LazyCell, RefCell};
use std::fmt;
use std::sync::{Arc, Weak};

use paceline::{Role, ThreadInfo};

use super::{Handle, Shared, fence};
use crate::context::{self, Entry, Worker};
use crate::quiet::quietly;

pub(crate) type Hook = Arc<dyn Fn() + Send + Sync>;

#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(crate) on_start: Option<Hook>,
    pub(crate) on_stop: Option<Hook>,
    pub(crate) on_park: Option<Hook>,
    pub(crate) on_unpark: Option<Hook>,
}

impl Hooks {
    /// Makes the threads of `runtime`, which is being built, call the hooks.
    pub(super) fn add_to(&self, mut builder: paceline::Builder, runtime: &Arc<Shared>) -> paceline::Builder {
        let (on_start, its) = (self.on_start.clone(), Arc::downgrade(runtime));
        builder = builder.on_thread_start(move || {
            fence::stays_inside();
            context::set_worker(its.upgrade().map(|runtime| Worker::of(&runtime, start_worker(&runtime))));
            call(&its, on_start.as_ref());
        });
        let (on_stop, its) = (self.on_stop.clone(), Arc::downgrade(runtime));
        builder = builder.on_thread_stop(move || {
            call(&its, on_stop.as_ref());
            if let (Some(runtime), Some(number)) = (its.upgrade(), context::worker()) {
                runtime.workers.end(number, || runtime.load());
            }
        });
        if self.on_park.is_some() || runtime.clock.is_pausable() {
            let (on_park, its) = (self.on_park.clone(), Arc::downgrade(runtime));
            builder = builder.on_thread_park(move || {
                call(&its, on_park.as_ref());
                if let Some(runtime) = its.upgrade() {
                    runtime.clock.idles();
                }
            });
        }
        if let Some(hook) = &self.on_unpark {
            builder = builder.on_thread_unpark(inside(runtime, hook));
        }
        builder
    }

    /// Called before a blocking closure runs on this thread, perhaps as its first.
    pub(super) fn blocking_thread(&self, runtime: &Arc<Shared>) {
        if self.on_start.is_none() && self.on_stop.is_none() {
            return;
        }
        let is_first = STOPS.try_with(|stops| match &mut *stops.borrow_mut() {
            Some(_) => false,
            none => {
                *none = Some(Stops { hook: self.on_stop.clone(), runtime: Arc::downgrade(runtime) });
                true
            }
        });
        if is_first.unwrap_or(false) {
            call(&Arc::downgrade(runtime), self.on_start.as_ref());
        }
    }
}

thread_local! {
    /// The hook for the end of this thread, which is one of paceline's blocking threads.
    static STOPS: RefCell<Option<Stops>> = const { RefCell::new(None) };
}

struct Stops {
    hook: Option<Hook>,
    runtime: Weak<Shared>,
}

impl Drop for Stops {
    fn drop(&mut self) {
        call(&self.runtime, self.hook.as_ref());
    }
}

/// Makes this thread a worker, and returns its number: that of a worker that blocks, for a replacement.
fn start_worker(runtime: &Shared) -> usize {
    let threads = LazyCell::new(|| runtime.paceline().threads());
    let blocks = |thread: &ThreadInfo| thread.role == Role::Blocks;
    runtime.workers.start(|id| threads.iter().any(|thread| thread.id == id && blocks(thread)))
}

fn inside(runtime: &Arc<Shared>, hook: &Hook) -> impl Fn() + Send + Sync + use<> {
    let (runtime, hook) = (Arc::downgrade(runtime), hook.clone());
    move || call(&runtime, Some(&hook))
}

/// Calls a hook in the runtime, which does not own itself through its hooks. A panic of the hook is caught:
/// it would end a blocking closure before its start or, from the destructor of a thread-local, the process.
fn call(runtime: &Weak<Shared>, hook: Option<&Hook>) {
    let Some(hook) = hook else { return };
    let _entered = runtime.upgrade().and_then(|runtime| Entry::try_new(Handle::of(runtime)));
    quietly(|| hook());
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("on_start", &self.on_start.is_some())
            .field("on_stop", &self.on_stop.is_some())
            .field("on_park", &self.on_park.is_some())
            .field("on_unpark", &self.on_unpark.is_some())
            .finish()
    }
}
