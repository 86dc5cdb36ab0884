//! A hierarchical timing wheel with exact deadlines.
//!
//! Timers are mostly timeouts: armed, then cancelled. So arming and cancelling are a few instructions on
//! doubly-linked lists in one vector, whatever the number of timers, and timers are sorted only as time
//! passes.
//!
//! Time is in nanoseconds. A bucket of the lowest level spans 2^18 of them (262 us), a bucket of each further
//! level 64 times as many; eight levels cover all of `u64`. An entry lives on the level of the highest group
//! of six bits in which its deadline differs from the wheel's time, in the bucket that this group of its
//! deadline names. So on every level the occupied buckets lie ahead of the wheel's time, and the lowest
//! occupied level holds the earliest entry. When time reaches a bucket, its entries are due or move to lower
//! levels, each at most once a level.

use std::iter::successors;

use crate::slab::{Slab, SlabEntry};

const GRAIN: u32 = 18;
const GROUP: u32 = 6;
const LEVELS: usize = 8;
const BUCKETS: usize = 1 << GROUP;

/// The index of no entry: there are fewer.
const NIL: u32 = u32::MAX;
/// The `bucket_of` of an entry that is on no list.
const FIRED: u16 = u16::MAX;
/// The `bucket_of` of a free entry.
const UNUSED: u16 = FIRED - 1;

/// Number of entries to compare for the earliest deadline of a bucket. In a larger bucket its start counts as
/// the earliest deadline.
const SCAN: usize = 64;

#[derive(Debug)]
pub(super) struct WheelEntry<T> {
    pub(super) deadline: u64,
    /// The next entry of its bucket's list, or [`NIL`]; the slab's number if the entry is free.
    next: u32,
    /// The previous entry of its bucket's list, or [`NIL`].
    previous: u32,
    /// The level and bucket of the list that the entry is on, as one number; or [`FIRED`], or [`UNUSED`].
    bucket_of: u16,
    /// For how long the entry may wait after its deadline.
    slack: u32,
    /// `Some` while the entry is armed.
    pub(super) value: Option<T>,
}

impl<T> SlabEntry for WheelEntry<T> {
    type Value = Option<T>;

    #[inline]
    fn free(&mut self, number: u32) -> Option<T> {
        (self.next, self.bucket_of) = (number, UNUSED);
        self.value.take()
    }

    #[inline]
    fn number(&mut self) -> Option<&mut u32> {
        (self.bucket_of == UNUSED).then_some(&mut self.next)
    }
}

/// A hierarchical timing wheel.
#[derive(Debug)]
pub(super) struct Wheel<T> {
    /// The time up to which entries were collected.
    now: u64,
    pub(super) entries: Slab<WheelEntry<T>>,
    /// The number of entries that are not due yet.
    pub(super) armed: usize,
    /// For each level, one bit for each bucket that has an entry.
    occupied: [u64; LEVELS],
    /// The first entry of each bucket, or [`NIL`].
    heads: Box<[[u32; BUCKETS]; LEVELS]>,
    /// For each bucket of the lowest level that has an entry: a time by which to check, not after the end of
    /// the slack of any of its entries. A removed entry may have left it too early.
    latest: [u64; BUCKETS],
}

impl<T> Wheel<T> {
    /// Creates a wheel without entries, at time 0.
    pub(super) fn new() -> Self {
        Self {
            now: 0,
            entries: Slab::new(),
            armed: 0,
            occupied: [0; LEVELS],
            heads: Box::new([[NIL; BUCKETS]; LEVELS]),
            latest: [0; BUCKETS],
        }
    }

    /// Arms a new entry, with a deadline and a slack, and returns its id. If its deadline has passed, the
    /// entry is due at the next [`advance`](Self::advance). Panics if there are 2^32 entries.
    #[inline]
    pub(super) fn insert(&mut self, (deadline, slack): (u64, u32), value: T) -> u32 {
        let value = Some(value);
        let entry = WheelEntry { deadline, next: NIL, previous: NIL, bucket_of: FIRED, slack, value };
        let id = self.entries.insert(entry);
        self.link(id);
        id
    }

    /// Removes an entry, armed or fired; a new one may get its id. Returns its value, if it was armed.
    #[inline]
    pub(super) fn remove(&mut self, id: u32) -> Option<T> {
        self.unlink(id);
        self.entries.remove(id)
    }

    /// Arms an entry anew, armed or fired, with another value if one is given. Returns the value that the
    /// given one replaces, if the entry was armed; or `Err` if the entry has fired and no value is given.
    pub(super) fn rearm(&mut self, id: u32, at: (u64, u32), value: Option<T>) -> Result<Option<T>, ()> {
        self.unlink(id);
        let entry = &mut self.entries[id as usize];
        (entry.deadline, entry.slack) = at;
        let old = value.and_then(|value| entry.value.replace(value));
        if entry.value.is_none() {
            return Err(());
        }
        self.link(id);
        Ok(old)
    }

    /// Moves time on, never back, and passes the deadlines and values of all due entries to `due`, in no
    /// order. But of equal deadlines, the last one armed comes first: they are always in the same list, and
    /// entries are put at its head. A due entry keeps its id until it is removed.
    pub(super) fn advance(&mut self, now: u64, mut due: impl FnMut(u64, T)) {
        let now = now.max(self.now);
        let mut later = NIL;
        while let Some((level, bucket, _)) = self.first_occupied().filter(|(.., start)| *start <= now) {
            self.occupied[level] &= !(1 << bucket);
            let mut at = std::mem::replace(&mut self.heads[level][bucket], NIL);
            while at != NIL {
                let entry = &mut self.entries[at as usize];
                let next = entry.next;
                entry.bucket_of = FIRED;
                self.armed -= 1;
                if entry.deadline <= now {
                    due(entry.deadline, entry.value.take().expect("an armed entry has a value"));
                } else {
                    entry.next = later;
                    later = at;
                }
                at = next;
            }
        }
        self.now = now;
        while later != NIL {
            let next = self.entries[later as usize].next;
            self.link(later);
            later = next;
        }
    }

    /// Returns a time at which to check again: never after the earliest deadline, and that itself unless it
    /// is too far away to be worth a search; and a time up to which that check can be put off, at which no
    /// entry is later than its slack. Returns `None` if no entry is armed.
    pub(super) fn next_check(&self) -> Option<(u64, u64)> {
        let (level, bucket, start) = self.first_occupied()?;
        let entry = |id: u32| self.entries.get(id as usize);
        let mut entries = successors(entry(self.heads[level][bucket]), |last| entry(last.next));
        let scan = if level == 0 { usize::MAX } else { SCAN };
        let earliest = entries.by_ref().take(scan).map(|entry| entry.deadline).min();
        let check = if entries.next().is_some() { start } else { earliest? };
        // The entries after the lowest level may have less slack than those in it.
        let end = ((self.now >> (GRAIN + GROUP)) + 1) << (GRAIN + GROUP);
        let occupied = (0..BUCKETS).filter(|bucket| self.occupied[0] >> bucket & 1 == 1);
        let latest = occupied.map(|bucket| self.latest[bucket]).fold(end, u64::min);
        Some((check, if level == 0 { latest } else { check }))
    }

    /// Returns the level and bucket of the earliest entry, and when the bucket begins; `None` if no entry is
    /// armed.
    #[inline]
    fn first_occupied(&self) -> Option<(usize, usize, u64)> {
        let level = self.occupied.iter().position(|buckets| *buckets != 0)?;
        let bucket = self.occupied[level].trailing_zeros();
        let shift = GRAIN + GROUP * level as u32;
        let above = shift + GROUP;
        let high = if above >= u64::BITS { 0 } else { self.now >> above << above };
        Some((level, bucket as usize, high | u64::from(bucket) << shift))
    }

    /// Puts an entry that is on no list into the bucket of its deadline, and counts it as armed.
    #[inline]
    fn link(&mut self, id: u32) {
        let deadline = self.entries[id as usize].deadline.max(self.now);
        let differs = (deadline ^ self.now) >> GRAIN;
        let level = if differs == 0 { 0 } else { (differs.ilog2() / GROUP) as usize };
        let bucket = (deadline >> (GRAIN + GROUP * level as u32)) as usize % BUCKETS;
        let head = std::mem::replace(&mut self.heads[level][bucket], id);
        self.occupied[level] |= 1 << bucket;
        if head != NIL {
            self.entries[head as usize].previous = id;
        }
        let entry = &mut self.entries[id as usize];
        if level == 0 {
            let latest = deadline.saturating_add(u64::from(entry.slack));
            self.latest[bucket] = if head == NIL { latest } else { self.latest[bucket].min(latest) };
        }
        entry.next = head;
        entry.previous = NIL;
        entry.bucket_of = (level * BUCKETS + bucket) as u16;
        self.armed += 1;
    }

    /// Takes an entry off its list, if it is on one, and counts it as armed no more.
    #[inline]
    fn unlink(&mut self, id: u32) {
        let WheelEntry { next, previous, bucket_of, .. } = self.entries[id as usize];
        if bucket_of == FIRED {
            return;
        }
        let (level, bucket) = (bucket_of as usize / BUCKETS, bucket_of as usize % BUCKETS);
        if next != NIL {
            self.entries[next as usize].previous = previous;
        }
        if previous != NIL {
            self.entries[previous as usize].next = next;
        } else {
            self.heads[level][bucket] = next;
            if next == NIL {
                self.occupied[level] &= !(1 << bucket);
            }
        }
        self.entries[id as usize].bucket_of = FIRED;
        self.armed -= 1;
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use std::cmp::Reverse;
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// A small generator, so that a failure can be reproduced.
    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn agrees_with_a_sorted_set() {
        let (seeds, steps) = if cfg!(miri) { (2, 300) } else { (39, 4_000) };
        for seed in 1..=seeds {
            let mut state = seed * 0x9E37_79B9;
            let mut wheel = Wheel::new();
            let mut model = BTreeSet::new();
            let (mut ids, mut ends) = (Vec::new(), BTreeMap::new());
            let mut now = 0u64;
            for number in 0..steps {
                match random(&mut state) % 4 {
                    0 | 1 => {
                        let deadline = now.saturating_add(random(&mut state) >> (random(&mut state) % 64));
                        let slack = random(&mut state) as u32 >> 12;
                        let id = wheel.insert((deadline, slack), (deadline, number));
                        model.insert((deadline, number));
                        ends.insert(number, deadline.saturating_add(slack.into()));
                        ids.push((id, deadline, number));
                    }
                    2 if !ids.is_empty() => {
                        let at = random(&mut state) as usize % ids.len();
                        let (id, deadline, number) = ids.swap_remove(at);
                        assert_eq!(wheel.remove(id).is_some(), model.remove(&(deadline, number)));
                    }
                    _ => {
                        if let Some((check, latest)) = wheel.next_check() {
                            let (earliest, _) = *model.first().unwrap();
                            let end = model.iter().map(|(_, number)| ends[number]).min();
                            assert!(check <= earliest && Some(latest) <= end);
                            let next = if random(&mut state) % 2 == 0 { check } else { latest };
                            now = now.max(next);
                        }
                        now = now.saturating_add(random(&mut state) >> (24 + random(&mut state) % 40));
                        now = now.min(u64::MAX - 1);
                        let mut due = Vec::new();
                        wheel.advance(now, |deadline, value| {
                            assert_eq!(deadline, value.0);
                            due.push(value);
                        });
                        // Stable: equal deadlines stay in the order in which they came.
                        due.sort_by_key(|(deadline, _)| Reverse(*deadline));
                        let later = model.split_off(&(now.saturating_add(1), 0));
                        assert!(due.iter().rev().eq(&model));
                        model = later;
                    }
                }
                assert_eq!(wheel.armed, model.len());
            }
        }
    }

    #[test]
    fn of_equal_deadlines_the_last_one_armed_comes_first() {
        let mut wheel = Wheel::new();
        let ids: Vec<_> = (0..4).map(|number| wheel.insert((1 << 30, 0), number)).collect();
        wheel.advance((1 << 30) - (1 << 21), |_, _| panic!());
        (4..6).for_each(|number| _ = wheel.insert((1 << 30, 0), number));
        wheel.rearm(ids[2], (1 << 30, 0), None).unwrap();
        wheel.advance((1 << 30) - (1 << 10), |_, _| panic!());
        (6..8).for_each(|number| _ = wheel.insert((1 << 30, 0), number));
        let mut due = Vec::new();
        wheel.advance(1 << 31, |_, number| due.push(number));
        assert_eq!(due, [7, 6, 2, 5, 4, 3, 1, 0]);
    }

    #[test]
    fn a_deadline_closer_than_a_slot_is_exact() {
        let mut wheel = Wheel::new();
        wheel.advance(1 << 40, |_, _| panic!());
        wheel.insert(((1 << 40) + 10_000, 0), ());
        assert_eq!(wheel.next_check(), Some(((1 << 40) + 10_000, (1 << 40) + 10_000)));
        wheel.advance((1 << 40) + 9_999, |_, _| panic!("early"));
        let mut fired = 0;
        wheel.advance((1 << 40) + 10_000, |_, _| fired += 1);
        assert_eq!(fired, 1);
        // The first moment of a bucket.
        for deadline in [(1 << 40) + (3 << GRAIN), (1 << 40) + (3 << (GRAIN + GROUP))] {
            wheel.insert((deadline, 0), ());
            wheel.advance(deadline - 1, |_, _| panic!("early"));
            wheel.advance(deadline, |_, _| fired += 1);
        }
        assert_eq!(fired, 3);
    }

    /// The lowest level begins at 3 << 40, and spans 16.8 ms.
    #[test]
    fn a_check_can_be_put_off_for_the_slack_of_each_entry() {
        let mut wheel = Wheel::new();
        let (now, us) = (3 << 40, |count: u64| count * 1_024);
        wheel.advance(now, |_, _| panic!());
        wheel.insert((now + us(10), us(1_000) as u32), 0);
        assert_eq!(wheel.next_check(), Some((now + us(10), now + us(1_010))));
        let late = wheel.insert((now + us(900), us(50) as u32), 0);
        let soon = wheel.insert((now + us(20), us(50) as u32), 0);
        assert_eq!(wheel.next_check(), Some((now + us(10), now + us(70))));
        // In the bucket of another entry, which does not know what was removed.
        wheel.remove(soon);
        assert_eq!(wheel.next_check(), Some((now + us(10), now + us(70))));
        wheel.advance(now + us(9), |_, _| panic!("early"));
        assert_eq!(wheel.next_check(), Some((now + us(10), now + us(950))));
        wheel.remove(late);
        assert_eq!(wheel.next_check(), Some((now + us(10), now + us(1_010))));
        // The entry far away may have no slack.
        wheel.insert((now + us(16_000), us(1_000) as u32), 0);
        wheel.advance(now + us(1_010), |_, _| ());
        assert_eq!(wheel.next_check(), Some((now + us(16_000), now + us(16_384))));
        wheel.advance(now + us(16_090), |_, _| ());
        wheel.insert((now + us(20_000), us(1_000) as u32), 0);
        assert_eq!(wheel.next_check(), Some((now + us(20_000), now + us(20_000))));
    }

    #[test]
    fn near_deadlines_are_exact_however_many_there_are_and_far_ones_if_they_are_few() {
        let mut wheel = Wheel::new();
        let now = 3 << 40;
        wheel.advance(now, |_, _| panic!());
        let check = |wheel: &Wheel<()>| wheel.next_check().map(|(check, _)| check);
        let far = now + (5 << (GRAIN + GROUP));
        for number in 0..SCAN as u64 {
            wheel.insert((far + 1_000 + number, 0), ());
        }
        assert_eq!(check(&wheel), Some(far + 1_000));
        let last = wheel.insert((far + 2_000, 0), ());
        assert_eq!(check(&wheel), Some(far), "when the bucket begins");
        wheel.remove(last);
        assert_eq!(check(&wheel), Some(far + 1_000));
        for number in 0..=SCAN as u64 {
            wheel.insert((now + 1_000 + number, 0), ());
        }
        assert_eq!(check(&wheel), Some(now + 1_000));
    }

    #[test]
    fn an_entry_keeps_its_value_until_it_is_due_and_is_armed_anew_with_another() {
        let mut wheel = Wheel::new();
        let ids = [10, 20, 30, 40].map(|deadline| wheel.insert((deadline, 0), deadline));
        assert_eq!(wheel.rearm(ids[1], (50, 0), None), Ok(None));
        assert_eq!(wheel.rearm(ids[2], (60, 0), Some(31)), Ok(Some(30)));
        let mut due = Vec::new();
        wheel.advance(45, |_, value| due.push(value));
        due.sort_unstable();
        assert_eq!(due, [10, 40]);
        assert_eq!(wheel.rearm(ids[0], (70, 0), None), Err(()));
        assert_eq!(wheel.rearm(ids[0], (70, 0), Some(11)), Ok(None));
        assert_eq!((wheel.remove(ids[3]), wheel.remove(ids[1])), (None, Some(20)));
        assert_eq!(wheel.armed, 2);
        let mut left: Vec<_> = wheel.entries.iter_mut().filter_map(|entry| entry.value.take()).collect();
        left.sort_unstable();
        assert_eq!(left, [11, 31]);
    }

    #[test]
    fn after_a_peak_of_timers_the_memory_is_freed_although_some_stay() {
        let mut wheel = Wheel::new();
        let ids: Vec<_> = (0..10_000).map(|number| wheel.insert((1 << 40, 0), number)).collect();
        ids[10..].iter().for_each(|id| assert!(wheel.remove(*id).is_some()));
        assert!((10..100).contains(&wheel.entries.len()), "{}", wheel.entries.len());
        let mut due = Vec::new();
        wheel.advance(1 << 41, |_, value| due.push(value));
        due.sort_unstable();
        assert!(due.into_iter().eq(0..10));
    }
}
