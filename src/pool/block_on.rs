//! `block_on`: the four-verb loop, in which every thread that runs async code is.
//!
//! ```text
//! loop {
//!     poll my root future if it was woken      PROCESSING: a worker's root future runs the executor's tasks
//!     become the leader, or wait               FOLLOWER
//!     wait for an event                        LEADER
//!     promote                                  leadership is vacant before any user code runs (LF2)
//!     fire the event                           PROCESSING: the wakers fill the direct slot
//! }
//! ```

use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::station::Wish;
use super::stay::{self, Stay, Staying};
use super::stop::explain;
use super::{Crew, Pool, Promotion, Station};
use crate::ambient;
use crate::executor::{self, Run};
use crate::fork;
use crate::frame;
use crate::gain::Trial;
use crate::leadership::{Follower, Leader, Waited};
use crate::reactor::{Batch, Event};

/// Runs a future on the current thread until it is done.
///
/// While the future waits, the thread takes its turn at the reactor: alone, it waits for its own events. Calls may be
/// nested.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::{Timer, block_on};
///
/// block_on(async {
///     Timer::after(Duration::from_millis(1)).await;
/// });
/// ```
///
/// # Panics
///
/// If the future panics. Leadership is passed on first.
#[track_caller]
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    block_on_in(None, future)
}

/// [`block_on`] in a pool, or in the pool whose thread this is.
#[track_caller]
pub(crate) fn block_on_in<T>(pool: Option<&Arc<Pool>>, future: impl Future<Output = T>) -> T {
    let unmanned = |pool: &Arc<Pool>| {
        pool.crew().filter(|crew| crew.is_unmanned() && !crew.is_stopped()).map(|_| pool.clone())
    };
    match pool.map_or_else(|| stay::with_pool_of_block_on(unmanned).flatten(), unmanned) {
        Some(pool) => {
            let mut output = None;
            let caller = Location::caller();
            serve_and_wait(&pool, pin!(async { output = Some(future.await) }), caller);
            output.expect("it was awaited")
        }
        None => block_on_at(pool, future, Location::caller()),
    }
}

/// What a thread awaits that runs a crew's tasks. It is polled rarely; and so all that runs them is compiled once, and not anew for
/// each future, which makes the compiler inline less of it.
pub(super) type Root<'a> = Pin<&'a mut (dyn Future<Output = ()> + 'a)>;

/// Nobody else polls the pool's tasks. When it is stopped, there may be some that were polled here when all were cancelled: as a worker
/// does, the thread cancels these, and then waits for its future alone.
///
/// In one of these tasks, others are polled on top of it.
#[cold]
fn serve_and_wait(pool: &Arc<Pool>, mut future: Root<'_>, caller: &'static Location<'static>) {
    let crew = pool.crew().expect("it was looked at");
    let mut is_done = false;
    {
        let mut stopped = pin!(crew.until_stopped());
        let either = poll_fn(|cx| {
            is_done = future.as_mut().poll(cx).is_ready();
            if is_done { Poll::Ready(()) } else { stopped.as_mut().poll(cx) }
        });
        let either: Root<'_> = pin!(either);
        let run = Run::new(crew.state().clone(), either);
        stay::deeper(pool, crew.stack_size(), || block_on_at(Some(pool), run, caller));
    }
    if !is_done {
        crew.clear_up(pool);
        block_on_at(Some(pool), future, caller);
    }
}

#[inline]
fn block_on_at<T>(
    pool: Option<&Arc<Pool>>,
    future: impl Future<Output = T>,
    caller: &'static Location<'static>,
) -> T {
    let driven = AssertUnwindSafe(|| ambient::beside(|| drive(pool, Arc::new(Station::new(caller)), future)));
    match catch_unwind(driven) {
        Ok(Some(output)) => output,
        Ok(None) => unreachable!("only a thread with a linger limit is unneeded"),
        Err(panic) => match explain(&*panic) {
            Some(explanation) => panic!("{explanation}"),
            None => resume_unwind(panic),
        },
    }
}

/// Drives `future` to its end; or to `None`, when nobody needs this thread and its station says that it may go.
pub(super) fn drive<F: Future>(
    pool: Option<&Arc<Pool>>,
    station: Arc<Station>,
    future: F,
) -> Option<F::Output> {
    if let Some(pool) = pool {
        pool.assert_not_inherited();
    }
    let frame = Stay::at(&station);
    let stay = frame.begin();
    let waker = Waker::from(station.clone());
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    // A future that need not wait needs no pool.
    if pool.is_none() {
        stay.take_woken();
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return Some(output);
        }
    }
    let pool = match pool.cloned().map_or_else(Pool::current, Ok) {
        Ok(pool) => pool,
        Err(_) => return Some(without_reactor(&station, &stay, future.as_mut(), &mut cx)),
    };
    stay.joins(&pool);
    let mut rider =
        Rider { pool: &pool, station: &station, stay: &stay, trial: None, told: Told::of(&pool, &station) };
    let mut follower = pool.leadership.join(station.seat.clone());
    loop {
        if stay.take_woken() {
            rider.is_up();
            station.polls();
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return Some(output);
            }
        }
        rider.tells_that_it_sleeps();
        match station.wish() {
            None => {}
            Some(Wish::Go) => {
                rider.is_up();
                return None;
            }
            Some(Wish::Help) => rider.help(),
        }
        let mut leader = match rider.become_leader_or_wait(follower) {
            Waited::Lead(leader) => leader,
            Waited::Root(woken) => {
                follower = woken;
                continue;
            }
            Waited::Unneeded => {
                rider.is_up();
                return None;
            }
        };
        let event = rider.wait_for_event(&mut leader);
        follower = rider.promote_new_leader(leader, &event);
        if let Some(event) = event {
            rider.is_up();
            station.fires();
            stay.keep(pool.reactor.fire(event));
            station.fires();
        }
    }
}

/// Where this thread is.
struct Rider<'a> {
    pool: &'a Arc<Pool>,
    station: &'a Station,
    stay: &'a Staying<'a>,
    /// It was woken to share the work.
    trial: Option<Trial>,
    told: Told,
}

/// What was told of a thread's sleep, where somebody wants to know: by hooks, which are user code, so not while it leads (LF2). Before it
/// sleeps it gives leadership up once more for that, and looks again after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// Nobody wants to know.
    Nobody,
    /// It is up.
    Up,
    /// It is to be told that it sleeps.
    SleepIsDue,
    /// It sleeps, or will unless it finds something to do.
    Sleeps,
}

impl Told {
    /// Workers tell, and whoever polls the tasks where there are none.
    fn of(pool: &Pool, station: &Station) -> Self {
        let tells = |crew: &Arc<Crew>| crew.tells_of_sleep() && (crew.is_unmanned() || !station.is_called());
        if pool.crew().is_some_and(tells) { Self::Up } else { Self::Nobody }
    }
}

impl Rider<'_> {
    /// Whether it has to be told first that the thread sleeps, which leads perhaps.
    #[inline]
    fn must_tell(&mut self) -> bool {
        if self.told == Told::Up {
            self.told = Told::SleepIsDue;
        }
        self.told == Told::SleepIsDue
    }

    #[inline]
    fn tells_that_it_sleeps(&mut self) {
        if self.told == Told::SleepIsDue {
            self.told = Told::Sleeps;
            self.pool.crew().iter().for_each(|crew| crew.tells(self.pool, true));
        }
    }

    /// There is something to do.
    #[inline]
    fn is_up(&mut self) {
        match self.told {
            Told::Nobody | Told::Up => {}
            Told::SleepIsDue => self.told = Told::Up,
            Told::Sleeps => {
                self.told = Told::Up;
                self.pool.crew().iter().for_each(|crew| crew.tells(self.pool, false));
            }
        }
    }

    /// Runs tasks of the runtime in one of whose tasks this `block_on` is nested, on top of that one, because nobody else can:
    /// all its workers are stuck, and there may be no more of them. What is waited for here may be among them.
    #[cold]
    fn help(&self) {
        let Some(pool) = self.station.helps() else { return };
        let Some(crew) = pool.crew() else { return };
        while !self.stay.is_woken() && crew.has_surplus() {
            // What came last is what this thread waits for, most likely; and what came first is another one that will wait.
            let run = || {
                self.station.fires();
                let task = crew.state().newest_task().map(executor::run_beside);
                self.station.fires();
                task.is_some()
            };
            if !self.stay.go_deeper(crew.stack_size(), run) {
                return;
            }
        }
    }

    /// Leads if it can. If the root future has work to do, it does not wait.
    #[inline]
    fn become_leader_or_wait<'l>(&mut self, follower: Follower<'l, Batch>) -> Waited<'l, Batch> {
        if self.pool.is_inherited() {
            fork::abort_child();
        }
        self.stay.clears_up();
        if self.trial.is_some() {
            self.is_on_trial();
        }
        if self.stay.is_woken() && !self.pool.reactor.is_needed() {
            return Waited::Root(follower);
        }
        let follower = match follower.try_lead() {
            Ok(leader) => return Waited::Lead(leader),
            Err(follower) => follower,
        };
        if self.stay.is_woken() || self.must_tell() || !self.stay.rests() {
            return Waited::Root(follower);
        }
        self.ends_trial();
        let mut turn = follower.follow(self.station.linger, || self.pool.reactor.interrupt());
        if let Waited::Lead(leader) = &mut turn {
            self.trial = leader.answers();
        }
        self.awake();
        turn
    }

    /// The next event of the batch, or of the poller. Returns without one when the root future was woken, or when
    /// somebody with a better claim wants to lead.
    #[inline]
    fn wait_for_event(&mut self, leader: &mut Leader<'_, Batch>) -> Option<Event> {
        let reactor = &self.pool.reactor;
        let next = leader.with(|batch| batch.next(reactor));
        if next.is_some() {
            return next;
        }
        leader.settle_in();
        let result = self.wait_for_batch(leader);
        leader.look_up();
        match result {
            Ok(()) => leader.with(|batch| batch.next(reactor)),
            Err(error) => panic!("the poller failed: {error}"),
        }
    }

    fn wait_for_batch(&mut self, leader: &mut Leader<'_, Batch>) -> io::Result<()> {
        let reactor = &self.pool.reactor;
        frame::next_turn();
        if self.stay.is_woken() {
            leader.with(|batch| batch.look(reactor))?;
            return Ok(());
        }
        if leader.with(|batch| batch.look_if_cheap(reactor))? {
            return Ok(());
        }
        if !self.stay.rests() {
            return Ok(());
        }
        let result = self.idle(leader);
        self.stay.host.rise();
        result
    }

    /// A moment without work: stays awake for a little, if that pays, then sleeps.
    fn idle(&mut self, leader: &mut Leader<'_, Batch>) -> io::Result<()> {
        let reactor = &self.pool.reactor;
        let displaced = leader.displaced();
        while leader.with(|batch| batch.stays_awake()) {
            if self.stay.is_woken() || displaced() {
                leader.with(|batch| batch.interrupted(reactor));
                return Ok(());
            }
            if leader.with(|batch| batch.look(reactor))? {
                return Ok(());
            }
        }
        if self.must_tell() {
            leader.with(|batch| batch.interrupted(reactor));
            return Ok(());
        }
        // Who is here only to lead does not know whether anybody has something to do.
        if !self.station.is_relief() && leader.with(|batch| batch.leaps(reactor))? {
            return Ok(());
        }
        self.ends_trial();
        if !self.station.seat.starts_polling() {
            leader.with(|batch| batch.interrupted(reactor));
            return Ok(());
        }
        self.pool.rests(leader.with(|batch| batch.slept_lately()));
        // What was held may have been let go of since it was looked, by somebody who found nobody to interrupt.
        let may_leap = || !self.station.is_relief() && reactor.clock.was_released();
        let result =
            leader.with(|batch| batch.sleep(reactor, || self.stay.is_woken() || displaced() || may_leap()));
        self.station.seat.stops_polling();
        self.pool.has_risen();
        result
    }

    /// Gives leadership up before any user code runs (LF2), and wakes a follower to take it if that pays.
    #[inline]
    fn promote_new_leader<'l>(
        &mut self,
        mut leader: Leader<'l, Batch>,
        event: &Option<Event>,
    ) -> Follower<'l, Batch> {
        let left = leader.with(|batch| batch.left());
        self.stay.host.events_wait(left > 0);
        if event.is_none() {
            return leader.vacate();
        }
        if self.trial.is_some() && leader.has_company() {
            self.trial.iter_mut().for_each(Trial::begins);
        }
        match self.pool.policy.promotion {
            Promotion::Adaptive if leader.is_gain_likely() => {
                leader.promote(!self.pool.leadership.gain.is_lavish())
            }
            Promotion::Eager if leader.has_follower() => leader.promote(false),
            _ => leader.vacate(),
        }
    }

    /// It was woken to share the work, and has done a piece of it, perhaps.
    #[cold]
    fn is_on_trial(&mut self) {
        self.trial.iter_mut().for_each(Trial::ends);
        if let Some(has_paid) = self.trial.as_ref().and_then(Trial::has_paid) {
            self.trial = None;
            self.pool.leadership.gain.learns(has_paid);
        }
    }

    /// It sleeps next: if it is on trial still, it was woken in vain.
    fn ends_trial(&mut self) {
        if self.trial.take().is_some() {
            self.pool.leadership.gain.learns(false);
        }
    }

    /// The thread was asleep, perhaps.
    fn awake(&self) {
        frame::next_turn();
        self.stay.host.rise();
        self.pool.has_risen();
    }
}

/// Drives a future on a thread that gets no reactor, because the process has no descriptor left. It is woken by
/// others, or tries again when it is polled.
fn without_reactor<F: Future>(
    station: &Station,
    stay: &Staying<'_>,
    mut future: std::pin::Pin<&mut F>,
    cx: &mut Context<'_>,
) -> F::Output {
    loop {
        if stay.take_woken() {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return output;
            }
        }
        stay.clears_up();
        if !stay.is_woken() && stay.rests() {
            let _ = station.seat.park(None);
            stay.host.rise();
        }
    }
}
