//! Loom models of the tasks of an executor.

use super::*;
use crate::sync::Arc;
use crate::sync::models::model;
use crate::waking::WakeCounter;
use loom::thread;

fn listed() -> ListedTask {
    ListedTask { spawned_at: Location::caller(), since: 0 }
}

/// A task exists all the time, and others are spawned in one shard and end in others. A concurrent count
/// is at least one, and at most the number of tasks that ever existed. Fails if the count reads the spawns
/// first, and if `end` or `finished` orders nothing.
#[test]
fn a_count_is_never_too_low() {
    model(|| {
        let tasks = Arc::new(Tasks::new());
        tasks.shards[0].begin();
        let other = {
            let tasks = tasks.clone();
            thread::spawn(move || {
                tasks.shards[1].begin();
                _ = tasks.shards[2].end();
                tasks.shards[1].begin();
                _ = tasks.shards[0].end();
            })
        };
        assert!((1..=3).contains(&tasks.count()));
        other.join().unwrap();
        assert_eq!(tasks.count(), 1);
    });
}

/// A thread that counts no tasks sees what the ended tasks did. Fails if `end` or `finished` orders nothing.
#[test]
fn a_count_of_none_sees_what_the_tasks_did() {
    model(|| {
        let tasks = Arc::new(Tasks::new());
        let done = Arc::new(AtomicUsize::new(0));
        (0..2).for_each(|_| tasks.shards[0].begin());
        let ends = [0, 1].map(|number| {
            let (tasks, done) = (tasks.clone(), done.clone());
            thread::spawn(move || {
                done.fetch_add(1, Ordering::Relaxed);
                _ = tasks.shards[number].end();
            })
        });
        if tasks.count() == 0 {
            assert_eq!(done.load(Ordering::Relaxed), 2);
        }
        ends.into_iter().for_each(|end| end.join().unwrap());
        assert_eq!(tasks.count(), 0);
    });
}

/// A first poll ends before, while, or after the executor ends: the task is woken in any case. Fails if
/// `wake_all` does not set `ShardList::ends`, and if it does so after it has released the lock.
#[test]
fn a_task_that_is_listed_beside_the_end_is_woken() {
    model(|| {
        let tasks = Arc::new(Tasks::new());
        let (bell, waker) = WakeCounter::new();
        tasks.shards[0].begin();
        let polling = {
            let (tasks, waker) = (tasks.clone(), waker.clone());
            thread::spawn(move || tasks.list_in(0, &waker, listed()))
        };
        tasks.wake_all();
        let ticket = polling.join().unwrap();
        assert_eq!(bell.times(), 1);
        tasks.leave(ticket);
        drop(waker);
        assert_eq!(std::sync::Arc::strong_count(&bell), 1, "no waker is left behind");
        assert_eq!(tasks.count(), 0);
    });
}

/// While the executor ends, a task leaves and another one takes its entry. The tasks that stay are woken
/// once, and the task that leaves at most once.
#[test]
fn a_task_that_leaves_beside_the_end_keeps_no_other_from_being_woken() {
    model(|| {
        let tasks = Arc::new(Tasks::new());
        let bells = [(); 3].map(|()| WakeCounter::new());
        (0..3).for_each(|_| tasks.shards[0].begin());
        let stays = tasks.list_in(0, &bells[0].1, listed());
        let leaves = tasks.list_in(0, &bells[1].1, listed());
        let other = {
            let (tasks, waker) = (tasks.clone(), bells[2].1.clone());
            thread::spawn(move || {
                tasks.leave(leaves);
                tasks.list_in(0, &waker, listed())
            })
        };
        tasks.wake_all();
        let comes = other.join().unwrap();
        assert_eq!(comes, leaves, "entries are used again");
        let [first, second, third] = bells.each_ref().map(|(bell, _)| bell.times());
        assert_eq!((first, third), (1, 1));
        assert!(second <= 1);
        [stays, comes].into_iter().for_each(|ticket| tasks.leave(ticket));
        assert_eq!(tasks.count(), 0);
        for (bell, waker) in bells {
            drop(waker);
            assert_eq!(std::sync::Arc::strong_count(&bell), 1, "no waker is left behind");
        }
    });
}

/// Two tasks that were listed in one shard leave at the same time.
#[test]
fn two_leave_at_once() {
    model(|| {
        let tasks = Arc::new(Tasks::new());
        let (bell, waker) = WakeCounter::new();
        let tickets = [(); 2].map(|()| {
            tasks.shards[0].begin();
            tasks.list_in(0, &waker, listed())
        });
        let leaving = tickets.map(|ticket| {
            let tasks = tasks.clone();
            thread::spawn(move || tasks.leave(ticket))
        });
        leaving.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(tasks.count(), 0);
        drop(waker);
        assert_eq!(std::sync::Arc::strong_count(&bell), 1, "no waker is left behind");
        let mut again = [(); 2].map(|()| tasks.list_in(0, Waker::noop(), listed()).0);
        again.sort_unstable();
        assert_eq!(again, tickets.map(|ticket| ticket.0), "both entries are free");
    });
}

/// Does what the conductor of a drain does: parks until no more than `enough` tasks are left.
fn waits_until_left(tasks: &Tasks, enough: usize) {
    tasks.set_threshold(enough);
    tasks.watch();
    while tasks.count() > enough {
        crate::sync::thread::park();
        sync::full_fence();
    }
    tasks.unwatch();
}

/// Two tasks end at the same time in different shards, while a thread begins to wait for the last end: the
/// last end wakes it. Fails without the fence in `check_threshold` (neither end sees the other), and if the
/// mark is a separate word without a fence.
#[test]
fn the_last_end_wakes_the_thread_that_waits_for_it() {
    model(|| {
        let tasks = Arc::new(Tasks::new());
        (0..2).for_each(|_| tasks.shards[0].begin());
        let ends = [0, 1].map(|number| {
            let tasks = tasks.clone();
            thread::spawn(move || tasks.count_end(&tasks.shards[number]))
        });
        waits_until_left(&tasks, 0);
        ends.into_iter().for_each(|end| end.join().unwrap());
        assert_eq!(tasks.count(), 0);
    });
}

/// Of two tasks one ends, while another thread raises the threshold to one. Fails if `set_threshold` does not
/// unpark the waiter, and if an end reads the threshold before its fence.
#[test]
fn a_new_threshold_or_the_end_that_reaches_it_wakes_the_waiter() {
    model(|| {
        let tasks = Arc::new(Tasks::new());
        (0..2).for_each(|_| tasks.shards[0].begin());
        let end = {
            let tasks = tasks.clone();
            thread::spawn(move || tasks.count_end(&tasks.shards[0]))
        };
        let enough = Arc::new(AtomicUsize::new(0));
        let says = {
            let (tasks, enough) = (tasks.clone(), enough.clone());
            thread::spawn(move || {
                enough.store(1, Ordering::Relaxed);
                tasks.set_threshold(1);
            })
        };
        tasks.watch();
        loop {
            sync::full_fence();
            let count = tasks.count();
            if count <= enough.load(Ordering::Relaxed) {
                break;
            }
            crate::sync::thread::park();
        }
        tasks.unwatch();
        [end, says].into_iter().for_each(|thread| thread.join().unwrap());
    });
}
