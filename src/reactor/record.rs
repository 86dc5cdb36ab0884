//! [`Record`]: the reactor's half of one source, where waiters and events meet.
//!
//! The poller has no part in this, so the loom models drive these very functions. A thread that finds that a
//! source is gone and that no thread has a cell of its record (see [`ReadinessWord::release`]) calls `free`,
//! which the owner of all records provides.

use std::mem;
use std::task::Waker;

use super::Direction;
use super::readiness::{Delivery, ReadinessWord, Until, Wait};
use super::waiters::Waiters;
use crate::sync::{AtomicU32, Ordering, ProtocolCell};
use crate::waking;

/// The reactor's half of a source.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) readiness: ReadinessWord,
    /// A waker for each direction, and whether it gives way to another one that does; owned by the thread
    /// that holds the direction's BUSY flag.
    wakers: [ProtocolCell<Option<(Waker, bool)>>; 2],
    /// The tasks that wait beside the tasks in the cells.
    lists: Waiters,
    /// The count after which a `poll_readable` or `poll_writable` in progress is over; see [`super::source`].
    pub(super) blind: [AtomicU32; 2],
    /// The turn of its thread in which a waiter last came to the cell, and the count then.
    pub(super) waits: [AtomicU32; 2],
}

// SAFETY: the wakers are reached only under the BUSY flag; the rest is atomic.
unsafe impl Sync for Record {}

impl Record {
    pub(super) fn new() -> Self {
        Self {
            readiness: ReadinessWord::new(),
            wakers: [ProtocolCell::new(None), ProtocolCell::new(None)],
            lists: Waiters::default(),
            blind: [AtomicU32::new(0), AtomicU32::new(0)],
            waits: [AtomicU32::new(0), AtomicU32::new(0)],
        }
    }

    /// Wakes the waiters of an event. Runs wakers, so the caller must neither lead nor hold a lock (LF3).
    /// Calls `free` if the source is gone and no other thread has a cell. Returns the waker of a cell, for
    /// reuse; `None` if no cell had one.
    #[inline]
    pub(super) fn deliver(&self, delivery: Delivery, free: impl Fn()) -> Option<Waker> {
        let mut called = None;
        for direction in Direction::BOTH {
            if delivery.has_cell(direction) {
                waking::discard(mem::replace(&mut called, self.fire_cell(direction, &free)));
            }
            if delivery.has_list(direction) {
                self.lists.wake_all(direction);
            }
        }
        called
    }

    /// Takes the waker out of a cell that this thread has, gives the cell back, then wakes: a woken task that
    /// waits again on another thread must find the cell free. Calls `free` if the source is gone and no other
    /// thread has a cell. Returns the waker, for reuse.
    #[inline]
    pub(super) fn fire_cell(&self, direction: Direction, free: impl FnOnce()) -> Option<Waker> {
        // SAFETY: this thread has the cell until it releases it.
        let waker = unsafe { self.wakers[direction as usize].with_mut(Option::take) };
        if self.readiness.release(direction) {
            free();
        }
        waker.map(|(waker, _)| waker).inspect(waking::wake_by_ref)
    }

    /// Waits in the direction's cell, or beside it if another task waits there: stores a copy of `waker`,
    /// unless it is there already. Stores nothing if the wait is over, or if another thread has the cell:
    /// then wakes `waker`. If an event comes meanwhile, wakes the waker in the cell and returns
    /// [`Wait::Over`]. A waiter that `gives_way` takes the place of another one that does, which is not
    /// woken. `copy` makes the copy for the cell; its panic leaves the cell empty. Calls `free` if the
    /// source is retired meanwhile and no other thread has a cell.
    #[inline]
    pub(super) fn enter(
        &self,
        direction: Direction,
        until: Until,
        waker: &Waker,
        gives_way: bool,
        copy: impl FnOnce(&Waker) -> Waker,
        free: impl Fn(),
    ) -> Wait {
        let count = match self.readiness.claim(direction, until) {
            Ok(count) => count,
            Err(refused) => {
                if refused == Wait::Unsure {
                    waker.wake_by_ref();
                }
                return refused;
            }
        };
        let held = ClaimedCell { record: self, direction, free: &free };
        // SAFETY: the claim has given the cell to this thread.
        let (is_ours, displaced) = unsafe {
            self.wakers[direction as usize].with_mut(|cell| match cell {
                Some((present, gives)) if present.will_wake(waker) => {
                    // It may stand for another wait as well, which does not give way.
                    *gives &= gives_way;
                    (true, None)
                }
                Some((_, gives)) if !(gives_way && *gives) => (false, None),
                _ => (true, cell.replace((copy(waker), gives_way))),
            })
        };
        let is_armed = self.readiness.settle(direction, count);
        if is_armed {
            mem::forget(held);
        } else {
            drop(held);
        }
        waking::discard(displaced.map(|(waker, _)| waker));
        let waits = is_armed && (is_ours || self.wait_beside(direction, until, waker));
        if waits { Wait::Waiting } else { Wait::Over }
    }

    /// Waits on the list beside the cell. Returns false if the wait is over already.
    #[cold]
    fn wait_beside(&self, direction: Direction, until: Until, waker: &Waker) -> bool {
        // The waiter first, then the flag: an event between the two finds the flag missing but advances the
        // count, which `list` compares.
        self.lists.add(direction, waker);
        self.readiness.list(direction, until)
    }

    /// Empties the record for its next source, and drops the wakers without calling them. The caller was told
    /// to free the record.
    pub(super) fn clear(&self) {
        for direction in Direction::BOTH {
            // SAFETY: the source is gone and no thread has a cell, so no other thread can reach this one.
            let waker = unsafe { self.wakers[direction as usize].with_mut(Option::take) };
            waking::discard(waker.map(|(waker, _)| waker));
            self.blind[direction as usize].store(0, Ordering::Relaxed);
        }
        self.lists.forget();
    }
}

/// A cell that was claimed and did not settle, because an event came first or a waker's `clone` panicked. Its
/// drop gives the cell back and wakes the waiter in it, which comes back.
struct ClaimedCell<'a, F: Fn()> {
    record: &'a Record,
    direction: Direction,
    free: &'a F,
}

impl<F: Fn()> Drop for ClaimedCell<'_, F> {
    #[cold]
    fn drop(&mut self) {
        waking::discard(self.record.fire_cell(self.direction, self.free));
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::super::readiness::{Happened, Proof};
    use super::*;
    use crate::waking::WakeCounter;
    use Direction::{Read, Write};

    const IN: Happened = Happened { ready: [true, false], ..Happened::NOTHING };

    /// Returns a record whose source is not ready, and the source's generation.
    fn open() -> (Record, u32) {
        let record = Record::new();
        let generation = record.readiness.open();
        Direction::BOTH
            .into_iter()
            .for_each(|direction| record.readiness.clear(direction, 0, Proof::WouldBlock));
        (record, generation)
    }

    fn wait(record: &Record, direction: Direction, waker: &Waker) -> Wait {
        record.enter(direction, Until::Ready, waker, false, Waker::clone, || panic!("the source is there"))
    }

    fn enter(record: &Record, waiter: &Arc<WakeCounter>) -> Wait {
        wait(record, Read, &waiter.clone().into())
    }

    fn fire(record: &Record, generation: u32) {
        record.deliver(record.readiness.event(generation, IN), || panic!("the source is there"));
    }

    /// There is one for each source of the peak, as long as the reactor lives.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_record_is_small() {
        assert_eq!(size_of::<Record>(), 88);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a vtable has several addresses there, so that a waker may not know its copy")]
    fn a_waiter_keeps_the_cell_and_another_waits_beside_it() {
        let (record, generation) = open();
        let (first, second) = (Arc::<WakeCounter>::default(), Arc::<WakeCounter>::default());
        let waker = Waker::from(first.clone());
        for _ in 0..2 {
            assert_eq!(wait(&record, Read, &waker), Wait::Waiting);
            assert_eq!(enter(&record, &second), Wait::Waiting);
        }
        assert_eq!((first.times(), second.times()), (0, 0));
        fire(&record, generation);
        assert_eq!((first.times(), second.times()), (1, 1));
        assert_eq!(enter(&record, &first), Wait::Over);
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (2, 1));
    }

    /// The last part fails if the same waker, which waits twice, is taken for one that gives way.
    #[test]
    #[cfg_attr(miri, ignore = "a vtable has several addresses there, so that a waker may not know its copy")]
    fn a_waiter_that_gives_way_is_not_woken_and_any_other_is() {
        for (ways, woken) in [
            (&[(0, true), (1, true), (0, true)][..], (1, 0)),
            (&[(1, true), (0, true)], (1, 0)),
            (&[(1, false), (0, true)], (1, 1)),
            (&[(1, true), (0, false)], (1, 1)),
            (&[(1, false), (1, true), (0, true)], (1, 1)),
            (&[(1, true), (1, false), (0, true)], (1, 1)),
        ] {
            let (record, generation) = open();
            let waiters = [(); 2].map(|()| Arc::<WakeCounter>::default());
            let wakers = [0, 1].map(|at: usize| Waker::from(waiters[at].clone()));
            for (waiter, gives_way) in ways {
                let waker = &wakers[*waiter];
                let entered = record.enter(Read, Until::Ready, waker, *gives_way, Waker::clone, || panic!());
                assert_eq!(entered, Wait::Waiting);
            }
            fire(&record, generation);
            assert_eq!((waiters[0].times(), waiters[1].times()), woken, "{ways:?}");
        }
    }

    #[test]
    fn a_waker_that_cannot_be_copied_leaves_the_cell_free() {
        let (record, generation) = open();
        let waiter = Arc::<WakeCounter>::default();
        let frees = AtomicUsize::new(0);
        let fail = |meanwhile: &dyn Fn()| {
            let free = || _ = frees.fetch_add(1, Ordering::Relaxed);
            let copy = |_: &Waker| {
                meanwhile();
                std::panic::resume_unwind(Box::new("no copy"))
            };
            let enter = || record.enter(Read, Until::Ready, Waker::noop(), false, copy, free);
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(enter)).is_err());
        };
        fail(&|| ());
        assert_eq!(enter(&record, &waiter), Wait::Waiting);
        fire(&record, generation);
        assert_eq!(waiter.times(), 1);
        record.readiness.clear(Read, 1, Proof::WouldBlock);
        fail(&|| assert!(!record.readiness.retire(), "a thread has the cell"));
        assert_eq!(frees.load(Ordering::Relaxed), 1, "the last one that had a cell frees the record");
    }

    #[test]
    fn lf6_an_event_wakes_the_cell_and_the_list_of_its_direction() {
        let (record, generation) = open();
        let [cell, beside, other] = [(); 3].map(|()| Arc::<WakeCounter>::default());
        let times = || [&cell, &beside, &other].map(|waiter| waiter.times());
        for waiter in [&cell, &beside] {
            assert_eq!(enter(&record, waiter), Wait::Waiting);
        }
        for waiter in [&cell, &other] {
            assert_eq!(wait(&record, Write, &waiter.clone().into()), Wait::Waiting);
        }
        fire(&record, generation);
        assert_eq!(times(), [1, 1, 0]);
        assert_eq!(enter(&record, &beside), Wait::Over, "the source is ready");
        record.readiness.clear(Read, 1, Proof::WouldBlock);
        assert_eq!(enter(&record, &beside), Wait::Waiting);
        fire(&record, generation);
        assert_eq!(times(), [1, 2, 0]);
    }

    #[test]
    fn what_a_source_leaves_is_forgotten_when_its_slot_is_freed() {
        let (record, _) = open();
        let waiter = Arc::<WakeCounter>::default();
        assert_eq!(enter(&record, &waiter), Wait::Waiting);
        let beside = Arc::<WakeCounter>::default();
        assert_eq!(enter(&record, &beside), Wait::Waiting);
        record.blind[Write as usize].store(7, Ordering::Relaxed);
        assert!(record.readiness.retire());
        record.clear();
        assert_eq!((waiter.times(), Arc::strong_count(&waiter)), (0, 1));
        assert_eq!((beside.times(), Arc::strong_count(&beside)), (0, 1));
        assert_eq!(record.blind[Write as usize].load(Ordering::Relaxed), 0);
    }
}
