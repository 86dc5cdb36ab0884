//! [`ThreadInfo`]: what each thread of a pool is at, as whoever asks finds it.
//!
//! Threads write nothing down for this. Who sleeps says so in its seat, who waits for leadership is in the line, who polls a
//! task has said of which `spawn` for the deputy; and what that has found of those that got no further is in their
//! [findings](super::finding). Only who leads *and* is awake, in the moments before it sleeps, is nowhere to be read: it is the one of
//! whom nothing else is known.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::finding::Finding;
use super::station::At;
use super::witness::Doing;
use super::{Pool, Station};
use crate::leadership::{Rank, Seat};
use crate::sync::{self, Instant, thread};

/// One thread of a runtime, and what it is at: see [`Runtime::threads`](crate::Runtime::threads).
///
/// Its [`Display`](fmt::Display) is a sentence: "paceline-1 leads", "paceline-3 (added) blocks for 12ms, in the task spawned at
/// src/main.rs:9:5".
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ThreadInfo {
    /// The name of the thread, if it has one.
    pub name: Option<String>,
    /// The thread.
    pub id: thread::ThreadId,
    /// Why it is there.
    pub kind: ThreadKind,
    /// What it is at.
    pub role: Role,
    /// Where the task was spawned that it polls, the innermost one; or where its `block_on` was called, if it is in that future.
    /// Who waits in a `block_on` inside of a task, and leads or follows there, is in that task.
    pub spawned_at: Option<&'static Location<'static>>,
    /// It is no task, but the future of that `block_on`.
    pub in_block_on: bool,
    /// For how long it has been in this one poll, or waker, as the deputy knows it: since the first look that found it there, which comes up to
    /// [`max_blind`](crate::Builder::max_blind) after it began. `None` of what it has not seen twice. Of who waits in a `block_on` inside
    /// of a task it knows only what it has seen since all threads slept last, for then it sleeps, too.
    pub in_poll_for: Option<Duration>,
}

/// What a thread of a runtime is at, right now.
///
/// [`Blocks`](Role::Blocks), [`Computes`](Role::Computes) and [`Starves`](Role::Starves) are the deputy's word, which it gives at its second look:
/// until then such a thread processes. Where the system does not tell them apart, which is so on all but Linux so far, who gets no
/// further counts as one that blocks.
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
    /// It waits for events, for all of them.
    Leads,
    /// It sleeps, or is about to, until there is something for it: leadership, tasks, or its own future's wake-up.
    Follows,
    /// It is on its way: it polls a task or a future, calls a waker, or looks for what to do next.
    Processes,
    /// It processes, and sleeps in that: in a lock, a file, a system call; or in a `block_on` of another runtime's.
    Blocks,
    /// It processes, and has computed without a pause.
    Computes,
    /// It processes, and would go on if it had a core.
    Starves,
    /// It is in no `block_on`: it starts, or is in the hook for that; or it ends, and drops what is cancelled, or polls who waits for
    /// the report of a drain.
    Outside,
}

/// Why a thread is in a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ThreadKind {
    /// One of the [`threads`](crate::Builder::threads) that there are to be.
    Worker,
    /// A worker, too, that was added because others block, and goes when it is not needed.
    Replacement,
    /// A worker that was added because others compute: it sees to events, and leaves to them what waits.
    Reserve,
    /// A thread of yours, in a `block_on` of this runtime.
    Caller,
    /// It is there only to lead, because nobody else did.
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
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.as_deref().unwrap_or("a thread without a name"))?;
        if self.kind != ThreadKind::Worker {
            write!(f, " ({})", self.kind)?;
        }
        write!(f, " {}", self.role)?;
        if let Some(lasts) = self.in_poll_for {
            write!(f, " for {lasts:.1?}")?;
        }
        let who = if self.in_block_on { "future of the block_on" } else { "task spawned" };
        self.spawned_at.map_or(Ok(()), |at| write!(f, ", in the {who} at {at}"))
    }
}

/// A thread; and its rank, if it may be the one that leads without a trace of it.
struct Seen {
    info: ThreadInfo,
    may_lead: Option<Rank>,
}

impl Pool {
    /// What each thread is at: the workers first, in the order in which they came.
    pub(crate) fn threads(&self) -> Vec<ThreadInfo> {
        // In the child of a fork there is none of them, and their locks may be anything.
        if self.is_inherited() {
            return Vec::new();
        }
        let workers = self.crew().map_or(Vec::new(), |crew| crew.workers());
        let hired = workers.len();
        let mut threads: Vec<_> = workers.into_iter().map(|thread| (thread, Vec::new())).collect();
        for station in self.stations() {
            match threads.iter_mut().find(|(thread, _)| thread.id() == station.thread.id()) {
                Some((_, its)) => its.push(station),
                None => threads.push((station.thread.clone(), vec![station])),
            }
        }
        let line = self.leadership.waiting();
        let mut all = Vec::with_capacity(threads.len());
        for (number, (thread, its)) in threads.iter().enumerate() {
            let kind = kind_of(self, its, number < hired);
            all.push(look_at(thread, kind, its, &line));
        }
        one_leads(self.leadership.rank_of_leader(), &mut all);
        all.into_iter().map(|seen| seen.info).collect()
    }
}

/// Why a thread is here that is in these `block_on`s, the innermost last.
fn kind_of(pool: &Pool, its: &[Arc<Station>], is_hired: bool) -> ThreadKind {
    let is_reserve = |station: &Arc<Station>| {
        station.runners.lock().iter().any(|hosted| {
            hosted.runner.is_reserve() && pool.crew().is_some_and(|crew| crew.runs(&hosted.state))
        })
    };
    match its.first() {
        Some(station) if station.is_relief() => ThreadKind::Relief,
        Some(station) if !is_hired && station.is_called() => ThreadKind::Caller,
        Some(station) if is_reserve(station) => ThreadKind::Reserve,
        Some(station) if station.is_replacement() => ThreadKind::Replacement,
        _ => ThreadKind::Worker,
    }
}

/// What it is at, while the threads in `line` wait for leadership.
fn look_at(
    thread: &thread::Thread,
    kind: ThreadKind,
    its: &[Arc<Station>],
    line: &[sync::Arc<Seat>],
) -> Seen {
    let sleeps =
        |top: &Station| top.seat.is_asleep() || line.iter().any(|seat| sync::Arc::ptr_eq(seat, &top.seat));
    let task_of = |its: &[Arc<Station>]| its.iter().rev().map(|station| station.at()).find(At::is_task);
    // Where it waits on top of a task, that is the one which it is in. What it polls in this `block_on`, if it has just woken up,
    // belongs to another role.
    let below = |top: &Arc<Station>| {
        let number = its.iter().position(|station| Arc::ptr_eq(station, top));
        task_of(&its[..number.unwrap_or(0)])
    };
    // Who asks is awake, in code of the user's: it does not lead (LF2).
    let asks = thread.id() == thread::current().id();
    let found = |at: At| at.finding.map(|finding| role_of(finding.doing));
    let mut may_lead = None;
    let (role, at) = match its.iter().rfind(|station| station.is_on_top()) {
        None if its.is_empty() => (Role::Outside, None),
        // In the `block_on` of another pool, or of none yet: unless it is known to be awake, it sleeps there.
        None => {
            let at = task_of(its);
            let role = at.and_then(found).unwrap_or(Role::Blocks);
            (if asks { Role::Processes } else { role }, at)
        }
        Some(top) if top.seat.is_polling() => (Role::Leads, below(top)),
        Some(top) if sleeps(top) => (Role::Follows, below(top)),
        Some(top) => {
            let at = top.at();
            may_lead = (at.is_anywhere() && !asks).then(|| top.seat.rank());
            let role = match found(at).unwrap_or(Role::Processes) {
                Role::Blocks | Role::Starves if asks => Role::Processes,
                role => role,
            };
            (role, if at.culprit.is_some() { Some(at) } else { task_of(its).or(Some(at)) })
        }
    };
    let culprit = at.and_then(|at| at.culprit);
    let lasts = |finding: Finding| Instant::now().saturating_duration_since(finding.since);
    let info = ThreadInfo {
        name: thread.name().map(Into::into),
        id: thread.id(),
        kind,
        role,
        spawned_at: culprit.and_then(|culprit| culprit.place),
        in_block_on: culprit.is_some_and(|culprit| culprit.is_root),
        in_poll_for: at.and_then(|at| at.finding).map(lasts),
    };
    Seen { info, may_lead }
}

fn role_of(doing: Doing) -> Role {
    match doing {
        Doing::Blocks => Role::Blocks,
        Doing::Computes => Role::Computes,
        Doing::Waits => Role::Starves,
        Doing::Dozes => Role::Processes,
    }
}

/// The threads were looked at one after the other: of several that led the last one does. Where none of them sleeps in the poller, and
/// somebody of this rank leads, it is the only one of that rank of whom nothing else is known; or it is not to be told.
fn one_leads(led_by: Option<Rank>, all: &mut [Seen]) {
    let mut leaders = all.iter_mut().filter(|seen| seen.info.role == Role::Leads).rev();
    if leaders.next().is_some() {
        return leaders.for_each(|seen| seen.info.role = Role::Processes);
    }
    let mut may_lead = all.iter_mut().filter(|seen| led_by.is_some() && seen.may_lead == led_by);
    if let (Some(seen), None) = (may_lead.next(), may_lead.next()) {
        let info = &mut seen.info;
        (info.role, info.spawned_at, info.in_block_on) = (Role::Leads, None, false);
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    fn seen(role: Role, may_lead: Option<Rank>) -> Seen {
        let (name, id) = (Some("mine-1".into()), thread::current().id());
        let (spawned_at, in_poll_for) = (Some(Location::caller()), None);
        let kind = ThreadKind::Worker;
        Seen {
            info: ThreadInfo { name, id, kind, role, spawned_at, in_block_on: true, in_poll_for },
            may_lead,
        }
    }

    fn roles(led_by: Option<Rank>, mut all: Vec<Seen>) -> Vec<Role> {
        one_leads(led_by, &mut all);
        all.iter().map(|seen| seen.info.role).collect()
    }

    #[test]
    fn of_several_that_led_the_last_one_does() {
        use Role::{Follows, Leads, Processes};
        let all = || [Leads, Follows, Leads, Processes].map(|role| seen(role, None)).into();
        for led_by in [None, Some(Rank::Host)] {
            assert_eq!(roles(led_by, all()), [Processes, Follows, Leads, Processes]);
        }
    }

    #[test]
    fn who_leads_awake_is_the_only_one_of_its_rank_of_whom_nothing_is_known() {
        use Role::{Follows, Leads, Processes};
        let all = |ranks: [Option<Rank>; 3]| ranks.map(|rank| seen(Processes, rank)).into();
        let (host, guest) = (Some(Rank::Host), Some(Rank::Guest));
        assert_eq!(roles(host, all([None, host, guest])), [Processes, Leads, Processes]);
        assert_eq!(roles(guest, all([None, host, guest])), [Processes, Processes, Leads]);
        assert_eq!(roles(host, all([host, host, None])), [Processes; 3]);
        assert_eq!(roles(None, all([None, host, guest])), [Processes; 3]);
        // It sleeps, so it is known.
        let known = vec![seen(Leads, None), seen(Processes, host), seen(Follows, None)];
        assert_eq!(roles(host, known), [Leads, Processes, Follows]);
        // It is in no future of anybody's then.
        let mut all = vec![seen(Processes, guest)];
        one_leads(guest, &mut all);
        assert_eq!(all[0].info.to_string(), "mine-1 leads");
    }

    #[test]
    fn each_is_a_sentence() {
        let place = Location::caller();
        let info =
            ThreadInfo { spawned_at: Some(place), in_block_on: false, ..seen(Role::Blocks, None).info };
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
            "a thread without a name (caller) waits for a core for 12.0ms, in the future of the block_on at {place}"
        );
        assert_eq!(info.to_string(), text);
    }
}
