//! [`Metrics`]: counters of a pool, for people to read.

use std::fmt;
use std::time::Duration;

use crate::blocking_threads::Figures;
use crate::flight::FoundIn;
use crate::pool::Pool;

/// Counters of what a runtime has done since it started, and has right now: see
/// [`Runtime::metrics`](crate::Runtime::metrics).
///
/// The polls are those of the runtime's workers and of every [`Executor`](crate::Executor) that runs in a
/// `block_on` of the runtime. The numbers are read one after the other while the threads go on; they are
/// close, but not a snapshot. The [`Display`](fmt::Display) form is for people; [`each`](Self::each) is for
/// systems that collect metrics.
///
/// # Examples
///
/// ```
/// paceline::block_on(paceline::spawn(async {}));
/// let metrics = paceline::metrics();
/// println!("{metrics}");
/// assert!(metrics.workers > 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Polls of a task by the thread that had just woken it.
    pub polls_direct: u64,
    /// Polls of a task from a queue.
    pub polls_surplus: u64,
    /// Polls of a task that another thread had in its queue.
    pub polls_stolen: u64,
    /// Promotions that woke no thread: leadership was left to the next thread that is awake.
    pub promotions_free: u64,
    /// Promotions that woke a thread to lead.
    pub promotions_paid: u64,
    /// Threads woken to lead, for any reason.
    pub followers_woken: u64,
    /// Events that the poller reported.
    pub events: u64,
    /// Waits that reported events.
    pub waits: u64,
    /// Waits that reported no events.
    pub empty_waits: u64,
    /// Waits that were allowed to sleep.
    pub sleeps: u64,
    /// Times that a leader asleep in the poller was interrupted.
    pub leader_interrupts: u64,
    /// Time that threads stayed awake without work, because sleeping would have cost more.
    pub spin_time: Duration,
    /// Times that no thread looked for events for a whole tick, and the deputy stepped in.
    pub deputy_rescues: u64,
    /// Threads added because all others were stuck.
    pub replacements: u64,
    /// Tasks, and futures of `block_on`, that blocked their thread, or computed, for ten milliseconds or more
    /// without a pause.
    pub stalls: u64,
    /// Stalls in which the thread was blocked, if the system tells.
    pub stalls_blocked: u64,
    /// Stalls in which the thread computed, if the system tells.
    pub stalls_computing: u64,
    /// Tasks whose thread waited for a core for ten milliseconds or more in the middle of a poll, because
    /// others use the cores. Such a wait is not a stall, and no reason for more threads.
    pub starved: u64,
    /// Tasks that have panicked. The panic of a poll is passed to the code that awaits the task; that of a
    /// detached task, or of the destructor of a cancelled one, is dropped.
    /// [`Builder::on_task_panic`](crate::Builder::on_task_panic) is told of each; without such a hook, the
    /// first panic of each spawn line is printed on standard error.
    pub tasks_panicked: u64,
    /// Sources registered right now.
    pub sources: usize,
    /// Timers armed right now.
    pub timers: usize,
    /// Tasks not finished right now; `None` in the default instance before the first
    /// [`spawn`](crate::spawn()).
    pub tasks: Option<usize>,
    /// Worker threads right now.
    pub workers: usize,
    /// Threads right now for closures that [block on purpose](crate::blocking), without lost threads.
    pub blocking_threads: usize,
    /// Threads for closures that block which have no work right now.
    pub blocking_idle: usize,
    /// Closures, jobs and pieces of work that wait for such a thread.
    pub blocking_queued: usize,
    /// Closures, jobs and pieces of the work of an [`Unblock`](crate::Unblock) that have been run.
    pub blocking_jobs: u64,
    /// Threads right now that are in a [`Job`](crate::blocking::Job) whose deadline has passed.
    pub blocking_lost: usize,
}

impl Metrics {
    /// Reads the counters of a pool, one after the other. A pool without a crew has no tasks and no workers.
    pub(super) fn of(pool: &Pool) -> Self {
        let reactor = &pool.reactor.counters;
        let leadership = &pool.leadership;
        let polls = pool.polls();
        let blocking = pool.blocking_if_any().map_or(Figures::default(), |threads| threads.figures());
        let mut metrics = Metrics {
            polls_direct: polls.get(FoundIn::Slot),
            polls_surplus: polls.get(FoundIn::Queue),
            polls_stolen: polls.get(FoundIn::Stolen),
            promotions_free: leadership.free.get(),
            promotions_paid: leadership.paid.get(),
            followers_woken: leadership.woken.get(),
            events: reactor.events.get(),
            waits: reactor.waits.get(),
            empty_waits: reactor.empty_waits.get(),
            sleeps: reactor.sleeps.get(),
            leader_interrupts: reactor.interrupts.get(),
            spin_time: Duration::from_nanos(reactor.spun_nanos.get() + leadership.spun_nanos.get()),
            deputy_rescues: pool.deputy.rescues.get(),
            stalls: pool.deputy.stalls.all.get(),
            stalls_blocked: pool.deputy.stalls.blocked.get(),
            stalls_computing: pool.deputy.stalls.computing.get(),
            starved: pool.deputy.stalls.starved.get(),
            sources: pool.reactor.sources(),
            timers: pool.reactor.timers(),
            blocking_threads: blocking.threads,
            blocking_idle: blocking.idle,
            blocking_queued: blocking.queued,
            blocking_jobs: blocking.jobs,
            blocking_lost: blocking.lost,
            ..Metrics::default()
        };
        if let Some(crew) = pool.crew() {
            metrics.replacements = crew.replacements.get();
            metrics.tasks = crew.state().unfinished();
            metrics.tasks_panicked = crew.state().panics.count.get();
            metrics.workers = crew.live();
        }
        metrics
    }

    /// The share of polls that were direct, from 0 to 1; 1 before the first poll.
    ///
    /// ```
    /// assert_eq!(paceline::Metrics::default().direct_share(), 1.0);
    /// ```
    pub fn direct_share(&self) -> f64 {
        let all = self.polls_direct + self.polls_surplus + self.polls_stolen;
        if all == 0 { 1.0 } else { self.polls_direct as f64 / all as f64 }
    }

    /// Events per wait that reported any; 0 before the first one.
    ///
    /// ```
    /// assert_eq!(paceline::Metrics::default().events_per_wait(), 0.0);
    /// ```
    pub fn events_per_wait(&self) -> f64 {
        if self.waits == 0 { 0.0 } else { self.events as f64 / self.waits as f64 }
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Metrics { polls_direct, polls_surplus, polls_stolen, .. } = self;
        let Metrics { promotions_free, promotions_paid, followers_woken, .. } = self;
        let Metrics { events, waits, empty_waits, sleeps, leader_interrupts, .. } = self;
        let Metrics { deputy_rescues, replacements, starved, tasks_panicked, .. } = self;
        let Metrics { stalls, stalls_blocked, stalls_computing, .. } = self;
        let Metrics { workers, sources, timers, spin_time, .. } = self;
        let Metrics { blocking_threads, blocking_idle, blocking_queued, .. } = self;
        let Metrics { blocking_jobs, blocking_lost, .. } = self;
        let (direct, each) = (100.0 * self.direct_share(), self.events_per_wait());
        let followers_woken = Count(*followers_woken, "follower", "followers");
        let waits = Count(*waits, "wait", "waits");
        let empty_waits = Count(*empty_waits, "look", "looks");
        let deputy_rescues = Count(*deputy_rescues, "rescue", "rescues");
        let replacements = Count(*replacements, "replacement", "replacements");
        let tasks_panicked = Count(*tasks_panicked, "task", "tasks");
        let blocking_jobs = Count(*blocking_jobs, "has run", "have run");
        let blocking_queued = Count(*blocking_queued, "waits", "wait");
        let blocking_threads = Count(*blocking_threads, "thread", "threads");
        let workers = Count(*workers, "worker", "workers");
        let sources = Count(*sources, "source", "sources");
        let timers = Count(*timers, "timer", "timers");
        write!(
            f,
            "polls       {polls_direct} direct ({direct:.1} %), {polls_surplus} from surplus, {polls_stolen} stolen\n\
             promotions  {promotions_free} free, {promotions_paid} paid; {followers_woken} woken\n\
             events      {events} in {waits} ({each:.1} each), {sleeps} may have slept, \
             {leader_interrupts} interrupted; {empty_waits} in passing found none\n\
             deputy      {deputy_rescues}, {replacements}\n\
             stalls      {stalls} ({stalls_blocked} blocked, {stalls_computing} computed), {starved} waited for a core\n\
             panics      {tasks_panicked}\n\
             blocking    {blocking_jobs}, {blocking_queued}; {blocking_threads}, {blocking_idle} idle; \
             {blocking_lost} lost\n\
             now         {workers}, "
        )?;
        if let Some(tasks) = self.tasks {
            write!(f, "{}, ", Count(tasks, "task", "tasks"))?;
        }
        write!(f, "{sources}, {timers}; spun for {spin_time:.1?}")
    }
}

/// A number with the words for one and for any other number of what it counts.
struct Count<T>(T, &'static str, &'static str);

impl<T: fmt::Display + From<bool> + PartialEq> fmt::Display for Count<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, one, other) = self;
        write!(f, "{number} {}", if *number == T::from(true) { one } else { other })
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::Metrics;
    use std::time::Duration;

    #[test]
    fn all_of_it_is_displayed() {
        let metrics = Metrics {
            polls_direct: 3,
            polls_surplus: 1,
            polls_stolen: 2,
            promotions_free: 4,
            promotions_paid: 5,
            followers_woken: 6,
            events: 14,
            waits: 7,
            empty_waits: 8,
            sleeps: 9,
            leader_interrupts: 10,
            spin_time: Duration::from_micros(1500),
            deputy_rescues: 11,
            replacements: 12,
            stalls: 13,
            stalls_blocked: 19,
            stalls_computing: 20,
            starved: 21,
            tasks_panicked: 27,
            sources: 15,
            timers: 16,
            tasks: Some(17),
            workers: 18,
            blocking_threads: 22,
            blocking_idle: 23,
            blocking_queued: 24,
            blocking_jobs: 25,
            blocking_lost: 26,
        };
        let text = "polls       3 direct (50.0 %), 1 from surplus, 2 stolen\n\
                    promotions  4 free, 5 paid; 6 followers woken\n\
                    events      14 in 7 waits (2.0 each), 9 may have slept, 10 interrupted; 8 looks in passing found none\n\
                    deputy      11 rescues, 12 replacements\n\
                    stalls      13 (19 blocked, 20 computed), 21 waited for a core\n\
                    panics      27 tasks\n\
                    blocking    25 have run, 24 wait; 22 threads, 23 idle; 26 lost\n\
                    now         18 workers, 17 tasks, 15 sources, 16 timers; spun for 1.5ms";
        assert_eq!(metrics.to_string(), text);
        assert!(!Metrics { tasks: None, ..metrics }.to_string().contains("17 tasks"));
    }

    #[test]
    fn one_is_singular() {
        let metrics = Metrics {
            followers_woken: 1,
            waits: 1,
            empty_waits: 1,
            deputy_rescues: 1,
            replacements: 1,
            tasks_panicked: 1,
            sources: 1,
            timers: 1,
            tasks: Some(1),
            workers: 1,
            blocking_threads: 1,
            blocking_queued: 1,
            blocking_jobs: 1,
            ..Metrics::default()
        };
        let text = "polls       0 direct (100.0 %), 0 from surplus, 0 stolen\n\
                    promotions  0 free, 0 paid; 1 follower woken\n\
                    events      0 in 1 wait (0.0 each), 0 may have slept, 0 interrupted; 1 look in passing found none\n\
                    deputy      1 rescue, 1 replacement\n\
                    stalls      0 (0 blocked, 0 computed), 0 waited for a core\n\
                    panics      1 task\n\
                    blocking    1 has run, 1 waits; 1 thread, 0 idle; 0 lost\n\
                    now         1 worker, 1 task, 1 source, 1 timer; spun for 0.0ns";
        assert_eq!(metrics.to_string(), text);
    }
}
