//! A pool: one reactor, the threads that take turns leading it, and the deputy that watches over them.
//!
//! This module connects the layers below: [`Leadership`] guards the reactor's [`Batch`], and each
//! [`Station`] is one thread in `block_on`. A pool may have a [`Crew`] of its own (a runtime's workers);
//! without a crew it is served by the threads that call `block_on`.
//!
//! The README beside this file lists what the runtime promises itself, and which part notices when a
//! promise is broken.

pub(crate) mod block_on;
mod blocking;
mod clearing;
mod crew;
mod deputy;
mod finding;
mod instance;
mod park_hooks;
pub(crate) mod parting;
pub(crate) mod serve;
mod station;
mod stay;
mod turn;
mod wait;

pub(crate) use blocking::{current_blocking, default_blocking};
pub(crate) use crew::{Crew, CrewConfig, Staff};
use deputy::Switch;
pub(crate) use deputy::{Deputy, LentPool, Watch};
pub(crate) use finding::{Finding, Spot};
use station::Stations;
pub(crate) use station::{Activity, Culprit, Station};
pub use stay::EnterGuard;
use stay::Stay;
pub(crate) use stay::with_current_pool;

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::blocking_threads::Threads;
use crate::executor::{PollCounters, StateRef};
use crate::flight::Recording;
use crate::leadership::{Leadership, WakeOrder};
use crate::notice::ReportName;
use crate::reactor::{Batch, ClockHeld, Reactor, WayChoice};
use crate::simulated::Clock;
use crate::sync::{self, AtomicUsize, Flag, Instant};

/// When a leader that found an event wakes a follower to lead in its place.
///
/// See [`Tuning::promotion`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Promotion {
    /// If at least two events are left beside the event that the leader found (eight timers that are due
    /// count as one event), and no follower that was woken is still on its way; if the polls of tasks take
    /// 16 us and more, which the deputy measures on Linux, even if no event is left; or if the task that
    /// comes next is known to block or to compute.
    /// Otherwise the leader only gives leadership up, and the first thread that is awake takes it. The
    /// woken follower applies the same rule, so a burst of events wakes thread after thread until fewer
    /// than two events are left. A single event of short polls wakes no thread: a wake costs about as much
    /// as a short request.
    #[default]
    Adaptive,
    /// Each time that a thread leaves leadership with events, before it handles the first of them, as the
    /// pattern's authors have it, if no follower is on its way.
    Eager,
}

/// How the threads of a runtime share work and keep time: see [`Builder::tuning`](crate::Builder::tuning).
///
/// The defaults are measured, and fit servers and clients on few cores. Change a setting to compare, and keep
/// the change if it pays.
///
/// ```
/// use std::time::Duration;
/// use paceline::{Promotion, Runtime, Tuning};
///
/// # fn main() -> std::io::Result<()> {
/// let tuning = Tuning::default().promotion(Promotion::Eager).spin(Duration::ZERO);
/// let runtime = Runtime::builder().threads(2).tuning(tuning).build()?;
/// # drop(runtime);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "the settings have no effect before `Builder::tuning`"]
pub struct Tuning {
    pub(crate) promotion: Promotion,
    pub(crate) wake_order: WakeOrder,
    pub(crate) spin: Duration,
    pub(crate) max_blind: Duration,
    pub(crate) timer_slack: Duration,
    pub(crate) way: WayChoice,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            promotion: Promotion::default(),
            wake_order: WakeOrder::default(),
            spin: Duration::from_micros(50),
            max_blind: Duration::from_millis(1),
            timer_slack: Duration::from_millis(1),
            way: WayChoice::Best,
        }
    }
}

/// How often the end of a pool tries to lead, while another thread does. A thread that is awake leads for
/// some instructions only.
const PARTING_TRIES: u32 = 1000;

/// A reactor and its threads.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) leadership: Leadership<Batch>,
    pub(crate) reactor: Arc<Reactor>,
    pub(crate) tuning: Tuning,
    pub(crate) deputy: Arc<Deputy>,
    /// The idle ones included.
    stations: Arc<Stations>,
    /// Threads that are here only to lead.
    pub(crate) reliefs: AtomicUsize,
    /// The owner of the pool is gone.
    pub(crate) ended: Flag,
    crew: OnceLock<Arc<Crew>>,
    /// The threads for closures that block, made on first use. In the default instance, `instance.rs` has
    /// them.
    blocking: OnceLock<Arc<Threads>>,
    /// The pool is the default instance.
    is_default: Flag,
    /// The sums of the counters of runners that are gone.
    pub(crate) past_polls: PollCounters,
    /// The flight recorder, if there is one.
    pub(crate) recording: Recording,
}

impl Pool {
    /// Creates a pool without threads. The deputy, which runs `watch`, starts with the first source, timer or
    /// runner, or with the second thread. Returns the system's error if the reactor or the deputy cannot be
    /// made, for want of a descriptor for example.
    pub(crate) fn new(tuning: Tuning, watch: Watch) -> io::Result<Arc<Self>> {
        // A misspelled name is reported when the program starts, and not at the first stall.
        ReportName::Stalls.is_made();
        let (reactor, batch) = Reactor::new(tuning.way, tuning.spin, tuning.timer_slack)?;
        let switch = Switch::new()?;
        let pool = Arc::new_cyclic(|itself| Self {
            leadership: Leadership::new(batch, tuning.wake_order, tuning.spin),
            reactor: Arc::new(reactor),
            deputy: Arc::new(Deputy::new(itself.clone(), switch, tuning.max_blind, watch)),
            stations: Arc::default(),
            reliefs: AtomicUsize::new(0),
            ended: Flag::new(false),
            crew: OnceLock::new(),
            blocking: OnceLock::new(),
            is_default: Flag::new(false),
            past_polls: PollCounters::default(),
            recording: Recording::new(),
            tuning,
        });
        let deputy = pool.deputy.clone();
        pool.reactor.start_leader_by(move || deputy.call_or_start());
        Ok(pool)
    }

    /// Returns the crew, if the pool has one.
    pub(crate) fn crew(&self) -> Option<&Arc<Crew>> {
        self.crew.get()
    }

    /// Returns the crew, if it has workers. A runtime of the [current
    /// thread](crate::Builder::current_thread) has none: the threads that call `block_on` poll its tasks.
    pub(crate) fn workforce(&self) -> Option<&Arc<Crew>> {
        self.crew().filter(|crew| !crew.is_unmanned())
    }

    /// Returns the crew. If the pool had none, this makes one with the settings that `config` returns; the
    /// workers start with [`Crew::start`].
    pub(crate) fn crew_or_found(&self, config: impl FnOnce() -> (StateRef, CrewConfig)) -> &Arc<Crew> {
        self.crew.get_or_init(|| {
            let crew = Crew::new(config());
            let deputy = Arc::downgrade(&self.deputy);
            let _ = crew.state.alarm.set(deputy);
            Arc::new(crew)
        })
    }

    /// Adds a thread that begins a `block_on` in this pool, and has it watched: the deputy is needed if
    /// another thread is or was in one, because one may wait for the other, or if this one hosts a runner,
    /// for whose tasks another thread may wait.
    fn add_station(&self, station: &Arc<Station>) {
        let count = {
            let mut stations = sync::lock(&self.stations);
            stations.push(station.clone());
            stations.len()
        };
        self.watch(count > 1 || !station.runners.lock().is_empty());
    }

    /// Notifies the deputy, and starts it if it is needed. If that fails, the next thread tries again.
    fn watch(&self, is_needed: bool) {
        if is_needed { _ = self.deputy.call_or_start() } else { self.deputy.notify() }
    }

    /// Returns whether the deputy has nothing to watch right now: all threads sleep, no task waits, and
    /// leadership is not vacant while an event is awaited.
    pub(crate) fn is_quiet(&self) -> bool {
        let vacant = || self.leadership.is_vacant() && self.reactor.is_awaited();
        self.is_settled(|station| station.is_quiet()) && !vacant()
    }

    /// Returns whether each thread `is_still`, and no event or task waits: in a share, in the queues of the
    /// crew, or beside a sleeping runner of an executor that a thread hosts.
    pub(crate) fn is_settled(&self, is_still: impl Fn(&Arc<Station>) -> bool) -> bool {
        let is_still = |station: &Arc<Station>| {
            is_still(station) && !station.runners.lock().iter().any(|hosted| hosted.state.is_open())
        };
        sync::lock(&self.stations).iter().filter(|station| !station.idle.is_set()).all(is_still)
            && !(self.reactor.shares.is_any_left() && self.reactor.is_awaited())
            && !self.workforce().is_some_and(|crew| crew.state.has_queued())
    }

    /// Returns how tasks came to be polled by this pool's threads so far, of whatever executor the tasks are.
    /// Runners that are gone are included.
    pub(crate) fn polls(&self) -> PollCounters {
        let polls = PollCounters::default();
        polls.absorb(&self.past_polls);
        for station in self.stations() {
            station.runners.lock().iter().for_each(|hosted| polls.absorb(&hosted.runner.counters));
        }
        polls
    }

    /// Returns the stations of all `block_on`s in progress.
    pub(crate) fn stations(&self) -> Vec<Arc<Station>> {
        sync::lock(&self.stations).iter().filter(|station| !station.idle.is_set()).cloned().collect()
    }

    /// Runs user code that is not polled by a thread of the pool: whatever it spawns and registers belongs
    /// to the pool all the same.
    pub(crate) fn visit<R>(self: &Arc<Self>, code: impl FnOnce() -> R) -> R {
        let _visit = Stay::visit(self);
        code()
    }

    /// Ends the pool, because its owner is gone: its sources return errors, tasks that wait for its timers
    /// are woken, and the deputy and the reliefs are told to end. Fires the events in the batch, too, unless
    /// another thread leads during [`PARTING_TRIES`] tries. An explicit call and not part of `drop`, because
    /// any thread may hold the last reference: a stuck worker, or a waker that was just called.
    pub(crate) fn end(self: &Arc<Self>) {
        self.ended.set(true);
        self.deputy.end();
        self.reactor.close();
        self.relieve_reliefs();
        // Tasks wait for the events in the batch, too. Another leader, which may be asleep, fires them or
        // leaves them to this thread.
        for _ in 0..PARTING_TRIES {
            if self.take_turn().is_some() {
                break;
            }
            self.reactor.interrupt();
            sync::thread::yield_now();
        }
    }

    /// Wakes all reliefs, because there is nothing to lead for any more: each ends if that is still so.
    pub(crate) fn relieve_reliefs(&self) {
        let stations = self.stations();
        stations.iter().filter(|station| station.is_relief()).for_each(std::task::Wake::wake_by_ref);
    }
}

/// Returns the time of the clock by which the timers of the current runtime are due.
#[inline]
pub(crate) fn now() -> Instant {
    Clock::now_by(|| stay::with_current_pool(|pool| pool.reactor.clock.now()))
}

/// Holds the clock of the runtime that the calling thread is in: the clock does not leap while the value
/// exists.
#[inline]
pub(crate) fn hold_clock() -> ClockHeld {
    ClockHeld::new(|| stay::with_current_pool(|pool| pool.reactor.clone()))
}
