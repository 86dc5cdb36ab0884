//! Loom models of a leader that falls asleep while other threads have reasons for it to look up. A reason
//! that it never sees shows as a deadlock.

use loom::sync::Notify;
use loom::thread;

use super::*;
use crate::sync::models::model;
use crate::sync::{Arc, AtomicUsize};

/// The state that a leader and the interrupting threads share. Only the slumber orders the accesses.
struct Scene {
    slumber: Slumber,
    reasons: AtomicUsize,
    /// Like an eventfd: a ring without a waiting thread ends the next wait.
    bell: Notify,
    rings: AtomicUsize,
}

impl Scene {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            slumber: Slumber::new(),
            reasons: AtomicUsize::new(0),
            bell: Notify::new(),
            rings: AtomicUsize::new(0),
        })
    }

    fn interrupt(&self) {
        self.reasons.fetch_add(1, Ordering::Relaxed);
        self.slumber.interrupt(|| {
            self.rings.fetch_add(1, Ordering::Relaxed);
            self.bell.notify();
        });
    }

    /// Sleeps until it has seen this many reasons. Returns how often it fell asleep.
    fn lead(&self, reasons: usize) -> usize {
        let mut naps = 0;
        while self.reasons.load(Ordering::Relaxed) < reasons {
            let announced = self.slumber.announce();
            naps += 1;
            if self.reasons.load(Ordering::Relaxed) < reasons {
                self.bell.wait();
            }
            drop(announced);
        }
        naps
    }
}

/// LF5: the reason comes before, while, or after the leader falls asleep.
#[test]
fn lf5_a_reason_beside_a_leader_that_falls_asleep_is_seen() {
    model(|| {
        let scene = Scene::new();
        let other = {
            let scene = scene.clone();
            thread::spawn(move || scene.interrupt())
        };
        scene.lead(1);
        other.join().unwrap();
    });
}

/// Two threads have a reason: the leader sees both, although the first may interrupt its sleep. No sleep is
/// rung for twice, which would cost a system call and an empty wait.
#[test]
fn lf5_two_reasons_are_seen_and_no_sleep_is_rung_for_twice() {
    model(|| {
        let scene = Scene::new();
        let others = [(); 2].map(|()| {
            let scene = scene.clone();
            thread::spawn(move || scene.interrupt())
        });
        let naps = scene.lead(2);
        others.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(scene.rings.load(Ordering::Relaxed) <= naps);
        // The leader is awake now.
        scene.slumber.interrupt(|| panic!("the leader is awake"));
    });
}
