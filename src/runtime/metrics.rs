//! [`Metrics`]: counters of a pool, for people to read.

use std::fmt;
use std::time::Duration;

use super::Handle;
use super::metric::{Metric, MetricKind};
use crate::blocking_threads::Figures;
use crate::flight::FoundIn;
use crate::pool::Pool;

/// Defines [`Metrics`], and the list of its numbers, from a table: kind, field, how its value becomes a
/// number if `as` does not do it, unit, and help, which begins the documentation.
macro_rules! metrics {
    ($($(#[$doc:meta])* $kind:ident $name:ident: $type:ty $(= $number:expr)?, $unit:literal $help:literal;)*) => {
        /// Counters of what a runtime has done since it started, and has right now: see
        /// [`Handle::metrics`](crate::Handle::metrics).
        ///
        /// The polls are those of the runtime's workers and of every [`Executor`](crate::Executor) that runs
        /// in a `block_on` of the runtime. The numbers are read one after the other while the threads go on;
        /// they are close, but not a snapshot. The [`Display`](fmt::Display) form has a line for each,
        /// which says what it counts; [`each`](Self::each) is for systems that collect metrics.
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
            $(
                #[doc = $help]
                #[doc = ""]
                $(#[$doc])*
                pub $name: $type,
            )*
        }

        impl Metrics {
            fn list(&self) -> impl Iterator<Item = Metric> {
                [$(Metric {
                    name: stringify!($name),
                    help: $help,
                    unit: $unit,
                    kind: MetricKind::$kind,
                    value: metrics!(@number self.$name $(, $number)?),
                }),*].into_iter()
            }
        }
    };
    (@number $value:expr) => { $value as f64 };
    (@number $value:expr, $number:expr) => { $number($value) };
}

metrics! {
    Counter polls_direct: u64, "{poll}" "Polls of a task by the thread that had just woken it.";
    Counter polls_surplus: u64, "{poll}" "Polls of a task from a queue.";
    Counter polls_stolen: u64, "{poll}" "Polls of a task from the queue of another thread.";
    /// Leadership was left to the next thread that is awake.
    Counter promotions_free: u64, "{promotion}" "Promotions that woke no thread.";
    Counter promotions_paid: u64, "{promotion}" "Promotions that woke a thread to lead.";
    Counter followers_woken: u64, "{thread}" "Threads woken to lead, for any reason.";
    Counter events: u64, "{event}" "Events that the poller reported.";
    /// Another thread had fetched them, and not fired them yet.
    Counter events_stolen: u64, "{event}" "Events that a thread without work took from another thread.";
    Counter waits: u64, "{wait}" "Waits that reported events.";
    Counter empty_waits: u64, "{wait}" "Waits that reported no events.";
    Counter sleeps: u64, "{wait}" "Waits that were allowed to sleep.";
    Counter leader_interrupts: u64, "{interrupt}" "Interrupts of a leader asleep in the poller.";
    /// Sleeping would have cost more.
    Counter spin_time: Duration = |time: Duration| time.as_secs_f64(), "s" "Time that threads stayed awake without work.";
    /// No thread had looked for a whole tick.
    Counter deputy_rescues: u64, "{rescue}" "Times that the deputy had to have events looked for.";
    Counter replacements: u64, "{thread}" "Threads added because others were stuck.";
    /// A future of a `block_on` counts like a task.
    Counter stalls: u64, "{stall}" "Polls that blocked their thread or computed for 10 ms.";
    /// Only if the system tells.
    Counter stalls_blocked: u64, "{stall}" "Stalls in which the thread was blocked.";
    /// Only if the system tells.
    Counter stalls_computing: u64, "{stall}" "Stalls in which the thread computed.";
    /// Other threads use the cores. Such a wait is not a stall, and no reason for more threads.
    Counter starved: u64, "{task}" "Tasks whose thread waited for a core for 10 ms in a poll.";
    /// The panic of a poll is passed to the code that awaits the task; that of a detached task, or of the
    /// destructor of a cancelled one, is dropped.
    /// [`Builder::on_task_panic`](crate::Builder::on_task_panic) is told of each; without such a hook, the
    /// first panic of each spawn line is printed on standard error.
    Counter tasks_panicked: u64, "{task}" "Tasks that have panicked.";
    Gauge sources: usize, "{source}" "Sources registered right now.";
    Gauge timers: usize, "{timer}" "Timers armed right now.";
    /// `None` in the default instance before the first [`spawn`](crate::spawn()).
    Gauge tasks: Option<usize> = |tasks: Option<usize>| tasks.unwrap_or(0) as f64, "{task}" "Tasks not finished right now.";
    Gauge workers: usize, "{thread}" "Worker threads right now.";
    /// See [`blocking`](crate::blocking).
    Gauge blocking_threads: usize, "{thread}" "Threads for closures that block, without lost ones.";
    Gauge blocking_idle: usize, "{thread}" "Threads for closures that block, without work right now.";
    /// So do pieces of the work of an [`Unblock`](crate::Unblock).
    Gauge blocking_queued: usize, "{job}" "Closures and jobs that wait for a thread right now.";
    /// So have pieces of the work of an [`Unblock`](crate::Unblock).
    Counter blocking_jobs: u64, "{job}" "Closures and jobs that have been run.";
    /// See [`Job::deadline`](crate::blocking::Job::deadline).
    Gauge blocking_lost: usize, "{thread}" "Threads in a job whose deadline has passed.";
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
            events_stolen: pool.reactor.shares.stolen(),
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
            metrics.tasks = crew.state.unfinished();
            metrics.tasks_panicked = crew.state.panics.count.get();
            metrics.workers = crew.live();
        }
        metrics
    }

    /// Calls `visit` with each number, its name, unit and kind, for a system that collects metrics.
    ///
    /// The names, and their order, are the same in each call, also for [`Metrics::default`], whose numbers
    /// are zero. Where `tasks` is `None`, its number is zero. A later version may have more numbers.
    ///
    /// The package `examples/metrics` of the repository passes the numbers to Prometheus, by the crate
    /// `metrics`, and to OpenTelemetry.
    ///
    /// # Examples
    ///
    /// The text format of Prometheus:
    ///
    /// ```
    /// use std::fmt::Write;
    /// use paceline::MetricKind;
    ///
    /// paceline::block_on(paceline::spawn(async {}));
    /// let mut page = String::new();
    /// paceline::metrics().each(|metric| {
    ///     let mut name = format!("paceline_{}", metric.name);
    ///     if metric.unit == "s" {
    ///         name += "_seconds";
    ///     }
    ///     let kind = if metric.kind == MetricKind::Counter { "counter" } else { "gauge" };
    ///     if kind == "counter" {
    ///         name += "_total";
    ///     }
    ///     let (help, value) = (metric.help, metric.value);
    ///     writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}").unwrap();
    /// });
    /// assert!(page.contains("# TYPE paceline_tasks_panicked_total counter\npaceline_tasks_panicked_total 0\n"));
    /// ```
    pub fn each(&self, visit: impl FnMut(Metric)) {
        self.list().for_each(visit);
    }
}

impl Handle {
    /// Returns what the runtime has done so far, and has right now; all zero once it was dropped.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # let runtime = paceline::Runtime::builder().threads(1).build()?;
    /// let handle = runtime.handle();
    /// assert!(handle.metrics().workers > 0);
    /// drop(runtime);
    /// assert_eq!(handle.metrics().workers, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn metrics(&self) -> Metrics {
        self.pool().map_or_else(Metrics::default, |pool| Metrics::of(&pool))
    }
}

impl fmt::Display for Metrics {
    /// Writes a line for each number, with what it counts; durations are in seconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list().try_for_each(|row| writeln!(f, "{:<17} {:>9}  {}", row.name, row.value, row.help))
    }
}
