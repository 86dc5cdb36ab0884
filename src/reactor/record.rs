//! [`Record`]: the reactor's half of one source, where waiters and events meet.
//!
//! The poller has no part in this, so the loom models drive these very functions. A thread that finds that a
//! source is gone and that no thread has a cell of its record (see [`Release`]) calls `free`, which the owner
//! of all records provides.

use std::mem;
use std::task::Waker;

use super::Direction;
use super::readiness::{Claim, Delivery, ReadinessWord, Release, Settlement, Until};
use super::waiters::Waiters;
use crate::sync::{AtomicBool, AtomicU32, Ordering, ProtocolCell};
use crate::waking;

/// The reactor's half of a source.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) readiness: ReadinessWord,
    /// A waker for each direction, owned by the thread that holds the direction's BUSY flag.
    wakers: [ProtocolCell<Option<Waker>>; 2],
    /// The tasks that wait beside the task in the cell.
    lists: [Waiters; 2],
    /// The tick after which a `poll_readable` or `poll_writable` in progress is over; see [`super::source`].
    pub(super) blind: [AtomicU32; 2],
    /// Whether the waker in the cell was stored by [`Displace::Quietly`] alone; used by the thread that has
    /// the cell.
    gives_way: [AtomicBool; 2],
    /// The turn of its thread in which a waiter last came to the cell, and the tick then.
    pub(super) waits: [AtomicU32; 2],
}

// SAFETY: the wakers are reached only under the BUSY flag; the rest is atomic.
unsafe impl Sync for Record {}

/// Whether a waiter takes the cell from another waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Displace {
    /// The waiter leaves the cell to the other one.
    No,
    /// The waiter takes the cell. The other waiter is woken, unless it came in this way, too: such waiters
    /// know that only the last one counts.
    Quietly,
}

/// The result of an attempt to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Wait {
    /// The wait is over already.
    Over,
    /// The waker will be called.
    Waiting,
    /// The waker will be called, or was, but the I/O may be possible already. Either this thread has waited
    /// here before in the same turn, and no event came since, as a caller does that polls twice without going
    /// to sleep; or this thread does not look for events at all; or another thread had the cell, because an
    /// event is being delivered. So a caller that polls without a wait in between finds the data with its
    /// second poll after an event.
    Unsure,
    /// Another task waits in the cell.
    Occupied,
}

impl Record {
    pub(super) fn new() -> Self {
        Self {
            readiness: ReadinessWord::new(),
            wakers: [ProtocolCell::new(None), ProtocolCell::new(None)],
            lists: Default::default(),
            blind: [AtomicU32::new(0), AtomicU32::new(0)],
            gives_way: [AtomicBool::new(false), AtomicBool::new(false)],
            waits: [AtomicU32::new(0), AtomicU32::new(0)],
        }
    }

    /// Wakes the waiters of an event. Runs wakers, so the caller must neither lead nor hold a lock (LF3).
    /// Calls `free` if the source is gone and no other thread has a cell. Returns the waker of a cell, for
    /// reuse; `None` if no cell had one.
    #[inline]
    pub(super) fn deliver(&self, delivery: Delivery, free: impl Fn()) -> Option<Waker> {
        let mut called = None;
        if delivery.is_empty() {
            return called;
        }
        for direction in Direction::BOTH {
            if delivery.has_cell(direction) {
                waking::discard(mem::replace(&mut called, self.fire_cell(direction, &free)));
            }
            if delivery.has_list(direction) {
                self.lists[direction as usize].wake_all();
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
        if self.readiness.release(direction) == Release::Free {
            free();
        }
        waker.inspect(waking::wake_by_ref)
    }

    /// Waits in the direction's cell: stores a copy of `waker` there, unless it is there already. Stores
    /// nothing if the wait is over, if another task waits there and `displace` leaves the cell to it, or if
    /// another thread has the cell: then wakes `waker`. Wakes a task that it displaces, as `displace` says.
    /// If an event comes meanwhile, wakes the waker in the cell and returns [`Wait::Over`]. `copy` makes the
    /// copy; its panic leaves the cell free. Calls `free` if the source is retired meanwhile and no other
    /// thread has a cell.
    #[inline]
    pub(super) fn enter(
        &self,
        direction: Direction,
        until: Until,
        waker: &Waker,
        copy: impl FnOnce(&Waker) -> Waker,
        displace: Displace,
        free: impl Fn(),
    ) -> Wait {
        let (tick, occupied) = match self.readiness.claim(direction, until) {
            Claim::Over => return Wait::Over,
            Claim::Contended => {
                waker.wake_by_ref();
                return Wait::Unsure;
            }
            Claim::Taken { tick, occupied } => (tick, occupied),
        };
        let held = ClaimedCell { record: self, direction, free: &free };
        // SAFETY: the claim has given the cell to this thread.
        let (ours, displaced) = unsafe {
            self.wakers[direction as usize].with_mut(|cell| match cell {
                Some(present) if present.will_wake(waker) => (true, None),
                Some(_) if occupied && displace == Displace::No => (false, None),
                _ => (true, cell.replace(copy(waker))),
            })
        };
        // Relaxed suffices: only the thread that has the cell gets here.
        let (quietly, gives_way) = (displace == Displace::Quietly, &self.gives_way[direction as usize]);
        let gave_way = occupied && gives_way.load(Ordering::Relaxed);
        if ours {
            // A waker that was in the cell already may stand for another wait as well, which does not give
            // way.
            let is_another = displaced.is_some() || !occupied;
            gives_way.store(quietly && (gave_way || is_another), Ordering::Relaxed);
        }
        let settled = self.readiness.settle(direction, tick);
        match settled {
            Settlement::Armed => mem::forget(held),
            Settlement::Overtaken => drop(held),
        }
        match displaced {
            Some(displaced) if occupied && !gave_way => waking::wake(displaced),
            // Woken before, or stored by a task that is gone or gives way.
            stale => waking::discard(stale),
        }
        match settled {
            Settlement::Overtaken => Wait::Over,
            Settlement::Armed if ours => Wait::Waiting,
            Settlement::Armed => Wait::Occupied,
        }
    }

    /// Waits on the list beside the cell. Returns false if the wait is over already.
    pub(super) fn wait_beside(&self, direction: Direction, until: Until, waker: &Waker) -> bool {
        // The waiter first, then the flag: an event between the two finds the flag missing but advances the
        // tick, which `list` compares.
        self.lists[direction as usize].add(waker);
        self.readiness.list(direction, until)
    }

    /// Retires the source. Calls `free`, unless a thread has a cell of the record: then that thread frees the
    /// record.
    pub(super) fn retire(&self, free: impl FnOnce()) {
        if self.readiness.retire() == Release::Free {
            free();
        }
    }

    /// Empties the record for its next source, and drops the wakers without calling them. The caller was told
    /// to free the record.
    pub(super) fn clear(&self) {
        for direction in Direction::BOTH {
            // SAFETY: the source is gone and no thread has a cell, so no other thread can reach this one.
            waking::discard(unsafe { self.wakers[direction as usize].with_mut(Option::take) });
            self.blind[direction as usize].store(0, Ordering::Relaxed);
            self.lists[direction as usize].forget();
        }
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

    const IN: Happened = Happened { read: true, ..Happened::NOTHING };

    /// Returns a record whose source is not ready, and the source's generation.
    fn open() -> (Record, u32) {
        let record = Record::new();
        let generation = record.readiness.open();
        Direction::BOTH
            .into_iter()
            .for_each(|direction| record.readiness.clear(direction, 0, Proof::WouldBlock));
        (record, generation)
    }

    fn enter(record: &Record, waiter: &Arc<WakeCounter>, displace: Displace) -> Wait {
        record.enter(Read, Until::Ready, &waiter.clone().into(), Waker::clone, displace, || {
            panic!("the source is there")
        })
    }

    fn fire(record: &Record, generation: u32) {
        record.deliver(record.readiness.event(generation, IN), || panic!("the source is there"));
    }

    /// The last part fails if the same waker, which waits twice, is taken for one that gives way.
    #[test]
    #[cfg_attr(miri, ignore = "a vtable has several addresses there, so that a waker may not know its copy")]
    fn a_quiet_waiter_gives_way_quietly_and_no_other_does() {
        let (record, _) = open();
        let (first, second) = (Arc::<WakeCounter>::default(), Arc::<WakeCounter>::default());
        for waiter in [&first, &second, &first] {
            assert_eq!(enter(&record, waiter, Displace::Quietly), Wait::Waiting);
        }
        assert_eq!((first.times(), second.times()), (0, 0));

        let (record, _) = open();
        assert_eq!(enter(&record, &second, Displace::No), Wait::Waiting);
        assert_eq!(enter(&record, &first, Displace::Quietly), Wait::Waiting);
        assert_eq!((first.times(), second.times()), (0, 1), "the second does not give way quietly");

        let waker = Waker::from(second.clone());
        for displace in [Displace::No, Displace::Quietly] {
            let (record, _) = open();
            for displace in [displace, Displace::Quietly] {
                let entered = record.enter(Read, Until::Ready, &waker, Waker::clone, displace, || {
                    panic!("the source is there")
                });
                assert_eq!(entered, Wait::Waiting);
            }
            assert_eq!(enter(&record, &first, Displace::Quietly), Wait::Waiting);
            assert_eq!(second.times(), 2, "once by the wait that does not give way");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "a vtable has several addresses there, so that a waker may not know its copy")]
    fn a_waiter_keeps_the_cell_and_another_waits_beside_it() {
        let (record, generation) = open();
        let (first, second) = (Arc::<WakeCounter>::default(), Arc::<WakeCounter>::default());
        let waker = Waker::from(first.clone());
        for _ in 0..2 {
            let entered = record.enter(Read, Until::Ready, &waker, Waker::clone, Displace::No, || {
                panic!("the source is there")
            });
            assert_eq!(entered, Wait::Waiting);
            assert_eq!(enter(&record, &second, Displace::No), Wait::Occupied);
            assert!(record.wait_beside(Read, Until::Ready, &second.clone().into()));
        }
        assert_eq!((first.times(), second.times()), (0, 0));
        fire(&record, generation);
        assert_eq!((first.times(), second.times()), (1, 1));
        assert_eq!(enter(&record, &first, Displace::No), Wait::Over);
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (2, 1));
    }

    #[test]
    fn a_waker_that_cannot_be_copied_leaves_the_cell_free_and_forgets_no_waiter() {
        let (record, generation) = open();
        let (first, second) = (Arc::<WakeCounter>::default(), Arc::<WakeCounter>::default());
        assert_eq!(enter(&record, &first, Displace::No), Wait::Waiting);
        let frees = AtomicUsize::new(0);
        let fail = |meanwhile: &dyn Fn()| {
            let waker = second.clone().into();
            let free = || _ = frees.fetch_add(1, Ordering::Relaxed);
            let copy = |_: &Waker| {
                meanwhile();
                std::panic::resume_unwind(Box::new("no copy"))
            };
            let enter = || record.enter(Read, Until::Ready, &waker, copy, Displace::Quietly, free);
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(enter)).is_err());
        };
        fail(&|| ());
        assert_eq!((first.times(), second.times()), (1, 0));
        assert_eq!(enter(&record, &first, Displace::No), Wait::Waiting);
        fire(&record, generation);
        assert_eq!(first.times(), 2);
        record.readiness.clear(Read, 1, Proof::WouldBlock);
        fail(&|| record.retire(|| panic!("a thread has the cell")));
        assert_eq!(frees.load(Ordering::Relaxed), 1, "the last one that had a cell frees the record");
    }

    #[test]
    fn lf6_an_event_wakes_the_cell_and_the_list_of_its_direction() {
        let (record, generation) = open();
        let [cell, beside, other] = [(); 3].map(|()| Arc::<WakeCounter>::default());
        let waker = Waker::from(beside.clone());
        assert!(record.wait_beside(Read, Until::Ready, &waker));
        assert!(record.wait_beside(Write, Until::Ready, &other.clone().into()));
        assert_eq!(enter(&record, &cell, Displace::No), Wait::Waiting);
        fire(&record, generation);
        assert_eq!((cell.times(), beside.times(), other.times()), (1, 1, 0));
        assert!(!record.wait_beside(Read, Until::Ready, &waker), "the source is ready");
        record.readiness.clear(Read, 1, Proof::WouldBlock);
        assert!(record.wait_beside(Read, Until::Ready, &waker));
        fire(&record, generation);
        assert_eq!((cell.times(), beside.times(), other.times()), (1, 2, 0));
    }

    #[test]
    fn what_a_source_leaves_is_forgotten_when_its_slot_is_freed() {
        let (record, _) = open();
        let waiter = Arc::<WakeCounter>::default();
        assert_eq!(enter(&record, &waiter, Displace::No), Wait::Waiting);
        let beside = Arc::<WakeCounter>::default();
        assert!(record.wait_beside(Read, Until::Ready, &beside.clone().into()));
        record.blind[Write as usize].store(7, Ordering::Relaxed);
        let mut frees = 0;
        record.retire(|| {
            record.clear();
            frees += 1;
        });
        assert_eq!((frees, waiter.times(), Arc::strong_count(&waiter)), (1, 0, 1));
        assert_eq!((beside.times(), Arc::strong_count(&beside)), (0, 1));
        assert_eq!(record.blind[Write as usize].load(Ordering::Relaxed), 0);
    }
}
