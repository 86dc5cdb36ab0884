//! Loom models of the deputy's word. A promise that no deputy watches shows as a deadlock: the thread that
//! made it waits for a look.

use super::*;
use crate::sync::models::{Latch, model};
use crate::sync::{Arc, AtomicBool, AtomicUsize};
use loom::sync::Notify;
use loom::thread;

/// A deputy that only looks, with a bell for its switch.
struct Office {
    duty: Duty,
    bell: Notify,
    /// Promises that no deputy has seen yet. Accessed with Relaxed: the fences alone make them visible.
    open: AtomicUsize,
    /// Starting one fails this many times.
    failures: AtomicUsize,
    /// The deputy dozes with its switch set.
    lingers: bool,
    seen: std::sync::Arc<Latch>,
}

/// Makes a promise, which is kept when a deputy sees it. Returns false if no deputy could be started.
fn promise(office: &Arc<Office>) -> bool {
    office.open.fetch_add(1, Ordering::Relaxed);
    match office.duty.call() {
        Call::Nothing => true,
        Call::Arm => {
            office.bell.notify();
            true
        }
        Call::Start => office.duty.start(|| office.spawn(office)).is_ok(),
    }
}

impl Office {
    fn new(failures: usize) -> Arc<Self> {
        Self::with(failures, false)
    }

    fn with(failures: usize, lingers: bool) -> Arc<Self> {
        Arc::new(Self {
            lingers,
            duty: Duty::new(),
            bell: Notify::new(),
            open: AtomicUsize::new(0),
            failures: AtomicUsize::new(failures),
            seen: Latch::new(),
        })
    }

    fn spawn(&self, itself: &Arc<Self>) -> Result<(), ()> {
        if self.failures.load(Ordering::Relaxed) > 0 {
            self.failures.fetch_sub(1, Ordering::Relaxed);
            return Err(());
        }
        let office = itself.clone();
        thread::spawn(move || office.serve());
        Ok(())
    }

    /// Looks, and dozes when there is nothing to see, until the model ends.
    fn serve(&self) {
        loop {
            let orders = self.duty.rise();
            if self.open.swap(0, Ordering::Relaxed) > 0 {
                self.seen.open();
            }
            if orders.is_none() {
                return;
            }
            let is_quiet = || self.open.load(Ordering::Relaxed) == 0;
            let sleep = |called: &dyn Fn() -> bool| {
                if !called() {
                    self.bell.wait();
                }
            };
            self.duty.doze(self.lingers, is_quiet, sleep);
        }
    }

    /// Waits until a deputy has seen all promises, and ends it.
    fn close(&self) {
        while self.open.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
        self.duty.end();
        self.bell.notify();
    }
}

/// A promise beside a deputy that starts or dozes is seen.
#[test]
fn lf5_a_promise_beside_a_deputy_that_dozes_is_seen() {
    model(|| {
        let office = Office::new(0);
        assert!(promise(&office));
        office.seen.wait();
        assert!(promise(&office));
        office.close();
    });
}

/// A promise beside a deputy that lingers is seen. Such a sleep would end by itself, but no
/// promise may rely on that.
#[test]
fn lf5_a_promise_beside_a_deputy_that_lingers_is_seen() {
    model(|| {
        let office = Office::with(0, true);
        assert!(promise(&office));
        office.seen.wait();
        assert!(promise(&office));
        office.close();
    });
}

/// A thread asks for help beside a deputy that cannot be started.
#[test]
fn lf5_a_request_for_help_beside_a_start_that_fails_keeps_no_thread_from_the_next_start() {
    model(|| {
        let office = Office::new(1);
        let other = {
            let office = office.clone();
            thread::spawn(move || office.duty.ask_for_help())
        };
        let first = promise(&office);
        assert!(first || promise(&office), "it is tried again");
        other.join().unwrap();
        office.close();
    });
}

/// Two promises at once: one of the two threads starts the deputy, and the other one may rely on it.
#[test]
fn lf5_two_promises_at_once_are_both_seen() {
    model(|| {
        let office = Office::new(0);
        let other = {
            let office = office.clone();
            thread::spawn(move || assert!(promise(&office)))
        };
        assert!(promise(&office));
        other.join().unwrap();
        office.close();
    });
}

/// The thread cannot be started: each caller that needs it gets the error, and no caller that came
/// meanwhile relies on it.
#[test]
fn lf5_a_start_that_fails_leaves_no_thread_that_relies_on_it() {
    model(|| {
        let office = Office::new(1);
        let other = {
            let office = office.clone();
            thread::spawn(move || promise(&office))
        };
        let here = promise(&office);
        let there = other.join().unwrap();
        assert!(here || there, "the second one tries again");
        office.close();
    });
}

/// A deputy that was called by threads that are awake, while its own thread sleeps. No thread of this model
/// runs for ever: what the deputy does when its switch fires is one step, and the conditions are checked
/// after all steps.
struct Watch {
    duty: Duty,
    /// Whether the switch is set. The lock stands for the kernel's.
    set: Mutex<bool>,
    /// Threads that are awake, a bit for each. Accessed with Relaxed: the fences alone make them visible.
    awake: AtomicUsize,
    /// The deputy's thread waits for the switch alone, and not for a call: it lingers, or has not dozed.
    waits_for_switch: AtomicBool,
}

impl Watch {
    fn arm(&self) {
        *sync::lock(&self.set) = true;
    }

    fn is_quiet(&self) -> bool {
        self.awake.load(Ordering::Relaxed) == 0
    }

    /// Does what a call, or a stand-down, says is left to do.
    fn obey(&self, call: Call) {
        assert_ne!(call, Call::Start, "there is one");
        if call == Call::Arm {
            self.arm();
        }
    }

    fn wake_up(&self, me: usize) {
        self.awake.fetch_or(me, Ordering::Relaxed);
        self.obey(self.duty.call());
    }

    fn go_to_sleep(&self, me: usize) {
        self.awake.fetch_and(!me, Ordering::Relaxed);
        self.obey(self.duty.stand_down(|| self.is_quiet(), || *sync::lock(&self.set) = false));
    }

    /// Fires the switch, if it is set: the deputy looks, and sleeps again, or `lingers`.
    fn fire(&self, lingers: bool) {
        if !std::mem::take(&mut *sync::lock(&self.set)) {
            return;
        }
        let _ = self.duty.rise();
        let sleep = |called: &dyn Fn() -> bool| {
            *sync::lock(&self.set) = lingers;
            if called() {
                self.arm();
            }
        };
        let dozed = self.is_quiet() && self.duty.doze(lingers, || self.is_quiet(), sleep);
        self.waits_for_switch.store(lingers || !dozed, Ordering::Relaxed);
        if !dozed {
            self.arm();
        }
    }
}

/// Runs a thread 1 that is awake and goes to sleep, beside the steps of another thread.
fn stand_down_beside(other: fn(&Watch)) {
    beside(None, |watch| watch.go_to_sleep(1), other);
}

/// Runs both, and checks that a look is due if a thread is awake, and that the switch is set if the
/// deputy's thread waits for it alone. Explores so many preemptions, or all.
fn beside(preemptions: Option<usize>, one: fn(&Watch), other: fn(&Watch)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(move || {
        let duty = Duty::new();
        duty.word.store(CALLED, Ordering::Relaxed);
        let (set, awake) = (Mutex::new(true), AtomicUsize::new(1));
        let watch = Arc::new(Watch { duty, set, awake, waits_for_switch: AtomicBool::new(false) });
        let thread = thread::spawn({
            let watch = watch.clone();
            move || one(&watch)
        });
        other(&watch);
        thread.join().unwrap();
        let word = watch.duty.word.load(Ordering::Relaxed);
        let is_set = *sync::lock(&watch.set);
        assert!(watch.is_quiet() || word & ON_DUTY != 0 && is_set, "no look is due: {word}, {is_set}");
        let waits = watch.waits_for_switch.load(Ordering::Relaxed);
        assert!(!waits || is_set, "it waits for ever: {word}");
    });
}

/// A thread wakes up, and blocks. Fails if `stand_down` has no fence, does not look again after it, or does
/// not read the word again after it has disarmed the switch.
#[test]
fn lf5_a_thread_that_blocks_beside_a_stand_down_is_seen() {
    stand_down_beside(|watch| watch.wake_up(2));
}

/// The thread that blocks woke up and slept before, and stood the deputy down as well: so the word changes
/// to and fro. Fails if a thread that takes the word back does not arm the switch.
#[test]
fn lf5_a_thread_that_blocks_beside_a_stand_down_after_another_one_is_seen() {
    stand_down_beside(|watch| {
        watch.wake_up(2);
        watch.go_to_sleep(2);
        watch.wake_up(2);
    });
}

/// The deputy looks, sees that the second thread is awake, and will look again. Fails if the switch is
/// armed anew only for a thread that called.
#[test]
fn lf5_the_second_look_is_not_stood_down() {
    stand_down_beside(|watch| {
        watch.wake_up(2);
        watch.fire(false);
    });
}

/// The deputy looks before the second thread is awake.
#[test]
fn lf5_a_thread_that_blocks_after_a_look_beside_a_stand_down_is_seen() {
    stand_down_beside(|watch| {
        watch.fire(false);
        watch.wake_up(2);
    });
}

/// The deputy lingers. Fails if it writes `DOZING` then.
#[test]
fn lf5_a_deputy_that_lingers_is_not_stood_down() {
    stand_down_beside(|watch| watch.fire(true));
}

/// A deputy that lingers is called. Fails if that makes it `CALLED`.
#[test]
fn lf5_a_deputy_that_lingers_is_not_stood_down_after_a_call() {
    stand_down_beside(|watch| {
        watch.fire(true);
        watch.wake_up(2);
        watch.go_to_sleep(2);
    });
}

/// The deputy looks between two sleeps of a thread, and does not doze because the thread wakes up: so the
/// deputy is awake, and looks once more. Fails if `doze` leaves the word as it is.
#[test]
fn lf5_a_deputy_that_does_not_doze_is_not_stood_down() {
    let twice = |watch: &Watch| {
        watch.go_to_sleep(1);
        watch.wake_up(1);
        watch.go_to_sleep(1);
    };
    beside(Some(3), twice, |watch| watch.fire(false));
}
