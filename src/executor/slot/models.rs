//! Loom models of the direct slot, with tasks of async-task in it. LF7: a task comes out exactly once.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Poll;

use super::*;
use crate::sync::models::model;
use crate::sync::{Arc, ProtocolCell};
use loom::thread;

/// What a task touches when it is polled: loom sees whether the slot handed it over in order.
struct Probe {
    polls: ProtocolCell<usize>,
    /// Polls that were begun, for all to read.
    count: AtomicUsize,
}

// SAFETY: only the poll of the one task touches the cell; loom checks that this is so.
unsafe impl Sync for Probe {}

impl Probe {
    fn new() -> std::sync::Arc<Self> {
        std::sync::Arc::new(Self { polls: ProtocolCell::new(0), count: AtomicUsize::new(0) })
    }

    fn touch(&self) {
        // SAFETY: as for `Sync`.
        unsafe { self.polls.with_mut(|polls| *polls += 1) };
        self.count.fetch_add(1, Relaxed);
    }

    fn count(&self) -> usize {
        self.count.load(Relaxed)
    }
}

/// A scheduled task that is done after `yields` polls and one.
fn task(
    probe: &std::sync::Arc<Probe>,
    mut yields: usize,
    schedule: impl Fn(Runnable) + Send + Sync + 'static,
) -> Runnable {
    let probe = probe.clone();
    let future = poll_fn(move |cx| {
        probe.touch();
        if yields == 0 {
            return Poll::Ready(());
        }
        yields -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    });
    let (runnable, task) = async_task::spawn(future, schedule);
    task.detach();
    runnable
}

fn never_again(_: Runnable) {
    unreachable!("the task does not wake itself");
}

fn run_if_any(task: Option<Runnable>) -> usize {
    task.map(Runnable::run).iter().count()
}

/// LF7, B8: the owner and two who found it stuck.
#[test]
fn b8_of_the_owner_and_two_thieves_one_gets_the_task() {
    model(|| {
        let slot = Arc::new(Slot::new());
        let probe = Probe::new();
        let thieves = [(); 2].map(|()| {
            let slot = slot.clone();
            thread::spawn(move || run_if_any(slot.take()))
        });
        let task = task(&probe, 0, never_again);
        // What the thread did before is seen by whoever polls the task.
        probe.touch();
        assert!(slot.put(task).is_ok());
        let mut runs = run_if_any(slot.take());
        runs += thieves.into_iter().map(|thief| thief.join().unwrap()).sum::<usize>();
        assert_eq!((runs, probe.count()), (1, 2));
        assert!(slot.is_empty());
    });
}

/// LF7: the task leaves, runs and is back at the same address while a thief is between its look and its take.
#[test]
fn l10_a_task_that_comes_back_to_the_slot_is_run_once_each_time() {
    model(|| {
        let slot = Arc::new(Slot::new());
        let probe = Probe::new();
        let thief = {
            let slot = slot.clone();
            thread::spawn(move || run_if_any(slot.take()))
        };
        let back = SendSlot(slot.clone());
        assert!(slot.put(task(&probe, 2, move |task| assert!(back.get().put(task).is_ok()))).is_ok());
        let mut runs = run_if_any(slot.take());
        runs += run_if_any(slot.take());
        runs += thief.join().unwrap();
        while !slot.is_empty() {
            runs += run_if_any(slot.take());
        }
        assert_eq!((runs, probe.count()), (3, 3));
    });
}

/// loom's `Arc` does not say that it can be sent.
struct SendSlot(Arc<Slot>);

impl SendSlot {
    fn get(&self) -> &Slot {
        &self.0
    }
}

// SAFETY: a slot may be used by all threads of a model.
unsafe impl Send for SendSlot {}
// SAFETY: as above.
unsafe impl Sync for SendSlot {}

/// LF7: two tasks for one slot: one gets in, the other one comes back.
#[test]
fn lf7_of_two_tasks_put_at_once_one_is_given_back() {
    model(|| {
        let slot = Arc::new(Slot::new());
        let probes = [(); 2].map(|()| Probe::new());
        let other = {
            let (slot, probe) = (slot.clone(), probes[1].clone());
            thread::spawn(move || run_if_any(slot.put(task(&probe, 0, never_again)).err()))
        };
        let mut runs = run_if_any(slot.put(task(&probes[0], 0, never_again)).err());
        runs += other.join().unwrap();
        assert_eq!(runs, 1);
        assert_eq!(run_if_any(slot.take()), 1);
        assert!(probes.iter().all(|probe| probe.count() == 1));
    });
}

/// P8: a waker fires while the runner is being dropped. Either the closing thread gets the task, or the waker gets it
/// back; and no thief gets it as well.
#[test]
fn p8_a_wake_beside_the_end_of_the_runner_leaves_the_task_with_one_of_them() {
    model(|| {
        let slot = Arc::new(Slot::new());
        let probe = Probe::new();
        let waker = {
            let (slot, probe) = (slot.clone(), probe.clone());
            thread::spawn(move || {
                let task = task(&probe, 0, never_again);
                probe.touch();
                run_if_any(slot.put(task).err())
            })
        };
        let thief = {
            let slot = slot.clone();
            thread::spawn(move || run_if_any(slot.take()))
        };
        let mut runs = run_if_any(slot.close());
        runs += waker.join().unwrap() + thief.join().unwrap();
        assert_eq!((runs, probe.count()), (1, 2));
        // Closed for good, whoever else was at it.
        let late = Probe::new();
        assert_eq!(run_if_any(slot.put(task(&late, 0, never_again)).err()), 1);
        assert!(slot.take().is_none() && slot.close().is_none());
    });
}
