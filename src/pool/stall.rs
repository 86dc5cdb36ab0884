//! [`Stall`]: what is reported of a task that blocks its thread, and how.

use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::{Pool, Station};
use crate::executor::Runner;
use crate::sync::thread;

/// How long a task must have blocked its thread before it is reported.
pub(super) const STALL: Duration = Duration::from_millis(10);

/// A task that blocks its thread: see [`Builder::on_stall`](crate::Builder::on_stall).
///
/// Its [`Display`](std::fmt::Display) is a sentence: "the task spawned at src/main.rs:9:5 has blocked paceline-1 for
/// 10.9ms".
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stall {
    /// Where the task was spawned.
    pub spawned_at: &'static Location<'static>,
    /// For how long it has blocked its thread so far.
    pub blocked_for: Duration,
    /// The name of the thread, if it has one.
    pub thread: Option<String>,
    /// The thread.
    pub thread_id: thread::ThreadId,
}

impl std::fmt::Display for Stall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let thread = self.thread.as_deref().unwrap_or("a thread without a name");
        write!(f, "the task spawned at {} has blocked {thread} for {:?}", self.spawned_at, self.blocked_for)
    }
}

/// What to call when a task blocks its thread.
pub(crate) type StallHook = Arc<dyn Fn(&Stall) + Send + Sync>;

/// Calls the hook, if there is one, on a thread of its own: the deputy waits for nobody. One report at a time: false if the
/// last one is not through, or no thread is to be had, and this one should be tried again.
pub(super) fn report(pool: &Arc<Pool>, station: &Station, runner: &Runner, blocked_for: Duration) -> bool {
    let Some(crew) = pool.crew() else { return true };
    let (Some(hook), Some(spawned_at)) = (crew.stall_hook(), runner.spawned_at()) else { return true };
    if crew.reporting.raise() {
        return false;
    }
    let name = station.thread.name().map(Into::into);
    let stall = Stall { spawned_at, blocked_for, thread: name, thread_id: station.thread.id() };
    let reporter = (pool.clone(), crew.clone());
    let started = thread::Builder::new().name("paceline-report".into()).spawn(move || {
        let (pool, crew) = reporter;
        // A hook that panics has said so by its panic message.
        let _ = catch_unwind(AssertUnwindSafe(|| pool.visit(|| hook(&stall))));
        drop(hook);
        crew.reporting.set(false);
    });
    if started.is_err() {
        crew.reporting.set(false);
    }
    started.is_ok()
}
