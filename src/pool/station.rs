//! [`Station`]: one `block_on` in progress, as its waker and the deputy see it.
//!
//! A thread keeps the station of the last outermost `block_on` that its program called, for the next one. If
//! that is in the same pool, or needs none, it allocates nothing and takes no lock. A station that is kept is
//! *idle*, and stays in the list of its pool. It is used again only if [no copy](Station::is_unshared) of its
//! waker is left.

use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Weak};
use std::task::Wake;
use std::time::Duration;

use super::Pool;
use super::finding::{Finding, Spot};
use crate::executor::{self, Caught, Host, Hosted, Runner, Runners, Surroundings};
use crate::flight::Reason;
use crate::fork::Origin;
use crate::leadership::{Rank, Seat};
use crate::probe::ThreadState;
use crate::reactor::Reactor;
use crate::stage::{Stage, StageCell};
use crate::sync::{self, Flag, Mutex, thread};

/// A `block_on`, as other threads see it.
#[derive(Debug)]
pub(crate) struct Station {
    pub(crate) seat: sync::Arc<Seat>,
    /// The pool in whose list the station is. Weak, because the station is the waker of its root future, and
    /// copies of that waker may be left anywhere: they keep no thread and no descriptor of a pool that is
    /// gone. The reactor is a separate reference, so that a wake never drops a pool.
    pool: Mutex<Option<PoolParts>>,
    /// The address of that pool, for the thread itself, or null. Std's atomics here, in `share` and in
    /// `called_at`: one thread writes, and an old value misleads the deputy for one look at most.
    listed: AtomicPtr<Pool>,
    /// The place of the thread's share in the list of the reactor; `usize::MAX` if it has none.
    pub(crate) share: AtomicUsize,
    /// How far the thread has got.
    pub(crate) stage: StageCell,
    /// Where the `block_on` was called; null if it drives no future of the user's.
    pub(super) called_at: AtomicPtr<Location<'static>>,
    /// No `block_on` is in progress: the thread keeps the station for its next one.
    pub(super) idle: Flag,
    pub(super) origin: Origin,
    /// The rank of the seat while the thread hosts no runner.
    own_rank: Rank,
    /// How long the thread stays while it is not needed; `None` if it stays until its future is done.
    pub(crate) linger: Option<Duration>,
    /// The deputy wants the thread to leave.
    pub(super) goes: Flag,
    /// The thread is in a park or unpark hook.
    pub(crate) in_hook: Flag,
    /// The runners that this thread hosts.
    pub(crate) runners: Runners,
    pub(crate) thread: thread::Thread,
    pub(crate) state: ThreadState,
    /// The last finding of the deputy about this thread, from a time when it made no progress.
    finding: Mutex<Option<Finding>>,
}

/// The list of a pool. A value of its own, so that a thread which leaves it never drops a pool.
pub(super) type Stations = Mutex<Vec<Arc<Station>>>;

/// A pool, and its parts that a wake or a list needs.
type PoolParts = (Weak<Reactor>, Weak<Pool>, Weak<Stations>);

/// The user code that a thread runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Culprit {
    /// Where the task was spawned, or the `block_on` was called. The task may have ended in the meantime.
    pub(crate) place: Option<&'static Location<'static>>,
    /// The code is the future of a `block_on`, and not a task.
    pub(crate) is_root: bool,
}

/// The activity of a thread in one `block_on`, as far as other threads can see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Activity {
    /// The user code that the thread runs, if that is known.
    pub(crate) culprit: Option<Culprit>,
    /// The finding of the deputy, if the thread has been there for longer.
    pub(crate) finding: Option<Finding>,
}

impl Activity {
    pub(crate) fn is_task(&self) -> bool {
        self.culprit.is_some_and(|culprit| !culprit.is_root)
    }
}

impl Station {
    /// Returns whether no copy of the waker is left. The list of the pool has a reference. The deputy may
    /// have one for a moment, which counts as a copy. If the pool is gone, one copy is overlooked: it may
    /// wake the next future for nothing.
    #[inline]
    pub(super) fn is_unshared(self: &Arc<Self>) -> bool {
        if Arc::strong_count(self) > 1 + usize::from(!self.listed.load(Ordering::Relaxed).is_null()) {
            return false;
        }
        // ORDER: pairs with the Release by which the last copy was dropped: what that has woken is visible.
        fence(Ordering::Acquire);
        true
    }

    /// Joins the pool: adds the station to its list, unless the last `block_on` was there, and notifies the
    /// deputy.
    #[inline]
    pub(super) fn join(self: &Arc<Self>, pool: &Arc<Pool>) {
        self.share.store(usize::MAX, Ordering::Relaxed);
        // To the deputy the last `block_on` is over.
        self.stage.step();
        self.idle.set(false);
        if ptr::eq(self.listed.load(Ordering::Relaxed), Arc::as_ptr(pool)) {
            pool.watch(executor::here(Host::is_host));
        } else {
            self.leave_list();
            let (reactor, stations) = (Arc::downgrade(&pool.reactor), Arc::downgrade(&pool.stations));
            *sync::lock(&self.pool) = Some((reactor, Arc::downgrade(pool), stations));
            self.listed.store(Arc::as_ptr(pool).cast_mut(), Ordering::Relaxed);
            pool.add_station(self);
        }
    }

    /// Takes the station out of the list of its pool. Not in the child of a fork: another thread of the
    /// parent may have held the locks.
    #[cold]
    pub(super) fn leave_list(self: &Arc<Self>) {
        if !self.origin.is_here() {
            return;
        }
        let listed = sync::lock(&self.pool).take();
        if let Some(stations) = listed.and_then(|(.., stations)| stations.upgrade()) {
            sync::lock(&stations).retain(|other| !Arc::ptr_eq(other, self));
        }
    }

    /// Creates a station for the calling thread, in no pool yet and without a future of the user's. The
    /// thread leaves when it was not needed for as long as `linger`; if that is `None`, only when it is told
    /// to. A thread that is here only to lead has the rank of a relief.
    pub(crate) fn with(own_rank: Rank, linger: Option<Duration>) -> Self {
        Self {
            seat: sync::Arc::new(Seat::new(own_rank)),
            pool: Mutex::new(None),
            listed: AtomicPtr::default(),
            share: AtomicUsize::new(usize::MAX),
            stage: StageCell::default(),
            called_at: AtomicPtr::default(),
            idle: Flag::new(false),
            origin: Origin::unwatched(),
            own_rank,
            linger,
            goes: Flag::new(false),
            in_hook: Flag::new(false),
            runners: Runners::default(),
            thread: thread::current(),
            state: ThreadState::here(),
            finding: Mutex::new(None),
        }
    }

    /// Returns what the thread is doing: it polls a task, calls a waker, or is in the user's root future, as
    /// far as is known. This holds only if the thread is awake, and in no other `block_on` on top.
    pub(crate) fn activity(&self) -> Activity {
        let polls = |hosted: &Hosted| Some((hosted.runner.poll.task_poll()?, hosted.runner.clone()));
        let task = self.runners.lock().iter().find_map(polls);
        if let Some((poll, runner)) = task {
            let culprit = Some(Culprit { place: poll.spawned_at, is_root: false });
            let finding = self.finding_at(self.spot(Some((&runner, poll.stage))));
            return Activity { culprit, finding };
        }
        let spot = self.spot(None);
        let calls_waker = spot.0.is_at_work();
        let culprit = self.root().filter(|_| !calls_waker);
        let finding = self.finding_at(spot).filter(|_| calls_waker || culprit.is_some());
        Activity { culprit, finding }
    }

    /// Keeps what the deputy found of a thread that made no progress.
    pub(crate) fn keep_finding(&self, finding: Finding) {
        *sync::lock(&self.finding) = Some(finding);
    }

    /// Returns what the deputy found, if the thread is still at `spot`.
    fn finding_at(&self, spot: Spot) -> Option<Finding> {
        sync::lock(&self.finding).filter(|finding| finding.spot == spot)
    }

    pub(crate) fn is_replacement(&self) -> bool {
        self.linger.is_some() && !self.is_relief()
    }

    pub(crate) fn is_relief(&self) -> bool {
        self.own_rank == Rank::Relief
    }

    /// Tells a replacement to leave, even if it leads: another thread will lead then.
    pub(crate) fn release(self: &Arc<Self>) {
        self.goes.set(true);
        self.wake_by_ref();
    }

    /// Returns whether the thread is in no other `block_on` on top of this one.
    pub(crate) fn is_on_top(&self) -> bool {
        !self.stage.is_suspended()
    }

    /// Suspends this `block_on`, because the thread begins another one on top of it, and hands its tasks to
    /// other threads: the other `block_on` may wait for them. Meanwhile the thread is no host of its pool,
    /// because it does not return to lead before the other `block_on` ends. Returns true if
    /// [`resume`](Self::resume) has to make it a host again.
    pub(crate) fn suspend(&self, pool: Option<&Arc<Pool>>) -> bool {
        self.runners.hand_over();
        self.stage.suspend();
        pool.is_some_and(|pool| pool.leadership.suspend(&self.seat))
    }

    /// Resumes this `block_on`: the one on top of it has ended. With `pool`, the thread joins that pool's
    /// leadership again.
    pub(crate) fn resume(&self, pool: Option<&Arc<Pool>>) {
        self.stage.resume();
        if let Some(pool) = pool {
            pool.leadership.resume(&self.seat);
        }
    }

    /// Changes the rank of the seat, and of the thread in the pool's leadership if it is in it.
    fn set_rank(&self, pool: Option<&Pool>, rank: Rank) {
        match pool {
            Some(pool) => pool.leadership.set_rank(&self.seat, rank),
            None => self.seat.set_rank(rank),
        }
    }

    /// Returns the future of the `block_on`, if that is the user's.
    pub(crate) fn root(&self) -> Option<Culprit> {
        // SAFETY: the pointer is null, or was made of a `&'static Location`.
        let place = unsafe { self.called_at.load(Ordering::Relaxed).as_ref() };
        place.map(|place| Culprit { place: Some(place), is_root: true })
    }

    /// Returns how far the thread has got: with a runner that it hosts and that is at this stage, or
    /// without a runner.
    pub(crate) fn spot(&self, runner: Option<(&Arc<Runner>, Stage)>) -> Spot {
        (self.stage.get(), runner.map(|(runner, stage)| (Arc::as_ptr(runner).addr(), stage)))
    }

    pub(crate) fn works_for(&self, pool: &Pool) -> bool {
        let Some(crew) = pool.crew() else { return false };
        self.runners.lock().iter().any(|hosted| crew.runs(&hosted.state))
    }

    /// Returns whether the future of this `block_on` was woken. Only for its thread, in no other `block_on`
    /// on top; so are the following two.
    #[inline]
    pub(crate) fn is_woken(&self) -> bool {
        executor::here(|host| host.woken.get()) || self.seat.root_woken()
    }

    /// Consumes all wake-ups of the future of this `block_on`. Returns whether there was one.
    #[inline]
    pub(crate) fn take_woken(&self) -> bool {
        let here = executor::here(|host| host.woken.take());
        self.seat.take_root() || here
    }

    /// Prepares the thread for sleep: puts its runners into the lines of sleepers, and returns true. The
    /// caller calls [`Host::leave_lines`](executor::Host::leave_lines) after the sleep. Returns false, with
    /// no runner in a line, if the thread has to stay awake: because the future of this `block_on` was woken;
    /// because a runner has tasks or its future was woken, and then its `run` is woken; or because a runner
    /// has left, and then the caller calls [`Host::forget_left`](executor::Host::forget_left) before the next
    /// attempt. A runner that asked for a poll before and got none keeps no thread awake: its tasks go to
    /// others.
    pub(crate) fn try_enter_lines(&self) -> bool {
        executor::here(|host| {
            // A runner may have been called for another one's tasks while the others entered their lines.
            let may_sleep = host.enter_lines() && !self.is_woken();
            if !may_sleep {
                host.leave_lines();
            }
            may_sleep
        })
    }

    /// Returns the pool that the `block_on` has joined.
    fn pool(&self) -> Option<Arc<Pool>> {
        if self.idle.is_set() {
            return None;
        }
        sync::lock(&self.pool).as_ref().and_then(|(_, pool, _)| pool.upgrade())
    }

    /// Returns whether nothing happens here that the deputy would have to watch: the thread sleeps, or is in
    /// another `block_on` on top of this one.
    pub(crate) fn is_quiet(&self) -> bool {
        self.seat.is_asleep() || self.stage.is_suspended()
    }
}

impl Wake for Station {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    /// Wakes the root future: by a flag if this `block_on` is the topmost one of the calling thread, and
    /// otherwise by the root token, which unparks the thread or interrupts the poller.
    #[inline]
    fn wake_by_ref(self: &Arc<Self>) {
        // The waker points to this station, and `Stay::begin` has given the host the same address.
        if !executor::wake_root_on_top(Arc::as_ptr(self).cast()) && self.seat.wake_root() {
            let reactor = sync::lock(&self.pool).as_ref().and_then(|(reactor, ..)| reactor.upgrade());
            if let Some(reactor) = reactor {
                reactor.interrupt();
            }
        }
    }
}

impl Surroundings for Station {
    fn runners(&self) -> &Runners {
        &self.runners
    }

    /// Makes the thread a host in the leadership, and starts the deputy if there is none. If that fails, the
    /// next host tries again.
    fn start_watch_as_host(&self) {
        let pool = self.pool();
        self.set_rank(pool.as_deref(), Rank::Host);
        if let Some(pool) = pool {
            _ = pool.deputy.call_or_start();
        }
    }

    /// Adds the counters of the runner, which has left the thread, to the sums of the pool. With the last
    /// runner, the thread gets its own rank back.
    fn end_hosting(&self, runner: &Runner, last: bool) {
        let pool = self.pool();
        if last {
            self.set_rank(pool.as_deref(), self.own_rank);
        }
        if let Some(pool) = pool {
            pool.past_polls.absorb(&runner.counters);
        }
    }

    /// Has another thread lead, if none does, or steal, if there are events to steal. If no thread leads and
    /// no follower can, and the task blocks, asks the deputy to add a thread at once.
    fn cover(&self, known: Caught) {
        if let Some(pool) = self.pool() {
            let is_vacant = pool.leadership.is_vacant();
            let is_needed = is_vacant || pool.reactor.shares.is_any_left();
            let is_called = is_needed && pool.leadership.call(Reason::SlowTask);
            if is_vacant && !is_called && known == Caught::Blocking {
                pool.deputy.ask_for_help();
            }
        }
    }
}
