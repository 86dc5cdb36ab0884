//! Loom models of the sleepers. A task that nobody comes for shows as a deadlock.

use super::*;
use crate::sync::models::{Latch, model, park, waker};
use loom::thread;

/// An executor, reduced to the number of tasks in two queues: two, so that taking a task from one says nothing about
/// the other. All of it is relaxed: what is seen of it is due to the fences.
struct Executor {
    sleepers: Sleepers,
    queues: [AtomicUsize; 2],
}

impl Executor {
    fn new() -> Arc<Self> {
        Arc::new(Self { sleepers: Sleepers::new(), queues: [AtomicUsize::new(0), AtomicUsize::new(0)] })
    }

    fn push(&self, queue: usize) {
        self.queues[queue].fetch_add(1, Ordering::Relaxed);
        self.sleepers.notify();
    }

    fn has_tasks(&self) -> bool {
        self.queues.iter().any(|queue| queue.load(Ordering::Relaxed) > 0)
    }

    fn take(&self) -> bool {
        self.queues.iter().any(|queue| {
            queue.load(Ordering::Relaxed) > 0
                && queue.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
        })
    }

    fn join(&self) -> Arc<Sleeper> {
        let sleeper = Arc::new(Sleeper::new(true));
        sleeper.set_waker(&waker(), true);
        self.sleepers.join(sleeper.clone());
        sleeper
    }

    /// Takes a task, sleeping until there is one; and lets somebody else have the next.
    fn take_or_sleep(&self, sleeper: &Arc<Sleeper>) {
        loop {
            if self.take() {
                if self.has_tasks() {
                    self.sleepers.notify();
                }
                return;
            }
            self.sleepers.rest(sleeper);
            if !self.has_tasks() {
                park();
            }
            let _ = self.sleepers.rise(sleeper);
        }
    }

    fn assert_nothing_left(&self) {
        assert!(!self.has_tasks());
        assert!(!self.sleepers.on_the_way.load(Ordering::Relaxed), "somebody is on the way for ever");
        assert_eq!(self.sleepers.idle.load(Ordering::Relaxed), 0);
        assert!(sync::lock(&self.sleepers.all).is_empty());
    }
}

/// N2: the task becomes visible before, while, or after the only runner goes to sleep.
#[test]
fn n2_a_task_beside_a_runner_that_goes_to_sleep_is_not_lost() {
    model(|| {
        let executor = Executor::new();
        let pusher = {
            let executor = executor.clone();
            thread::spawn(move || executor.push(0))
        };
        let sleeper = executor.join();
        executor.take_or_sleep(&sleeper);
        pusher.join().unwrap();
        executor.sleepers.leave(&sleeper);
        executor.assert_nothing_left();
    });
}

/// N2, L8: two tasks from two threads, of which one may rely on the other's look at the sleepers.
#[test]
fn l8_two_tasks_at_once_for_one_sleeper_are_both_taken() {
    model(|| {
        let executor = Executor::new();
        let pushers = [0, 1].map(|queue| {
            let executor = executor.clone();
            thread::spawn(move || executor.push(queue))
        });
        let sleeper = executor.join();
        executor.take_or_sleep(&sleeper);
        executor.take_or_sleep(&sleeper);
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
        executor.sleepers.leave(&sleeper);
        executor.assert_nothing_left();
    });
}

/// L8: each runner takes one task and is then stuck in it, so the one that was woken has to wake the other.
#[test]
fn l8_the_sleeper_on_its_way_wakes_the_next_for_what_is_left() {
    model(|| {
        let executor = Executor::new();
        let taken = Latch::new();
        let other = {
            let (executor, taken) = (executor.clone(), taken.clone());
            thread::spawn(move || {
                let sleeper = executor.join();
                executor.take_or_sleep(&sleeper);
                taken.open();
                executor.sleepers.leave(&sleeper);
            })
        };
        let pusher = {
            let executor = executor.clone();
            thread::spawn(move || (0..2).for_each(|queue| executor.push(queue)))
        };
        let sleeper = executor.join();
        executor.take_or_sleep(&sleeper);
        taken.wait();
        executor.sleepers.leave(&sleeper);
        [other, pusher].into_iter().for_each(|thread| thread.join().unwrap());
        executor.assert_nothing_left();
    });
}

/// L6, L8: the sleeper that was notified is dropped before it notices.
#[test]
fn l6_a_notified_sleeper_that_leaves_has_another_one_woken() {
    model(|| {
        let executor = Executor::new();
        let leaver = {
            let executor = executor.clone();
            thread::spawn(move || {
                let sleeper = executor.join();
                executor.sleepers.rest(&sleeper);
                executor.sleepers.leave(&sleeper);
            })
        };
        let pusher = {
            let executor = executor.clone();
            thread::spawn(move || executor.push(0))
        };
        let sleeper = executor.join();
        executor.take_or_sleep(&sleeper);
        [leaver, pusher].into_iter().for_each(|thread| thread.join().unwrap());
        executor.sleepers.leave(&sleeper);
        executor.assert_nothing_left();
    });
}
