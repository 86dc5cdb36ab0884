//! The reactor: the handle set. It knows descriptors, deadlines and wakers, never tasks or roles.
//!
//! | part | what it is |
//! |---|---|
//! | [`Reactor`] | what any thread may use: registration, timers, interrupting the leader |
//! | [`Batch`] | what only the leader may use: the batch of events, and waiting for the next |
//! | [`Source`] | a registered descriptor and the ways to wait for it |
//! | [`readiness`] | the one atomic word of a source |
//! | [`marks`] | what else is known about it: ends, errors, urgent data |
//! | [`record`] | what there is of a source here: who waits meets who tells |
//! | [`records`] | where these are, so that a key leads to one without a lock |
//! | [`timers`], [`wheel`] | deadlines |
//! | [`clock`] | the clock they are due by, which tests may stop |
//! | [`slumber`] | whether the leader sleeps, so that others know whether to ring |
//! | [`sys`] | epoll, or `polling`'s portable interface |

mod batch;
#[cfg_attr(feature = "test-clock", path = "clock/standing.rs")]
#[cfg_attr(not(feature = "test-clock"), path = "clock/plain.rs")]
mod clock;
mod marks;
mod readiness;
mod record;
mod records;
mod slumber;
mod source;
mod sys;
mod timers;
mod waiters;
mod wheel;

pub(crate) use batch::{Batch, Event};
pub(crate) use clock::Clock;
pub(crate) use marks::{Marks, Noted};
pub(crate) use readiness::{Snapshot, Until};
pub(crate) use record::Displace;
pub(crate) use slumber::Slumber;
pub(crate) use source::{BlindWait, Source};
#[cfg(all(test, paceline_shuttle))]
pub(crate) use sys::Pipe;
pub(crate) use sys::raw;
pub(crate) use timers::Alarm;

use std::io;
use std::ptr;
use std::sync::OnceLock;
use std::task::Waker;
use std::time::Duration;

use crate::fork::Origin;
use crate::frame::{self, Here};
use crate::sync::{AtomicBool, Counter, Flag, Ordering};
use crate::waking;
use readiness::{GENERATION_BITS, Happened};
use records::Records;
use sys::raw::RawSource;
use timers::{Changed, Timers};

/// The two directions in which a source can be ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read = 0,
    Write = 1,
}

impl Direction {
    const BOTH: [Direction; 2] = [Direction::Read, Direction::Write];
}

/// What an event carries: a record and the generation of the source in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key(u64);

/// Bits of a key that name the record: all that a `usize` leaves beside the generation.
const INDEX_BITS: u32 = if usize::BITS == 64 { 32 } else { 22 };
const _: () = assert!(INDEX_BITS + GENERATION_BITS <= usize::BITS);

impl Key {
    fn new(index: u32, generation: u32) -> Self {
        Self(u64::from(generation) << INDEX_BITS | u64::from(index))
    }

    fn index(self) -> u32 {
        (self.0 & ((1 << INDEX_BITS) - 1)) as u32
    }

    fn generation(self) -> u32 {
        (self.0 >> INDEX_BITS) as u32
    }
}

/// What the leader counts.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Waits that returned events.
    pub(crate) waits: Counter,
    /// Waits that returned none.
    pub(crate) empty_waits: Counter,
    /// Waits that were allowed to sleep.
    pub(crate) sleeps: Counter,
    pub(crate) events: Counter,
    pub(crate) spun_nanos: Counter,
    /// Times that somebody interrupted a sleeping leader.
    pub(crate) interrupts: Counter,
}

/// Whom the reactor tells what it cannot handle itself.
pub(crate) struct Hooks {
    /// Somebody waits on a thread that does not lead here, or the first source or timer is there. An error if nobody can be
    /// found who leads.
    pub(crate) needed: Box<dyn Fn() -> io::Result<()> + Send + Sync>,
    /// The last source or timer is gone.
    pub(crate) empty: Box<dyn Fn() + Send + Sync>,
}

/// The shared half of the handle set.
pub(crate) struct Reactor {
    origin: Origin,
    sys: sys::Sys,
    records: Records,
    timers: Timers,
    pub(crate) clock: Clock,
    slumber: Slumber,
    hooks: OnceLock<Hooks>,
    /// Somebody wants to know when the last source or timer is gone.
    tells_when_empty: AtomicBool,
    closed: Flag,
    pub(crate) counters: Counters,
}

impl Reactor {
    /// A reactor, and the leader's half of it. `spin` is how long a leader may stay awake without work, `slack` for how long
    /// timers that are due one after the other are gathered.
    pub(crate) fn new(portable: bool, spin: Duration, slack: Duration) -> io::Result<(Self, Batch)> {
        let sys = sys::Sys::new(portable)?;
        // Where a look costs as much as a sleep, there is nothing to gain from spinning.
        let batch = Batch::new(if sys.is_epoll { spin } else { Duration::ZERO });
        let reactor = Self {
            origin: Origin::here(),
            sys,
            records: Records::new(),
            timers: Timers::new(slack),
            clock: Clock::new(),
            slumber: Slumber::new(),
            hooks: OnceLock::new(),
            tells_when_empty: AtomicBool::new(false),
            closed: Flag::new(false),
            counters: Counters::default(),
        };
        Ok((reactor, batch))
    }

    pub(crate) fn set_hooks(&self, hooks: Hooks) {
        assert!(self.hooks.set(hooks).is_ok(), "a reactor has one owner");
    }

    /// The owner is gone: nobody will lead here any more. Whoever waits is told, and whoever waits later.
    pub(crate) fn close(&self) {
        // Who begins to wait after its word was fired below sees this, because both change that word.
        self.closed.set(true);
        for (key, _) in self.records.live() {
            waking::discard(self.fire(Event::Source(key, Happened::EVERYTHING)));
        }
        self.timers.close();
    }

    /// Whether it is that of a process from which this one was forked.
    #[inline]
    pub(crate) fn is_inherited(&self) -> bool {
        !self.origin.is_here()
    }

    /// Somebody waits: if this thread will not lead here by itself, the owner has to know (LF5). Returns which turn of
    /// its the thread is in, if it will.
    #[inline]
    fn note_wait(&self, here: &Here) -> io::Result<Option<u32>> {
        match self.turn(here) {
            Some(turn) if !self.closed.is_set() => Ok(Some(turn)),
            _ => self.note_foreign_wait().map(|()| None),
        }
    }

    /// Which turn of its this thread is in, if it leads here when it has nothing else to do.
    #[inline]
    fn turn(&self, here: &Here) -> Option<u32> {
        here.turn_at(ptr::from_ref(self).cast())
    }

    /// An error once the owner is gone.
    fn assert_open(&self) -> io::Result<()> {
        if self.closed.is_set() { Err(closed()) } else { Ok(()) }
    }

    #[cold]
    fn note_foreign_wait(&self) -> io::Result<()> {
        if self.is_inherited() {
            let what = "this source was registered by the process that forked this one: make it anew of its descriptor";
            return Err(io::Error::other(what));
        }
        self.assert_open()?;
        self.find_leader().map_err(|error| {
            let what =
                format!("nobody waits for events here, and no thread can be started that does: {error}");
            io::Error::new(error.kind(), what)
        })
    }

    #[cold]
    fn find_leader(&self) -> io::Result<()> {
        self.hooks.get().map_or(Ok(()), |hooks| (hooks.needed)())
    }

    /// Has [`Hooks::empty`] called, or not, when the last source or timer is gone.
    pub(crate) fn tell_when_empty(&self, watched: bool) {
        // ORDER: before the fence in `Duty::doze`, after which it is looked whether anything is left. So either that look sees
        // that the last one is gone, or who takes it away sees this.
        self.tells_when_empty.store(watched, Ordering::SeqCst);
    }

    /// A source or timer is gone; if it was the last one, whoever wants to know is told.
    #[inline]
    fn note_gone(&self) {
        // ORDER: pairs with the fence in `Duty::doze`, as does the count that was taken down before this.
        if self.tells_when_empty.load(Ordering::SeqCst) && !self.is_needed() {
            self.note_empty();
        }
    }

    #[cold]
    fn note_empty(&self) {
        if let Some(hooks) = self.hooks.get() {
            (hooks.empty)();
        }
    }

    /// # Safety
    ///
    /// `raw` stays open until it is deregistered.
    unsafe fn register(&self, raw: RawSource) -> io::Result<Key> {
        self.assert_open()?;
        let key = self.records.acquire();
        // SAFETY: as the caller promises.
        let added = unsafe { self.sys.way.add(raw, key) };
        added.inspect_err(|_| self.records.retire(key))?;
        // Each time, for nothing if somebody watches already: beside the call to the system it costs nothing. Where no thread
        // is to be had, the next one who comes by tries again.
        let _ = self.find_leader();
        Ok(key)
    }

    fn deregister(&self, key: Key, raw: RawSource) -> io::Result<()> {
        if self.is_inherited() {
            // The registration is the parent's.
            return Ok(());
        }
        let result = self.sys.way.delete(raw, key);
        self.records.retire(key);
        self.note_gone();
        result
    }

    /// In which directions somebody waits for this source.
    fn wants(&self, key: Key) -> [bool; 2] {
        let now = self.records.get(key.index()).readiness.snapshot();
        Direction::BOTH.map(|direction| now.is_armed(direction))
    }

    /// Tells whoever waits for this event. Runs wakers, so the caller does not lead and holds no lock (LF3). It does not panic
    /// if they do: it is no business of the thread's. Returns a waker that is left over.
    #[inline]
    pub(crate) fn fire(&self, event: Event) -> Option<Waker> {
        match event {
            Event::Timer(waker) => {
                waking::wake_by_ref(&waker);
                // It may have been cancelled since it was due, when it still counted.
                self.note_gone();
                Some(waker)
            }
            Event::Source(key, happened) => {
                let record = self.records.get(key.index());
                if !happened.marks.is_empty() {
                    record.marked.note(key.generation(), happened.marks);
                }
                let delivery = record.readiness.event(key.generation(), happened);
                // Where events disarm, what else is awaited is armed again.
                if !self.sys.is_epoll && self.wants(key).contains(&true) {
                    // A source that went away meanwhile is no news to anybody.
                    let _ = self.sys.way.rearm(key, None, &|| self.wants(key));
                }
                record.deliver(delivery, || self.records.free(key))
            }
        }
    }

    /// Timers are on time from now on, to the nanosecond, for who stops the clock.
    #[cfg(feature = "test-clock")]
    pub(crate) fn stop_clock(&self) -> bool {
        self.timers.gather_no_more();
        self.clock.stop()
    }

    /// Makes a leader that sleeps in the poller look up. The reason must be visible already: a token in a seat,
    /// an earlier deadline, a host on the list.
    pub(crate) fn interrupt(&self) {
        self.slumber.interrupt(|| {
            if self.is_inherited() {
                return;
            }
            self.counters.interrupts.add_shared(1);
            // It fails only if the descriptor is gone, and then nobody can be asleep on it.
            let _ = self.sys.way.interrupt();
        });
    }

    #[inline]
    fn deadline_changed(&self, changed: Changed) {
        // A timer has no way to return an error: where nobody can be found to lead, it fires when somebody comes who does.
        let _ = frame::here(|here| self.note_wait(here));
        if changed != Changed::Nothing {
            self.deadline_is_earlier(changed);
        }
    }

    fn deadline_is_earlier(&self, changed: Changed) {
        if changed == Changed::First {
            let _ = self.find_leader();
        }
        self.interrupt();
    }

    /// Nobody watches any more: the next source or timer is the first.
    pub(crate) fn start_over(&self) {
        self.timers.start_over();
    }

    /// What a leader waits on, where that is a descriptor.
    #[cfg(unix)]
    pub(crate) fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.sys.way.descriptor()
    }

    /// Sources registered right now.
    pub(crate) fn sources(&self) -> usize {
        self.records.in_use()
    }

    /// Timers armed right now.
    pub(crate) fn timers(&self) -> usize {
        self.timers.armed()
    }

    /// Whether somebody waits for a source or timer. Takes a look at each source.
    pub(crate) fn is_awaited(&self) -> bool {
        self.timers.any() || self.records.any_awaited()
    }

    /// Whether anything could happen here.
    pub(crate) fn is_needed(&self) -> bool {
        self.sources() > 0 || self.timers.any()
    }
}

/// What somebody is told whose runtime was dropped.
fn closed() -> io::Error {
    io::Error::other("the runtime in which this source was registered is gone")
}

impl std::fmt::Debug for Reactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reactor").field("sys", &self.sys).finish_non_exhaustive()
    }
}
