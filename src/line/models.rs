//! Loom models of the line. A reason for which no sleeper is called shows as a deadlock.

use super::*;
use crate::sync::models::{Latch, Thread, model, park};
use loom::thread;

/// Threads that wait for reasons of two kinds. There are two kinds so that taking a reason of the first says
/// nothing about the second. All accesses to the reasons are relaxed: only the line makes them visible.
struct Users {
    line: Line<Thread>,
    reasons: [AtomicUsize; 2],
}

impl Users {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            line: Line::new(WakeOrder::default()),
            reasons: [(); 2].map(|()| AtomicUsize::new(0)),
        })
    }

    /// Calls a sleeper of any rank.
    fn call(&self) {
        self.call_from(Rank::Relief);
    }

    fn call_from(&self, reach: Rank) {
        if let Called::Wake(sleeper) = self.line.call(reach) {
            sleeper.unpark();
        }
    }

    fn give(&self, kind: usize) {
        self.reasons[kind].fetch_add(1, Ordering::Relaxed);
        self.call();
    }

    fn has_reason(&self) -> bool {
        self.reasons.iter().any(|reason| reason.load(Ordering::Relaxed) > 0)
    }

    fn take(&self) -> bool {
        let take = |reason: &AtomicUsize| {
            reason.load(Ordering::Relaxed) > 0
                && reason.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
        };
        self.reasons.iter().any(take)
    }

    /// Takes one reason, sleeping until there is one. If a reason is left, calls a sleeper for it.
    fn take_or_sleep(&self, rank: Rank) {
        let me = me();
        while !self.take() {
            self.line.enter(&me, rank);
            if !self.has_reason() {
                park();
            }
            let _ = self.line.leave(&me);
        }
        if self.has_reason() {
            self.call();
        }
    }

    /// Enters on behalf of another thread, which does not look for reasons.
    fn enter_asleep(&self, rank: Rank) -> Arc<Thread> {
        let sleeper = me();
        self.line.enter(&sleeper, rank);
        sleeper
    }

    fn assert_nothing_left(&self) {
        assert!(!self.has_reason());
        assert!(!self.line.has_called(), "a called sleeper is on the way for ever");
        assert!(self.line.is_empty());
        assert!(sync::lock(&self.line.waiting).is_empty());
    }
}

fn me() -> Arc<Thread> {
    Arc::new(crate::sync::models::current())
}

/// Runs `body` on a thread of its own.
fn spawn(users: &Arc<Users>, body: impl FnOnce(&Users) + 'static) -> thread::JoinHandle<()> {
    let users = users.clone();
    thread::spawn(move || body(&users))
}

/// The reason becomes visible before, while, or after the only thread that waits for it enters.
#[test]
fn a_reason_beside_a_sleeper_that_enters_is_not_lost() {
    model(|| {
        let users = Users::new();
        let giver = spawn(&users, |users| users.give(0));
        users.take_or_sleep(Rank::Host);
        giver.join().unwrap();
        users.assert_nothing_left();
    });
}

/// Two threads give a reason each, and one of them may rely on the other's call.
#[test]
fn two_reasons_at_once_for_one_are_both_taken() {
    model(|| {
        let users = Users::new();
        let givers = [0, 1].map(|kind| spawn(&users, move |users| users.give(kind)));
        (0..2).for_each(|_| users.take_or_sleep(Rank::Host));
        givers.into_iter().for_each(|giver| giver.join().unwrap());
        users.assert_nothing_left();
    });
}

/// Each thread takes one reason and does not return, so the called thread has to call the other.
#[test]
fn a_called_sleeper_calls_the_next_for_the_reasons_left() {
    model(|| {
        let users = Users::new();
        let others = [(); 2].map(|()| spawn(&users, |users| users.take_or_sleep(Rank::Host)));
        (0..2).for_each(|kind| users.give(kind));
        others.into_iter().for_each(|other| other.join().unwrap());
        users.assert_nothing_left();
    });
}

/// LF4: of two calls at once, one wakes a sleeper, and the other learns that a sleeper is on the way.
#[test]
fn lf4_two_calls_at_once_wake_one_sleeper() {
    model(|| {
        let users = Users::new();
        let asleep = [(); 2].map(|()| users.enter_asleep(Rank::Host));
        let woken = {
            let users = users.clone();
            thread::spawn(move || matches!(users.line.call(Rank::Relief), Called::Wake(_)))
        };
        let woken_here = match users.line.call(Rank::Relief) {
            Called::Wake(_) => true,
            Called::OnTheWay => false,
            Called::NoSleeper => unreachable!("two wait"),
        };
        assert!(woken_here ^ woken.join().unwrap());
        assert!(users.line.has_called());
        assert_eq!(asleep.iter().filter(|sleeper| users.line.leave(sleeper)).count(), 1);
        users.assert_nothing_left();
    });
}

/// A call for hosts that finds only a guest does not hide a host that enters after it.
#[test]
fn a_call_that_finds_no_sleeper_does_not_hide_the_next_to_enter() {
    model(|| {
        let users = Users::new();
        let guest = users.enter_asleep(Rank::Guest);
        let host = spawn(&users, |users| users.take_or_sleep(Rank::Host));
        let in_vain = spawn(&users, |users| users.call_from(Rank::Host));
        users.reasons[0].fetch_add(1, Ordering::Relaxed);
        users.call_from(Rank::Host);
        [host, in_vain].into_iter().for_each(|thread| thread.join().unwrap());
        assert!(!users.line.leave(&guest));
        users.assert_nothing_left();
    });
}

/// A thread leaves for good, and is called before, while, or after it does. If it was called, it
/// calls the next.
#[test]
fn a_call_to_a_sleeper_that_leaves_is_passed_on() {
    model(|| {
        let users = Users::new();
        let leaver = spawn(&users, |users| {
            let me = users.enter_asleep(Rank::Host);
            if users.line.leave(&me) && users.has_reason() {
                users.call();
            }
        });
        let other = spawn(&users, |users| users.take_or_sleep(Rank::Host));
        users.give(0);
        [leaver, other].into_iter().for_each(|thread| thread.join().unwrap());
        users.assert_nothing_left();
    });
}

/// The called sleeper does not leave until the reason is taken, so the deputy calls another one. Both are on
/// the way then, and the flag is clear once both have left.
#[test]
fn another_sleeper_is_called_if_the_first_does_not_run() {
    model(|| {
        let users = Users::new();
        let taken = Latch::new();
        let stuck = users.enter_asleep(Rank::Host);
        users.give(0);
        let comes_late = {
            let taken = taken.clone();
            spawn(&users, move |users| {
                taken.wait();
                assert!(users.line.leave(&stuck));
            })
        };
        let other = spawn(&users, move |users| {
            let me = me();
            let sleep = || {
                users.line.enter(&me, Rank::Host);
                park();
                users.line.leave(&me)
            };
            // The thread looks for no reason before it is called.
            while !sleep() {}
            assert!(users.take());
            taken.open();
        });
        // As the deputy does once a tick.
        loop {
            match users.line.call_another(Rank::Relief) {
                Called::Wake(other) => break other.unpark(),
                Called::OnTheWay => unreachable!("`call_another` ignores the flag"),
                Called::NoSleeper => thread::yield_now(),
            }
        }
        [comes_late, other].into_iter().for_each(|thread| thread.join().unwrap());
        users.assert_nothing_left();
    });
}
