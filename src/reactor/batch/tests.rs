//! Tests of the announcements and the events of a leader while timers are due one after the other.
//!
//! Lateness is judged by the announcements: when the system wakes the leader is not tested. Slacks are so
//! long that a busy machine makes no difference; no test waits for their end.

#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use std::io;

use super::*;
use crate::reactor::raw::RawSource;
use crate::reactor::sys::{Events, Wants, Way};
use crate::reactor::{Alarm, Direction, WayChoice};
use crate::waking::WakeCounter;

const LONG: Duration = Duration::from_secs(100);

/// The announcements so far.
type Announced = Arc<Mutex<Vec<Option<Instant>>>>;

/// A way to wait that records the announcements.
#[derive(Debug)]
struct Watched(Box<dyn Way>, Announced);

impl Way for Watched {
    #[cfg(unix)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.0.descriptor()
    }

    unsafe fn add(&self, raw: RawSource, key: Key) -> io::Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.0.add(raw, key) }
    }

    fn delete(&self, raw: RawSource, key: Key) -> io::Result<()> {
        self.0.delete(raw, key)
    }

    fn rearm(&self, key: Key, asks: Option<(RawSource, Direction)>, wants: Wants<'_>) -> io::Result<()> {
        self.0.rearm(key, asks, wants)
    }

    fn announce(&self, deadline: Option<Instant>, now: Instant, events: &mut Events) -> io::Result<()> {
        assert!(deadline.is_none_or(|deadline| deadline > now), "there is no time to announce it");
        self.1.lock().unwrap().push(deadline);
        self.0.announce(deadline, now, events)
    }

    fn wait(&self, events: &mut Events, wait: EventWait) -> io::Result<()> {
        self.0.wait(events, wait)
    }

    fn interrupt(&self) -> io::Result<()> {
        self.0.interrupt()
    }
}

/// A reactor and its leader.
struct Scene {
    reactor: Arc<Reactor>,
    batch: Batch,
    announced: Announced,
    started: Instant,
}

/// Runs the test for each way to wait.
fn for_each_way(test: impl Fn(Scene)) {
    for way in [WayChoice::Best, WayChoice::Portable] {
        // Miri has no portable way.
        if matches!(way, WayChoice::Portable) && cfg!(miri) {
            continue;
        }
        let (mut reactor, batch) = Reactor::new(way, Duration::ZERO, Duration::ZERO).unwrap();
        let announced = Announced::default();
        reactor.way = Box::new(Watched(reactor.way, announced.clone()));
        test(Scene { reactor: Arc::new(reactor), batch, announced, started: Instant::now() });
    }
}

impl Scene {
    fn next(&mut self) -> Option<Event> {
        let share = self.reactor.shares.join();
        share.take().or_else(|| self.batch.next(&self.reactor, &share))
    }

    fn arm(&self, at: Instant) -> Alarm {
        Alarm::arm(self.reactor.clone(), at, LONG, Waker::noop()).unwrap()
    }

    /// Returns the announcements since the last call.
    fn announced(&self) -> Vec<Instant> {
        let announced = std::mem::take(&mut *self.announced.lock().unwrap());
        announced.into_iter().map(|deadline| deadline.expect("a timer is left")).collect()
    }

    /// Looks, and returns how many timers fire.
    fn fire_due(&mut self) -> usize {
        self.batch.ask_poller(&self.reactor);
        std::iter::from_fn(|| self.next()).count()
    }

    fn sleep_until_one_fires(&mut self) {
        while self.batch.left() == 0 {
            self.batch.sleep(&self.reactor, || false);
            if let Some(event) = self.next() {
                assert!(matches!(event, Event::Timer(_)) && self.batch.left() == 0);
                return;
            }
        }
    }
}

#[test]
fn a_lone_timer_is_announced_exactly_and_once() {
    for_each_way(|mut scene| {
        for seconds in [3_000, 2_000, 1_000] {
            let at = Instant::now() + Duration::from_secs(seconds);
            let alarm = scene.arm(at);
            (0..3).for_each(|_| assert_eq!(scene.fire_due(), 0));
            assert_eq!(scene.announced(), [at]);
            std::mem::forget(alarm);
        }
        let at = Instant::now() + Duration::from_millis(1);
        let _alarm = scene.arm(at);
        scene.sleep_until_one_fires();
        assert!(Instant::now() >= at, "early");
        let announced = scene.announced();
        assert!(announced == [at] || announced.is_empty(), "{announced:?} for {at:?}, or it was due at once");
        scene.reactor.close();
    });
}

/// Fails without the drop of [`Batch`].
#[test]
fn lf5_due_timers_that_the_last_leader_leaves_are_not_lost() {
    for_each_way(|mut scene| {
        let woken = Arc::<WakeCounter>::default();
        let arm = || Alarm::arm(scene.reactor.clone(), scene.started, LONG, &woken.clone().into()).unwrap();
        let _alarms = [(); 3].map(|()| arm());
        scene.batch.ask_poller(&scene.reactor);
        assert!(matches!(scene.next(), Some(Event::Timer(_))));
        drop(scene.batch);
        assert_eq!(woken.times(), 2);
    });
}

/// Staying awake would be for the timers, whose time is known. Fails without `Moment::cancel`.
#[test]
fn a_leader_that_gathers_does_not_stay_awake() {
    for_each_way(|mut scene| {
        if !scene.reactor.is_epoll {
            return;
        }
        scene.batch.spin_limit = LONG;
        // Events come singly and soon, until the leader stays awake for them.
        while !scene.batch.stays_awake() {
            scene.reactor.way.interrupt().unwrap();
            scene.batch.sleep(&scene.reactor, || false);
            assert!(scene.next().is_none());
        }
        scene.batch.interrupted(&scene.reactor);
        scene.batch.gathers = true;
        assert!(!scene.batch.stays_awake());
        scene.batch.interrupted(&scene.reactor);
    });
}

/// A leader that was interrupted in one sleep is interrupted in the next as well; and two interrupts of one
/// sleep are one. Fails if the state of the slumber or of the bell is not restored after each wait. (A
/// notification that was swallowed in between hung other runtimes, which did not look at their queues again.)
#[test]
fn each_sleep_is_rung_for_and_once() {
    for_each_way(|mut scene| {
        let reactor = scene.reactor.clone();
        // Ends a sleep that is not interrupted although it should be.
        let _late = scene.arm(scene.started + LONG);
        assert_eq!(scene.fire_due(), 0);
        for round in 1..=5 {
            let rings = || (0..2).for_each(|_| reactor.interrupt());
            scene.batch.sleep(&reactor, || {
                rings();
                false
            });
            assert_eq!(reactor.counters.interrupts.get(), round);
            assert!(scene.next().is_none(), "it slept until the timer fired");
            // The leader is awake: it looks by itself.
            rings();
            assert_eq!(reactor.counters.interrupts.get(), round);
        }
        assert_eq!(reactor.counters.sleeps.get(), 5);
    });
}

/// Due timers are less work than as many events. Fails if each counts as one: in a storm of timers the leader
/// would wake a follower at each look.
#[test]
fn a_due_timer_is_a_fraction_of_an_event() {
    for_each_way(|mut scene| {
        let alarms: Vec<_> = (0..=2 * TIMERS_PER_EVENT).map(|_| scene.arm(scene.started)).collect();
        scene.batch.ask_poller(&scene.reactor);
        for weight in [2, 1] {
            assert!(matches!(scene.next(), Some(Event::Timer(_))));
            assert_eq!(scene.batch.weight(), weight);
        }
        assert_eq!(scene.batch.left(), 2 * TIMERS_PER_EVENT - 1);
        drop(alarms);
    });
}

/// A reason that came before the announcement interrupts no sleep. So the leader has to look for reasons
/// after the announcement. Fails if it does not.
#[test]
fn a_leader_that_finds_work_after_its_announcement_does_not_sleep() {
    for_each_way(|mut scene| {
        let reactor = scene.reactor.clone();
        let _late = scene.arm(scene.started + LONG);
        assert_eq!(scene.fire_due(), 0);
        reactor.interrupt();
        scene.batch.sleep(&reactor, || true);
        assert_eq!((reactor.counters.interrupts.get(), reactor.counters.sleeps.get()), (0, 0));
        assert_eq!(scene.batch.left(), 0);
    });
}

/// Fails if the leader keeps the room for a storm of timers that is over.
#[test]
fn a_leader_that_sleeps_has_room_for_a_batch_and_no_more() {
    for_each_way(|mut scene| {
        let count = 2 * sys::BATCH + 1;
        let alarms: Vec<_> = (0..count).map(|_| scene.arm(scene.started)).collect();
        assert_eq!(scene.fire_due(), count);
        drop(alarms);
        assert!(scene.batch.due.capacity() > sys::BATCH);
        scene.batch.sleep(&scene.reactor, || true);
        assert!(scene.batch.due.capacity() <= sys::BATCH);
    });
}
