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

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::executor::hosting::{self, Attendance};
use crate::fork;
use crate::leadership::{Follower, Leader, Rank, Turn};
use crate::pool::{self, Deeper, Pool, Presence, Station, StationOrder as Order};
use crate::reactor::{self, Event, Watch};

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
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    block_on_in(None, future)
}

/// [`block_on`] in a pool, or in the pool whose thread this is.
pub(crate) fn block_on_in<T>(pool: Option<&Arc<Pool>>, future: impl Future<Output = T>) -> T {
    let driven = AssertUnwindSafe(|| drive(pool, Arc::new(Station::new()), future));
    match catch_unwind(driven) {
        Ok(Some(output)) => output,
        Ok(None) => unreachable!("only a thread with a linger limit is unneeded"),
        Err(panic) => match pool::explain(&*panic) {
            Some(explanation) => panic!("{explanation}"),
            None => resume_unwind(panic),
        },
    }
}

/// Drives `future` to its end; or to `None`, when nobody needs this thread and its station says that it may go.
pub(crate) fn drive<F: Future>(
    pool: Option<&Arc<Pool>>,
    station: Arc<Station>,
    future: F,
) -> Option<F::Output> {
    if let Some(pool) = pool {
        pool.assert_not_inherited();
    }
    let presence = Presence::new(&station);
    let attendance = Attendance::new(station.clone());
    let waker = Waker::from(station.clone());
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    // A future that need not wait needs no pool.
    if pool.is_none() {
        station.take_woken();
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return Some(output);
        }
    }
    let pool = match pool.cloned().map_or_else(Pool::current, Ok) {
        Ok(pool) => pool,
        Err(_) => return Some(without_reactor(&station, &attendance, future.as_mut(), &mut cx)),
    };
    let _member = pool.enter(&station, &presence);
    attendance.is_watched();
    let mut follower = pool.leadership.join(station.seat.clone(), station.rank_as(attendance.is_host()));
    loop {
        if station.take_woken() {
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return Some(output);
            }
            follower.set_rank(station.rank_as(attendance.is_host()));
        }
        match station.order() {
            None => {}
            Some(Order::Go) => return None,
            Some(Order::Help) => help(&station),
        }
        let here = Here { pool: &pool, station: &station, attendance: &attendance };
        let mut leader = match here.become_leader_or_wait(follower) {
            Turn::Lead(leader) => leader,
            Turn::Root(woken) => {
                follower = woken;
                continue;
            }
            Turn::Unneeded => return None,
        };
        let event = here.wait_for_event(&mut leader);
        follower = here.promote_new_leader(leader, &event);
        if let Some(event) = event {
            station.fires();
            pool.reactor.fire(event);
            station.fires();
        }
    }
}

/// Runs tasks of the runtime in one of whose tasks this `block_on` is nested, on top of that one, because nobody else can:
/// all its workers are stuck, and there may be no more of them. What is waited for here may be among them.
#[cold]
fn help(station: &Station) {
    let Some(pool) = station.helps() else { return };
    let Some(crew) = pool.crew() else { return };
    while !station.is_woken() && crew.has_surplus() {
        let deeper = Deeper::enter(crew.stack_size());
        // What came last is what this thread waits for, most likely; and what came first is another one that will wait.
        let Some(task) = crew.state().newest_task() else { return };
        hosting::run_beside(task);
        drop(deeper);
    }
}

/// Where this thread is.
struct Here<'a> {
    pool: &'a Arc<Pool>,
    station: &'a Station,
    attendance: &'a Attendance,
}

impl Here<'_> {
    /// Leads if it can. If the root future has work to do, it does not wait.
    #[inline]
    fn become_leader_or_wait<'l>(&self, follower: Follower<'l, Watch>) -> Turn<'l, Watch> {
        if self.pool.is_inherited() {
            fork::abort_child();
        }
        if self.station.is_woken() && !self.pool.reactor.is_needed() {
            return Turn::Root(follower);
        }
        let follower = match follower.try_lead() {
            Ok(leader) => return Turn::Lead(leader),
            Err(follower) => follower,
        };
        if self.station.is_woken() || !self.attendance.rest() {
            return Turn::Root(follower);
        }
        let turn = follower.follow(self.station.linger, || self.pool.reactor.interrupt());
        self.awake();
        turn
    }

    /// The next event of the batch, or of the poller. Returns without one when the root future was woken, or when
    /// somebody with a better claim wants to lead.
    #[inline]
    fn wait_for_event(&self, leader: &mut Leader<'_, Watch>) -> Option<Event> {
        let reactor = &self.pool.reactor;
        let next = leader.with(|watch| watch.next(reactor));
        if next.is_some() {
            return next;
        }
        leader.settle_in();
        let result = self.wait_for_batch(leader);
        leader.look_up();
        match result {
            Ok(()) => leader.with(|watch| watch.next(reactor)),
            Err(error) => panic!("the poller failed: {error}"),
        }
    }

    fn wait_for_batch(&self, leader: &mut Leader<'_, Watch>) -> io::Result<()> {
        let reactor = &self.pool.reactor;
        reactor::next_turn();
        if self.station.is_woken() {
            leader.with(|watch| watch.look(reactor))?;
            return Ok(());
        }
        if leader.with(|watch| watch.look_if_cheap(reactor))? {
            return Ok(());
        }
        if !self.attendance.rest() {
            return Ok(());
        }
        let result = self.idle(leader);
        self.attendance.rise();
        result
    }

    /// A moment without work: stays awake for a little, if that pays, then sleeps.
    fn idle(&self, leader: &mut Leader<'_, Watch>) -> io::Result<()> {
        let reactor = &self.pool.reactor;
        let displaced = leader.displaced();
        while leader.with(|watch| watch.stays_awake()) {
            if self.station.is_woken() || displaced() {
                leader.with(|watch| watch.interrupted(reactor));
                return Ok(());
            }
            if leader.with(|watch| watch.look(reactor))? {
                return Ok(());
            }
        }
        if !self.station.seat.start_watching() {
            leader.with(|watch| watch.interrupted(reactor));
            return Ok(());
        }
        let result = leader.with(|watch| watch.sleep(reactor, || self.station.is_woken() || displaced()));
        self.station.seat.stop_watching();
        self.pool.has_risen();
        result
    }

    /// Gives leadership up before any user code runs (LF2), and wakes a follower to take it if that pays.
    #[inline]
    fn promote_new_leader<'l>(
        &self,
        mut leader: Leader<'l, Watch>,
        event: &Option<Event>,
    ) -> Follower<'l, Watch> {
        let (left, pays) = leader.with(|watch| (watch.left(), self.pool.promotion_pays(watch)));
        self.attendance.events_wait(left > 0);
        if pays && event.is_some() && leader.has_follower() { leader.promote() } else { leader.vacate() }
    }

    /// The thread was asleep, perhaps.
    fn awake(&self) {
        reactor::next_turn();
        self.attendance.rise();
        self.pool.has_risen();
    }
}

/// Takes the events that nobody else takes, without waiting: the last resort of a deputy that gets no thread. False if
/// somebody leads.
pub(crate) fn take_turn(pool: &Arc<Pool>) -> bool {
    let station = Arc::new(Station::new());
    let follower = pool.leadership.join(station.seat.clone(), Rank::Relief);
    let Ok(mut leader) = follower.insist() else { return false };
    let mut events = Vec::new();
    leader.with(|watch| {
        // What somebody fetched and had no time to take comes first.
        if watch.left() == 0 {
            // An error here is one that the next regular leader meets as well.
            let _ = watch.look(&pool.reactor);
        }
        events.extend(std::iter::from_fn(|| watch.next(&pool.reactor)));
    });
    let follower = leader.vacate();
    for event in events {
        pool.visit(|| pool.reactor.fire(event));
    }
    drop(follower);
    true
}

/// Drives a future on a thread that gets no reactor, because the process has no descriptor left. It is woken by
/// others, or tries again when it is polled.
fn without_reactor<F: Future>(
    station: &Station,
    attendance: &Attendance,
    mut future: std::pin::Pin<&mut F>,
    cx: &mut Context<'_>,
) -> F::Output {
    loop {
        if station.take_woken() {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return output;
            }
        }
        if !station.is_woken() && attendance.rest() {
            let _ = station.seat.park(None);
            attendance.rise();
        }
    }
}
