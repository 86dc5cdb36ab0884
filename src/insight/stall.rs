//! [`Stall`]: the report of a task that blocks its thread, or computes.

use std::mem;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::place::{SourceLine, ThreadName};
use crate::probe::{Doing, Syscall, Witness};
use crate::rounded::Rounded;
use crate::stack::Stack;
use crate::sync::{Counter, Flag, thread};

/// How long a task must have blocked its thread, or computed, before it is reported.
pub(crate) const STALL: Duration = Duration::from_millis(10);

/// A task that does not let go of its thread: see [`Builder::on_stall`](crate::Builder::on_stall).
///
/// A stall may be reported several times, while it lasts: [`is_first`](Stall::is_first) tells the first
/// report from the later ones. [`Metrics::stalls`](crate::Metrics::stalls) counts each stall once.
///
/// Its [`Display`](std::fmt::Display) is a sentence: "the task spawned at src/main.rs:9:5 has blocked
/// paceline-1 for 10.9ms (in futex)", or "... has computed on paceline-1 for 12.0ms without a pause". Later
/// reports of the same stall say "still": "the task spawned at src/main.rs:9:5 still blocks paceline-1, for
/// 109ms so far (in futex)". If the line is known that blocks, it ends with that: "..., in futex called at
/// src/main.rs:12:20 (main::get)": see [`blocked_at`](Self::blocked_at). A thread whose name has no
/// number is named with that of the system: "tokio-rt-worker (4711)".
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stall {
    /// Where the task was spawned, or the `block_on` was called.
    pub spawned_at: &'static Location<'static>,
    /// The report is about no task, but about the future of that `block_on`.
    pub in_block_on: bool,
    /// Whether the task blocks or computes.
    pub kind: StallKind,
    /// How long the stall has lasted. For a task that computes this is processor time, without waits for a
    /// core.
    pub blocked_for: Duration,
    /// The name of the thread, if it has one.
    pub thread: Option<String>,
    /// The thread.
    pub thread_id: thread::ThreadId,
    /// The number of the thread in the system, which panic messages, `top -H` and debuggers show, too. Known
    /// on Linux only.
    pub thread_os_id: Option<u32>,
    pub(crate) part: Part,
    pub(crate) stack: Option<Stack>,
}

/// Which part of a stall a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// It was found.
    First,
    /// It goes on.
    Later,
    /// It is over.
    Last,
}

impl Stall {
    /// Returns whether this is the first report of this stall. Later reports are of the same poll, which
    /// goes on: each comes when the stall has become ten times as long.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let (tell, told) = mpsc::channel();
    /// let runtime = paceline::Runtime::builder()
    ///     .threads(1)
    ///     .on_stall(move |stall| _ = tell.send(stall.is_first()))
    ///     .build()?;
    /// let (end, ended) = mpsc::channel::<()>();
    /// let task = runtime.spawn(async move { drop(ended.recv()) });
    /// assert!(told.recv().unwrap());     // after 10 ms
    /// assert!(!told.recv().unwrap());    // after 100 ms: the same stall
    /// drop(end);
    /// runtime.block_on(task);
    /// assert_eq!(runtime.metrics().stalls, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_first(&self) -> bool {
        self.part == Part::First
    }

    /// Returns where the thread blocks: the innermost function of the program on its stack, as "at
    /// src/main.rs:9:5 (main::serve)". Functions of packages from a registry, of the standard library and of
    /// runtimes are left out, unless there is no other.
    ///
    /// `None` without the feature `trace`, for a task that computes, if the thread has woken up meanwhile,
    /// and on systems other than Linux on x86-64. Lines are known if the program is built with debug
    /// information. The first call in a process loads that, which takes a tenth of a second, in a large debug
    /// build more.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let (tell, told) = mpsc::channel();
    /// let runtime = paceline::Runtime::builder()
    ///     .threads(1)
    ///     .on_stall(move |stall| _ = tell.send(stall.blocked_at()))
    ///     .build()?;
    /// let (end, ended) = mpsc::channel::<()>();
    /// let task = runtime.spawn(async move { drop(ended.recv()) });
    /// println!("{:?}", told.recv().unwrap());
    /// drop(end);
    /// runtime.block_on(task);
    /// # Ok(())
    /// # }
    /// ```
    pub fn blocked_at(&self) -> Option<String> {
        self.stack.as_ref()?.line()
    }
}

/// The kind of a [`Stall`]: why a task does not let go of its thread.
///
/// A task that only waits for a core, because others use them all, is not at fault and is not reported;
/// [`Metrics::starved`](crate::Metrics::starved) counts such tasks.
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
/// let (end, ended) = mpsc::channel::<()>();
/// runtime.spawn(async move { drop(ended.recv()) }).detach();
/// match told.recv().unwrap() {
///     StallKind::Blocked(Some(call)) => println!("it sleeps in {call}"),
///     StallKind::Blocked(None) | StallKind::Unknown => println!("it sleeps somewhere"),
///     kind => unreachable!("{kind:?}"),
/// }
/// drop(end);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StallKind {
    /// The thread sleeps, in this system call if that is known: it waits for a lock, a file, or a channel
    /// of the standard library. Another thread does its work meanwhile. Let the task await instead, or move
    /// what blocks to [`unblock`](crate::unblock()).
    Blocked(Option<Syscall>),
    /// The task computes, without an `await` at which others would have their turn. Another thread sees to
    /// events meanwhile; other work has one core less. Let the task yield now and then, or compute in
    /// smaller pieces.
    Computing,
    /// The task blocks or computes: this system does not tell which. So far, only Linux tells.
    Unknown,
}

impl StallKind {
    /// Returns the kind as a number, for the flight recorder (`trace/recorder.rs`).
    pub(crate) fn code(self) -> u64 {
        match self {
            StallKind::Blocked(Some(call)) => u64::from(call.number()) << 2,
            StallKind::Blocked(None) => 1,
            StallKind::Computing => 2,
            StallKind::Unknown => 3,
        }
    }
}

impl std::fmt::Display for Stall {
    /// Writes which code has stalled which thread, how and for how long; "still" in later reports; and the
    /// system call, if it is known.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let thread = ThreadName { name: self.thread.as_deref(), number: self.thread_os_id };
        let subject = if self.in_block_on { "future of the block_on" } else { "task spawned" };
        let lasted = Rounded(self.blocked_for);
        write!(f, "the {subject} at {} ", SourceLine(self.spawned_at))?;
        let (has, still, did, ends) = match self.kind {
            StallKind::Blocked(_) => ("has blocked", "still blocks", "blocked", ""),
            StallKind::Computing => {
                ("has computed on", "still computes on", "computed on", " without a pause")
            }
            StallKind::Unknown => ("has not let go of", "still does not let go of", "did not let go of", ""),
        };
        match self.part {
            Part::First => write!(f, "{has} {thread} for {lasted}{ends}")?,
            Part::Later => write!(f, "{still} {thread}, for {lasted} so far{ends}")?,
            Part::Last => return write!(f, "{did} {thread} for {lasted} in all"),
        }
        match (self.kind, self.blocked_at()) {
            (StallKind::Blocked(Some(call)), Some(line)) => write!(f, ", in {call} called {line}"),
            (StallKind::Blocked(Some(call)), None) => write!(f, " (in {call})"),
            (_, line) => line.map_or(Ok(()), |line| write!(f, ", {line}")),
        }
    }
}

/// Counters of stalls.
#[derive(Debug, Default)]
pub(crate) struct Stalls {
    pub(crate) all: Counter,
    pub(crate) blocked: Counter,
    pub(crate) computing: Counter,
    /// Tasks that did not stall, but waited for a core for as long.
    pub(crate) starved: Counter,
    /// A report is in progress: the hook has not returned yet.
    pub(crate) reporting: Flag,
}

/// The reports about one poll that does not return: which were made, and when the next one is due.
#[derive(Debug)]
pub(crate) struct Reports {
    /// When it is reported next.
    next: Duration,
    is_counted: bool,
    is_starved: bool,
}

/// A stall that is to be reported.
pub(crate) struct StallNow {
    pub(crate) kind: StallKind,
    pub(crate) lasted: Duration,
    pub(crate) is_first: bool,
}

impl Reports {
    pub(crate) fn new() -> Self {
        Self { next: STALL, is_counted: false, is_starved: false }
    }

    /// Counts a stall in `stalls` when it has lasted long enough, and returns it. A task that has waited for
    /// a core for as long is counted as starved, once; a thread that waits for a core or dozes at this look
    /// is not reported. `syscall` tells in which call the thread sleeps.
    pub(crate) fn due(
        &mut self,
        stalls: &Stalls,
        doing: Doing,
        witness: &Witness,
        syscall: impl FnOnce() -> Option<Syscall>,
    ) -> Option<StallNow> {
        if witness.waited >= STALL && !mem::replace(&mut self.is_starved, true) {
            stalls.starved.add_shared(1);
        }
        let (lasted, count) = match doing {
            Doing::Waits | Doing::Dozes => return None,
            Doing::Blocks => (witness.blocked, &stalls.blocked),
            Doing::Computes => (witness.computed, &stalls.computing),
        };
        if lasted < self.next {
            return None;
        }
        if !mem::replace(&mut self.is_counted, true) {
            stalls.all.add_shared(1);
            count.add_shared(u64::from(witness.tells()));
        }
        let kind = match doing {
            _ if !witness.tells() => StallKind::Unknown,
            Doing::Computes => StallKind::Computing,
            _ => StallKind::Blocked(syscall()),
        };
        Some(StallNow { kind, lasted, is_first: self.next == STALL })
    }

    /// Notes that this report was made. The next one is due when the stall is ten times as long. Without
    /// this call, the report is due again at the next look.
    pub(crate) fn note_made(&mut self, report: &StallNow) {
        self.next = report.lasted.saturating_mul(10);
    }
}

/// The program's hook for stalls.
pub(crate) type StallHook = Arc<dyn Fn(&Stall) + Send + Sync>;

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_a_sentence_with_a_rounded_time_and_the_second_report_says_still() {
        use Part::{First, Last, Later};
        let spawned_at = Location::caller();
        let stall = |kind, part| Stall {
            spawned_at,
            in_block_on: false,
            kind,
            blocked_for: Duration::from_nanos(10_265_191),
            thread: Some("mine-1".into()),
            thread_id: thread::current().id(),
            thread_os_id: Some(1),
            part,
            stack: None,
        };
        let is = |kind, part, text: &str| {
            let stall: Stall = stall(kind, part);
            assert_eq!(stall.to_string(), format!("the task spawned at {spawned_at} {text}"));
            assert_eq!(stall.is_first(), part == First);
        };
        is(StallKind::Blocked(None), First, "has blocked mine-1 for 10.3ms");
        is(StallKind::Blocked(None), Later, "still blocks mine-1, for 10.3ms so far");
        is(StallKind::Computing, First, "has computed on mine-1 for 10.3ms without a pause");
        is(StallKind::Computing, Later, "still computes on mine-1, for 10.3ms so far without a pause");
        is(StallKind::Unknown, First, "has not let go of mine-1 for 10.3ms");
        is(StallKind::Unknown, Later, "still does not let go of mine-1, for 10.3ms so far");
        is(StallKind::Blocked(None), Last, "blocked mine-1 for 10.3ms in all");
        is(StallKind::Computing, Last, "computed on mine-1 for 10.3ms in all");
        is(StallKind::Unknown, Last, "did not let go of mine-1 for 10.3ms in all");
    }
}
