//! A pool: one reactor, the threads that take turns leading it, and the deputy that watches over them.
//!
//! Here the layers below meet: [`Leadership`] guards the reactor's [`Batch`], and each [`Station`] is one thread in
//! `block_on`. A pool may have a [`Crew`] of its own (a runtime's workers); without one it lives off the threads
//! that come by.
//!
//! The README beside this file lists what the runtime promises itself, and who notices when a promise is broken.

mod annex;
mod audit;
mod backstage;
pub(crate) mod block_on;
mod crew;
mod deputy;
mod drain;
mod drained;
mod entered;
mod finding;
mod hands;
mod instance;
mod parting;
mod patience;
mod relief;
#[cfg_attr(
    all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(any(paceline_loom, paceline_shuttle, miri))
    ),
    path = "slice_linux.rs"
)]
#[cfg_attr(
    not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(any(paceline_loom, paceline_shuttle, miri))
    )),
    path = "slice_whole.rs"
)]
mod slice;
mod stall;
mod station;
mod stay;
mod stop;
mod stuck;
mod syscall;
#[cfg_attr(
    all(target_os = "linux", not(any(paceline_loom, paceline_shuttle, miri))),
    path = "thread_state_proc.rs"
)]
#[cfg_attr(
    not(all(target_os = "linux", not(any(paceline_loom, paceline_shuttle, miri)))),
    path = "thread_state_unknown.rs"
)]
mod thread_state;
mod threads;
mod witness;

pub(crate) use annex::{current_annex, default_annex};
pub(crate) use backstage::{AtWork, Backstage};
pub(crate) use crew::{Crew, CrewConfig, Hook};
pub(crate) use deputy::Deputy;
pub use drained::Drained;
pub(crate) use entered::Entry;
#[cfg(unix)]
pub(crate) use instance::default_descriptor;
pub(crate) use patience::Who;
pub(crate) use stall::StallHook;
pub use stall::{Stall, StallKind};
use station::Station;
use stay::Stay;
pub use stuck::StuckThread;
pub use syscall::Syscall;
pub use threads::{Role, ThreadInfo, ThreadKind};

use std::io;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use crate::executor::{Caught, Counters, Overseer, State, StateRef};
use crate::leadership::{Leadership, Order};
use crate::reactor::{Batch, Reactor};
use crate::sync::{self, Flag, Instant, Mutex, Tally};

/// When a leader that found an event wakes a follower to lead in its place.
///
/// See [`Builder::promotion`](crate::Builder::promotion).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Promotion {
    /// When it pays: as long as those that were woken lately found more work, beside somebody else who worked, than their way
    /// was worth; or when the task that comes next is known to block. Otherwise leadership is left vacant, and whoever is
    /// awake takes it. On a machine with idle cores the threads spread within some dozens of events that are worth sharing; on
    /// a full one, the pool goes back to one thread. Where it is busy all the time, [`Eager`](Self::Eager) is tried now and then for
    /// 100 milliseconds, and kept up as long as more gets done that way, because other programs have the cores, say.
    #[default]
    Adaptive,
    /// Before each event, as the pattern's authors have it.
    Eager,
}

/// How a pool behaves.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) promotion: Promotion,
    pub(crate) order: Order,
    pub(crate) spin: Duration,
    pub(crate) max_blind: Duration,
    pub(crate) timer_slack: Duration,
    pub(crate) portable: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            promotion: Promotion::default(),
            order: Order::default(),
            spin: Duration::from_micros(50),
            max_blind: Duration::from_millis(1),
            timer_slack: Duration::from_micros(50),
            portable: false,
        }
    }
}

/// How often the end of a pool looks whether leadership is free, which is held for some instructions by who is awake.
const PARTING_LOOKS: u32 = 1000;

/// One reactor and its threads.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) leadership: Leadership<Batch>,
    pub(crate) reactor: Arc<Reactor>,
    pub(crate) policy: Policy,
    pub(crate) deputy: Arc<Deputy>,
    stations: Mutex<Vec<Arc<Station>>>,
    /// Threads that wait, anywhere, in a `block_on` inside of a task of the crew's.
    helpers: Mutex<Vec<Arc<Station>>>,
    /// Executors that strangers run, of the default instance.
    overseen: Mutex<Vec<Weak<State>>>,
    /// Threads that are here only to lead.
    reliefs: Tally,
    /// Its owner is gone.
    ended: Flag,
    crew: OnceLock<Arc<Crew>>,
    /// What a layer above keeps here.
    annex: annex::Annex,
    /// It is the default instance.
    is_default: Flag,
    /// What runners counted here that are gone.
    past_polls: Counters,
    itself: Weak<Pool>,
}

impl Pool {
    pub(crate) fn new(policy: Policy) -> io::Result<Arc<Self>> {
        let (reactor, batch) = Reactor::new(policy.portable, policy.spin, policy.timer_slack)?;
        let deputy = Deputy::new(policy.max_blind)?;
        let pool = Arc::new_cyclic(|itself| Self {
            leadership: Leadership::new(batch, policy.order, policy.spin),
            reactor: Arc::new(reactor),
            deputy,
            stations: Mutex::new(Vec::new()),
            helpers: Mutex::new(Vec::new()),
            overseen: Mutex::new(Vec::new()),
            reliefs: Tally::new(),
            ended: Flag::new(false),
            crew: OnceLock::new(),
            annex: annex::Annex::default(),
            is_default: Flag::new(false),
            past_polls: Counters::default(),
            itself: itself.clone(),
            policy,
        });
        pool.deputy.serves(pool.itself.clone());
        let [needed, last] = [(); 2].map(|()| pool.deputy.clone());
        pool.reactor.set_hooks(crate::reactor::Hooks {
            needed: Box::new(move || needed.call()),
            empty: Box::new(move || drop(last.call_if(|| false))),
        });
        Ok(pool)
    }

    /// The pool whose thread this is, else the default instance.
    pub(crate) fn current() -> io::Result<Arc<Self>> {
        stay::with_current_pool(Arc::clone).map_or_else(Self::default_instance, Ok)
    }

    /// Whether the pool is that of a process from which this one was forked (P10).
    #[inline]
    pub(crate) fn is_inherited(&self) -> bool {
        self.reactor.is_inherited()
    }

    /// # Panics
    ///
    /// If the pool is another process's.
    #[inline]
    pub(crate) fn assert_not_inherited(&self) {
        if self.is_inherited() {
            inherited();
        }
    }

    /// The workers, if the pool has any.
    pub(crate) fn crew(&self) -> Option<&Arc<Crew>> {
        self.crew.get()
    }

    /// The crew, if it has workers: a runtime of the [current thread](crate::Builder::current_thread) lives off those that come by.
    fn workforce(&self) -> Option<&Arc<Crew>> {
        self.crew().filter(|crew| !crew.is_unmanned())
    }

    /// The workers, of which there are none before [`Crew::start`], if the pool had no crew.
    pub(crate) fn crew_or_found(&self, config: impl FnOnce() -> CrewConfig) -> &Arc<Crew> {
        self.crew.get_or_init(|| {
            let crew = Arc::new(Crew::new(config()));
            self.oversees(crew.state());
            crew
        })
    }

    /// A thread enters.
    fn enters(&self, station: &Arc<Station>) {
        sync::lock(&self.stations).push(station.clone());
        self.has_risen();
    }

    /// It leaves.
    fn leaves(&self, station: &Arc<Station>) {
        sync::lock(&self.stations).retain(|other| !Arc::ptr_eq(other, station));
        self.has_risen();
    }

    /// The calling thread leads and is about to sleep; lately it `slept` for so many nanoseconds. Until it has risen it runs no
    /// code but ours.
    #[inline]
    fn rests(self: &Arc<Self>, slept: u64) {
        if self.deputy.is_long(slept) {
            // It is not busy, and the deputy need not look any more, which would find that.
            self.leadership.gain.set_lavish(false);
            self.deputy.stand_down(|| audit::Audit::default().is_quiet(self) && self.needs_deputy());
        }
    }

    /// A thread of the pool is awake, or has left it: what it promises is watched from now on.
    #[inline]
    pub(crate) fn has_risen(&self) {
        let _ = self.deputy.call_if(|| self.needs_deputy());
    }

    /// The same for a deputy that has just said that it is gone: what comes from now on is told to be the first.
    fn still_needs_deputy(&self) -> bool {
        self.reactor.start_over();
        self.needs_deputy()
    }

    /// Whether there is anything that a deputy could be needed for.
    fn needs_deputy(&self) -> bool {
        self.reactor.is_needed()
            || self.workforce().is_some_and(|crew| crew.is_at_work())
            || self.has_company()
            || !self.overseen().is_empty()
    }

    /// Whether somebody is here who could wait for somebody else.
    fn has_company(&self) -> bool {
        let stations = sync::lock(&self.stations);
        let mut members = stations.iter().filter(|station| !station.is_relief());
        let Some(first) = members.next() else { return false };
        first.is_in_company()
            || members.any(|other| other.thread.id() != first.thread.id() || other.is_in_company())
    }

    /// Whether all threads sleep, and beside no task that one of them could run.
    fn is_asleep(&self) -> bool {
        sync::lock(&self.stations).iter().all(|station| station.is_quiet() && !station.sleeps_beside_tasks())
    }

    /// Whether a thread that is awake runs, as opposed to one that blocks.
    fn is_busy(&self) -> bool {
        self.stations().iter().any(|station| !station.is_quiet() && station.runs())
    }

    /// A thread waits in a `block_on` inside of a task of the crew's.
    fn gets_helper(&self, station: Arc<Station>) {
        sync::lock(&self.helpers).push(station);
    }

    fn loses_helper(&self, station: &Arc<Station>) {
        sync::lock(&self.helpers).retain(|other| !Arc::ptr_eq(other, station));
    }

    /// Those of them that are on top of their threads' stacks.
    fn helpers(&self) -> Vec<Arc<Station>> {
        sync::lock(&self.helpers).iter().filter(|station| station.is_on_top()).cloned().collect()
    }

    /// A thread of this pool runs that executor: the deputy is told when there is something to see.
    fn oversees(&self, executor: &State) {
        let deputy: Weak<dyn Overseer> = Arc::<Deputy>::downgrade(&self.deputy);
        executor.alarms.add(deputy);
        if executor.has_company() {
            self.has_risen();
        }
    }

    /// Executors that strangers run and others with them.
    fn overseen(&self) -> Vec<StateRef> {
        let mut overseen = sync::lock(&self.overseen);
        overseen.retain(|executor| executor.strong_count() > 0);
        let in_company = overseen.iter().filter_map(Weak::upgrade).filter(|executor| executor.has_company());
        in_company.map(StateRef::Shared).collect()
    }

    /// How tasks came to be polled by this pool's threads, whosever they are.
    pub(crate) fn polls(&self) -> Counters {
        let polls = Counters::default();
        polls.absorb(&self.past_polls);
        for station in self.stations() {
            station.runners.lock().iter().for_each(|hosted| polls.absorb(&hosted.runner.counters));
        }
        polls
    }

    fn stations(&self) -> Vec<Arc<Station>> {
        sync::lock(&self.stations).clone()
    }

    /// The calling thread is about to run a task that is known to block, or to compute: for one that computes no thread is
    /// wanted at once.
    fn cover_for_slow_task(&self, known: Caught) {
        if self.leadership.is_vacant() && !self.leadership.pass_on() && known == Caught::Blocking {
            self.deputy.ask_for_help();
        }
    }

    /// Runs user code that is not polled by a thread of the pool: what it spawns and registers is the pool's all the
    /// same.
    pub(crate) fn visit<R>(self: &Arc<Self>, code: impl FnOnce() -> R) -> R {
        let frame = Stay::visit(self);
        let _visit = frame.enter();
        code()
    }

    /// Whether its owner is gone.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended.is_set()
    }

    /// Its owner is gone. Whoever waits for a source or timer is told, and nobody watches any more. Said, and not left to
    /// `drop`, because the last reference may be anybody's: a stuck worker's, or that of a waker that was just called.
    pub(crate) fn end(&self) {
        self.ended.set(true);
        self.deputy.end();
        self.reactor.close();
        self.relieve_reliefs();
        // What is in the batch is waited for as well. Whoever leads, asleep perhaps, takes it or leaves it to us.
        for _ in 0..PARTING_LOOKS {
            if relief::take_turn(&self.itself.upgrade().expect("somebody calls this")) {
                break;
            }
            self.reactor.interrupt();
            sync::thread::yield_now();
        }
    }

    /// Whether nothing is open here: nobody awake, no task that waits, nobody who was notified and did not come.
    #[cfg(all(test, paceline_shuttle))]
    pub(crate) fn is_at_rest(self: &Arc<Self>) -> bool {
        let state = self.crew().map(|crew| crew.state());
        audit::Audit::default().is_quiet(self) && state.is_none_or(|state| state.is_at_rest())
    }

    /// Whether somebody is here only to lead.
    fn has_relief(&self) -> bool {
        self.reliefs.get() > 0
    }

    /// There is nothing to lead for any more.
    fn relieve_reliefs(&self) {
        let stations = self.stations();
        stations.iter().filter(|station| station.is_relief()).for_each(std::task::Wake::wake_by_ref);
    }
}

/// Shows the default instance's deputy an executor that strangers run; returns whom to tell of it. `None` where there is no
/// descriptor for an instance: the next stranger tries again.
pub(crate) fn oversee(executor: Weak<State>) -> Option<Weak<dyn Overseer>> {
    let pool = Pool::default_instance().ok()?;
    let mut overseen = sync::lock(&pool.overseen);
    if !overseen.iter().any(|known| Weak::ptr_eq(known, &executor)) {
        overseen.push(executor);
    }
    let deputy: Weak<dyn Overseer> = Arc::<Deputy>::downgrade(&pool.deputy);
    Some(deputy)
}

#[cold]
fn inherited() -> ! {
    panic!(
        "this runtime is that of the process that forked this one (pid {}), and its threads are not here. A child may use \
         the default instance, which it has of its own, or build a runtime; or fork before there is one",
        std::process::id()
    );
}

/// The reactor of the runtime whose thread this is, else the default instance's.
#[inline]
pub(crate) fn current_reactor() -> io::Result<Arc<Reactor>> {
    match stay::with_current_pool(|pool| pool.reactor.clone()) {
        Some(reactor) => Ok(reactor),
        None => default_reactor(),
    }
}

/// What the clock says by which the timers of the current runtime are due.
#[inline]
pub(crate) fn now() -> Instant {
    #[cfg(feature = "test-clock")]
    if crate::reactor::Clock::any_stood() {
        return stay::with_current_pool(|pool| pool.reactor.clock.now()).unwrap_or_else(Instant::now);
    }
    Instant::now()
}

/// While it is there, the clock of the runtime in which it was made does not leap.
#[derive(Debug)]
pub(crate) struct ClockHeld {
    #[cfg(feature = "test-clock")]
    reactor: Option<Arc<Reactor>>,
}

impl ClockHeld {
    #[inline]
    pub(crate) fn here() -> Self {
        Self {
            #[cfg(feature = "test-clock")]
            reactor: stay::with_current_pool(|pool| {
                pool.reactor.clock.holds();
                pool.reactor.clone()
            }),
        }
    }
}

#[cfg(feature = "test-clock")]
impl Drop for ClockHeld {
    fn drop(&mut self) {
        if let Some(reactor) = &self.reactor {
            reactor.clock.releases();
            // The leader may sleep because of this.
            if reactor.clock.stands() {
                reactor.interrupt();
            }
        }
    }
}

/// The default instance's reactor.
pub(crate) fn default_reactor() -> io::Result<Arc<Reactor>> {
    Ok(Pool::default_instance()?.reactor.clone())
}
