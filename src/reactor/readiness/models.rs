//! Loom models of the readiness word, in a record as the reactor uses it. A lost event shows as a deadlock;
//! if two threads have a cell, loom reports it.

use std::sync::atomic::{AtomicUsize as StdUsize, Ordering::Relaxed};
use std::task::{Wake, Waker};

use super::*;
use crate::reactor::record::Record;
use crate::sync::models::{model, park, waker};
use crate::sync::{Arc, AtomicBool, AtomicUsize, spin_hint};
use crate::waking::WakeCounter;
use loom::thread;

use Direction::{Read, Write};

const IN: Happened = Happened { ready: [true, false], ..Happened::NOTHING };
const OUT: Happened = Happened { ready: [false, true], ..Happened::NOTHING };

/// A record and its owner, without the poller: what `Reactor`, `Records` and `Source` do.
struct Source {
    record: Record,
    frees: StdUsize,
}

impl Source {
    /// Opens a registered source that is ready in neither direction.
    fn open() -> (Arc<Self>, u32) {
        let source = Self { record: Record::new(), frees: StdUsize::new(0) };
        let generation = source.reopen();
        (Arc::new(source), generation)
    }

    fn reopen(&self) -> u32 {
        let word = &self.record.readiness;
        let generation = word.open();
        for direction in Direction::BOTH {
            word.clear(direction, word.snapshot().count(direction), Proof::WouldBlock);
        }
        generation
    }

    fn free(&self) {
        self.frees.fetch_add(1, Relaxed);
        self.record.clear();
    }

    fn fire(&self, generation: u32, happened: Happened) -> Delivery {
        let delivery = self.record.readiness.event(generation, happened);
        self.record.deliver(delivery, || self.free());
        delivery
    }

    fn fire_cell(&self, direction: Direction) {
        self.record.fire_cell(direction, || self.free());
    }

    /// Returns true if that freed the record.
    fn retire(&self) -> bool {
        let freed = self.record.readiness.retire();
        if freed {
            self.free();
        }
        freed
    }

    /// Returns false if the wait is over already.
    fn wait(&self, direction: Direction, until: Until, waker: &Waker) -> bool {
        match self.record.enter(direction, until, waker, false, Waker::clone, || self.free()) {
            Wait::Over => false,
            Wait::Waiting => true,
            Wait::Unsure => {
                spin_hint();
                true
            }
        }
    }

    /// Sleeps until the wait is over.
    fn block(&self, direction: Direction, until: Until) {
        let waker = waker();
        while self.wait(direction, until, &waker) {
            park();
        }
        assert!(self.record.readiness.snapshot().has(direction, until));
    }
}

/// LF6: the event comes before, while, or after the task stores its waker.
#[test]
fn an_event_beside_a_waker_that_settles_is_not_lost() {
    model(|| {
        let (source, generation) = Source::open();
        let leader = {
            let source = source.clone();
            thread::spawn(move || source.fire(generation, IN))
        };
        source.block(Read, Until::Ready);
        let _ = leader.join().unwrap();
    });
}

/// LF6: a blind wait is for an event after its start, and gets the event that comes while it starts.
#[test]
fn lf6_a_blind_wait_sees_the_event_that_comes_while_it_settles() {
    model(|| {
        let (source, generation) = Source::open();
        let count = source.record.readiness.snapshot().count(Read);
        let leader = {
            let source = source.clone();
            thread::spawn(move || source.fire(generation, IN))
        };
        source.block(Read, Until::After(count));
        let _ = leader.join().unwrap();
    });
}

/// A socket, and a reader that takes its bytes and clears readiness for the reason `proof`.
fn read_all(proof: Proof) {
    model(move || {
        let (source, generation) = Source::open();
        // The changes of the buffer are ordered as the operating system's are: by its own locks.
        let buffer = Arc::new(AtomicUsize::new(0));
        let leader = {
            let (source, buffer) = (source.clone(), buffer.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    buffer.fetch_add(1, Ordering::AcqRel);
                    let _ = source.fire(generation, IN);
                }
            })
        };
        let mut read = 0;
        while read < 2 {
            let before = source.record.readiness.snapshot();
            if !before.has(Read, Until::Ready) {
                source.block(Read, Until::Ready);
                continue;
            }
            let moved = buffer.swap(0, Ordering::AcqRel);
            read += moved;
            if moved == 0 || proof == Proof::ShortTransfer {
                source.record.readiness.clear(Read, before.count(Read), proof);
            }
        }
        leader.join().unwrap();
    });
}

/// The next event comes between `WouldBlock` and the clearing.
#[test]
fn clearing_after_would_block_forgets_no_event() {
    read_all(Proof::WouldBlock);
}

/// The next event comes between a short read and the clearing.
#[test]
fn clearing_after_a_short_read_forgets_no_event() {
    read_all(Proof::ShortTransfer);
}

/// Two tasks wait for one direction, one in the cell and one beside it, while the event comes. Both look
/// again in the end.
#[test]
fn of_two_waiters_for_one_direction_none_is_forgotten() {
    model(|| {
        let (source, generation) = Source::open();
        let woken = [(); 2].map(|()| std::sync::Arc::<WakeCounter>::default());
        let waits = |source: &Source, woken: &std::sync::Arc<WakeCounter>| {
            let waits = source.wait(Read, Until::Ready, &woken.clone().into());
            if !waits {
                woken.clone().wake();
            }
        };
        let leader = {
            let source = source.clone();
            thread::spawn(move || {
                let _ = source.fire(generation, IN);
            })
        };
        let other = {
            let (source, woken) = (source.clone(), woken[1].clone());
            thread::spawn(move || waits(&source, &woken))
        };
        waits(&source, &woken[0]);
        [leader, other].into_iter().for_each(|thread| thread.join().unwrap());
        assert!(woken.iter().all(|woken| woken.times() > 0));
    });
}

/// A thread that finds the cell occupied leaves it so. An event that comes meanwhile finds the cell
/// taken, and is passed on.
#[test]
fn a_thread_that_leaves_an_occupied_cell_passes_the_event_on() {
    model(|| {
        let (source, generation) = Source::open();
        let woken = std::sync::Arc::<WakeCounter>::default();
        assert!(source.wait(Read, Until::Ready, &woken.clone().into()));
        let leader = {
            let source = source.clone();
            thread::spawn(move || {
                let _ = source.fire(generation, IN);
            })
        };
        let _ = source.wait(Read, Until::Ready, Waker::noop());
        leader.join().unwrap();
        assert_eq!(woken.times(), 1);
    });
}

/// LF6, on the list: the waiter first, then the flag, then the sleep.
#[test]
fn lf6_a_waiter_on_the_list_is_woken() {
    model(|| {
        let (source, generation) = Source::open();
        assert!(source.wait(Read, Until::Ready, Waker::noop()));
        let leader = {
            let source = source.clone();
            thread::spawn(move || {
                let _ = source.fire(generation, IN);
            })
        };
        source.block(Read, Until::Ready);
        leader.join().unwrap();
    });
}

/// The source is retired while two leaders fire its two directions. One thread frees the record, when no
/// other has a cell.
#[test]
fn a_source_that_retires_while_it_is_fired_is_freed_once() {
    model(|| {
        let (source, generation) = Source::open();
        let never = Waker::noop();
        assert!(source.wait(Read, Until::Ready, never));
        assert!(source.wait(Write, Until::Ready, never));
        let leaders = [IN, OUT].map(|happened| {
            let source = source.clone();
            thread::spawn(move || {
                let _ = source.fire(generation, happened);
            })
        });
        let _ = source.retire();
        leaders.into_iter().for_each(|leader| leader.join().unwrap());
        assert_eq!(source.frees.load(Relaxed), 1);
    });
}

/// The source is retired while two threads have its two cells. The last of the three frees the record.
#[test]
fn a_source_that_retires_while_both_cells_are_taken_is_freed_by_the_last() {
    model(|| {
        let (source, generation) = Source::open();
        for direction in Direction::BOTH {
            assert!(source.wait(direction, Until::Ready, Waker::noop()));
        }
        let both = Happened { ready: [true; 2], ..IN };
        let delivery = source.record.readiness.event(generation, both);
        assert!(Direction::BOTH.iter().all(|direction| delivery.has_cell(*direction)));
        let leaders = Direction::BOTH.map(|direction| {
            let source = source.clone();
            thread::spawn(move || source.fire_cell(direction))
        });
        let _ = source.retire();
        leaders.into_iter().for_each(|leader| leader.join().unwrap());
        assert_eq!(source.frees.load(Relaxed), 1);
    });
}

/// An event of the old source comes while the record gets a new one. The event wakes no waiter of the
/// new source and leaves nothing behind.
#[test]
fn a_stale_event_does_nothing_to_the_next_source_of_the_slot() {
    model(|| {
        let (source, generation) = Source::open();
        assert!(source.wait(Read, Until::Ready, Waker::noop()));
        let retired = Arc::new(AtomicBool::new(false));
        let leader = {
            let (source, retired) = (source.clone(), retired.clone());
            thread::spawn(move || {
                let was_retired = retired.load(Ordering::Acquire);
                let delivery = source.fire(generation, IN);
                assert!(!was_retired || delivery == Delivery::default(), "the source was gone");
            })
        };
        let freed = source.retire();
        retired.store(true, Ordering::Release);
        let mut leader = Some(leader);
        if !freed {
            leader.take().unwrap().join().unwrap();
        }
        assert_ne!(source.reopen(), generation);
        assert!(source.wait(Read, Until::Ready, Waker::noop()));
        if let Some(leader) = leader {
            leader.join().unwrap();
        }
        let now = source.record.readiness.snapshot();
        assert!(now.is_armed(Read) && !now.has(Read, Until::Ready));
        assert_eq!(source.frees.load(Relaxed), 1);
    });
}
