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
//!   that ends, or begins a nested `block_on`, leaves its share to the others: it stays in the list of the
//!   reactor, where thieves find it and the next thread takes it over. A leader steals before it sleeps, and
//!   from a share that has not moved since it looked there last. The deputy notices the rest.
//! - **A leader does not sleep beside events that a thread has left when it ended.** That thread may have
//!   stolen them when the leader had looked already. It notes that events are left, passes a fence, and asks
//!   whether the leader sleeps; the leader announces its sleep, passes a fence, and asks for the note
//!   ([`slumber`](super::slumber)). A thread that steals takes the note first.
//! - **A look visits no share beyond the last one in use.** The list only grows; its *extent* is the number of
//!   shares up to the last one that is owned or has events. A thread that joins raises it after it has taken
//!   the flag of its share. A thread that ends lowers it, share by share, and then looks at the flag of each
//!   again. Both change the same word, so the thread that changes it later sees what the other did before:
//!   the thread that joins raises the lowered extent, or the one that ends finds the flag set, and raises it
//!   again. Until then a thief may miss that share, whose owner is awake.
//!
//! A thief holds at most [`MOST`] events that no thread can see, between its exchange and its fill. It runs
//! no user code there.

use std::cell::Cell;
use std::iter;
use std::ptr;
use std::sync::OnceLock;
use std::task::Waker;

use super::marks::Marks;
use super::readiness::{GENERATION_BITS, Happened};
use super::sys::BATCH;
use super::{INDEX_BITS, Key};
use crate::flight::{self, ThreadNumber};
use crate::sync::{AtomicU64, AtomicUsize, Counter, Flag, MetricU64, Ordering};

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
    is_owned: Flag,
    /// The number of the thread that has the share, or had it last.
    owner: MetricU64,
    /// Events that owners of this share have stolen.
    stolen: Counter,
    next: Next,
}

/// Leads to a share, which stays where it is for as long as the reactor exists.
type Next = OnceLock<Box<Share>>;

/// The shares of all threads: a list that only grows, to the most threads that led or stole at the same time.
#[derive(Debug)]
pub(crate) struct Shares {
    first: Next,
    /// Number of shares after the first one, up to the last one that is owned or has events.
    extent: AtomicUsize,
    /// Whether a thread has ended and left events in its share, since a thread began to steal last.
    is_left: Flag,
}

/// A share that belongs to the calling thread. The drop leaves it to the next thread that needs one, together
/// with the events that are left.
#[derive(Debug)]
pub(crate) struct Own<'a> {
    shares: &'a Shares,
    share: &'a Share,
    /// Its place in the list.
    pub(crate) number: usize,
    /// Another share, or this one, with its place, and its word when this thread looked last.
    suspect: Cell<(&'a Share, usize, u64)>,
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

impl Default for Shares {
    fn default() -> Self {
        Self { first: Next::new(), extent: AtomicUsize::new(0), is_left: Flag::new(false) }
    }
}

impl Shares {
    /// Returns a share for the calling thread: the first one in the list that no thread has.
    pub(crate) fn join(&self) -> Own<'_> {
        let (mut link, mut number) = (&self.first, 0);
        loop {
            let share = link.get_or_init(|| Box::new(Share::new()));
            if !share.is_owned.is_set() && !share.is_owned.raise() {
                if number > 0 {
                    // ORDER: Release pairs with the Acquire of `shrink`, which sees the flag; Acquire with its
                    // Release.
                    self.extent.fetch_max(number, Ordering::AcqRel);
                }
                share.owner.store(ThreadNumber::here().get(), Ordering::Relaxed);
                return Own { shares: self, share, number, suspect: Cell::new((share, number, 0)) };
            }
            (link, number) = (&share.next, number + 1);
        }
    }

    fn all(&self) -> impl Iterator<Item = &Share> {
        iter::successors(self.first.get(), |share| share.next.get()).map(|share| &**share)
    }

    /// Returns the shares up to the last one in use.
    fn iter(&self) -> impl Iterator<Item = &Share> {
        self.all().take(1 + self.extent.load(Ordering::Relaxed))
    }

    /// Lowers the extent to the last share that is owned or has events.
    #[cold]
    fn shrink(&self) {
        let mut extent = self.extent.load(Ordering::Relaxed);
        while let Some(last) = self.all().nth(extent).filter(|_| extent > 0) {
            if last.is_in_use() {
                return;
            }
            // ORDER: Acquire pairs with the Release of `join`: what is looked at next. Release keeps the chain.
            match self.extent.compare_exchange(extent, extent - 1, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) if last.is_in_use() => {
                    self.extent.fetch_max(extent, Ordering::AcqRel);
                    return;
                }
                Ok(_) => extent -= 1,
                Err(now) => extent = now,
            }
        }
    }

    /// Returns whether a thread has left events when it ended, and no thread has begun to steal since.
    #[inline]
    pub(super) fn has_unowned(&self) -> bool {
        self.is_left.is_set()
    }

    pub(crate) fn is_any_left(&self) -> bool {
        let (mut next, extent) = (self.first.get(), self.extent.load(Ordering::Relaxed));
        for _ in 0..=extent {
            let Some(share) = next else { return false };
            if share.left() > 0 {
                return true;
            }
            next = share.next.get();
        }
        false
    }

    /// Returns how many events were stolen so far.
    pub(crate) fn stolen(&self) -> u64 {
        self.all().map(|share| share.stolen.get()).sum()
    }

    /// Returns the places and the words of the shares that have events. A share that has the same word later
    /// is stuck. If the lists of two looks differ, an event was taken, or put in by a leader: threads that
    /// begin and end change neither.
    pub(crate) fn words(&self) -> Vec<(usize, u64)> {
        let words = self.iter().map(|share| share.word.load(Ordering::Relaxed)).enumerate();
        words.filter(|(_, word)| left_in(*word) > 0).collect()
    }
}

impl Share {
    fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            places: [(); CAPACITY].map(|()| AtomicU64::new(0)),
            is_owned: Flag::new(false),
            owner: MetricU64::new(0),
            stolen: Counter::default(),
            next: Next::new(),
        }
    }

    fn place(&self, number: u32) -> &AtomicU64 {
        &self.places[number as usize % CAPACITY]
    }

    #[inline]
    fn left(&self) -> u32 {
        left_in(self.word.load(Ordering::Relaxed))
    }

    fn is_in_use(&self) -> bool {
        self.is_owned.is_set() || self.left() > 0
    }
}

impl<'a> Own<'a> {
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
        // ORDER: Relaxed suffices: this thread has filled the places, or the flag ordered that.
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
    /// for its own share, which is empty.
    pub(crate) fn steal(&self) -> Option<Event> {
        // Before the look: what is left later is noted again.
        self.shares.is_left.take();
        if self.shares.extent.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.others().find_map(|(victim, _)| self.steal_from(victim))
    }

    /// Steals from a share that is stuck, if one is found: its owner does not return from a poll, or has no
    /// core. A thread that always finds events by itself helps such an owner by asking this each time that it
    /// leads. Looks at the share at which this thread looked last: has any of its events been taken since? If
    /// so, the next call looks at the next one that has events.
    #[inline]
    pub(crate) fn steal_what_is_stuck(&self) -> Option<Event> {
        let (suspect, number, before) = self.suspect.get();
        let now = suspect.word.load(Ordering::Relaxed);
        let (mut at, mut event) = ((suspect, number), None);
        if now == before && left_in(now) > 0 {
            event = self.steal_from(suspect);
        } else {
            for _ in 0..LOOKED_AT {
                at = self.after(at);
                if at.0.left() > 0 || ptr::eq(at.0, suspect) {
                    break;
                }
            }
        }
        self.suspect.set((at.0, at.1, at.0.word.load(Ordering::Relaxed)));
        event
    }

    /// Returns the other shares up to the last one in use, once each.
    fn others(&self) -> impl Iterator<Item = (&'a Share, usize)> {
        let all = iter::successors(Some((self.share, self.number)), |at| Some(self.after(*at)));
        // Bounded, too: while another thread corrects the extent, it may be too small for this share.
        let most = 1 + self.shares.extent.load(Ordering::Relaxed);
        all.skip(1).take(most).take_while(|(share, _)| !ptr::eq(*share, self.share))
    }

    /// Returns the next share in the list, with its place; the first one comes after the last one in use.
    #[inline]
    fn after(&self, (share, number): (&'a Share, usize)) -> (&'a Share, usize) {
        let is_last = number >= self.shares.extent.load(Ordering::Relaxed);
        match share.next.get().filter(|_| !is_last) {
            Some(next) => (next, number + 1),
            None => (self.shares.first.get().expect("the own share is in the list"), 0),
        }
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
        let is_left = self.left() > 0;
        self.share.is_owned.take();
        if is_left {
            self.shares.is_left.set(true);
        }
        if self.number > 0 {
            self.shares.shrink();
        }
    }
}

#[cfg(all(test, paceline_loom))]
mod models;

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests;
