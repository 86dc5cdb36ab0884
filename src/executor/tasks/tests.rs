//! Unit tests of the tasks of an executor.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::Wake;
use std::thread;

use super::*;
use crate::waking::WakeCounter;

fn entries(tasks: &Tasks) -> usize {
    tasks.shards.iter().map(|shard| sync::lock(&shard.list).entries.len()).sum()
}

fn enter_and_wait(tasks: &Tasks, waker: &Waker) -> Ticket {
    assert_eq!(tasks.enter(), Ticket::COUNTED);
    tasks.list(waker, Location::caller())
}

#[test]
fn tasks_are_counted_from_their_spawn_to_their_end() {
    let tasks = Tasks::new();
    assert_eq!(tasks.count(), 0);
    let first = tasks.enter();
    let second = enter_and_wait(&tasks, Waker::noop());
    assert_eq!(tasks.count(), 2);
    tasks.leave(first);
    assert_eq!(tasks.count(), 1);
    tasks.leave(Ticket::NONE);
    assert_eq!(tasks.count(), 1, "the end of a task that is not counted is not counted");
    tasks.leave(second);
    assert_eq!(tasks.count(), 0);
}

#[test]
fn a_task_that_never_waits_takes_no_entry() {
    let tasks = Tasks::new();
    for _ in 0..1_000 {
        let ticket = tasks.enter();
        tasks.leave(ticket);
    }
    assert_eq!((tasks.count(), entries(&tasks)), (0, 0));
}

/// There are as many entries as tasks wait at the same time: entries of tasks that left are used again.
#[test]
fn entries_are_used_again() {
    let tasks = Tasks::new();
    let (bell, waker) = WakeCounter::new();
    for round in 0..100 {
        let tickets: Vec<_> = (0..10).map(|_| enter_and_wait(&tasks, &waker)).collect();
        let mut distinct = tickets.clone();
        distinct.sort_unstable_by_key(|ticket| ticket.0);
        distinct.dedup();
        assert_eq!(distinct.len(), 10);
        assert_eq!(Arc::strong_count(&bell), 12);
        // Another order each time.
        let (late, early) = tickets.split_at(round % 10);
        early.iter().chain(late).for_each(|ticket| tasks.leave(*ticket));
    }
    assert_eq!((tasks.count(), entries(&tasks)), (0, 10));
    assert_eq!(Arc::strong_count(&bell), 2, "no waker is left behind");
}

/// Fails if the list of tasks keeps the size that it had at a peak.
#[test]
fn after_a_peak_of_tasks_the_memory_is_freed() {
    let tasks = Tasks::new();
    let tickets: Vec<_> = (0..10_000).map(|_| enter_and_wait(&tasks, Waker::noop())).collect();
    assert_eq!(entries(&tasks), 10_000);
    tickets.into_iter().for_each(|ticket| tasks.leave(ticket));
    assert!(entries(&tasks) < 100, "{}", entries(&tasks));
}

/// Some threads spawn tasks that end on others. A concurrent count is never below the number of unfinished
/// tasks.
#[test]
fn a_count_beside_spawns_and_ends_is_never_too_low() {
    const EACH: usize = if cfg!(miri) { 50 } else { 20_000 };
    let tasks = &Tasks::new();
    let kept = [tasks.enter(), enter_and_wait(tasks, Waker::noop())];
    let over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let working: Vec<_> = (0..3)
            .map(|_| {
                let (give, take) = std::sync::mpsc::channel();
                let spawning = scope.spawn(move || {
                    for number in 0..EACH {
                        let ticket = tasks.enter();
                        let waits = number % 3 == 0;
                        give.send(if waits { tasks.list(Waker::noop(), Location::caller()) } else { ticket })
                            .unwrap();
                    }
                });
                let ending = scope.spawn(move || take.into_iter().for_each(|ticket| tasks.leave(ticket)));
                [spawning, ending]
            })
            .collect();
        scope.spawn(move || {
            while !over.load(Relaxed) {
                let count = tasks.count();
                assert!((2..=2 + 3 * EACH).contains(&count), "{count} of two and more");
                thread::yield_now();
            }
        });
        working.into_iter().flatten().for_each(|thread| thread.join().unwrap());
        over.store(true, Relaxed);
    });
    assert_eq!(tasks.count(), 2);
    kept.into_iter().for_each(|ticket| tasks.leave(ticket));
    assert_eq!(tasks.count(), 0);
}

#[test]
fn all_listed_tasks_are_woken_and_later_ones_at_once() {
    let tasks = Tasks::new();
    let bells = [(); 3].map(|()| WakeCounter::new());
    let [before, left] = [0, 1].map(|number| enter_and_wait(&tasks, &bells[number].1));
    tasks.leave(left);
    tasks.wake_all();
    assert_eq!(bells.each_ref().map(|(bell, _)| bell.times()), [1, 0, 0]);
    let after = enter_and_wait(&tasks, &bells[2].1);
    assert_eq!(bells.each_ref().map(|(bell, _)| bell.times()), [1, 0, 1]);
    tasks.wake_all();
    assert_eq!(bells.each_ref().map(|(bell, _)| bell.times()), [2, 0, 2]);
    [before, after].into_iter().for_each(|ticket| tasks.leave(ticket));
}

/// The tasks that stay are woken each time, while others leave and come.
#[test]
fn all_are_woken_while_others_leave() {
    const ROUNDS: usize = if cfg!(miri) { 5 } else { 200 };
    let tasks = &Tasks::new();
    let (staying, waker) = WakeCounter::new();
    let stay: Vec<_> = (0..10).map(|_| enter_and_wait(tasks, &waker)).collect();
    let over = &AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(move || {
                let (bell, waker) = WakeCounter::new();
                while !over.load(Relaxed) {
                    let tickets = [(); 5].map(|()| enter_and_wait(tasks, &waker));
                    tickets.into_iter().for_each(|ticket| tasks.leave(ticket));
                    thread::yield_now();
                }
                drop(bell);
            });
        }
        (0..ROUNDS).for_each(|_| tasks.wake_all());
        over.store(true, Relaxed);
    });
    assert_eq!(staying.times(), 10 * ROUNDS);
    assert_eq!(tasks.count(), 10);
    stay.into_iter().for_each(|ticket| tasks.leave(ticket));
    drop(waker);
    assert_eq!(Arc::strong_count(&staying), 1, "no waker is left behind");
}

/// LF3: a waker that uses the list when it is called or dropped finds no lock held.
#[test]
fn lf3_no_lock_is_held_while_a_waker_is_called_or_dropped() {
    struct Comes(Arc<Tasks>);
    impl Wake for Comes {
        fn wake(self: Arc<Self>) {
            assert!(self.0.shards.iter().all(|shard| shard.list.try_lock().is_ok()));
        }
    }
    impl Drop for Comes {
        fn drop(&mut self) {
            assert!(self.0.shards.iter().all(|shard| shard.list.try_lock().is_ok()));
        }
    }
    let tasks = Arc::new(Tasks::new());
    let ticket = enter_and_wait(&tasks, &Arc::new(Comes(tasks.clone())).into());
    tasks.wake_all();
    tasks.leave(ticket);
    let later = enter_and_wait(&tasks, &Arc::new(Comes(tasks.clone())).into());
    tasks.leave(later);
    assert_eq!(Arc::strong_count(&tasks), 1);
}

/// Fails if the mark is counted as an end.
#[test]
fn a_watch_changes_no_count() {
    let tasks = Tasks::new();
    let tickets = [(); 3].map(|()| tasks.enter());
    tasks.watch();
    assert_eq!(tasks.count(), 3);
    tickets.into_iter().for_each(|ticket| tasks.leave(ticket));
    assert_eq!(tasks.count(), 0);
    tasks.unwatch();
    assert_eq!(tasks.count(), 0);
}

/// The waiter is unparked by the end that reaches the threshold, and by no earlier one. Fails if an end
/// ignores the mark.
#[test]
fn the_end_that_reaches_the_threshold_unparks_the_waiter() {
    const EACH: usize = if cfg!(miri) { 20 } else { 2_000 };
    let tasks = &Tasks::new();
    let stays = tasks.enter();
    thread::scope(|scope| {
        let tickets: Vec<_> = (0..3).map(|_| (0..EACH).map(|_| tasks.enter()).collect::<Vec<_>>()).collect();
        tasks.set_threshold(1);
        tasks.watch();
        for mine in tickets {
            scope.spawn(move || mine.into_iter().for_each(|ticket| tasks.leave(ticket)));
        }
        let mut wakes = 0;
        while tasks.count() > 1 {
            thread::park_timeout(std::time::Duration::from_secs(if cfg!(miri) { 600 } else { 20 }));
            wakes += 1;
        }
        tasks.unwatch();
        assert!(wakes <= 4, "{wakes} wakes for one last end");
    });
    tasks.leave(stays);
}
