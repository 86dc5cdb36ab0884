//! The state of a thread, as a scenario sets it: see [`SceneActivity`]. So shuttle can explore the rules for
//! threads that compute, although no thread has a processor time there. In a simulation, the virtual cores
//! know the state.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::syscall::Syscall;
use crate::sync::thread::{self, ThreadId};
use crate::sync::{Instant, process_static};

/// A thread that a scenario may have given an activity. Nothing is known of other threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadState(ThreadId);

/// The activity of a thread, as a scenario sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code, reason = "scenarios are tests"))]
pub(crate) enum SceneActivity {
    /// The thread sleeps, and uses no processor time.
    Blocks,
    /// The thread uses a core all the time, by the scenario's clock.
    Computes,
    /// The thread is runnable, but uses no processor time, because other threads have the cores.
    WaitsForCore,
}

#[derive(Debug)]
struct Setting {
    activity: SceneActivity,
    since: Instant,
    /// The processor time that the thread had used before `since`.
    used: Duration,
}

impl Setting {
    /// Returns the processor time used so far, which grows only while the thread computes.
    fn processor_time(&self) -> Duration {
        self.used
            + if self.activity == SceneActivity::Computes { self.since.elapsed() } else { Duration::ZERO }
    }
}

process_static! {
    /// A lock of `std`: no thread takes a step of the scenario under it.
    static SCENE: Mutex<HashMap<ThreadId, Setting>> = Mutex::default();
}

fn scene() -> MutexGuard<'static, HashMap<ThreadId, Setting>> {
    SCENE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets what a thread does, until this is dropped. From then on it blocks.
#[derive(Debug)]
#[must_use]
#[cfg_attr(not(test), allow(dead_code, reason = "scenarios are tests"))]
pub(crate) struct Part(ThreadId);

#[cfg_attr(not(test), allow(dead_code, reason = "scenarios are tests"))]
impl SceneActivity {
    /// Sets that the current thread does this until the returned value is dropped; after that, the thread
    /// blocks.
    pub(crate) fn begin(self) -> Part {
        let thread = thread::current().id();
        set(thread, self);
        Part(thread)
    }
}

/// Sets what a thread does from now on. The processor time that it has used stays.
#[cfg_attr(not(test), allow(dead_code, reason = "scenarios are tests"))]
fn set(thread: ThreadId, activity: SceneActivity) {
    let mut scene = scene();
    let used = scene.get(&thread).map_or(Duration::ZERO, Setting::processor_time);
    scene.insert(thread, Setting { activity, since: Instant::now(), used });
}

impl Drop for Part {
    fn drop(&mut self) {
        set(self.0, SceneActivity::Blocks);
    }
}

impl ThreadState {
    /// Returns the state of the current thread.
    pub(crate) fn here() -> Self {
        Self(thread::current().id())
    }

    /// Returns none: the system does not tell.
    pub(crate) fn number(self) -> Option<u32> {
        None
    }

    /// Returns the processor time that the thread has used so far, if the scenario has given it an activity.
    pub(crate) fn processor_time(self) -> Option<Duration> {
        let used = thread::usage(self.0).map(|(used, _)| used);
        used.or_else(|| scene().get(&self.0).map(Setting::processor_time))
    }

    /// Returns whether the thread runs, or waits for nothing but a core, if the scenario has given it an
    /// activity.
    pub(crate) fn is_running(self) -> Option<bool> {
        let runs = thread::usage(self.0).map(|(_, runs)| runs);
        runs.or_else(|| scene().get(&self.0).map(|setting| setting.activity != SceneActivity::Blocks))
    }

    /// Returns none: a scenario makes no system calls.
    pub(crate) fn syscall(self) -> Option<Syscall> {
        None
    }
}
