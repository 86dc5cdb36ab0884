//! [`ThreadInfo`]: what each thread of a pool is doing, as a caller finds it.
//!
//! Threads record nothing for this. A thread that sleeps has marked its seat; a thread that waits for
//! leadership is in the line; a thread that polls a task has noted the `spawn` of that task for the deputy;
//! and the deputy keeps its [findings](Finding) about threads that made no progress. Only a leader
//! that is awake, in the moments before it sleeps, has left no mark: it counts as processing.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::Handle;
use crate::executor::Hosted;
use crate::leadership::Seat;
use crate::place::{SourceLine, ThreadName};
use crate::pool::{Activity, Finding, Pool, Station};
use crate::probe::{Doing, ThreadState};
use crate::sync::{self, Instant, thread};

/// A thread of a runtime, and what it is doing: see [`Handle::threads`](crate::Handle::threads).
///
/// Its [`Display`](fmt::Display) is a sentence: "paceline-1 leads", "paceline-3 (added) blocks for 12ms, in
/// the task spawned at src/main.rs:9:5". A name without a number is followed by that of the system:
/// "tokio-rt-worker (4711) follows".
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ThreadInfo {
    /// The name of the thread, if it has one.
    pub name: Option<String>,
    /// The thread.
    pub id: thread::ThreadId,
    /// The number of the thread in the system, which panic messages, `top -H` and debuggers show, too. Known
    /// on Linux only.
    pub os_id: Option<u32>,
    /// Why the thread is in the runtime.
    pub kind: ThreadKind,
    /// The current activity of the thread.
    pub role: Role,
    /// Where the task was spawned that the thread polls, the innermost one; or where its `block_on` was
    /// called, if the thread is in that future. A thread that leads or follows in a `block_on` inside of a
    /// task is in that task.
    pub spawned_at: Option<&'static Location<'static>>,
    /// The location is that of a `block_on`, and the thread polls the future of that call, not a task.
    pub in_block_on: bool,
    /// How long the thread has been in this one poll, or waker: since the first look of the deputy that
    /// found it there, which comes up to [`max_blind`](crate::Tuning::max_blind) after the poll began.
    /// `None` if the deputy has not seen the thread there twice. If all threads sleep, the deputy sleeps,
    /// too; so of a thread that waits in a `block_on` inside of a task it knows only the time since then.
    pub in_poll_for: Option<Duration>,
}

/// The current activity of a thread of a runtime.
///
/// [`Blocks`](Role::Blocks), [`Computes`](Role::Computes) and [`Starves`](Role::Starves) come from the
/// deputy, which decides at its second look: until then such a thread processes. If the system does not
/// tell them apart, which so far only Linux does, a thread that makes no progress counts as blocked.
///
/// # Examples
///
/// ```
/// use paceline::{Role, Runtime};
///
/// # fn main() -> std::io::Result<()> {
/// let runtime = Runtime::builder().threads(2).build()?;
/// let leads = runtime.threads().iter().filter(|thread| thread.role == Role::Leads).count();
/// assert!(leads <= 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// The thread sleeps until there are events, on behalf of all threads.
    Leads,
    /// The thread sleeps, or is about to, until there is something for it: leadership, tasks, or the
    /// wake-up of its own future.
    Follows,
    /// The thread is awake: it polls a task or a future, calls a waker, or looks for what to do next, for
    /// events among others.
    Processes,
    /// The thread processes, and sleeps meanwhile: in a lock, a file, another system call, or a `block_on`
    /// of another runtime.
    Blocks,
    /// The thread processes, and has computed without a pause.
    Computes,
    /// The thread processes, and would go on if it had a core.
    Starves,
    /// The thread is in no `block_on`: it starts, or is in the hook for that; or it ends, and drops what is
    /// cancelled.
    Outside,
}

/// Why a thread is in a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ThreadKind {
    /// A worker among the usual number of [`threads`](crate::Builder::threads).
    Worker,
    /// A worker that was added because others block, and that leaves when it is not needed.
    Replacement,
    /// A worker beyond the usual number that takes no tasks from the queues, while others compute: it serves
    /// events.
    Reserve,
    /// A thread of yours, in a `block_on` of this runtime.
    Caller,
    /// A thread that is there only to lead, because no other thread did.
    Relief,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Role::Leads => "leads",
            Role::Follows => "follows",
            Role::Processes => "processes",
            Role::Blocks => "blocks",
            Role::Computes => "computes",
            Role::Starves => "waits for a core",
            Role::Outside => "starts or ends",
        })
    }
}

impl fmt::Display for ThreadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ThreadKind::Worker => "worker",
            ThreadKind::Replacement => "added",
            ThreadKind::Reserve => "reserve",
            ThreadKind::Caller => "caller",
            ThreadKind::Relief => "relief",
        })
    }
}

impl fmt::Display for ThreadInfo {
    /// Writes the name, the kind unless it is a worker, the role, and, if known, for how long and in which
    /// code.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", ThreadName { name: self.name.as_deref(), number: self.os_id })?;
        if self.kind != ThreadKind::Worker {
            write!(f, " ({})", self.kind)?;
        }
        write!(f, " {}", self.role)?;
        if let Some(lasts) = self.in_poll_for {
            write!(f, " for {lasts:.1?}")?;
        }
        let subject = if self.in_block_on { "future of the block_on" } else { "task spawned" };
        self.spawned_at.map_or(Ok(()), |at| write!(f, ", in the {subject} at {}", SourceLine(at)))
    }
}

impl Handle {
    /// Returns what each thread of the runtime is doing: first the workers in the order in which they
    /// started, then other threads that are in a `block_on` of the runtime. Threads for closures that [block
    /// on purpose](crate::blocking) are not included, and a thread that is being started is missing for its
    /// first moments.
    ///
    /// The call is cheap and safe at any time and from anywhere: in a task, in a hook, while the runtime
    /// shuts down or drains. The threads do nothing for it, and no thread waits except for a lock that is
    /// held for some instructions. The threads are examined one after the other while they go on: the result
    /// is close, but not a snapshot. However, two threads are never reported as leading. States shorter than
    /// one or two ticks of the deputy ([`max_blind`](crate::Tuning::max_blind)) are not told apart. After a
    /// shutdown, if no thread is stuck, no worker is left. The list is empty once the runtime was dropped.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use paceline::Role;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(2).build()?;
    /// let (end, ended) = mpsc::channel::<()>();
    /// runtime.spawn(async move { drop(ended.recv()) }).detach();
    /// let blocked = loop {
    ///     if let Some(thread) = runtime.threads().into_iter().find(|thread| thread.role == Role::Blocks) {
    ///         break thread;
    ///     }
    /// };
    /// println!("{blocked}");    // paceline-1 blocks for 1.0ms, in the task spawned at src/main.rs:7:9
    /// assert_eq!(blocked.spawned_at.unwrap().file(), file!());
    /// drop(end);
    /// # Ok(())
    /// # }
    /// ```
    pub fn threads(&self) -> Vec<ThreadInfo> {
        self.pool().map_or(Vec::new(), |pool| threads_of(&pool))
    }
}

/// Returns what each thread is doing: the crew's threads first, in the order in which they began to run, and
/// then callers and reliefs. A worker that has not begun to run is missing. At most one thread is reported as
/// the leader.
fn threads_of(pool: &Pool) -> Vec<ThreadInfo> {
    let workers = pool.crew().map_or(Vec::new(), |crew| crew.running());
    let hired = workers.len();
    let mut threads: Vec<_> = workers.into_iter().map(|worker| (worker, Vec::new())).collect();
    for station in pool.stations() {
        match threads.iter_mut().find(|((thread, _), _)| thread.id() == station.thread.id()) {
            Some((_, its)) => its.push(station),
            None => threads.push(((station.thread.clone(), station.state), vec![station])),
        }
    }
    let line = pool.leadership.waiting();
    let mut all = Vec::with_capacity(threads.len());
    for (number, (thread, its)) in threads.iter().enumerate() {
        let kind = kind_of(its, number < hired);
        all.push(look_at(thread, kind, its, &line));
    }
    settle_leader(&mut all);
    all
}

/// Returns why a thread is here that is in these `block_on`s, the innermost last. `is_hired` says that it
/// is one of the crew's. Such a thread counts as a worker while it is in no `block_on`.
fn kind_of(its: &[Arc<Station>], is_hired: bool) -> ThreadKind {
    let is_standby = |hosted: &Hosted| hosted.runner.is_standby();
    let is_reserve = |station: &Arc<Station>| station.runners.lock().iter().any(is_standby);
    match its.first() {
        Some(station) if station.is_relief() => ThreadKind::Relief,
        Some(station) if !is_hired && station.root().is_some() => ThreadKind::Caller,
        Some(station) if station.is_replacement() && is_reserve(station) => ThreadKind::Reserve,
        Some(station) if station.is_replacement() => ThreadKind::Replacement,
        _ => ThreadKind::Worker,
    }
}

/// Returns what a thread is doing, while the threads in `line` wait for leadership. `its` are the stations of
/// its `block_on`s, the innermost last. [`settle_leader`] corrects the role.
fn look_at(
    (thread, state): &(thread::Thread, ThreadState),
    kind: ThreadKind,
    its: &[Arc<Station>],
    line: &[sync::Arc<Seat>],
) -> ThreadInfo {
    let follows =
        |top: &sync::Arc<Seat>| top.is_asleep() || line.iter().any(|seat| sync::Arc::ptr_eq(seat, top));
    let task_of =
        |its: &[Arc<Station>]| its.iter().rev().map(|station| station.activity()).find(Activity::is_task);
    // The calling thread is awake, in user code: it does not lead (LF2).
    let asks = thread.id() == thread::current().id();
    let found = |at: Activity| at.finding.map(|finding| role_of(finding.doing));
    let (role, at) = match its.iter().rposition(|station| station.is_on_top()) {
        None if its.is_empty() => (Role::Outside, None),
        // In the `block_on` of another pool, or of none yet: the thread sleeps there, unless it is known to
        // be awake.
        None => {
            let at = task_of(its);
            (at.and_then(found).unwrap_or(Role::Blocks), at)
        }
        // A thread that leads or follows on top of a task is in that task. If it has just woken up and polls
        // something in this `block_on`, that belongs to another role.
        Some(top) if its[top].seat.is_polling() => (Role::Leads, task_of(&its[..top])),
        Some(top) if follows(&its[top].seat) => (Role::Follows, task_of(&its[..top])),
        Some(top) => {
            let at = its[top].activity();
            let role = found(at).unwrap_or(Role::Processes);
            (role, if at.culprit.is_some() { Some(at) } else { task_of(its).or(Some(at)) })
        }
    };
    let culprit = at.and_then(|at| at.culprit);
    let lasts = |finding: Finding| Instant::now().saturating_duration_since(finding.since);
    ThreadInfo {
        name: thread.name().map(Into::into),
        id: thread.id(),
        os_id: state.number(),
        kind,
        role: if asks && matches!(role, Role::Blocks | Role::Starves) { Role::Processes } else { role },
        spawned_at: culprit.and_then(|culprit| culprit.place),
        in_block_on: culprit.is_some_and(|culprit| culprit.is_root),
        in_poll_for: at.and_then(|at| at.finding).map(lasts),
    }
}

/// Returns the role of a thread that the deputy found doing this. One that dozes counts as processing.
fn role_of(doing: Doing) -> Role {
    match doing {
        Doing::Blocks => Role::Blocks,
        Doing::Computes => Role::Computes,
        Doing::Waits => Role::Starves,
        Doing::Dozes => Role::Processes,
    }
}

/// Leaves at most one leader. The threads were examined one after the other, so of several that led the
/// last one leads now.
fn settle_leader(all: &mut [ThreadInfo]) {
    let leaders = all.iter_mut().filter(|thread| thread.role == Role::Leads);
    leaders.rev().skip(1).for_each(|thread| thread.role = Role::Processes);
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    fn seen(role: Role) -> ThreadInfo {
        let (name, id) = (Some("mine-1".into()), thread::current().id());
        let (kind, spawned_at, in_poll_for) = (ThreadKind::Worker, Some(Location::caller()), None);
        ThreadInfo { name, id, os_id: Some(1), kind, role, spawned_at, in_block_on: true, in_poll_for }
    }

    #[test]
    fn of_several_that_led_the_last_one_does() {
        use Role::{Follows, Leads, Processes};
        for (found, settled) in [
            ([Leads, Follows, Leads, Processes], [Processes, Follows, Leads, Processes]),
            ([Follows, Leads, Follows, Processes], [Follows, Leads, Follows, Processes]),
            ([Follows, Processes, Follows, Processes], [Follows, Processes, Follows, Processes]),
        ] {
            let mut all = found.map(seen);
            settle_leader(&mut all);
            assert_eq!(all.map(|thread| thread.role), settled);
        }
    }

    #[test]
    fn each_is_a_sentence() {
        let place = Location::caller();
        let info = ThreadInfo { spawned_at: Some(place), in_block_on: false, ..seen(Role::Blocks) };
        assert_eq!(info.to_string(), format!("mine-1 blocks, in the task spawned at {place}"));
        let info = ThreadInfo {
            name: None,
            kind: ThreadKind::Caller,
            role: Role::Starves,
            in_block_on: true,
            in_poll_for: Some(Duration::from_millis(12)),
            ..info
        };
        let text = format!(
            "a thread without a name (1) (caller) waits for a core for 12.0ms, in the future of the block_on at {place}"
        );
        assert_eq!(info.to_string(), text);
    }
}
