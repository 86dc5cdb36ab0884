//! [`Share`]: the events of sources that a thread has taken from the poller and not fired yet.
//!
//! A leader takes all events that it has fetched along, in its share, leaves leadership vacant, and fires
//! them one after the other. So leadership is taken once for many events. A thread that has nothing to do
//! *steals* half of another thread's share, so no event waits behind a slow handler. What is stolen are
//! events and not tasks: the thief fires them, and polls the tasks that they wake.
//!
//! # The word
//!
//! | bits | meaning |
//! |---|---|
//! | 0 to 31 | `taken`: how many events were taken out of the share so far |
//! | 32 to 63 | `put`: how many were put in |
//!
//! Both only grow, and wrap. `put - taken` events are left. Event number `n` is in place `n % CAPACITY`.
//!
//! | step | by | how |
//! |---|---|---|
//! | fill | the owner, if the share is empty | writes the places, then stores the word (Release) |
//! | take | the owner | reads the word and the place, then exchanges the word |
//! | steal | a thread without events | reads word (Acquire) and places, exchanges the word (Release), fills |
//!
//! # Why no event is lost or fired twice
//!
//! - **Only the exchange makes an event one's own.** It replaces a word by one with a greater `taken`, so of
//!   two threads that read the same word one fails, and what that one has read is not used.
//! - **What a successful exchange read is what the owner put there.** The places of a word are written before
//!   the word, and read after it. The owner writes a place again only in a later fill, when the share is
//!   empty: then `taken` has changed, and the exchange fails. (The word would be the same after 2^32 events.
//!   A thread would have to stand between its read and its exchange for as long.)
//! - **The owner does not overwrite a place that is being read.** It finds the share empty with an Acquire,
//!   which pairs with the Release of the thief's exchange: the thief's reads came before.
//! - **A plain store fills.** While the share is empty no other thread changes the word, because an exchange
//!   needs an event to take.
//! - **No event stays behind.** The owner takes what is left before it leads, follows or sleeps. A thread
//!   that begins a nested `block_on` leaves its share to the others, and so does one that ends: the share
//!   stays in use in the [table](super::table) of the reactor until it is empty, so thieves find it, and the
//!   next thread takes it over. A leader steals before it sleeps, and from a share that has not moved since
//!   it looked there last. The deputy notices the rest.
//! - **A leader does not sleep beside events that a thread has left when it ended.** That thread may have
//!   stolen them when the leader had looked already. It marks its share as left, passes a fence, and asks
//!   whether the leader sleeps; the leader announces its sleep, passes a fence, and asks whether a share is
//!   left ([`slumber`](super::slumber)).
//!
//! A thief holds at most [`MOST`] events that no thread can see, between its exchange and its fill. It runs
//! no user code there.

use std::cell::Cell;
use std::iter;
use std::task::Waker;

use super::marks::Marks;
use super::readiness::{GENERATION_BITS, Happened};
use super::sys::BATCH;
use super::table::{Table, TableEntry};
use super::{INDEX_BITS, Key};
use crate::flight::{self, ThreadNumber};
use crate::sync::{AtomicU64, Counter, MetricU64, Ordering};

/// Places of a share. A power of two, so that they stay apart when the counts wrap. The models have a few.
const CAPACITY: usize = if cfg!(paceline_loom) { 4 } else { BATCH };
const _: () = assert!(CAPACITY.is_power_of_two());
/// The most events that are stolen at a time.
const MOST: u32 = 32;
/// How many shares a leader looks at to find one that has events, and may be stuck.
const LOOKED_AT: usize = 8;

/// An event, to be fired by the thread that took it.
#[derive(Debug)]
pub(crate) enum Event {
    /// A source reported.
    Source(Key, Happened),
    /// A timer is due.
    Timer(Waker),
}

/// The events that one thread has taken along.
#[derive(Debug)]
// The word is on a cache line of its own, which only the owner writes as long as no other thread steals.
#[repr(align(128))]
pub(super) struct Share {
    word: AtomicU64,
    places: [AtomicU64; CAPACITY],
    /// The number of the thread that has the share, or had it last.
    owner: MetricU64,
    /// Events that owners of this share have stolen.
    stolen: Counter,
}

/// The shares of all threads.
#[derive(Debug)]
pub(crate) struct Shares(Table<Share>);

/// A share that belongs to the calling thread. The drop leaves it to the next thread that needs one, together
/// with the events that are left.
#[derive(Debug)]
pub(crate) struct Own<'a> {
    shares: &'a Shares,
    share: &'a Share,
    entry: TableEntry<'a, Share>,
    /// Another share, or this one, and its word when this thread looked last.
    suspect: Cell<(TableEntry<'a, Share>, u64)>,
}

/// Packs an event of a source into a word.
#[inline]
fn pack(key: Key, happened: Happened) -> u64 {
    let ([read, write], [read_cut, write_cut]) = (happened.ready, happened.cut);
    let directions = [read, write, read_cut, write_cut].into_iter().enumerate();
    let bits = directions.fold(happened.marks.0 << 4, |bits, (at, is_set)| bits | u8::from(is_set) << at);
    key.0 << HAPPENED_BITS | u64::from(bits)
}

/// Returns the event that was packed into a word.
#[inline]
fn unpack(word: u64) -> Event {
    let is_set = |at: u32| word >> at & 1 != 0;
    let marks = Marks((word >> 4 & 0xf) as u8);
    let happened = Happened { ready: [0, 1].map(is_set), cut: [2, 3].map(is_set), marks };
    Event::Source(Key(word >> HAPPENED_BITS), happened)
}

/// Bits of what happened: four for the directions, and the four marks.
const HAPPENED_BITS: u32 = 8;
const _: () = assert!(INDEX_BITS + GENERATION_BITS + HAPPENED_BITS <= u64::BITS);

/// Returns the word of these counts.
fn word(put: u32, taken: u32) -> u64 {
    u64::from(put) << u32::BITS | u64::from(taken)
}

/// Returns the counts of a word: put, taken.
fn counts(word: u64) -> (u32, u32) {
    ((word >> u32::BITS) as u32, word as u32)
}

/// Returns how many events are left in the share with this word.
#[inline]
fn left_in(word: u64) -> u32 {
    let (put, taken) = counts(word);
    put.wrapping_sub(taken)
}

impl Shares {
    pub(super) fn new() -> Self {
        Self(Table::new())
    }

    /// Returns a share for the calling thread: the first one that no thread has.
    pub(crate) fn join(&self) -> Own<'_> {
        let entry = self.0.claim(Share::new);
        let share = entry.value;
        share.owner.store(ThreadNumber::here().get(), Ordering::Relaxed);
        Own { shares: self, share, entry, suspect: Cell::new((entry, 0)) }
    }

    pub(crate) fn is_any_left(&self) -> bool {
        self.0.in_use().any(|entry| entry.value.left() > 0)
    }

    /// Returns whether a share without an owner may have events. May be true if none has, until the next call
    /// of [`Own::steal`].
    #[inline]
    pub(super) fn has_unowned(&self) -> bool {
        self.0.is_any_left()
    }

    /// Returns how many events were stolen so far.
    pub(crate) fn stolen(&self) -> u64 {
        self.0.all().map(|share| share.stolen.get()).sum()
    }

    /// Returns the numbers and the words of the shares that have events, in the order of the numbers. A share
    /// that has the same word later is stuck. If the lists of two looks differ, an event was taken, or put
    /// in by a leader: threads that begin and end change neither.
    pub(crate) fn words(&self) -> Vec<(usize, u64)> {
        let words = self.0.in_use().map(|entry| (entry.number, entry.value.word.load(Ordering::Relaxed)));
        words.filter(|(_, word)| left_in(*word) > 0).collect()
    }
}

impl Share {
    fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            places: [(); CAPACITY].map(|()| AtomicU64::new(0)),
            owner: MetricU64::new(0),
            stolen: Counter::default(),
        }
    }

    fn place(&self, number: u32) -> &AtomicU64 {
        &self.places[number as usize % CAPACITY]
    }

    #[inline]
    fn left(&self) -> u32 {
        left_in(self.word.load(Ordering::Relaxed))
    }
}

impl<'a> Own<'a> {
    /// Returns the place of the share in the table.
    pub(crate) fn number(&self) -> usize {
        self.entry.number
    }

    /// Returns how many events are left.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.share.left() as usize
    }

    /// Fills the share, which is empty, with at most [`CAPACITY`] events. Returns how many they were.
    pub(super) fn fill(&self, events: impl Iterator<Item = (Key, Happened)>) -> usize {
        // ORDER: Acquire pairs with the Release of the thieves' exchanges, which have read the places.
        let (put, taken) = counts(self.share.word.load(Ordering::Acquire));
        debug_assert_eq!(put, taken, "the owner fills the share when it is empty");
        let mut end = put;
        for (key, happened) in events {
            self.share.place(end).store(pack(key, happened), Ordering::Relaxed);
            end = end.wrapping_add(1);
        }
        if end != put {
            // ORDER: Release pairs with the Acquire of `steal_from`: a thief sees the places.
            self.share.word.store(word(end, taken), Ordering::Release);
        }
        end.wrapping_sub(put) as usize
    }

    /// Takes the next event.
    #[inline]
    pub(crate) fn take(&self) -> Option<Event> {
        // ORDER: Relaxed suffices: this thread has filled the places, or `Table::claim` ordered that.
        let mut now = self.share.word.load(Ordering::Relaxed);
        while left_in(now) > 0 {
            let (put, taken) = counts(now);
            let event = self.share.place(taken).load(Ordering::Relaxed);
            let next = word(put, taken.wrapping_add(1));
            match self.share.word.compare_exchange_weak(now, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(unpack(event)),
                Err(seen) => now = seen,
            }
        }
        None
    }

    /// Takes half of the events of the first other share that has any: one of them for the caller, the others
    /// for its own share, which is empty. Takes the empty shares of threads that have ended out of use.
    pub(crate) fn steal(&self) -> Option<Event> {
        self.others().find_map(|victim| {
            let event = self.steal_from(victim.value);
            if event.is_none() {
                victim.free_if(|share| share.left() == 0);
            }
            event
        })
    }

    /// Steals from a share that is stuck, if one is found: its owner does not return from a poll, or has no
    /// core. A thread that always finds events by itself helps such an owner by asking this each time that it
    /// leads. Looks at the share at which this thread looked last: has any of its events been taken since? If
    /// so, the next call looks at the next one that has events.
    #[inline]
    pub(crate) fn steal_what_is_stuck(&self) -> Option<Event> {
        let (first, before) = self.suspect.get();
        let now = first.value.word.load(Ordering::Relaxed);
        let (mut suspect, mut event) = (first, None);
        if now == before && left_in(now) > 0 {
            event = self.steal_from(first.value);
        } else {
            for _ in 0..LOOKED_AT {
                suspect = self.after(suspect);
                if suspect.value.left() > 0 || suspect.number == first.number {
                    break;
                }
            }
        }
        self.suspect.set((suspect, suspect.value.word.load(Ordering::Relaxed)));
        event
    }

    /// Returns the other shares in use, once each: this one is in use, so a walk comes back to it.
    fn others(&self) -> impl Iterator<Item = TableEntry<'a, Share>> {
        let next = |entry: &TableEntry<'a, Share>| {
            Some(self.after(*entry)).filter(|next| next.number != self.number())
        };
        iter::successors(next(&self.entry), next)
    }

    /// Returns the next share in use; the first one comes after the last.
    fn after(&self, entry: TableEntry<'a, Share>) -> TableEntry<'a, Share> {
        self.shares.0.after(entry).expect("the own share is in use")
    }

    fn steal_from(&self, victim: &Share) -> Option<Event> {
        let own = counts(self.share.word.load(Ordering::Acquire)).0;
        // ORDER: Acquire pairs with the Release of `fill`: the places of the victim.
        let mut now = victim.word.load(Ordering::Acquire);
        loop {
            let count = left_in(now).div_ceil(2).min(MOST);
            if count == 0 {
                return None;
            }
            let (put, taken) = counts(now);
            let event = |number: u32| victim.place(taken.wrapping_add(number)).load(Ordering::Relaxed);
            let first = event(0);
            for number in 1..count {
                self.share.place(own.wrapping_add(number - 1)).store(event(number), Ordering::Relaxed);
            }
            let next = word(put, taken.wrapping_add(count));
            // ORDER: Release pairs with the Acquire of `fill`: the victim writes no place before it was read.
            match victim.word.compare_exchange(now, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    // ORDER: as in `fill`.
                    self.share.word.store(word(own.wrapping_add(count - 1), own), Ordering::Release);
                    self.share.stolen.add(count.into());
                    flight::steals(victim.owner.load(Ordering::Relaxed), count);
                    return Some(unpack(first));
                }
                Err(seen) => now = seen,
            }
        }
    }
}

#[cfg(all(test, not(paceline_loom)))]
impl Own<'_> {
    /// Fills the share with an event of this source.
    pub(crate) fn hold(&self, source: &super::Source) {
        self.fill(iter::once((source.key, Happened::EVERYTHING)));
    }
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        self.entry.release(self.left() > 0);
    }
}

#[cfg(all(test, paceline_loom))]
mod models;

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests;
