//! [`Stall`]: what is reported of a task that blocks its thread, or computes, and how.

use std::mem;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::syscall::Syscall;
use super::witness::{Doing, Witness};
use super::{Pool, Station};
use crate::sync::{Counter, thread};

/// How long a task must have blocked its thread, or computed, before it is reported.
pub(super) const STALL: Duration = Duration::from_millis(10);

/// A task that does not let go of its thread: see [`Builder::on_stall`](crate::Builder::on_stall).
///
/// Its [`Display`](std::fmt::Display) is a sentence: "the task spawned at src/main.rs:9:5 has blocked paceline-1 for
/// 10.9ms (in futex)", or "... has computed on paceline-1 for 12ms without a pause".
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stall {
    /// Where the task was spawned; or the `block_on` was called.
    pub spawned_at: &'static Location<'static>,
    /// It is no task, but the future of that `block_on`.
    pub in_block_on: bool,
    /// What it is at.
    pub kind: StallKind,
    /// For how long, so far. Of a task that computes this is processor time, not counting waits for a core.
    pub blocked_for: Duration,
    /// The name of the thread, if it has one.
    pub thread: Option<String>,
    /// The thread.
    pub thread_id: thread::ThreadId,
}

/// What a task is at that does not let go of its thread.
///
/// A task that only waits for a core, because others use them all, is at nothing wrong and is not reported;
/// [`Metrics::starved`](crate::Metrics::starved) counts these.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use paceline::{Runtime, StallKind};
///
/// # fn main() -> std::io::Result<()> {
/// let (tell, told) = mpsc::channel();
/// let runtime = Runtime::builder().threads(1).on_stall(move |stall| drop(tell.send(stall.kind))).build()?;
/// runtime.spawn(async { std::thread::sleep(std::time::Duration::from_millis(200)) }).detach();
/// match told.recv().unwrap() {
///     StallKind::Blocked(Some(call)) => println!("it sleeps in {call}"),
///     StallKind::Blocked(None) | StallKind::Unknown => println!("it sleeps somewhere"),
///     kind => unreachable!("{kind:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StallKind {
    /// Its thread sleeps, in this system call if that is known: a lock, a file, a channel of the standard library's. Another thread
    /// does its work meanwhile. Let the task await instead, or have a thread of its own block.
    Blocked(Option<Syscall>),
    /// It computes, without an `await` at which others would have their turn. Another thread sees to events meanwhile, if no
    /// other did; what else waits has one core less. Let it yield now and then, or compute in smaller pieces.
    Computing,
    /// One of the two: this system does not tell which. So far, that is all but Linux.
    Unknown,
}

impl std::fmt::Display for Stall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let thread = self.thread.as_deref().unwrap_or("a thread without a name");
        let Self { spawned_at, blocked_for, .. } = self;
        let who = if self.in_block_on { "future of the block_on" } else { "task spawned" };
        write!(f, "the {who} at {spawned_at} has ")?;
        match self.kind {
            StallKind::Blocked(Some(call)) => write!(f, "blocked {thread} for {blocked_for:?} (in {call})"),
            StallKind::Blocked(None) => write!(f, "blocked {thread} for {blocked_for:?}"),
            StallKind::Computing => write!(f, "computed on {thread} for {blocked_for:?} without a pause"),
            StallKind::Unknown => write!(f, "not let go of {thread} for {blocked_for:?}"),
        }
    }
}

/// Who does not let go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Culprit {
    /// Where it was spawned, or its `block_on` called. It may be gone in the meantime.
    pub(super) place: Option<&'static Location<'static>>,
    pub(super) is_root: bool,
}

/// How many tasks have stalled.
#[derive(Debug, Default)]
pub(crate) struct Stalls {
    pub(crate) all: Counter,
    pub(crate) blocked: Counter,
    pub(crate) computing: Counter,
    /// And how many did not, but waited for a core for as long.
    pub(crate) starved: Counter,
}

/// What is told, and when, of a task that does not let go of its thread.
#[derive(Debug)]
pub(super) struct Reports {
    /// When it is reported next.
    next: Duration,
    is_counted: bool,
    is_starved: bool,
}

impl Reports {
    pub(super) fn new() -> Self {
        Self { next: STALL, is_counted: false, is_starved: false }
    }

    /// Counts and reports a stall when it has lasted long enough, and reports it again whenever it has become ten times as long.
    pub(super) fn look(
        &mut self,
        pool: &Arc<Pool>,
        station: &Station,
        culprit: Culprit,
        doing: Doing,
        witness: &Witness,
    ) {
        let stalls = &pool.deputy.stalls;
        if witness.waited >= STALL && !mem::replace(&mut self.is_starved, true) {
            stalls.starved.add_shared(1);
        }
        let (lasted, count) = match doing {
            Doing::Waits | Doing::Dozes => return,
            // It began up to a tick before it was first seen.
            Doing::Blocks => (witness.blocked.saturating_add(pool.deputy.tick()), &stalls.blocked),
            Doing::Computes => (witness.computed, &stalls.computing),
        };
        if lasted < self.next {
            return;
        }
        if !mem::replace(&mut self.is_counted, true) {
            stalls.all.add_shared(1);
            count.add_shared(u64::from(witness.tells()));
        }
        let kind = match doing {
            _ if !witness.tells() => StallKind::Unknown,
            Doing::Computes => StallKind::Computing,
            _ => StallKind::Blocked(station.state.syscall()),
        };
        if report(pool, station, culprit, kind, lasted) {
            self.next = lasted.saturating_mul(10);
        }
    }
}

/// What to call when a task does not let go of its thread.
pub(crate) type StallHook = Arc<dyn Fn(&Stall) + Send + Sync>;

/// Calls the hook, if there is one, on a thread of its own: the deputy waits for nobody. One report at a time: false if the
/// last one is not through, or no thread is to be had, and this one should be tried again.
fn report(
    pool: &Arc<Pool>,
    station: &Station,
    culprit: Culprit,
    kind: StallKind,
    blocked_for: Duration,
) -> bool {
    let Some(crew) = pool.crew() else { return true };
    let (Some(hook), Some(spawned_at)) = (crew.stall_hook(), culprit.place) else { return true };
    if crew.reporting.raise() {
        return false;
    }
    let name = station.thread.name().map(Into::into);
    let (in_block_on, thread_id) = (culprit.is_root, station.thread.id());
    let stall = Stall { spawned_at, in_block_on, kind, blocked_for, thread: name, thread_id };
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
