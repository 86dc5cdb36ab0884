//! [`Dump`]: the unfinished tasks of a runtime, one by one, with what each waits for.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::panic::Location;
use std::time::Duration;

use super::waits::TaskWait;
use crate::executor::TaskSurvey;
use crate::observed::{self, TaskFacts};
use crate::pool::Pool;
use crate::rounded::Rounded;
use crate::runtime::Handle;
use crate::sync;

/// Tasks of one line whose waits are displayed. The others are only listed: to find the lines of a wait takes
/// some tens of microseconds.
const DISPLAYED: usize = 50;

/// The unfinished tasks of a runtime, one by one: see [`Handle::dump`].
///
/// Its [`Display`](fmt::Display) form is a list. Below a task are the lines at which it waits, the innermost
/// first:
///
/// ```text
/// 3 tasks
/// task 7, spawned at src/main.rs:9:5: waits for 12.3s (1 waker), 12.4s old
///   at src/main.rs:12:20 (main::serve::{{closure}})
///   at src/main.rs:9:40 (main::main::{{closure}})
/// task 8, spawned at src/main.rs:30:9: ready for 1.2ms, 3.0s old
/// 1 task was not polled yet
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Dump {
    /// The tasks: those with a number first, in the order in which they were spawned.
    pub tasks: Vec<TaskDump>,
    /// Tasks that were spawned while [`waits`](super::waits()) were off, and not polled so far: nothing is
    /// known of them.
    pub unpolled: usize,
    /// Whether some tasks are not listed: those of a [`StaticExecutor`](crate::StaticExecutor) that were
    /// spawned while [`waits`](super::waits()) were off.
    pub is_partial: bool,
}

/// An unfinished task: see [`Dump`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskDump {
    /// The number of the task, by which a [flight recorder](super::FlightRecorder) knows it, too. `None` if
    /// the task was spawned while [`waits`](super::waits()) were off: then the wakers and waits are not known
    /// either.
    pub number: Option<u64>,
    /// The name of the task, if it has one.
    pub name: Option<String>,
    /// Where the task was spawned.
    pub spawned_at: &'static Location<'static>,
    /// What the task does.
    pub state: TaskState,
    /// How old the task is. For a task without a number, counts from the end of its first poll, and is
    /// accurate to ten milliseconds; `None` during that poll.
    pub age: Option<Duration>,
    /// How long ago the last poll ended. `None` before that, and for a task without a number.
    pub since_poll: Option<Duration>,
    /// The number of wakers of the task that exist. A task that waits and has none will never be woken.
    pub wakers: Option<usize>,
    /// Where the task waits: the place at which its waker was cloned. If the task has several wakers, these
    /// are the places of all clones since it had none, the latest last; of more than eight, the first four
    /// and the last four. The task may have left some of them.
    pub waits: Vec<TaskWait>,
}

/// The state of a task: see [`TaskDump`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskState {
    /// The task was not polled so far.
    New,
    /// The task is being polled.
    Runs,
    /// The task was woken, and waits for a thread.
    Ready,
    /// The task waits to be woken. A task without a number may be ready.
    Waits,
}

/// The tasks of an executor, with the addresses of those that are known by one.
struct Addressed {
    survey: TaskSurvey,
    addresses: HashSet<usize>,
}

impl Addressed {
    fn new(survey: TaskSurvey) -> Self {
        let polled = survey.polled.iter().map(|(address, _)| *address);
        let addresses = survey.listed.iter().map(|(address, _)| *address).chain(polled).collect();
        Self { survey, addresses }
    }

    /// Returns whether these are facts of a task of the executor. Those of a strand's task do not say to
    /// which executor it belongs, but its address does.
    fn owns(&self, facts: &TaskFacts) -> bool {
        self.survey.executor == facts.executor || self.addresses.contains(&facts.task())
    }
}

impl Dump {
    fn of(pool: &Pool) -> Self {
        let facts = observed::all_facts();
        let mut dump = Self::default();
        for executor in pool.survey().into_iter().map(Addressed::new) {
            let known: HashSet<usize> =
                facts.iter().filter(|facts| executor.owns(facts)).map(|facts| facts.task()).collect();
            let before = dump.tasks.len();
            dump.tasks
                .extend(facts.iter().filter(|facts| executor.owns(facts)).map(|facts| TaskDump::of(facts)));
            let with_facts = dump.tasks.len() - before;
            dump.add_others(executor.survey, &known, with_facts);
        }
        dump.tasks.sort_by_key(|task| (task.number.is_none(), task.number));
        dump
    }

    /// Adds the tasks that have no facts. `known` are the addresses of the others, and `with_facts` is their
    /// number.
    fn add_others(&mut self, survey: TaskSurvey, known: &HashSet<usize>, with_facts: usize) {
        let (now, before) = (sync::coarse_millis(), self.tasks.len());
        let mut in_first_poll = survey.polled;
        for (address, task) in survey.listed {
            let polled = in_first_poll.iter().position(|(other, _)| *other == address);
            let state = if polled.is_some() { TaskState::Runs } else { TaskState::Waits };
            polled.map(|at| in_first_poll.remove(at));
            if !known.contains(&address) {
                let age = Duration::from_millis(now.saturating_sub(task.since));
                self.tasks.push(TaskDump::without_facts(task.spawned_at, state, Some(age)));
            }
        }
        let Some(unfinished) = survey.unfinished else {
            self.is_partial = true;
            return;
        };
        in_first_poll.retain(|(address, _)| !known.contains(address));
        // A polled task may be done already and still be on its thread's stack: the count tells.
        let left = unfinished.saturating_sub(with_facts + self.tasks.len() - before);
        in_first_poll.truncate(left);
        self.unpolled += left - in_first_poll.len();
        let running = |(_, spawned_at)| TaskDump::without_facts(spawned_at, TaskState::Runs, None);
        self.tasks.extend(in_first_poll.into_iter().map(running));
    }
}

impl TaskDump {
    fn of(facts: &TaskFacts) -> Self {
        let since_poll = facts.since_poll();
        let state = match since_poll {
            _ if facts.is_running() => TaskState::Runs,
            None => TaskState::New,
            Some(_) if facts.is_woken() => TaskState::Ready,
            Some(_) => TaskState::Waits,
        };
        Self {
            number: Some(facts.id),
            name: facts.name.as_deref().map(Into::into),
            spawned_at: facts.spawned_at,
            state,
            age: Some(facts.age()),
            since_poll,
            wakers: Some(facts.wakers()),
            waits: facts.waits().into_iter().map(TaskWait::new).collect(),
        }
    }

    fn without_facts(
        spawned_at: &'static Location<'static>,
        state: TaskState,
        age: Option<Duration>,
    ) -> Self {
        Self {
            number: None,
            name: None,
            spawned_at,
            state,
            age,
            since_poll: None,
            wakers: None,
            waits: Vec::new(),
        }
    }

    /// Writes the task, and at which lines it waits if that is asked for.
    fn write(&self, f: &mut fmt::Formatter<'_>, with_waits: bool) -> fmt::Result {
        f.write_str("task")?;
        if let Some(number) = self.number {
            write!(f, " {number}")?;
        }
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        write!(f, ", spawned at {}: {}", self.spawned_at, self.state)?;
        if let Some(since) = self.since_poll.filter(|_| self.state != TaskState::Runs) {
            write!(f, " for {}", Rounded(since))?;
        }
        match self.wakers {
            Some(1) => f.write_str(" (1 waker)")?,
            Some(wakers) if self.state == TaskState::Waits => write!(f, " ({wakers} wakers)")?,
            _ => {}
        }
        if let Some(age) = self.age {
            write!(f, ", {} old", Rounded(age))?;
        }
        // In a loop, a task waits at the same place again.
        let mut written = HashSet::new();
        let waits = self.waits.iter().filter(|_| with_waits).map(TaskWait::to_string);
        waits.filter(|wait| written.insert(wait.clone())).try_for_each(|wait| write!(f, "\n{wait}"))
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::New => "not polled yet",
            Self::Runs => "runs",
            Self::Ready => "ready",
            Self::Waits => "waits",
        })
    }
}

impl fmt::Display for TaskDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, true)
    }
}

/// Returns the number with the noun, which has an `s` if there is not one.
fn counted(number: usize) -> String {
    if number == 1 { "1 task".into() } else { format!("{number} tasks") }
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&counted(self.tasks.len() + self.unpolled))?;
        if self.is_partial {
            f.write_str(", and those of a `StaticExecutor`, which are not tracked")?;
        }
        let mut displayed: HashMap<(&str, u32, u32), usize> = HashMap::new();
        for task in &self.tasks {
            let at = task.spawned_at;
            let number = displayed.entry((at.file(), at.line(), at.column())).or_default();
            *number += usize::from(!task.waits.is_empty());
            f.write_str("\n")?;
            task.write(f, *number <= DISPLAYED)?;
        }
        let hidden: usize = displayed.values().map(|number| number.saturating_sub(DISPLAYED)).sum();
        if hidden > 0 {
            let hidden = counted(hidden);
            write!(f, "\nwhere {hidden} more wait is not shown: {DISPLAYED} of the same line are")?;
        }
        match self.unpolled {
            0 => Ok(()),
            1 => f.write_str("\n1 task was not polled yet"),
            more => write!(f, "\n{more} tasks were not polled yet"),
        }
    }
}

impl Handle {
    /// Returns the tasks that are not finished, one by one, with their state and, while
    /// [`waits`](super::waits()) are on, the lines at which they wait: to find out why a program does not go
    /// on.
    ///
    /// The same tasks are included as in [`tasks`](Handle::tasks), and the same holds for the moment: this
    /// may be called at any time and from any thread, also while all workers block. A call takes about a
    /// microsecond for each task; to display the lines of a wait takes some tens of microseconds.
    /// The list is empty once the runtime was dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::{Timer, trace};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).build()?;
    /// trace::waits(true);
    /// runtime.spawn(async { Timer::never().await }).detach();
    /// runtime.block_on(Timer::after(Duration::from_millis(20)));
    ///
    /// let dump = runtime.dump();
    /// assert_eq!((dump.tasks.len(), dump.tasks[0].state), (1, trace::TaskState::Waits));
    /// println!("{dump}");    // names the line of the timer
    /// # trace::waits(false);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "trace")))]
    pub fn dump(&self) -> Dump {
        self.pool().map_or_else(Dump::default, |pool| Dump::of(&pool))
    }
}
