//! Loom models of the deputy's word. A promise that nobody watches shows as a deadlock: whoever made it waits for a look.

use super::*;
use crate::sync::models::{Latch, model};
use crate::sync::{Arc, AtomicBool, AtomicUsize};
use loom::sync::Notify;
use loom::thread;

/// A deputy whose looks are all that it does, and whose switch is a bell.
struct Office {
    duty: Duty,
    bell: Notify,
    /// Promises that nobody has looked at yet. Relaxed: what is seen of it is due to the fences.
    open: AtomicUsize,
    /// Starting one fails this many times.
    failures: AtomicUsize,
    seen: std::sync::Arc<Latch>,
}

/// Makes a promise, which is kept when a deputy sees it. False if no deputy was to be had.
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
        Arc::new(Self {
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

    /// Looks; dozes once when there is nothing to see, and then resigns, so that a model ends.
    fn serve(&self) {
        self.duty.started();
        let mut dozed = false;
        loop {
            let orders = self.duty.rise();
            if self.open.swap(0, Ordering::Relaxed) > 0 {
                self.seen.open();
            }
            if orders.ended {
                return;
            }
            let is_open = || self.open.load(Ordering::Relaxed) > 0;
            if dozed {
                if self.duty.resign(is_open) {
                    return;
                }
            } else {
                let sleep = |called: &dyn Fn() -> bool| {
                    if !called() {
                        self.bell.wait();
                    }
                };
                dozed = self.duty.doze(false, || !is_open(), sleep);
            }
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

/// A promise beside a deputy that starts, dozes or resigns is seen.
#[test]
fn lf5_a_promise_beside_a_deputy_that_goes_is_seen() {
    model(|| {
        let office = Office::new(0);
        assert!(promise(&office));
        office.seen.wait();
        assert!(promise(&office));
        office.close();
    });
}

/// Somebody asks for a thread beside a deputy that resigns: a promise after that is seen. Fails if what was asked for stays where nobody
/// takes it.
#[test]
fn lf5_who_asks_for_help_keeps_nobody_from_starting_the_next_one() {
    model(|| {
        let office = Office::new(0);
        assert!(promise(&office));
        office.seen.wait();
        office.duty.ask_for_help();
        office.bell.notify();
        assert!(promise(&office));
        office.close();
    });
}

/// The same beside one that cannot be started.
#[test]
fn lf5_who_asks_for_help_beside_a_start_that_fails_keeps_nobody_from_the_next_one() {
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

/// Two promises at once: one of the two starts the deputy, and the other may rely on it.
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

/// The thread cannot be started: whoever needs it is told, and nobody who came meanwhile relies on it.
#[test]
fn lf5_a_start_that_fails_leaves_nobody_relying_on_it() {
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

/// A deputy that was called by those who are awake, and whose thread sleeps. Nothing runs on for ever here: what the thread
/// does when its switch fires is a step of the model, and what must hold is looked at when all steps are done.
struct Watch {
    duty: Duty,
    /// Whether the switch is set. The lock is the kernel's.
    set: Mutex<bool>,
    /// Threads that are awake, a bit for each. Relaxed: what is seen of it is due to the fences.
    awake: AtomicUsize,
    /// The thread waits for the switch, and for nobody's call: it lingers, or has not dozed.
    waits_for_switch: AtomicBool,
}

impl Watch {
    fn arm(&self) {
        *sync::lock(&self.set) = true;
    }

    fn is_quiet(&self) -> bool {
        self.awake.load(Ordering::Relaxed) == 0
    }

    /// What is done with a call, and with what is left to do after a stand-down.
    fn heeds(&self, call: Call) {
        assert_ne!(call, Call::Start, "there is one");
        if call == Call::Arm {
            self.arm();
        }
    }

    fn wakes_up(&self, me: usize) {
        self.awake.fetch_or(me, Ordering::Relaxed);
        self.heeds(self.duty.call());
    }

    fn goes_to_sleep(&self, me: usize) {
        self.awake.fetch_and(!me, Ordering::Relaxed);
        self.heeds(self.duty.stand_down(|| self.is_quiet(), || *sync::lock(&self.set) = false));
    }

    /// If the switch is set its time has come: the deputy looks, and sleeps again; it `lingers` if nothing needs it.
    fn fires(&self, lingers: bool) {
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

/// The thread 1 is awake, and goes to sleep beside what another one does.
fn stand_down_beside(other: fn(&Watch)) {
    beside(None, |watch| watch.goes_to_sleep(1), other);
}

/// After both a look is due if somebody is awake, and if the deputy's thread waits for that. With so many preemptions, or all
/// that there are.
fn beside(preemptions: Option<usize>, one: fn(&Watch), other: fn(&Watch)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(move || {
        let duty = Duty::new();
        duty.word.store(ARMED, Ordering::Relaxed);
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
        assert!(watch.is_quiet() || word & ON_DUTY != 0 && is_set, "nobody looks: {word}, {is_set}");
        let waits = watch.waits_for_switch.load(Ordering::Relaxed);
        assert!(!waits || is_set, "it waits for ever: {word}");
    });
}

/// One wakes up, and blocks. Fails if `stand_down` has no fence, does not look again after it, or does not read the word again
/// when it has disarmed the switch.
#[test]
fn lf5_who_blocks_beside_a_stand_down_is_seen() {
    stand_down_beside(|watch| watch.wakes_up(2));
}

/// He woke up and slept before, and stood the deputy down as well: so the word goes to and fro. Fails if who takes the word back
/// does not arm the switch.
#[test]
fn lf5_who_blocks_beside_a_stand_down_after_another_one_is_seen() {
    stand_down_beside(|watch| {
        watch.wakes_up(2);
        watch.goes_to_sleep(2);
        watch.wakes_up(2);
    });
}

/// The deputy looks at him, sees that he is awake, and will look again. Fails if the switch is armed anew only for who called.
#[test]
fn lf5_the_second_look_is_not_stood_down() {
    stand_down_beside(|watch| {
        watch.wakes_up(2);
        watch.fires(false);
    });
}

/// The deputy looks before he is awake.
#[test]
fn lf5_who_blocks_after_a_look_beside_a_stand_down_is_seen() {
    stand_down_beside(|watch| {
        watch.fires(false);
        watch.wakes_up(2);
    });
}

/// The deputy finds that nothing needs it. Fails if it says then that it dozes.
#[test]
fn lf5_who_lingers_is_not_stood_down() {
    stand_down_beside(|watch| watch.fires(true));
}

/// And is called then. Fails if that makes it `ARMED`.
#[test]
fn lf5_who_lingers_is_not_stood_down_after_a_call() {
    stand_down_beside(|watch| {
        watch.fires(true);
        watch.wakes_up(2);
        watch.goes_to_sleep(2);
    });
}

/// The deputy looks between two sleeps, and does not doze because the thread wakes up: then it is up, and looks once more.
/// Fails if `doze` leaves the word as it is.
#[test]
fn lf5_who_does_not_doze_is_not_stood_down() {
    let twice = |watch: &Watch| {
        watch.goes_to_sleep(1);
        watch.wakes_up(1);
        watch.goes_to_sleep(1);
    };
    beside(Some(3), twice, |watch| watch.fires(false));
}
