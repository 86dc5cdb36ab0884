//! The tasks of an executor that are not finished: what `is_empty` asks and what dropping the executor cancels.
//!
//! Sharded by thread, because every spawn and every completion comes by (R5).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use crate::sync::{self, Mutex, process_static, thread_local};

const SHARDS: usize = 8;

#[derive(Debug)]
enum Entry {
    Free { next: u32 },
    Taken(Waker),
}

#[derive(Debug)]
struct Shard {
    entries: Vec<Entry>,
    free: u32,
    taken: usize,
}

/// Where a task is on the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket(u32);

/// The list.
#[derive(Debug)]
pub(super) struct Tasks([Mutex<Shard>; SHARDS]);

thread_local! {
    /// The shard in which this thread's tasks go.
    static SHARD: usize = {
        process_static! {
            /// Std's atomic: nobody waits for another one's number.
            static NEXT: AtomicUsize = AtomicUsize::new(0);
        }
        NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS
    };
}

impl Tasks {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(Shard { entries: Vec::new(), free: u32::MAX, taken: 0 })))
    }

    /// Enters the task that `make` makes. `make` runs under the shard's lock: it allocates and moves, nothing else.
    pub(super) fn enter<R>(&self, make: impl FnOnce(Ticket) -> (Waker, R)) -> R {
        let number = SHARD.try_with(|shard| *shard).unwrap_or(0);
        let mut guard = sync::lock(&self.0[number]);
        let shard = &mut *guard;
        let at = match shard.entries.get(shard.free as usize) {
            Some(&Entry::Free { next }) => std::mem::replace(&mut shard.free, next),
            _ => {
                shard.entries.push(Entry::Free { next: u32::MAX });
                u32::try_from(shard.entries.len() - 1).expect("fewer than 2^32 tasks")
            }
        };
        assert!(at < u32::MAX / SHARDS as u32, "too many tasks at once");
        let (waker, made) = make(Ticket(at * SHARDS as u32 + number as u32));
        shard.entries[at as usize] = Entry::Taken(waker);
        shard.taken += 1;
        made
    }

    /// The task is finished, or its future was dropped.
    pub(super) fn leave(&self, ticket: Ticket) {
        let mut guard = sync::lock(self.shard(ticket));
        let shard = &mut *guard;
        let entry = std::mem::replace(&mut shard.entries[ticket.index()], Entry::Free { next: shard.free });
        shard.free = ticket.index() as u32;
        shard.taken -= 1;
        drop(guard);
        drop(entry);
    }

    /// Tasks that are not finished.
    pub(super) fn count(&self) -> usize {
        self.0.iter().map(|shard| sync::lock(shard).taken).sum()
    }

    /// Wakes all of them, outside the lock (LF3).
    pub(super) fn wake_all(&self) {
        for shard in &self.0 {
            let wakers: Vec<Waker> = sync::lock(shard)
                .entries
                .iter()
                .filter_map(|entry| match entry {
                    Entry::Taken(waker) => Some(waker.clone()),
                    Entry::Free { .. } => None,
                })
                .collect();
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    fn shard(&self, ticket: Ticket) -> &Mutex<Shard> {
        &self.0[ticket.0 as usize % SHARDS]
    }
}

impl Ticket {
    /// Of a task that is on no list.
    pub(super) const NONE: Self = Self(u32::MAX);

    fn index(self) -> usize {
        self.0 as usize / SHARDS
    }
}
