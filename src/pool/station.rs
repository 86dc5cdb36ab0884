//! [`Station`]: one `block_on` in progress, as its waker and as the deputy sees it.

use std::panic::Location;
use std::sync::{Arc, OnceLock, Weak};
use std::task::Wake;
use std::time::Duration;

use super::finding::{Finding, Findings, Spot};
use super::stall::Culprit;
use super::thread_state::ThreadState;
use super::{Pool, Stay};
use crate::executor::{Caught, Runner, Runners, State, Surroundings};
use crate::leadership::{Rank, Rouse, Seat};
use crate::reactor::Reactor;
use crate::sync::{self, Counter, Flag, thread};

/// One `block_on`, as other threads see it.
#[derive(Debug)]
pub(crate) struct Station {
    pub(crate) seat: sync::Arc<Seat>,
    /// Where it is: not a reference to the pool, because a waker that is left anywhere would keep that alive.
    pool: OnceLock<(Arc<Reactor>, Weak<Pool>)>,
    /// A nested `block_on` on the same thread does the waiting.
    suspended: Flag,
    /// It is nested in a task of this pool's own executor, and may be asked to run others.
    helps: OnceLock<Weak<Pool>>,
    /// Where it was called, if it is there for a future of the user's.
    called_at: Option<&'static Location<'static>>,
    /// How often that future was polled.
    polls: Counter,
    /// Odd while its thread fires an event; the deputy compares it with what it was a tick ago.
    pulse: Counter,
    /// What it counts as where no runner is hosted here.
    own_rank: Rank,
    /// How long the thread waits when nobody needs it; for ever, if it is there for its own future.
    pub(crate) linger: Option<Duration>,
    /// What the deputy wants of it.
    goes: Flag,
    is_asked: Flag,
    /// The runners that this thread hosts.
    pub(super) runners: Runners,
    pub(super) thread: thread::Thread,
    pub(super) state: ThreadState,
    /// What the deputy knows of it, if it got no further.
    pub(super) findings: Findings,
}

/// What a thread is at in one `block_on`, as far as can be seen from outside.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    /// Whose code it runs, if that is known.
    pub(super) culprit: Option<Culprit>,
    /// What the deputy found, if it has been there for longer.
    pub(super) finding: Option<Finding>,
    /// It fires an event.
    fires: bool,
}

impl At {
    pub(super) fn is_task(&self) -> bool {
        self.culprit.is_some_and(|culprit| !culprit.is_root)
    }

    /// Whether all that is known is that it is awake.
    pub(super) fn is_anywhere(&self) -> bool {
        !self.is_task() && !self.fires && self.finding.is_none()
    }
}

/// What the deputy wants of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Wish {
    /// To leave.
    Go,
    /// To run tasks while it waits.
    Help,
}

impl Station {
    /// A station for a future of the user's.
    pub(crate) fn new(called_at: &'static Location<'static>) -> Self {
        Self { called_at: Some(called_at), ..Self::with(Rank::Guest, None) }
    }

    /// A station that is left when nobody needs it for as long as `linger`.
    pub(crate) fn lingering(linger: Option<Duration>) -> Self {
        Self::with(Rank::Guest, linger)
    }

    /// The same for a thread that is here only to lead.
    pub(super) fn relief(linger: Duration) -> Self {
        Self::with(Rank::Relief, Some(linger))
    }

    fn with(own_rank: Rank, linger: Option<Duration>) -> Self {
        Self {
            seat: sync::Arc::new(Seat::new(own_rank)),
            pool: OnceLock::new(),
            suspended: Flag::new(false),
            helps: OnceLock::new(),
            called_at: None,
            polls: Counter::default(),
            pulse: Counter::default(),
            own_rank,
            linger,
            goes: Flag::new(false),
            is_asked: Flag::new(false),
            runners: Runners::default(),
            thread: thread::current(),
            state: ThreadState::here(),
            findings: Findings::default(),
        }
    }

    /// Whether a thread of the user's called it.
    pub(super) fn is_called(&self) -> bool {
        self.called_at.is_some()
    }

    /// What its thread is at; if that is awake, and here.
    pub(super) fn at(&self) -> At {
        let pulse = self.pulse();
        let task = || {
            let hosted = self.runners.lock();
            hosted.iter().find_map(|hosted| {
                let (runner, beat) = (&hosted.runner, hosted.runner.beat());
                let place = runner.spawned_at();
                let spot = Spot::in_task(runner, beat, pulse);
                // Where it came back meanwhile, the place may be that of its next task.
                (beat.is_in_task() && runner.beat() == beat).then_some((place, spot))
            })
        };
        if let Some((place, spot)) = task() {
            let culprit = Some(Culprit { place, is_root: false });
            return At { culprit, finding: self.findings.at(spot), fires: false };
        }
        if pulse % 2 == 1 {
            return At { culprit: None, finding: self.findings.at(Spot::at_event(pulse)), fires: true };
        }
        let culprit = self.called_at.map(|place| Culprit { place: Some(place), is_root: true });
        let spot = Spot::in_future(self.polls.get(), pulse);
        At { culprit, finding: self.findings.at(spot).filter(|_| culprit.is_some()), fires: false }
    }

    /// Whether it stands in for a worker that is stuck.
    pub(super) fn is_replacement(&self) -> bool {
        self.linger.is_some() && !self.is_relief()
    }

    /// Whether it is here only to lead.
    pub(super) fn is_relief(&self) -> bool {
        self.own_rank == Rank::Relief
    }

    /// Lets a replacement go, even if it leads: somebody else will.
    pub(super) fn release(self: &Arc<Self>) {
        self.goes.set(true);
        self.wake_by_ref();
    }

    /// If the thread sleeps here, has it run tasks while it waits.
    pub(super) fn ask_for_help(self: &Arc<Self>) -> bool {
        let sleeps = self.seat.is_asleep();
        if sleeps {
            self.is_asked.set(true);
            self.wake_by_ref();
        }
        sleeps
    }

    /// What the deputy wants.
    #[inline]
    pub(crate) fn wish(&self) -> Option<Wish> {
        if self.goes.is_set() { Some(Wish::Go) } else { self.is_asked.take().then_some(Wish::Help) }
    }

    /// The pool in one of whose own tasks it is nested.
    pub(crate) fn helps(&self) -> Option<Arc<Pool>> {
        self.helps.get().and_then(Weak::upgrade)
    }

    /// It is nested in a task of `pool`'s own executor.
    pub(super) fn can_help(self: &Arc<Self>, pool: &Arc<Pool>) {
        let _ = self.helps.set(Arc::downgrade(pool));
        pool.gets_helper(self.clone());
    }

    /// Whether its thread is here, and in no other `block_on` on top.
    pub(super) fn is_on_top(&self) -> bool {
        !self.suspended.is_set()
    }

    /// Another `block_on` on top of it does the waiting. Meanwhile its thread is no host of its pool, because it will not come
    /// back to lead before the other one is done. True if it is in a pool, to which it has to come back.
    pub(super) fn suspend(&self, pool: Option<&Arc<Pool>>) -> bool {
        self.suspended.set(true);
        pool.is_some_and(|pool| pool.leadership.suspend(&self.seat))
    }

    /// The other one is done.
    pub(super) fn resume(&self, pool: Option<&Arc<Pool>>) {
        self.suspended.set(false);
        pool.iter().for_each(|pool| pool.leadership.resume(&self.seat));
    }

    fn ranks_as(&self, pool: Option<&Pool>, rank: Rank) {
        match pool {
            Some(pool) => pool.leadership.set_rank(&self.seat, rank),
            None => self.seat.set_rank(rank),
        }
    }

    /// The thread begins to fire an event, or has fired it.
    #[inline]
    pub(crate) fn fires(&self) {
        self.pulse.add(1);
    }

    /// How many events it has fired, twice; one more while it fires one.
    pub(super) fn pulse(&self) -> u64 {
        self.pulse.get()
    }

    /// Its future is polled.
    #[inline]
    pub(crate) fn polls(&self) {
        self.polls.add(1);
    }

    /// Of a thread that hosts nobody: where its `block_on` was called, and how far it has got in that.
    pub(super) fn guest(&self) -> Option<(&'static Location<'static>, (u64, u64))> {
        let called_at = self.called_at.filter(|_| self.runners.lock().is_empty())?;
        Some((called_at, (self.polls.get(), self.pulse())))
    }

    /// Whether it hosts a runner of an executor that somebody else runs as well.
    pub(super) fn is_in_company(&self) -> bool {
        self.runners.lock().iter().any(|hosted| hosted.state.has_company())
    }

    /// Whether its thread runs, as opposed to one that blocks.
    pub(super) fn runs(&self) -> bool {
        self.state.is_running().unwrap_or(false)
    }

    /// Whether it hosts a runner of an executor in which somebody sleeps beside tasks that wait.
    pub(super) fn sleeps_beside_tasks(&self) -> bool {
        self.runners.lock().iter().any(|hosted| hosted.state.is_open())
    }

    /// Whether it hosts a runner of the pool's own executor.
    pub(super) fn works_for(&self, pool: &Pool) -> bool {
        let Some(crew) = pool.crew() else { return false };
        self.runners.lock().iter().any(|hosted| crew.runs(&hosted.state))
    }

    pub(super) fn attach(&self, pool: &Arc<Pool>) {
        let address = (pool.reactor.clone(), Arc::downgrade(pool));
        self.pool.set(address).expect("a station belongs to one pool");
        self.runners.lock().iter().for_each(|hosted| pool.oversees(&hosted.state));
    }

    fn pool(&self) -> Option<Arc<Pool>> {
        self.pool.get().and_then(|(_, pool)| pool.upgrade())
    }

    /// Whether nothing happens here that the deputy would have to watch.
    pub(super) fn is_quiet(&self) -> bool {
        self.suspended.is_set() || self.seat.is_asleep()
    }
}

impl Wake for Station {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    #[inline]
    fn wake_by_ref(self: &Arc<Self>) {
        if !Stay::woken_here(self) && self.seat.wake_root() == Rouse::Interrupt {
            if let Some((reactor, ..)) = self.pool.get() {
                reactor.interrupt();
            }
        }
    }
}

impl Surroundings for Station {
    fn runners(&self) -> &Runners {
        &self.runners
    }

    fn hosts(&self, executor: &State) {
        let pool = self.pool();
        self.ranks_as(pool.as_deref(), Rank::Host);
        pool.iter().for_each(|pool| pool.oversees(executor));
    }

    fn forgets(&self, runner: &Runner, last: bool) {
        let pool = self.pool();
        if last {
            self.ranks_as(pool.as_deref(), self.own_rank);
        }
        pool.iter().for_each(|pool| pool.past_polls.absorb(&runner.counters));
    }

    fn cover(&self, known: Caught) {
        self.pool().iter().for_each(|pool| pool.cover_for_slow_task(known));
    }
}
