//! [`Metrics`]: what a pool has done, for people to read.

use std::fmt;
use std::time::Duration;

use crate::blocking;
use crate::pool::Pool;

/// What a runtime has done since it started, and has right now: see [`Runtime::metrics`](crate::Runtime::metrics).
///
/// Polls are those of its workers and of every [`Executor`](crate::Executor) that runs in a `block_on` of the runtime. The
/// numbers are read one after the other while the threads go on; they are close, not a snapshot. Its
/// [`Display`](fmt::Display) is for people.
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
    /// Polls of a task that another thread had in its queue or slot.
    pub polls_stolen: u64,
    /// Promotions that woke nobody: leadership was left for whoever was awake.
    pub promotions_free: u64,
    /// Promotions that woke a thread to lead.
    pub promotions_paid: u64,
    /// Threads woken to lead, for any reason.
    pub followers_woken: u64,
    /// Events that the poller reported.
    pub events: u64,
    /// Waits that reported events.
    pub waits: u64,
    /// Waits that reported none.
    pub empty_waits: u64,
    /// Waits that were allowed to sleep.
    pub sleeps: u64,
    /// Times that a leader asleep in the poller was interrupted.
    pub leader_interrupts: u64,
    /// Time that threads stayed awake without work, because sleeping would have cost more.
    pub spin_time: Duration,
    /// Times that nobody looked for events for a whole tick, and the deputy stepped in.
    pub deputy_rescues: u64,
    /// Threads added because all others were stuck.
    pub replacements: u64,
    /// Tasks, and futures of `block_on`, that blocked their thread, or computed, for ten milliseconds or more without a pause.
    pub stalls: u64,
    /// Those of them that blocked, where the system tells.
    pub stalls_blocked: u64,
    /// Those of them that computed, where the system tells.
    pub stalls_computing: u64,
    /// Tasks whose thread waited for a core for ten milliseconds or more in the middle of a poll: others use the cores. Not a
    /// stall, and no reason for more threads.
    pub starved: u64,
    /// Sources registered right now.
    pub sources: usize,
    /// Timers armed right now.
    pub timers: usize,
    /// Tasks not finished right now, where they are tracked: not in the default instance.
    pub tasks: Option<usize>,
    /// Worker threads right now.
    pub workers: usize,
    /// Threads right now for what [blocks on purpose](crate::blocking), but those that are lost.
    pub blocking_threads: usize,
    /// Those of them that have nothing to do.
    pub blocking_idle: usize,
    /// What waits for one of them.
    pub blocking_queued: usize,
    /// What they have run so far: closures, jobs, and pieces of the work of an [`Unblock`](crate::Unblock).
    pub blocking_jobs: u64,
    /// Threads right now that are in a [`Job`](crate::blocking::Job) whose deadline has passed.
    pub blocking_lost: usize,
}

impl Metrics {
    pub(super) fn of(pool: &Pool) -> Self {
        let reactor = &pool.reactor.counters;
        let leadership = &pool.leadership;
        let polls = pool.polls();
        let blocking = blocking::figures(pool);
        let mut metrics = Metrics {
            polls_direct: polls.direct.get(),
            polls_surplus: polls.surplus.get(),
            polls_stolen: polls.stolen.get(),
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
        let Metrics { deputy_rescues, replacements, starved, .. } = self;
        let Metrics { stalls, stalls_blocked, stalls_computing, .. } = self;
        let Metrics { workers, sources, timers, spin_time, .. } = self;
        let Metrics { blocking_threads, blocking_idle, blocking_queued, .. } = self;
        let Metrics { blocking_jobs, blocking_lost, .. } = self;
        let (direct, each) = (100.0 * self.direct_share(), self.events_per_wait());
        write!(
            f,
            "polls       {polls_direct} direct ({direct:.1} %), {polls_surplus} from surplus, {polls_stolen} stolen\n\
             promotions  {promotions_free} free, {promotions_paid} paid; {followers_woken} followers woken\n\
             events      {events} in {waits} waits ({each:.1} each), {sleeps} may have slept, \
             {leader_interrupts} interrupted; {empty_waits} looks in passing found none\n\
             deputy      {deputy_rescues} rescues, {replacements} replacements\n\
             stalls      {stalls} ({stalls_blocked} blocked, {stalls_computing} computed), {starved} waited for a core\n\
             blocking    {blocking_jobs} run, {blocking_queued} wait; {blocking_threads} threads, {blocking_idle} idle; \
             {blocking_lost} lost\n\
             now         {workers} workers, "
        )?;
        if let Some(tasks) = self.tasks {
            write!(f, "{tasks} tasks, ")?;
        }
        write!(f, "{sources} sources, {timers} timers; spun for {spin_time:.1?}")
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
                    blocking    25 run, 24 wait; 22 threads, 23 idle; 26 lost\n\
                    now         18 workers, 17 tasks, 15 sources, 16 timers; spun for 1.5ms";
        assert_eq!(metrics.to_string(), text);
        assert!(!Metrics { tasks: None, ..metrics }.to_string().contains("tasks"));
    }
}
