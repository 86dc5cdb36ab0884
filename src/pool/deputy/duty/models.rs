//! Loom models of the deputy's word. A promise that nobody watches shows as a deadlock: whoever made it waits for a look.

use super::*;
use crate::sync::models::{Latch, model};
use crate::sync::{Arc, AtomicUsize};
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
                dozed = self.duty.doze(|| !is_open(), sleep);
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
