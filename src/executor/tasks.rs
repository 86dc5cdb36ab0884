//! The tasks of an executor that are not finished: what `is_empty` asks and what dropping the executor cancels.
//!
//! Every spawn and every completion comes by (R5), and most tasks are done in their first poll. So all are counted, and
//! only those are listed that had to wait:
//!
//! | a task | ticket | on the list | next |
//! |---|---|---|---|
//! | of an executor that lives for ever | [`NONE`](Ticket::NONE) | no | - |
//! | not polled yet, or in its first poll | [`COUNTED`](Ticket::COUNTED) | no | [`list`](Tasks::list), if that poll ends without a result; else [`leave`](Tasks::leave) |
//! | that has waited | its entry | yes | [`leave`](Tasks::leave) |
//!
//! A ticket is changed by the task's own poll and used up by the drop of its future, which exclude each other.
//!
//! **Whom the end looks for is found.** A task without an entry was not polled, so it is scheduled, and found where such tasks
//! are (LF7); or it is in its first poll. If that one ends without a result it comes here, under its shard's lock. Either
//! [`wake_all`](Tasks::wake_all) has the lock later, and wakes it; or it had the lock before and said that it was there:
//! then whoever lists the task wakes it.
//!
//! **The count is never too low**, so that nobody takes an executor for empty that is not. Each thread counts in a shard
//! of its own: what it spawns, and apart from it what ends on it, wherever that was spawned. Who asks reads all that ended before
//! all that was spawned. Then each end that he has seen has a beginning that he sees, too, and a task that was
//! there before he asked is one beginning more. What begins while he reads he may see, and its end not: the count may be too high by that.
//!
//! Sharded by thread, so that a thread that ends what another one spawns writes nothing that the other one does.
//!
//! **Who waits for the last end is woken by it**: see [`Vigil`].

use std::sync::atomic;
use std::task::Waker;

use super::vigil::Vigil;
use crate::sync::{self, AtomicUsize, Mutex, Ordering, process_static, thread_local};

/// A count reads all of them, which is many steps for a model.
const SHARDS: usize = if cfg!(paceline_loom) { 3 } else { 8 };

/// What one end counts in `finished`, which is [`WATCHED`] beside.
const ONE_END: usize = 2;
/// Somebody waits for the last end.
const WATCHED: usize = 1;

#[derive(Debug)]
enum Entry {
    Free { next: u32 },
    Taken(Waker),
}

#[derive(Debug)]
struct List {
    entries: Vec<Entry>,
    free: u32,
    /// All that were here have been woken, because they are to end. Who comes later is woken at once.
    ends: bool,
}

/// What some threads count, on cache lines of their own; and the list of tasks that have waited on these threads.
#[derive(Debug)]
#[repr(align(128))]
struct Shard {
    spawned: AtomicUsize,
    /// [`ONE_END`] for each, and [`WATCHED`]: in one word, so that no end and no watch miss each other.
    finished: AtomicUsize,
    list: Mutex<List>,
}

/// What a task knows of its place here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket(u32);

/// The tasks.
#[derive(Debug)]
pub(super) struct Tasks([Shard; SHARDS], Vigil);

thread_local! {
    /// The shard in which this thread counts.
    static SHARD: usize = {
        process_static! {
            /// Std's atomic: nobody waits for another one's number.
            static NEXT: atomic::AtomicUsize = atomic::AtomicUsize::new(0);
        }
        NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS
    };
}

impl Tasks {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Shard::new()), Vigil::new())
    }

    fn here() -> usize {
        SHARD.try_with(|shard| *shard).unwrap_or(0)
    }

    /// A task is about to be made. It will leave with the ticket that it has then.
    #[inline]
    pub(super) fn enter(&self) -> Ticket {
        self.0[Self::here()].begin();
        Ticket::COUNTED
    }

    /// A task that entered has to wait, for the first time. Called in its poll; this is its own waker.
    #[inline(never)]
    pub(super) fn list(&self, waker: &Waker) -> Ticket {
        self.list_in(Self::here(), waker)
    }

    fn list_in(&self, number: usize, waker: &Waker) -> Ticket {
        let (at, ends) = self.0[number].list(waker.clone());
        if ends {
            // LF3: outside of the lock. It is scheduled when its poll returns.
            waker.wake_by_ref();
        }
        Ticket(at * SHARDS as u32 + number as u32)
    }

    /// The task is finished, or its future was dropped.
    #[inline]
    pub(super) fn leave(&self, ticket: Ticket) {
        let shard = match ticket {
            Ticket::NONE => return,
            Ticket::COUNTED => &self.0[Self::here()],
            Ticket(listed) => {
                let shard = &self.0[listed as usize % SHARDS];
                // LF3: it is out of the lock before it is dropped.
                drop(shard.unlist(listed / SHARDS as u32));
                shard
            }
        };
        self.leaves(shard);
    }

    #[inline]
    fn leaves(&self, shard: &Shard) {
        if shard.end() {
            self.one_ended();
        }
    }

    /// Somebody waits for the last one, which this may have been.
    #[cold]
    fn one_ended(&self) {
        sync::full_fence();
        if self.count() <= self.1.enough() {
            self.1.wake();
        }
    }

    /// The calling thread waits for the last end from now on: that which leaves no more than [`enough`](Self::is_enough) unparks it.
    /// It counts after this call, before it parks.
    pub(super) fn watch(&self) {
        self.1.begin();
        self.0.iter().for_each(Shard::watch);
        sync::full_fence();
    }

    /// Nobody waits any more.
    pub(super) fn look_away(&self) {
        self.0.iter().for_each(Shard::look_away);
        self.1.end();
    }

    /// So many tasks may be left from now on: who waits looks again.
    pub(super) fn is_enough(&self, left: usize) {
        self.1.is_enough(left);
    }

    /// Tasks that are not finished; and of those that are spawned meanwhile some, perhaps, that are.
    pub(super) fn count(&self) -> usize {
        self.census().1
    }

    /// How many have ended so far, and how many are not finished, as above, by the same reading.
    pub(super) fn census(&self) -> (usize, usize) {
        let sum = |counted: fn(&Shard) -> usize| self.0.iter().map(counted).fold(0, usize::wrapping_add);
        let finished = sum(Shard::finished);
        // What ends is counted with a bit less.
        (finished, sum(Shard::spawned).wrapping_sub(finished) & (usize::MAX / ONE_END))
    }

    /// Wakes all that are not scheduled, because they are to end; and from now on each one that has to wait for the first time.
    pub(super) fn wake_all(&self) {
        for shard in &self.0 {
            // LF3: outside of the lock.
            shard.all_end().into_iter().for_each(Waker::wake);
        }
    }
}

impl Shard {
    fn new() -> Self {
        let list = List { entries: Vec::new(), free: u32::MAX, ends: false };
        Self { spawned: AtomicUsize::new(0), finished: AtomicUsize::new(0), list: Mutex::new(list) }
    }

    #[inline]
    fn begin(&self) {
        // ORDER: none of its own. What hands the task to the thread that ends it, `end` hands on: see `finished`.
        self.spawned.fetch_add(1, Ordering::Relaxed);
    }

    /// True if somebody waits for the last end.
    #[inline]
    fn end(&self) -> bool {
        // ORDER: Release pairs with the Acquire of `finished`.
        self.finished.fetch_add(ONE_END, Ordering::Release) & WATCHED != 0
    }

    fn finished(&self) -> usize {
        // ORDER: Acquire pairs with the Release of each `end` that is counted: its `begin` is seen by whoever reads `spawned` later,
        // and so is what the task did.
        self.finished.load(Ordering::Acquire) / ONE_END
    }

    fn watch(&self) {
        // ORDER: Relaxed, because what is counted is read later. A change of the word, not a store beside it: an end comes before
        // this one, and whoever counts after it sees it; or it comes after it, and finds the mark.
        self.finished.fetch_or(WATCHED, Ordering::Relaxed);
    }

    fn look_away(&self) {
        // ORDER: none: who wakes somebody in vain does no harm.
        self.finished.fetch_and(!WATCHED, Ordering::Relaxed);
    }

    fn spawned(&self) -> usize {
        self.spawned.load(Ordering::Relaxed)
    }

    /// Takes an entry. Returns which; and whether its task is to end.
    fn list(&self, waker: Waker) -> (u32, bool) {
        let mut guard = sync::lock(&self.list);
        let list = &mut *guard;
        let at = list.free;
        if let Some(entry) = list.entries.get_mut(at as usize) {
            if let Entry::Free { next } = std::mem::replace(entry, Entry::Taken(waker)) {
                list.free = next;
            }
            return (at, list.ends);
        }
        let at = u32::try_from(list.entries.len()).unwrap_or(u32::MAX);
        assert!(at < u32::MAX / SHARDS as u32, "too many tasks at once");
        list.entries.push(Entry::Taken(waker));
        (at, list.ends)
    }

    /// Gives an entry back, and what was in it.
    fn unlist(&self, at: u32) -> Entry {
        let mut list = sync::lock(&self.list);
        let free = Entry::Free { next: std::mem::replace(&mut list.free, at) };
        std::mem::replace(&mut list.entries[at as usize], free)
    }

    /// All that are listed. Who is listed later is told that it is to end.
    fn all_end(&self) -> Vec<Waker> {
        let mut list = sync::lock(&self.list);
        list.ends = true;
        let waker = |entry: &Entry| match entry {
            Entry::Taken(waker) => Some(waker.clone()),
            Entry::Free { .. } => None,
        };
        list.entries.iter().filter_map(waker).collect()
    }
}

impl Ticket {
    /// Of a task that is not counted.
    pub(super) const NONE: Self = Self(u32::MAX);
    /// Of one that is, and has not had to wait.
    pub(super) const COUNTED: Self = Self(u32::MAX - 1);
}

#[cfg(all(test, paceline_loom))]
mod models;

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests;
