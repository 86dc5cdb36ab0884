//! Loom models of the share. Each one counts how often each event was taken: an event that is lost, or fired
//! twice, shows in the end.

use super::super::slumber::Slumber;
use super::*;
use crate::sync::models::model;
use crate::sync::{Arc, AtomicUsize};
use loom::sync::Notify;
use loom::thread;

/// Shares, and how often each event came out of them.
struct Scene<const EVENTS: usize> {
    shares: Shares,
    taken: [AtomicUsize; EVENTS],
}

impl<const EVENTS: usize> Scene<EVENTS> {
    /// Makes the shares for three threads, because loom does not see that a `OnceLock` orders.
    fn new() -> Arc<Self> {
        let shares = Shares::default();
        drop([(); 3].map(|()| shares.join()));
        Arc::new(Self { shares, taken: [(); EVENTS].map(|()| AtomicUsize::new(0)) })
    }

    /// Notes that the event was taken, and returns whether there was one.
    fn note(&self, event: Option<Event>) -> bool {
        let Some(event) = event else { return false };
        let Event::Source(key, happened) = event else { panic!("a share has events of sources") };
        assert_eq!(happened, Happened::EVERYTHING);
        self.taken[key.index() as usize].fetch_add(1, Ordering::Relaxed);
        true
    }

    fn take_all(&self, own: &Own<'_>) {
        while self.note(own.take()) {}
    }

    /// Takes what the threads have left, once they are gone.
    fn take_what_is_left(&self) {
        let next = [(); 3].map(|()| self.shares.join());
        next.iter().for_each(|own| self.take_all(own));
        self.assert_all_taken();
    }

    /// Asserts that each event was taken once, and that none is left.
    fn assert_all_taken(&self) {
        assert!(!self.shares.is_any_left());
        let taken = self.taken.iter().map(|taken| taken.load(Ordering::Relaxed));
        assert_eq!(taken.collect::<Vec<_>>(), [1; EVENTS]);
    }
}

/// Starts a thread that steals once, and takes what it has stolen.
fn thief<const EVENTS: usize>(scene: &Arc<Scene<EVENTS>>) -> thread::JoinHandle<()> {
    let scene = scene.clone();
    thread::spawn(move || {
        let own = scene.shares.join();
        scene.note(own.steal());
        scene.take_all(&own);
    })
}

/// Returns the events with these numbers.
fn events(numbers: std::ops::Range<u32>) -> impl Iterator<Item = (Key, Happened)> {
    numbers.map(|number| (Key::new(number, 0), Happened::EVERYTHING))
}

/// LF6: the owner takes while a thief steals.
#[test]
fn lf6_an_event_is_taken_by_its_owner_or_stolen() {
    model(|| {
        let scene = Scene::<3>::new();
        let own = scene.shares.join();
        own.fill(events(0..3));
        let thief = thief(&scene);
        scene.take_all(&own);
        thief.join().unwrap();
        scene.assert_all_taken();
    });
}

/// LF6: the owner fills its share again, and all of its places, while a thief may have read the first one.
/// That the thief's reads come before the fill is not shown: loom has no reads of what is written later.
#[test]
fn lf6_a_place_is_not_overwritten_while_it_is_read() {
    model(|| {
        let scene = Scene::<{ 1 + CAPACITY }>::new();
        let own = scene.shares.join();
        own.fill(events(0..1));
        let thief = thief(&scene);
        scene.take_all(&own);
        own.fill(events(1..1 + CAPACITY as u32));
        scene.take_all(&own);
        thief.join().unwrap();
        scene.assert_all_taken();
    });
}

/// LF6: of two thieves one loses the exchange, and what it has read is not used.
#[test]
fn lf6_two_thieves_do_not_steal_the_same_event() {
    model(|| {
        let scene = Scene::<2>::new();
        let own = scene.shares.join();
        own.fill(events(0..2));
        let thieves = [(); 2].map(|()| thief(&scene));
        thieves.into_iter().for_each(|thief| thief.join().unwrap());
        scene.take_all(&own);
        scene.assert_all_taken();
    });
}

/// LF6: what a thief has stolen is stolen again, by a thread that may have seen nothing of the first owner.
#[test]
fn lf6_what_was_stolen_is_stolen_again() {
    model(|| {
        let scene = Scene::<4>::new();
        // A thief in the first share looks at the second one, which the other thief has, before the third.
        let [_, _, own] = [(); 3].map(|()| scene.shares.join());
        own.fill(events(0..4));
        let thieves = [3, 1].map(|times| {
            let scene = scene.clone();
            thread::spawn(move || {
                let own = scene.shares.join();
                for _ in 0..times {
                    // Perhaps it is the share that the other one has left.
                    scene.take_all(&own);
                    scene.note(own.steal());
                }
            })
        });
        thieves.into_iter().for_each(|thief| thief.join().unwrap());
        drop(own);
        scene.take_what_is_left();
    });
}

/// LF6: an owner goes and leaves its events to the next one, beside a thief.
#[test]
fn lf6_what_a_thread_leaves_is_taken_by_the_next_one() {
    model(|| {
        let scene = Scene::<3>::new();
        let goes = {
            let scene = scene.clone();
            thread::spawn(move || {
                let own = scene.shares.join();
                own.fill(events(0..3));
                scene.note(own.take());
            })
        };
        let comes = {
            let scene = scene.clone();
            thread::spawn(move || {
                let own = scene.shares.join();
                scene.take_all(&own);
                scene.note(own.steal());
            })
        };
        goes.join().unwrap();
        comes.join().unwrap();
        scene.take_what_is_left();
    });
}

/// A thread joins while another one ends, whose share is the last in the list. Fails if the extent is then too
/// small, and a thief misses the event of the thread that has joined.
#[test]
fn lf6_a_share_that_is_taken_over_is_found() {
    model(|| {
        let scene = Scene::<1>::new();
        let own = scene.shares.join();
        let goes = scene.shares.join();
        let other = {
            let scene = scene.clone();
            thread::spawn(move || {
                let own = scene.shares.join();
                own.fill(events(0..1));
                own.number
            })
        };
        drop(goes);
        let number = other.join().unwrap();
        assert!(number == 1 || number == 2);
        while scene.note(own.steal()) {}
        scene.assert_all_taken();
    });
}

/// LF5: a thread ends with an event in its share beside a leader that falls asleep. An event that the leader
/// never sees shows as a deadlock: so it does if the thread does not interrupt the leader, or if the leader
/// does not ask for what is left after its announcement.
#[test]
fn lf5_a_leader_does_not_sleep_beside_what_a_thread_has_left() {
    model(|| {
        let scene = Scene::<1>::new();
        let sleep = Arc::new((Slumber::new(), Notify::new()));
        let own = scene.shares.join();
        let other = {
            let (scene, sleep) = (scene.clone(), sleep.clone());
            thread::spawn(move || {
                let own = scene.shares.join();
                own.fill(events(0..1));
                drop(own);
                if scene.shares.has_unowned() {
                    sleep.0.interrupt(|| sleep.1.notify());
                }
            })
        };
        while !scene.note(own.steal()) {
            let announced = sleep.0.announce();
            if !scene.shares.has_unowned() {
                sleep.1.wait();
            }
            drop(announced);
        }
        other.join().unwrap();
        scene.assert_all_taken();
    });
}
