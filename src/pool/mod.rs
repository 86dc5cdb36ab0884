//! A pool: one reactor, the threads that take turns leading it, and the deputy that watches over them.
//!
//! Here the layers below meet: [`Leadership`] guards the reactor's [`Watch`], and each [`Station`] is one thread in
//! `block_on`. A pool may have a [`Crew`] of its own (a runtime's workers); without one it lives off the threads
//! that come by.

mod crew;
mod deputy;
mod instance;
mod station;

pub(crate) use crew::{Crew, CrewConfig, Leaving};
pub use deputy::Stall;
pub(crate) use deputy::StallHook;
#[cfg(unix)]
pub(crate) use instance::default_descriptor;
pub(crate) use station::{Presence, Station};

use std::io;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use crate::executor::Counters;
use crate::leadership::{Leadership, Order};
use crate::reactor::{Reactor, Watch};
use crate::sync::{self, Mutex};
use deputy::Deputy;
use station::Visit;

/// When a leader that found an event wakes a follower to lead in its place.
///
/// See [`Builder::promotion`](crate::Builder::promotion).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Promotion {
    /// When it pays: the rest of the batch costs more than a wake, or the task that comes next is known to block.
    /// Otherwise leadership is left vacant, and whoever is awake takes it.
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
    pub(crate) portable: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            promotion: Promotion::default(),
            order: Order::default(),
            spin: Duration::from_micros(50),
            max_blind: Duration::from_millis(1),
            portable: false,
        }
    }
}

/// What the rest of a batch must cost before a follower is woken to share it. A wake costs two threads some
/// microseconds each; below this, one thread is done with the batch before two would have shared it to any gain.
const WAKE_PAYS: Duration = Duration::from_micros(500);

/// One reactor and its threads.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) leadership: Leadership<Watch>,
    pub(crate) reactor: Arc<Reactor>,
    pub(crate) policy: Policy,
    pub(crate) deputy: Deputy,
    stations: Mutex<Vec<Arc<Station>>>,
    crew: OnceLock<Arc<Crew>>,
    /// What runners counted here that are gone.
    past_polls: Counters,
    itself: Weak<Pool>,
}

impl Pool {
    pub(crate) fn new(policy: Policy) -> io::Result<Arc<Self>> {
        let (reactor, watch) = Reactor::new(policy.portable, policy.spin)?;
        let pool = Arc::new_cyclic(|itself| Self {
            leadership: Leadership::new(watch, policy.order, policy.spin),
            reactor: Arc::new(reactor),
            deputy: Deputy::new(),
            stations: Mutex::new(Vec::new()),
            crew: OnceLock::new(),
            past_polls: Counters::default(),
            itself: itself.clone(),
            policy,
        });
        let itself = pool.itself.clone();
        pool.reactor.set_hooks(crate::reactor::Hooks {
            foreign_wait: Box::new({
                let itself = itself.clone();
                move || itself.upgrade().into_iter().for_each(|pool| pool.someone_waits_here())
            }),
            empty: Box::new(move || itself.upgrade().into_iter().for_each(|pool| pool.deputy.rouse())),
        });
        Ok(pool)
    }

    /// The pool whose thread this is, else the default instance.
    pub(crate) fn current() -> io::Result<Arc<Self>> {
        station::with_current_pool(Arc::clone).map_or_else(Self::default_instance, Ok)
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

    /// The workers, of which there are none before [`Crew::start`], if the pool had no crew.
    pub(crate) fn crew_or_found(&self, config: impl FnOnce() -> CrewConfig) -> &Arc<Crew> {
        self.crew.get_or_init(|| {
            let crew = Arc::new(Crew::new(config()));
            let itself = self.itself.clone();
            crew.state().on_unclaimed(move || {
                itself.upgrade().into_iter().for_each(|pool| pool.deputy.rouse_if_asleep());
            });
            crew
        })
    }

    /// A thread enters; it leaves when the value is dropped.
    pub(crate) fn enter<'a>(
        self: &'a Arc<Self>,
        station: &'a Arc<Station>,
        presence: &Presence,
    ) -> Membership<'a> {
        station.attach(self);
        presence.in_pool(self);
        let company = {
            let mut stations = sync::lock(&self.stations);
            stations.push(station.clone());
            stations.iter().any(|other| other.thread.id() != station.thread.id())
        };
        if company {
            // Now there is somebody to rescue, and somebody to do it.
            self.deputy.ensure(self);
        }
        self.deputy.make_way();
        Membership { pool: self, station }
    }

    /// How tasks came to be polled by this pool's threads, whosever they are.
    pub(crate) fn polls(&self) -> Counters {
        let polls = Counters::default();
        polls.absorb(&self.past_polls);
        for station in self.stations() {
            sync::lock(&station.runners).iter().for_each(|runner| polls.absorb(&runner.counters));
        }
        polls
    }

    fn stations(&self) -> Vec<Arc<Station>> {
        sync::lock(&self.stations).clone()
    }

    /// Whether the leader should pay for a wake before it turns to the event it took.
    #[inline]
    pub(crate) fn promotion_pays(&self, watch: &Watch) -> bool {
        match self.policy.promotion {
            Promotion::Adaptive => watch.backlog() > WAKE_PAYS,
            Promotion::Eager => true,
        }
    }

    /// The calling thread is about to run a task that is known to block.
    fn cover_for_slow_task(&self) {
        if self.leadership.is_vacant() && !self.leadership.pass_on() {
            self.deputy.help_wanted();
        }
    }

    /// Runs user code that is not polled by a thread of the pool: what it spawns and registers is the pool's all the
    /// same.
    pub(crate) fn visit<R>(self: &Arc<Self>, code: impl FnOnce() -> R) -> R {
        let _visit = Visit::new(self);
        code()
    }

    /// A thread has left, and its future is gone. If nobody is here now and something is still waited for, by a task
    /// that was polled here and whose executor others run, too, the deputy leads (LF5).
    fn was_left(self: &Arc<Self>) {
        let is_used = !self.is_inherited() && self.reactor.is_needed();
        if is_used && sync::lock(&self.stations).is_empty() && self.reactor.is_awaited() {
            self.deputy.ensure(self);
        }
    }

    /// Somebody waits for a source or timer on a thread that will not lead here.
    fn someone_waits_here(self: &Arc<Self>) {
        if !station::will_lead_in(self) {
            self.deputy.ensure(self);
        }
    }
}

#[cold]
fn inherited() -> ! {
    panic!(
        "this runtime is that of the process that forked this one (pid {}), and its threads are not here. A child may use \
         the default instance, which it has of its own, or build a runtime; or fork before there is one",
        std::process::id()
    );
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.reactor.close();
    }
}

/// A thread in a pool.
#[derive(Debug)]
pub(crate) struct Membership<'a> {
    pool: &'a Arc<Pool>,
    station: &'a Arc<Station>,
}

impl Drop for Membership<'_> {
    fn drop(&mut self) {
        if self.pool.is_inherited() {
            return;
        }
        sync::lock(&self.pool.stations).retain(|other| !Arc::ptr_eq(other, self.station));
        self.pool.deputy.rouse_if_asleep();
    }
}

/// The reactor of the runtime whose thread this is, else the default instance's.
#[inline]
pub(crate) fn current_reactor() -> io::Result<Arc<Reactor>> {
    match station::with_current_pool(|pool| pool.reactor.clone()) {
        Some(reactor) => Ok(reactor),
        None => Ok(Pool::default_instance()?.reactor.clone()),
    }
}
