//! Loom models of the tasks of an executor.

use super::*;
use crate::sync::Arc;
use crate::sync::models::model;
use loom::thread;

/// Counts how often it is woken.
struct Bell(std::sync::atomic::AtomicUsize);

impl std::task::Wake for Bell {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Bell {
    fn new() -> (std::sync::Arc<Self>, Waker) {
        let bell = std::sync::Arc::new(Self(atomic::AtomicUsize::new(0)));
        let waker = bell.clone().into();
        (bell, waker)
    }

    fn rings(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A count beside tasks that are spawned in one shard and end in others says at no moment that the one that is there all the
/// time is gone, or more than were ever there. Fails if what was spawned is read first, and if `end` or `finished`
/// orders nothing.
#[test]
fn a_count_is_never_too_low() {
    model(|| {
        let tasks = Arc::new(Tasks::new());
        tasks.0[0].begin();
        let other = {
            let tasks = tasks.clone();
            thread::spawn(move || {
                tasks.0[1].begin();
                _ = tasks.0[2].end();
                tasks.0[1].begin();
                _ = tasks.0[0].end();
            })
        };
        assert!((1..=3).contains(&tasks.count()));
        other.join().unwrap();
        assert_eq!(tasks.count(), 1);
    });
}

/// A count of nothing is also a promise: what the tasks did is seen. Fails if `end` or `finished` orders nothing.
#[test]
fn who_counts_none_sees_what_they_did() {
    model(|| {
        let tasks = Arc::new(Tasks::new());
        let done = Arc::new(AtomicUsize::new(0));
        (0..2).for_each(|_| tasks.0[0].begin());
        let ends = [0, 1].map(|number| {
            let (tasks, done) = (tasks.clone(), done.clone());
            thread::spawn(move || {
                done.fetch_add(1, Ordering::Relaxed);
                _ = tasks.0[number].end();
            })
        });
        if tasks.count() == 0 {
            assert_eq!(done.load(Ordering::Relaxed), 2);
        }
        ends.into_iter().for_each(|end| end.join().unwrap());
        assert_eq!(tasks.count(), 0);
    });
}

/// A first poll ends before, while, or after the executor does: the task is woken in any case. Fails if `wake_all` does not
/// say that it was there, and if it says so when it has let go of the lock.
#[test]
fn who_is_listed_beside_the_end_is_woken() {
    model(|| {
        let tasks = Arc::new(Tasks::new());
        let (bell, waker) = Bell::new();
        tasks.0[0].begin();
        let polling = {
            let (tasks, waker) = (tasks.clone(), waker.clone());
            thread::spawn(move || tasks.list_in(0, &waker))
        };
        tasks.wake_all();
        let ticket = polling.join().unwrap();
        assert_eq!(bell.rings(), 1);
        tasks.leave(ticket);
        drop(waker);
        assert_eq!(std::sync::Arc::strong_count(&bell), 1, "no waker is left behind");
        assert_eq!(tasks.count(), 0);
    });
}

/// One leaves and another one comes, in the same entry perhaps, beside the end. Who stays is woken; and who left once at most.
#[test]
fn who_leaves_beside_the_end_takes_nobody_else_with_it() {
    model(|| {
        let tasks = Arc::new(Tasks::new());
        let bells = [(); 3].map(|()| Bell::new());
        (0..3).for_each(|_| tasks.0[0].begin());
        let stays = tasks.list_in(0, &bells[0].1);
        let leaves = tasks.list_in(0, &bells[1].1);
        let other = {
            let (tasks, waker) = (tasks.clone(), bells[2].1.clone());
            thread::spawn(move || {
                tasks.leave(leaves);
                tasks.list_in(0, &waker)
            })
        };
        tasks.wake_all();
        let comes = other.join().unwrap();
        assert_eq!(comes, leaves, "entries are used again");
        let [first, second, third] = bells.each_ref().map(|(bell, _)| bell.rings());
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

/// Two that were listed in one shard leave it at once.
#[test]
fn two_leave_at_once() {
    model(|| {
        let tasks = Arc::new(Tasks::new());
        let (bell, waker) = Bell::new();
        let tickets = [(); 2].map(|()| {
            tasks.0[0].begin();
            tasks.list_in(0, &waker)
        });
        let leaving = tickets.map(|ticket| {
            let tasks = tasks.clone();
            thread::spawn(move || tasks.leave(ticket))
        });
        leaving.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(tasks.count(), 0);
        drop(waker);
        assert_eq!(std::sync::Arc::strong_count(&bell), 1, "no waker is left behind");
        let mut again = [(); 2].map(|()| tasks.list_in(0, Waker::noop()).0);
        again.sort_unstable();
        assert_eq!(again, tickets.map(|ticket| ticket.0), "both entries are free");
    });
}

/// The watcher's part, as the conductor of a drain does it: parks until no more than `enough` are left.
fn waits_until_left(tasks: &Tasks, enough: usize) {
    tasks.is_enough(enough);
    tasks.watch();
    while tasks.count() > enough {
        crate::sync::thread::park();
        sync::full_fence();
    }
    tasks.look_away();
}

/// Two tasks end at once, in different shards, while somebody begins to wait for the last end: it wakes him. Fails without the
/// fence in `one_ended` (neither end sees the other), and if the mark is a word of its own that is not fenced.
#[test]
fn the_last_end_wakes_who_waits_for_it() {
    model(|| {
        let tasks = Arc::new(Tasks::new());
        (0..2).for_each(|_| tasks.0[0].begin());
        let ends = [0, 1].map(|number| {
            let tasks = tasks.clone();
            thread::spawn(move || tasks.leaves(&tasks.0[number]))
        });
        waits_until_left(&tasks, 0);
        ends.into_iter().for_each(|end| end.join().unwrap());
        assert_eq!(tasks.count(), 0);
    });
}

/// One of two ends; the other is to be enough, which is said while who waits is there already. Fails if he is not unparked
/// by that, and if what is enough is not looked at after the fence.
#[test]
fn who_says_that_it_is_enough_wakes_him_or_the_end_does() {
    model(|| {
        let tasks = Arc::new(Tasks::new());
        (0..2).for_each(|_| tasks.0[0].begin());
        let end = {
            let tasks = tasks.clone();
            thread::spawn(move || tasks.leaves(&tasks.0[0]))
        };
        let enough = Arc::new(AtomicUsize::new(0));
        let says = {
            let (tasks, enough) = (tasks.clone(), enough.clone());
            thread::spawn(move || {
                enough.store(1, Ordering::Relaxed);
                tasks.is_enough(1);
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
        tasks.look_away();
        [end, says].into_iter().for_each(|thread| thread.join().unwrap());
    });
}
