//! [`Tasks`]: the unfinished tasks of an executor. `is_empty` counts them, and the drop of the executor
//! cancels them.
//!
//! Every spawn and every completion is counted here, and most tasks are done in their first poll. So all
//! tasks are counted, but only tasks that had to wait are listed:
//!
//! | a task | ticket | listed | next |
//! |---|---|---|---|
//! | of an executor that lives for ever | [`NONE`](Ticket::NONE) | no | - |
//! | first poll not over, will be `Pending` | [`COUNTED`](Ticket::COUNTED) | no | [`list`](Tasks::list) |
//! | first poll not over, will be the last | [`COUNTED`](Ticket::COUNTED) | no | [`leave`](Tasks::leave) |
//! | that has waited | its entry | yes | [`leave`](Tasks::leave) |
//!
//! A ticket is changed by the task's own poll and used up by the drop of its future, which exclude each
//! other.
//!
//! **The end of an executor misses no task.** A task without an entry is scheduled, and found where scheduled
//! tasks are (LF7), or it is in its first poll. If that poll returns `Pending`, the task is listed under the
//! lock of its shard. If [`wake_all`](Tasks::wake_all) takes the lock later, it wakes the task. If `wake_all`
//! had the lock earlier, it has set `ShardList::ends`, and the thread that lists the task wakes it.
//!
//! **The count is never too low**, so that an executor with tasks is never taken for empty. Each thread uses
//! one shard, in which it counts the tasks that it spawns and, in a separate word, the tasks that end on it,
//! wherever they were spawned. A count reads the ends of all shards before the spawns of all shards. So it
//! sees the spawn of each task for which it has seen the end, and also the spawn of each other task that
//! existed before the count. The count may see the spawn of a task during the count and miss its end: it
//! may be too high by such tasks.
//!
//! The count is sharded by thread, so that threads write to separate cache lines, even if a task ends on
//! another thread than the one that spawned it.
//!
//! **The last end wakes the thread that waits for it**: see `vigil.rs`.

use std::panic::Location;
use std::sync::atomic;
use std::task::Waker;

use crate::slab::Slab;
use crate::sync::{self, AtomicUsize, Mutex, Ordering, Thread, process_static, thread_local};

/// Number of shards. Fewer in models, because each one is several steps of a count.
const SHARDS: usize = if cfg!(paceline_loom) { 3 } else { 8 };

/// The value of an end in `Shard::finished`. The lowest bit is [`WATCHED`].
const ONE_END: usize = 2;
/// Bit of `Shard::finished`: a thread waits for the last end.
const WATCHED: usize = 1;

/// A listed task in reports: where it was spawned, and since when it has been listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedTask {
    pub(crate) spawned_at: &'static Location<'static>,
    /// On [`coarse_millis`](sync::coarse_millis).
    pub(crate) since: u64,
}

#[derive(Debug)]
struct ShardList {
    entries: Slab<Result<(Waker, ListedTask), u32>>,
    /// All listed tasks have been woken, because they are to end. Tasks that are listed later are woken at
    /// once.
    ends: bool,
}

/// The counts of some threads, on separate cache lines, and the list of the tasks that had to wait first on
/// these threads.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Shard {
    spawned: AtomicUsize,
    /// The number of ends times [`ONE_END`], and [`WATCHED`]: in one word, so that an end and a watch cannot
    /// miss each other.
    finished: AtomicUsize,
    list: Mutex<ShardList>,
}

/// How a task is counted and listed: see the table above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket(u32);

/// The unfinished tasks of an executor.
#[derive(Debug)]
pub(crate) struct Tasks {
    pub(super) shards: [Shard; SHARDS],
    /// The waiter is woken when no more tasks than this are left.
    pub(super) threshold: AtomicUsize,
    pub(super) waiter: Mutex<Option<Thread>>,
}

thread_local! {
    /// The shard in which this thread counts.
    static SHARD: usize = {
        process_static! {
            /// Std's atomic in all modes: no thread waits for the number of another one.
            static NEXT_SHARD: atomic::AtomicUsize = atomic::AtomicUsize::new(0);
        }
        NEXT_SHARD.fetch_add(1, Ordering::Relaxed) % SHARDS
    };
}

impl Tasks {
    pub(super) fn new() -> Self {
        let shards = std::array::from_fn(|_| Shard::new());
        Self { shards, threshold: AtomicUsize::new(0), waiter: Mutex::new(None) }
    }

    fn here() -> usize {
        SHARD.try_with(|shard| *shard).unwrap_or(0)
    }

    /// Counts a task that is about to be created. Its future's drop calls [`leave`](Self::leave) with the
    /// ticket that the task has by then.
    #[inline]
    pub(super) fn enter(&self) -> Ticket {
        self.shards[Self::here()].begin();
        Ticket::COUNTED
    }

    /// Lists a counted task that has to wait for the first time, and returns its new ticket. Called during
    /// its poll, with its own waker. If the executor ends, wakes the task.
    ///
    /// Reads a coarse clock, once in the life of the task. A task that is done in its first poll reads no
    /// clock.
    #[inline(never)]
    pub(super) fn list(&self, waker: &Waker, spawned_at: &'static Location<'static>) -> Ticket {
        self.list_in(Self::here(), waker, ListedTask { spawned_at, since: sync::coarse_millis() })
    }

    /// Lists a counted task in the shard of this number, and returns its new ticket. If the executor ends,
    /// wakes the task. Panics if there are more listed tasks than tickets.
    fn list_in(&self, number: usize, waker: &Waker, listed: ListedTask) -> Ticket {
        let entry = Ok((waker.clone(), listed));
        let mut list = sync::lock(&self.shards[number].list);
        assert!(list.entries.len() < (u32::MAX / SHARDS as u32) as usize, "too many tasks at once");
        let (at, ends) = (list.entries.insert(entry), list.ends);
        drop(list);
        if ends {
            // LF3: outside of the lock. The task is scheduled when its poll returns.
            waker.wake_by_ref();
        }
        Ticket(at * SHARDS as u32 + number as u32)
    }

    /// Counts the end of a task, and takes it from the list: its future was dropped, after it was done or
    /// before. Wakes the waiting thread if few enough tasks are left. Does nothing for [`Ticket::NONE`].
    #[inline]
    pub(super) fn leave(&self, ticket: Ticket) {
        let shard = match ticket {
            Ticket::NONE => return,
            Ticket::COUNTED => &self.shards[Self::here()],
            Ticket(listed) => self.unlist(listed),
        };
        self.count_end(shard);
    }

    /// Frees the entry of the task whose ticket has this number, and drops its waker. Returns the shard of
    /// the entry.
    #[inline(never)]
    fn unlist(&self, listed: u32) -> &Shard {
        let shard = &self.shards[listed as usize % SHARDS];
        let entry = sync::lock(&shard.list).entries.remove(listed / SHARDS as u32);
        // LF3: outside of the lock.
        drop(entry);
        shard
    }

    /// Counts the end of a task in `shard`. If a thread waits for ends and few enough tasks are left, wakes
    /// it.
    #[inline]
    fn count_end(&self, shard: &Shard) {
        if shard.end() {
            self.check_threshold();
        }
    }

    /// Returns the number of unfinished tasks. Tasks that are spawned and end during the call may be
    /// included.
    pub(crate) fn count(&self) -> usize {
        self.census().1
    }

    /// Returns how many tasks have ended so far, and [`count`](Self::count), from a single reading.
    pub(crate) fn census(&self) -> (usize, usize) {
        let sum = |counted: fn(&Shard) -> usize| self.shards.iter().map(counted).fold(0, usize::wrapping_add);
        let finished = sum(Shard::finished);
        let spawned = sum(|shard| shard.spawned.load(Ordering::Relaxed));
        // Ends are counted in a word that has one bit less.
        (finished, spawned.wrapping_sub(finished) & (usize::MAX / ONE_END))
    }

    /// Calls `f` for each listed task, with the address that its waker points to. A shard's lock is held
    /// meanwhile, so `f` must not run foreign code.
    pub(super) fn for_each_listed(&self, mut f: impl FnMut(usize, ListedTask)) {
        for shard in &self.shards {
            for (waker, listed) in sync::lock(&shard.list).entries.iter().flatten() {
                f(waker.data().addr(), *listed);
            }
        }
    }

    /// Wakes all listed tasks, because they are to end. From now on, each task that has to wait for the first
    /// time is woken at once.
    pub(super) fn wake_all(&self) {
        for shard in &self.shards {
            let mut list = sync::lock(&shard.list);
            list.ends = true;
            let wakers: Vec<_> = list.entries.iter().flatten().map(|(waker, _)| waker.clone()).collect();
            drop(list);
            // LF3: outside of the lock.
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}

impl Shard {
    fn new() -> Self {
        let list = ShardList { entries: Slab::new(), ends: false };
        Self { spawned: AtomicUsize::new(0), finished: AtomicUsize::new(0), list: Mutex::new(list) }
    }

    /// Counts a task that is spawned.
    #[inline]
    fn begin(&self) {
        // ORDER: Relaxed. The handover of the task to the thread that ends it orders this before that `end`,
        // whose Release publishes it: see `finished`.
        self.spawned.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an end. Returns whether a thread waits for the last end.
    #[inline]
    fn end(&self) -> bool {
        // ORDER: Release pairs with the Acquire of `finished`.
        self.finished.fetch_add(ONE_END, Ordering::Release) & WATCHED != 0
    }

    /// Returns how many ends were counted. What the ended tasks did is visible to the caller.
    fn finished(&self) -> usize {
        // ORDER: Acquire pairs with the Release of each `end` that is counted: a later read of `spawned` sees
        // the `begin` of that task, and the caller sees what the task did.
        self.finished.load(Ordering::Acquire) / ONE_END
    }

    /// Marks the word: each later end learns from it that a thread waits.
    pub(super) fn watch(&self) {
        // ORDER: Relaxed, because the counts are read later, behind a fence. A read-modify-write of the
        // word that ends change: an end precedes it, and a count after this call includes the end; or an
        // end follows it, and finds the mark.
        self.finished.fetch_or(WATCHED, Ordering::Relaxed);
    }

    /// Clears the mark of [`watch`](Self::watch).
    pub(super) fn unwatch(&self) {
        // ORDER: Relaxed. An end that still finds the mark unparks a thread for nothing, which does no harm.
        self.finished.fetch_and(!WATCHED, Ordering::Relaxed);
    }
}

impl Ticket {
    /// The task is not counted.
    pub(super) const NONE: Self = Self(u32::MAX);
    /// The task is counted, and has not had to wait.
    pub(super) const COUNTED: Self = Self(u32::MAX - 1);
}

#[cfg(all(test, paceline_loom))]
mod models;

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests;
