//! Loom models of the direct slot, with tasks of async-task in it. LF7: a task comes out exactly once.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Poll;

use super::*;
use crate::sync::models::model;
use crate::sync::{Arc, ProtocolCell};
use loom::thread;

/// Memory that a task touches when it is polled. Loom reports a race if the slot does not order the handover.
struct Probe {
    polls: ProtocolCell<usize>,
    /// Polls that were begun, readable by all threads.
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

/// Returns a scheduled task that wakes itself `yields` times before it is done.
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

/// LF7: the owner and two threads that found it stuck.
#[test]
fn of_the_owner_and_two_thieves_one_gets_the_task() {
    model(|| {
        let slot = Arc::new(Slot::new());
        let probe = Probe::new();
        let thieves = [(); 2].map(|()| {
            let slot = slot.clone();
            thread::spawn(move || run_if_any(slot.take()))
        });
        let task = task(&probe, 0, never_again);
        // The thread that polls the task sees what this thread did before.
        probe.touch();
        assert!(slot.put(task).is_ok());
        let mut runs = run_if_any(slot.take());
        runs += thieves.into_iter().map(|thief| thief.join().unwrap()).sum::<usize>();
        assert_eq!((runs, probe.count()), (1, 2));
        assert!(slot.is_empty());
    });
}

/// LF7: the task is taken, runs and comes back at the same address while a thief is between its load and its
/// exchange.
#[test]
fn a_task_that_comes_back_to_the_slot_is_run_once_each_time() {
    model(|| {
        let slot = Arc::new(Slot::new());
        let probe = Probe::new();
        // The thief has a slot of its own, where it puts the task when the task wakes itself.
        let elsewhere = Arc::new(Slot::new());
        let thief = {
            let (slot, elsewhere) = (slot.clone(), elsewhere.clone());
            thread::spawn(move || run_if_any(slot.take()) + run_if_any(elsewhere.take()))
        };
        let (mine, others, owner) =
            (SendSlot(slot.clone()), SendSlot(elsewhere.clone()), thread::current().id());
        let schedule = move |task| {
            let slot = if thread::current().id() == owner { &mine } else { &others };
            assert!(slot.get().put(task).is_ok());
        };
        assert!(slot.put(task(&probe, 1, schedule)).is_ok());
        let mut runs = run_if_any(slot.take());
        runs += run_if_any(slot.take());
        runs += thief.join().unwrap();
        for slot in [slot, elsewhere] {
            while !slot.is_empty() {
                runs += run_if_any(slot.take());
            }
        }
        assert_eq!((runs, probe.count()), (2, 2));
    });
}

/// A slot that can be sent: loom's `Arc` is not `Send`.
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

/// LF7: the owner puts a second task where a thief has just taken the first, or has not.
#[test]
fn lf7_a_task_beside_a_thief_goes_into_the_slot_or_comes_back() {
    model(|| {
        let slot = Arc::new(Slot::new());
        let probes = [(); 2].map(|()| Probe::new());
        assert!(slot.put(task(&probes[0], 0, never_again)).is_ok());
        let thief = {
            let slot = slot.clone();
            thread::spawn(move || run_if_any(slot.take()) + run_if_any(slot.take()))
        };
        let second = task(&probes[1], 0, never_again);
        probes[1].touch();
        let mut runs = run_if_any(slot.put(second).err());
        runs += thief.join().unwrap();
        runs += run_if_any(slot.take());
        assert_eq!((runs, probes[0].count(), probes[1].count()), (2, 1, 2));
        assert!(slot.is_empty());
    });
}
