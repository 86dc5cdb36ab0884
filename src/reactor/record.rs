//! [`Record`]: what the reactor keeps of one source, and how those who wait there meet those who tell them.
//!
//! The poller has no part in any of this, so the loom models drive these very functions. Whoever finds that a source is
//! gone and nobody is left in its record (see [`Release`]) calls `free`, which is the owner's of all records.

use std::mem;
use std::task::Waker;

use super::Direction;
use super::marks::Marked;
use super::readiness::{Claim, Delivery, Readiness, Release, Settled, Until};
use super::waiters::{Listed, Waiters};
use crate::sync::{AtomicBool, AtomicU32, Ordering, ProtocolCell};
use crate::waking;

/// The reactor's half of a source.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) readiness: Readiness,
    pub(super) marked: Marked,
    /// A waker for each direction, owned by whoever holds the direction's BUSY flag.
    wakers: [ProtocolCell<Option<Waker>>; 2],
    /// Those who wait beside the cell's owner.
    pub(super) lists: [Waiters; 2],
    /// The tick after which a `poll_readable` or `poll_writable` in progress is over; see [`super::source`].
    pub(super) blind: [AtomicU32; 2],
    /// Whether the waker in the cell is there by [`Displace::Quietly`] alone; read and written by whoever has the cell.
    gives_way: [AtomicBool; 2],
    /// In which turn of its thread a waiter last came to the cell, and the tick then.
    pub(super) waits: [AtomicU32; 2],
}

// SAFETY: the wakers are reached only under the BUSY flag; the rest is atomic.
unsafe impl Sync for Record {}

/// Whether a waiter may take the cell from another one, which is then woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Displace {
    Yes,
    No,
    /// It may, and if the other one came in this way, too, that is forgotten: who waits so knows that the last one counts.
    Quietly,
}

/// What came of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Wait {
    /// There is nothing to wait for, after all.
    Over,
    /// The waker will be called.
    Waiting,
    /// The waker will be called, or was, but the I/O may be possible already: this thread has waited here before in the
    /// same turn, and no event came since, as a caller does who polls twice without going to sleep; or it does not look for
    /// events at all; or another thread had the cell, because an event is being delivered. So who polls without a wait in
    /// between has what is there with the second poll after an event.
    Unsure,
    /// Another task waits there.
    Occupied,
}

impl Record {
    pub(super) fn new() -> Self {
        Self {
            readiness: Readiness::new(),
            marked: Marked::new(),
            wakers: [ProtocolCell::new(None), ProtocolCell::new(None)],
            lists: Default::default(),
            blind: [AtomicU32::new(0), AtomicU32::new(0)],
            gives_way: [AtomicBool::new(false), AtomicBool::new(false)],
            waits: [AtomicU32::new(0), AtomicU32::new(0)],
        }
    }

    /// The record gets a source, of this generation.
    pub(super) fn open(&self) -> u32 {
        let generation = self.readiness.open();
        self.marked.open(generation);
        generation
    }

    /// Wakes those whom an event concerns. Runs wakers, so the caller does not lead and holds no lock (LF3). Returns one of the
    /// wakers, which is left over.
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

    /// Takes the waker out of a cell that this thread has, gives the cell back, then wakes: a woken task that comes to
    /// wait again on another thread must find the cell free. Returns the waker, which is left over.
    #[inline]
    pub(super) fn fire_cell(&self, direction: Direction, free: impl FnOnce()) -> Option<Waker> {
        // SAFETY: this thread has the cell until it releases it.
        let waker = unsafe { self.wakers[direction as usize].with_mut(Option::take) };
        if self.readiness.release(direction) == Release::Free {
            free();
        }
        waker.inspect(waking::wake_by_ref)
    }

    /// Leaves a copy of `waker` in the direction's cell.
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
        let held = Held { record: self, direction, free: &free };
        // SAFETY: the claim gave us the cell.
        let (ours, displaced) = unsafe {
            self.wakers[direction as usize].with_mut(|cell| match cell {
                Some(present) if present.will_wake(waker) => (true, None),
                Some(_) if occupied && displace == Displace::No => (false, None),
                _ => (true, cell.replace(copy(waker))),
            })
        };
        // Relaxed: only who has the cell gets here.
        let (quietly, gives_way) = (displace == Displace::Quietly, &self.gives_way[direction as usize]);
        let gave_way = occupied && gives_way.load(Ordering::Relaxed);
        if ours {
            // The same waker again may stand for another wait besides, which does not give way.
            let is_another = displaced.is_some() || !occupied;
            gives_way.store(quietly && (gave_way || is_another), Ordering::Relaxed);
        }
        let settled = self.readiness.settle(direction, tick);
        match settled {
            Settled::Armed => mem::forget(held),
            Settled::Overtaken => drop(held),
        }
        match displaced {
            Some(displaced) if occupied && !(quietly && gave_way) => waking::wake(displaced),
            // Woken before, or of somebody who went away or gives way.
            stale => waking::discard(stale),
        }
        match settled {
            Settled::Overtaken => Wait::Over,
            Settled::Armed if ours => Wait::Waiting,
            Settled::Armed => Wait::Occupied,
        }
    }

    /// Waits on the list beside the cell, in a place there; false if there is nothing to wait for.
    pub(super) fn stay_listed(
        &self,
        direction: Direction,
        until: Until,
        waker: &Waker,
        listed: &Listed,
    ) -> bool {
        // On the list first, then the flag: an event between the two finds the flag missing but advances the tick, which
        // `list` looks at.
        listed.still_waits(waker) && self.readiness.list(direction, until)
    }

    /// The source is gone; the record is used again once no thread has one of its cells.
    pub(super) fn retire(&self, free: impl FnOnce()) {
        if self.readiness.retire() == Release::Free {
            free();
        }
    }

    /// Forgets what the source left. The caller was told to free the record.
    pub(super) fn clear(&self) {
        for direction in Direction::BOTH {
            // SAFETY: the source is gone and no thread had a cell, so nobody else can get at this one.
            waking::discard(unsafe { self.wakers[direction as usize].with_mut(Option::take) });
            self.blind[direction as usize].store(0, Ordering::Relaxed);
        }
    }
}

/// A cell that was claimed and does not settle: an event came first, or a waker's `clone` panicked. It is given back, and
/// whoever waits in it is woken, and comes back.
struct Held<'a, F: Fn()> {
    record: &'a Record,
    direction: Direction,
    free: &'a F,
}

impl<F: Fn()> Drop for Held<'_, F> {
    #[cold]
    fn drop(&mut self) {
        waking::discard(self.record.fire_cell(self.direction, self.free));
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::super::readiness::{Happened, Proof};
    use super::*;
    use Direction::{Read, Write};

    const IN: Happened = Happened { read: true, ..Happened::NOTHING };

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Woken {
        fn times(self: &Arc<Self>) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    /// A record whose source is not ready, and the source's generation.
    fn open() -> (Record, u32) {
        let record = Record::new();
        let generation = record.readiness.open();
        Direction::BOTH
            .into_iter()
            .for_each(|direction| record.readiness.clear(direction, 0, Proof::WouldBlock));
        (record, generation)
    }

    fn enter(record: &Record, waiter: &Arc<Woken>, displace: Displace) -> Wait {
        record.enter(Read, Until::Ready, &waiter.clone().into(), Waker::clone, displace, || {
            panic!("the source is there")
        })
    }

    fn fire(record: &Record, generation: u32) {
        record.deliver(record.readiness.event(generation, IN), || panic!("the source is there"));
    }

    /// (The last part fails if the same waker, which waits twice, is taken for one that gives way.)
    #[test]
    #[cfg_attr(miri, ignore = "a vtable has several addresses there, so that a waker may not know its copy")]
    fn who_came_quietly_gives_way_quietly_and_nobody_else_does() {
        let (record, _) = open();
        let (first, second) = (Arc::<Woken>::default(), Arc::<Woken>::default());
        for waiter in [&first, &second, &first] {
            assert_eq!(enter(&record, waiter, Displace::Quietly), Wait::Waiting);
        }
        assert_eq!((first.times(), second.times()), (0, 0));

        assert_eq!(enter(&record, &second, Displace::Yes), Wait::Waiting);
        assert_eq!(enter(&record, &first, Displace::Quietly), Wait::Waiting);
        assert_eq!((first.times(), second.times()), (1, 1), "the first did not give way, nor did the second");

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
    fn s4_who_waits_in_the_cell_keeps_it_until_somebody_displaces_it() {
        let (record, generation) = open();
        let (first, second) = (Arc::<Woken>::default(), Arc::<Woken>::default());
        let waker = Waker::from(first.clone());
        for displace in [Displace::No, Displace::No, Displace::Yes] {
            let entered = record
                .enter(Read, Until::Ready, &waker, Waker::clone, displace, || panic!("the source is there"));
            assert_eq!(entered, Wait::Waiting);
        }
        assert_eq!(enter(&record, &second, Displace::No), Wait::Occupied);
        assert_eq!((first.times(), second.times()), (0, 0));
        assert_eq!(enter(&record, &second, Displace::Yes), Wait::Waiting);
        assert_eq!((first.times(), second.times()), (1, 0));
        fire(&record, generation);
        assert_eq!((first.times(), second.times()), (1, 1));
        assert_eq!(enter(&record, &first, Displace::No), Wait::Over);
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (2, 1));
    }

    #[test]
    fn a_waker_that_cannot_be_copied_leaves_the_cell_free_and_forgets_nobody() {
        let (record, generation) = open();
        let (first, second) = (Arc::<Woken>::default(), Arc::<Woken>::default());
        assert_eq!(enter(&record, &first, Displace::No), Wait::Waiting);
        let frees = AtomicUsize::new(0);
        let fail = |meanwhile: &dyn Fn()| {
            let waker = second.clone().into();
            let free = || _ = frees.fetch_add(1, Ordering::Relaxed);
            let copy = |_: &Waker| {
                meanwhile();
                std::panic::resume_unwind(Box::new("no copy"))
            };
            let enter = || record.enter(Read, Until::Ready, &waker, copy, Displace::Yes, free);
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(enter)).is_err());
        };
        fail(&|| ());
        assert_eq!((first.times(), second.times()), (1, 0));
        assert_eq!(enter(&record, &first, Displace::No), Wait::Waiting);
        fire(&record, generation);
        assert_eq!(first.times(), 2);
        record.readiness.clear(Read, 1, Proof::WouldBlock);
        fail(&|| record.retire(|| panic!("somebody has the cell")));
        assert_eq!(frees.load(Ordering::Relaxed), 1, "the last one that had a cell frees the record");
    }

    #[test]
    fn lf6_an_event_wakes_the_cell_and_the_list_of_its_direction() {
        let (record, generation) = open();
        let [cell, beside, other] = [(); 3].map(|()| Arc::<Woken>::default());
        let waker = Waker::from(beside.clone());
        let listed = record.lists[Read as usize].add(&waker);
        let elsewhere = record.lists[Write as usize].add(&other.clone().into());
        assert!(record.stay_listed(Read, Until::Ready, &waker, &listed));
        assert!(record.stay_listed(Write, Until::Ready, &other.clone().into(), &elsewhere));
        assert_eq!(enter(&record, &cell, Displace::No), Wait::Waiting);
        fire(&record, generation);
        assert_eq!((cell.times(), beside.times(), other.times()), (1, 1, 0));
        // It is ready; then it is not, but whoever was woken is on the list no more.
        let again = record.lists[Read as usize].add(&waker);
        assert!(!record.stay_listed(Read, Until::Ready, &waker, &again));
        record.readiness.clear(Read, 1, Proof::WouldBlock);
        assert!(record.stay_listed(Read, Until::Ready, &waker, &again));
        assert!(!record.stay_listed(Read, Until::Ready, &waker, &listed));
    }

    #[test]
    fn s3_what_a_source_leaves_is_forgotten_when_its_slot_is_freed() {
        let (record, _) = open();
        let waiter = Arc::<Woken>::default();
        assert_eq!(enter(&record, &waiter, Displace::No), Wait::Waiting);
        record.blind[Write as usize].store(7, Ordering::Relaxed);
        let mut frees = 0;
        record.retire(|| {
            record.clear();
            frees += 1;
        });
        assert_eq!((frees, waiter.times(), Arc::strong_count(&waiter)), (1, 0, 1));
        assert_eq!(record.blind[Write as usize].load(Ordering::Relaxed), 0);
    }
}
