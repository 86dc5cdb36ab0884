//! Loom models of the deputy's word. A promise that nobody watches shows as a deadlock: whoever made it waits for a look.

use super::*;
use crate::sync::models::{Latch, model};
use crate::sync::{Arc, AtomicUsize, Condvar};
use loom::sync::Notify;
use loom::thread;

/// A deputy whose looks are all that it does, and whose switch is a bell. It lingers, so that nobody stands it down.
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
                dozed = self.duty.doze(true, || !is_open(), sleep);
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

/// A deputy that is called and stood down by threads that wake up and sleep.
struct Watch {
    duty: Duty,
    /// The switch: set, it fires at the moment to which loom puts off the deputy's next step.
    set: Mutex<bool>,
    fires: Condvar,
    /// Threads that are awake, a bit for each. Relaxed: what is seen of it is due to the fences.
    awake: AtomicUsize,
    /// One of them blocks: this is opened by a look at it.
    blocked: usize,
    seen: std::sync::Arc<Latch>,
}

impl Watch {
    /// It dozes already, or was called by those who are `awake`; the thread `blocked` will block.
    fn new(awake: usize, blocked: usize) -> Arc<Self> {
        let duty = Duty::new();
        duty.word.store(if awake == 0 { DOZING } else { ARMED }, Ordering::Relaxed);
        let watch = Arc::new(Self {
            duty,
            set: Mutex::new(awake != 0),
            fires: Condvar::new(),
            awake: AtomicUsize::new(awake),
            blocked,
            seen: Latch::new(),
        });
        thread::spawn({
            let watch = watch.clone();
            move || watch.serve()
        });
        watch
    }

    fn arm(&self) {
        *sync::lock(&self.set) = true;
        self.fires.notify_one();
    }

    fn disarm(&self) {
        *sync::lock(&self.set) = false;
    }

    fn sleep(&self) {
        let mut set = sync::lock(&self.set);
        while !*set {
            set = self.fires.wait(set).unwrap();
        }
        *set = false;
    }

    fn is_quiet(&self) -> bool {
        self.awake.load(Ordering::Relaxed) == 0
    }

    fn serve(&self) {
        loop {
            self.sleep();
            loop {
                if self.duty.rise().ended {
                    return;
                }
                let awake = self.awake.load(Ordering::Relaxed);
                if awake & self.blocked != 0 {
                    self.seen.open();
                }
                if awake == 0 && self.duty.doze(false, || self.is_quiet(), |_| self.sleep()) {
                    continue;
                }
                self.arm();
                if !self.duty.is_rung() {
                    self.sleep();
                }
                thread::yield_now();
            }
        }
    }

    fn wakes_up(&self, me: usize) {
        self.awake.fetch_or(me, Ordering::Relaxed);
        if self.duty.call() == Call::Arm {
            self.arm();
        }
    }

    fn goes_to_sleep(&self, me: usize) {
        self.awake.fetch_and(!me, Ordering::Relaxed);
        if self.duty.stand_down(|| self.is_quiet(), || self.disarm()) == Call::Arm {
            self.arm();
        }
    }

    /// Wakes up and blocks until the deputy has looked.
    fn blocks(&self) {
        self.wakes_up(self.blocked);
        self.seen.wait();
        self.awake.fetch_and(!self.blocked, Ordering::Relaxed);
    }

    fn close(&self) {
        self.duty.end();
        self.arm();
    }
}

/// One wakes up and blocks while the last of the others goes to sleep.
// With two preemptions it does not fail where `stand_down` arms nothing anew; with `LOOM_MAX_PREEMPTIONS=3` it does.
#[test]
fn lf5_who_blocks_beside_one_who_stands_the_deputy_down_is_seen() {
    model(|| {
        let watch = Watch::new(1, 2);
        let other = {
            let watch = watch.clone();
            thread::spawn(move || watch.goes_to_sleep(1))
        };
        watch.blocks();
        other.join().unwrap();
        watch.close();
    });
}

/// The same, and the one who blocks woke up and slept before: so the word goes to and fro while the other one looks.
#[test]
fn lf5_who_blocks_after_two_have_stood_the_deputy_down_is_seen() {
    model(|| {
        let watch = Watch::new(1, 4);
        let other = {
            let watch = watch.clone();
            thread::spawn(move || watch.goes_to_sleep(1))
        };
        watch.wakes_up(2);
        watch.goes_to_sleep(2);
        watch.blocks();
        other.join().unwrap();
        watch.close();
    });
}
