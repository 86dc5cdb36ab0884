//! [`Dump`]: the unfinished tasks of a runtime, one by one, with what each waits for.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::panic::Location;
use std::time::Duration;

use super::waits::{TaskWait, timer};
use crate::executor::TaskSurvey;
use crate::insight::counted;
use crate::observed::{self, TaskFacts};
use crate::place::SourceLine;
use crate::pool::Pool;
use crate::rounded::Rounded;
use crate::runtime::Handle;
use crate::sync::{self, Instant};

/// Tasks of one line whose waits are displayed. The others are only listed.
const DISPLAYED: usize = 50;

/// The unfinished tasks of a runtime, one by one: see [`Handle::dump`].
///
/// Its [`Display`](fmt::Display) form is a list, with a line for each place at which a task waits: what for,
/// as far as that is known, and the innermost function of the program there. For a task that waits for
/// several things at once, the others begin with "or":
///
/// ```text
/// 2 tasks
/// task spawned at src/main.rs:9:5, 12.4s old
///   has waited 1.4s for a timer that is due in 49.9s, at src/main.rs:12:20 (main::serve)
///   or for tokio::sync::oneshot::Receiver<T>, at src/main.rs:14:26 (main::jobs)
/// task spawned at src/main.rs:30:9, 3.0s old, ready for 1.2ms
/// ```
///
/// With `{:#}`, all functions on the stack of each wait follow, and the number of the task and of its wakers.
///
/// The first display in a process loads the debug information of the program, which takes a tenth of a second
/// or, in a large debug build, more. Tasks go on meanwhile, except on the thread that displays: so do that on
/// a thread of your own, or in [`unblock`](crate::unblock()).
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
    /// When the timers are due that will wake the task, the next one first.
    pub timers: Vec<Duration>,
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
        let timers = TaskTimers::of(pool);
        let mut dump = Self::default();
        for (state, polled) in pool.executors() {
            let executor = Addressed::new(state.survey(polled));
            let known: HashSet<usize> =
                facts.iter().filter(|facts| executor.owns(facts)).map(|facts| facts.task()).collect();
            let before = dump.tasks.len();
            dump.tasks.extend(
                facts.iter().filter(|facts| executor.owns(facts)).map(|facts| TaskDump::of(facts, &timers)),
            );
            let with_facts = dump.tasks.len() - before;
            dump.add_others(executor.survey, &known, with_facts, &timers);
        }
        dump.tasks.sort_by_key(|task| (task.number.is_none(), task.number));
        dump
    }

    /// Adds the tasks that have no facts. `known` are the addresses of the others, and `with_facts` is their
    /// number.
    fn add_others(
        &mut self,
        survey: TaskSurvey,
        known: &HashSet<usize>,
        with_facts: usize,
        timers: &TaskTimers,
    ) {
        let (now, before) = (sync::coarse_millis(), self.tasks.len());
        let mut in_first_poll = survey.polled;
        for (address, task) in survey.listed {
            let polled = in_first_poll.iter().position(|(other, _)| *other == address);
            let state = if polled.is_some() { TaskState::Runs } else { TaskState::Waits };
            polled.map(|at| in_first_poll.remove(at));
            if !known.contains(&address) {
                let age = Duration::from_millis(now.saturating_sub(task.since));
                let task = TaskDump::without_facts(task.spawned_at, state, Some(age));
                self.tasks.push(TaskDump { timers: timers.of_task(address), ..task });
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
    fn of(facts: &TaskFacts, timers: &TaskTimers) -> Self {
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
            timers: timers.of_task(facts.task()),
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
            timers: Vec::new(),
            wakers: None,
            waits: Vec::new(),
        }
    }

    /// Writes the task, and where it waits if that is asked for.
    fn write(&self, f: &mut fmt::Formatter<'_>, with_waits: bool) -> fmt::Result {
        f.write_str("task")?;
        if let Some(number) = self.number.filter(|_| f.alternate()) {
            write!(f, " {number}")?;
        }
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        write!(f, " spawned at {}", SourceLine(self.spawned_at))?;
        if let Some(age) = self.age {
            write!(f, ", {} old", Rounded(age))?;
        }
        if let Some(wakers) = self.wakers.filter(|_| f.alternate()) {
            write!(f, ", {}", counted(wakers, "no waker", "waker", "wakers"))?;
        }
        if self.state == TaskState::Waits {
            return self.write_waits(f, with_waits);
        }
        write!(f, ", {}", self.state)?;
        match self.since_poll.filter(|_| self.state == TaskState::Ready) {
            Some(since) => write!(f, " for {}", Rounded(since)),
            None => Ok(()),
        }
    }

    /// Writes for how long the task has waited; if `with_waits`, also what for and where.
    fn write_waits(&self, f: &mut fmt::Formatter<'_>, with_waits: bool) -> fmt::Result {
        let since =
            self.since_poll.map_or_else(|| "waits".into(), |since| format!("has waited {}", Rounded(since)));
        if self.wakers == Some(0) {
            return write!(f, ", {since}, and no waker of it exists: nothing will wake it");
        }
        let waits: Vec<_> = self.waits.iter().filter(|_| with_waits).collect();
        let mut lines: Vec<_> = waits.iter().map(|wait| wait.line(&self.timers)).collect();
        // First what the program itself waits for.
        lines.sort_by_key(|(is_of_program, _)| !is_of_program);
        let mut written = HashSet::new();
        lines.retain(|(_, line)| written.insert(line.clone()));
        if lines.is_empty() {
            let timer =
                if self.timers.is_empty() { String::new() } else { format!(" for {}", timer(&self.timers)) };
            write!(f, ", {since}{timer}")?;
        }
        for (number, (_, line)) in lines.iter().enumerate() {
            let begin = if number == 0 { &since } else { "or" };
            write!(f, "\n  {begin} {line}")?;
        }
        if f.alternate() {
            // In a loop, a task waits at the same place again.
            let mut written = HashSet::new();
            let mut stacks = waits.iter().filter(|wait| written.insert(**wait));
            stacks.try_for_each(|wait| write!(f, "\n  the stack of a wait:{wait:#}"))?;
        }
        Ok(())
    }
}

/// The timers that are armed, by the addresses of the tasks that they wake.
struct TaskTimers(HashMap<usize, Vec<Duration>>);

impl TaskTimers {
    fn of(pool: &Pool) -> Self {
        let (now, mut timers) = (Instant::now(), HashMap::<_, Vec<_>>::new());
        for (due, task) in pool.reactor.armed_timers() {
            let due = due.map_or(Duration::MAX, |due| due.saturating_duration_since(now));
            timers.entry(task).or_default().push(due);
        }
        timers.values_mut().for_each(|timers| timers.sort_unstable());
        Self(timers)
    }

    fn of_task(&self, address: usize) -> Vec<Duration> {
        self.0.get(&address).cloned().unwrap_or_default()
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

/// Returns the number of tasks, as text.
fn tasks(number: usize) -> String {
    counted(number, "0 tasks", "task", "tasks")
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&tasks(self.tasks.len() + self.unpolled))?;
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
            let hidden = tasks(hidden);
            write!(f, "\nwhere {hidden} more wait is not shown: {DISPLAYED} of the same line are")?;
        }
        match self.unpolled {
            0 => {}
            1 => f.write_str("\n1 task was not polled yet")?,
            more => write!(f, "\n{more} tasks were not polled yet")?,
        }
        if self.unpolled > 0 || self.tasks.iter().any(|task| task.number.is_none()) {
            f.write_str("\nwhat a task waits for is known if `paceline::trace::waits(true)` is called before it is spawned")?;
        }
        Ok(())
    }
}

impl Handle {
    /// Returns the tasks that are not finished, one by one, with their state and, while
    /// [`waits`](super::waits()) are on, the lines at which they wait: to find out why a program does not go
    /// on.
    ///
    /// The same tasks are included as in [`tasks`](Handle::tasks), and the same holds for the moment: this
    /// may be called at any time and from any thread, also while all workers block. A call takes about a
    /// microsecond for each task and each timer; to [display](Dump) the lines takes longer. The list is empty
    /// once the runtime was dropped.
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
