//! The reactor: the handle set. This module knows descriptors, deadlines and wakers, never tasks or roles.
//!
//! | part | what it is |
//! |---|---|
//! | [`Reactor`] | the half that any thread may use: registration, timers, interrupting the leader |
//! | [`Batch`] | the half that only the leader may use: the batch of events, and waiting for the next |
//! | [`Source`] | a registered descriptor and the ways to wait for it |
//! | [`readiness`] | the one atomic word of a source |
//! | [`marks`] | what the word tells beside readiness: ends, errors, urgent data |
//! | [`record`] | the reactor's half of a source, where waiters and events meet |
//! | [`records`] | the place of all records, so that a key leads to one without a lock |
//! | [`timers`], [`wheel`] | deadlines |
//! | [`share`] | the events that one thread has taken along, and how others steal them |
//! | [`slumber`] | whether the leader sleeps, so that other threads know whether to ring |
//! | [`sys`] | epoll, or `polling`'s portable interface |

#[cfg(feature = "trace")]
#[path = "../trace/armed_timers.rs"]
mod armed_timers;
mod batch;
mod here;
pub(crate) mod marks;
pub(crate) mod readiness;
mod record;
mod records;
mod share;
mod slumber;
mod source;
pub(crate) mod sys;
mod timers;
mod waiters;
mod wheel;

pub(crate) use batch::Batch;
pub(crate) use here::{HereGuard, keep_spare, next_turn};
pub use readiness::Readiness;
pub(crate) use share::{Event, Own, Shares};
pub(crate) use slumber::Slumber;
pub use source::Source;
#[cfg(all(test, paceline_shuttle))]
pub(crate) use sys::Pipe;
pub(crate) use sys::raw;
pub(crate) use timers::Alarm;

use std::io;
use std::ptr;
use std::sync::OnceLock;
use std::task::Waker;
use std::time::Duration;

use crate::flight;
use crate::fork::{self, Origin};
use crate::notice::or_abort;
use crate::simulated::{self, Clock, Clocked};
use crate::sync::{Counter, Flag};
use crate::waking;
use here::Here;
use readiness::{GENERATION_BITS, Happened};
use records::Records;
use sys::Way;
pub(crate) use sys::WayChoice;
use sys::raw::RawSource;
use timers::Timers;

/// The two directions in which a source can be ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Reading.
    Read = 0,
    /// Writing.
    Write = 1,
}

impl Direction {
    const BOTH: [Direction; 2] = [Direction::Read, Direction::Write];
}

/// The key of an event: a record and the generation of the source in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(pub(crate) u64);

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

/// Counters that the leader increments.
#[derive(Debug, Default)]
pub(crate) struct WaitCounters {
    /// Waits that returned events.
    pub(crate) waits: Counter,
    /// Waits that returned none.
    pub(crate) empty_waits: Counter,
    /// Waits that were allowed to sleep.
    pub(crate) sleeps: Counter,
    /// Events and due timers that waits returned.
    pub(crate) events: Counter,
    /// Time that leaders stayed awake without work, in nanoseconds.
    pub(crate) spun_nanos: Counter,
    /// Interrupts of a sleeping leader.
    pub(crate) interrupts: Counter,
}

/// The shared half of the handle set.
pub(crate) struct Reactor {
    origin: Origin,
    way: Box<dyn Way>,
    /// Whether sources report each edge by themselves: see [`sys::choose`].
    is_epoll: bool,
    records: Records,
    timers: Timers,
    pub(crate) clock: Clock,
    slumber: Slumber,
    /// The events that threads have taken along.
    pub(crate) shares: Shares,
    /// Asks the owner for a thread that leads, for a source, a timer, or a wait of a thread that does not
    /// lead here. Returns an error if none can be found.
    start_leader: OnceLock<Box<dyn Fn() -> io::Result<()> + Send + Sync>>,
    closed: Flag,
    pub(crate) counters: WaitCounters,
}

impl Reactor {
    /// Makes a reactor, and the leader's half of it, and starts no thread. `spin` is how long a leader may
    /// stay awake without work; without epoll it counts as zero. `slack` is for how long timers that are due
    /// one after the other are gathered.
    pub(crate) fn new(way: WayChoice, spin: Duration, slack: Duration) -> io::Result<(Self, Batch)> {
        // The timers count from the system's time, also if the program is in a simulation.
        let _clocks = (!matches!(way, WayChoice::Other(_))).then(simulated::system_clocks);
        let (way, is_epoll) = sys::choose(way)?;
        // If asking the poller costs as much as a sleep, spinning gains nothing.
        let batch = Batch::new(if is_epoll { spin } else { Duration::ZERO });
        let reactor = Self {
            origin: Origin::here(),
            way,
            is_epoll,
            records: Records::new(),
            timers: Timers::new(slack),
            clock: Clock::new(),
            slumber: Slumber::new(),
            shares: Shares::default(),
            start_leader: OnceLock::new(),
            closed: Flag::new(false),
            counters: WaitCounters::default(),
        };
        Ok((reactor, batch))
    }

    /// Sets the function that asks the owner for a thread that leads. Panics if there is one already.
    pub(crate) fn start_leader_by(&self, start: impl Fn() -> io::Result<()> + Send + Sync + 'static) {
        assert!(self.start_leader.set(Box::new(start)).is_ok(), "a reactor has one owner");
    }

    /// Closes the reactor: its owner is gone, and no thread will lead here any more. Wakes all waiters: those
    /// of sources find an error, also if they begin later; those of timers arm them elsewhere. Runs wakers.
    pub(crate) fn close(&self) {
        // ORDER: a wait that begins after its word was fired below sees this, because both change that word.
        self.closed.set(true);
        for (key, _) in self.records.live() {
            waking::discard(self.fire(Event::Source(key, Happened::EVERYTHING)));
        }
        self.timers.close();
    }

    /// Returns whether the reactor belongs to the process that forked this one.
    #[inline]
    pub(crate) fn is_inherited(&self) -> bool {
        !self.origin.is_here()
    }

    /// Aborts the process if the reactor belongs to the one that forked it.
    #[inline]
    pub(crate) fn assert_not_inherited(&self) {
        if self.is_inherited() {
            fork::abort_child();
        }
    }

    /// Makes sure that a thread leads for a wait that the current thread begins. If this thread will lead
    /// here by itself, returns its present turn. Otherwise asks the owner for a thread that leads (LF5), and
    /// returns `None`. Returns an error if no such thread can be found, or if the reactor is closed.
    #[inline]
    fn lead_or_start_leader(&self, here: &Here) -> io::Result<Option<u32>> {
        match self.turn(here) {
            Some(turn) if !self.closed.is_set() => Ok(Some(turn)),
            _ => self.start_leader_for_wait().map(|()| None),
        }
    }

    /// Returns the present turn of this thread, if it leads here when it has nothing else to do.
    #[inline]
    fn turn(&self, here: &Here) -> Option<u32> {
        here.turn_at(ptr::from_ref(self).cast())
    }

    /// Returns whether the calling thread is in a simulation, and the reactor follows its clock.
    #[inline]
    pub(crate) fn is_simulated(&self) -> bool {
        simulated::is_running() && self.clock.stands()
    }

    /// Returns an error once the owner is gone.
    fn assert_open(&self) -> io::Result<()> {
        if self.closed.is_set() {
            return Err(io::Error::other("the runtime in which this source was registered is gone"));
        }
        Ok(())
    }

    /// Asks the owner for a thread that leads, for a wait of a thread that will not. Returns an error if none
    /// can be found, or if the reactor is closed.
    #[cold]
    fn start_leader_for_wait(&self) -> io::Result<()> {
        self.assert_open()?;
        self.start_leader().map_err(|error| {
            let what =
                format!("no thread waits for events here, and no thread can be started to do so: {error}");
            io::Error::new(error.kind(), what)
        })
    }

    /// Asks the owner for a thread that leads. A reactor without an owner has none to ask, and returns `Ok`.
    /// Aborts a child of `fork`, in which such a thread would take its parent's events.
    #[cold]
    fn start_leader(&self) -> io::Result<()> {
        self.assert_not_inherited();
        self.start_leader.get().map_or(Ok(()), |start| start())
    }

    /// Registers a source, and asks the owner for a thread that leads. If none can be found, that is no
    /// error: the next caller asks again. Returns an error if the system does not take the source, or once
    /// the reactor is closed.
    ///
    /// # Safety
    ///
    /// `raw` stays open until it is deregistered.
    unsafe fn register(&self, raw: RawSource) -> io::Result<Key> {
        self.assert_not_inherited();
        self.assert_open()?;
        let key = self.records.acquire();
        // SAFETY: as the caller promises.
        let added = unsafe { self.way.add(raw, key) };
        added.inspect_err(|_| self.records.retire(key))?;
        // At each registration, even if a thread watches already: that costs nothing beside the system call.
        // If no thread can be had, the next caller tries again.
        let _ = self.start_leader();
        Ok(key)
    }

    /// Removes a source. Does nothing in the child of a fork. The record is freed even if the system returns
    /// an error.
    fn deregister(&self, key: Key, raw: RawSource) -> io::Result<()> {
        if self.is_inherited() {
            // The registration belongs to the parent.
            return Ok(());
        }
        let result = self.way.delete(raw, key);
        self.records.retire(key);
        result
    }

    /// Returns whether a task waits for this source in each direction, in the order of [`Direction::BOTH`].
    fn wants(&self, key: Key) -> [bool; 2] {
        let now = self.records.get(key.index()).readiness.snapshot();
        Direction::BOTH.map(|direction| now.is_armed(direction))
    }

    /// Wakes the waiters of this event; for a source, its present waiters, unless the source is gone. Where
    /// events disarm their source, arms it again for the directions that are still awaited. Runs wakers, so
    /// the caller must neither lead nor hold a lock (LF3). A panic of a waker does not leave this function,
    /// because it does not concern this thread. Returns one of the wakers, for reuse, if one was in a cell or
    /// a timer.
    #[inline]
    pub(crate) fn fire(&self, event: Event) -> Option<Waker> {
        match event {
            Event::Timer(waker) => {
                flight::timer_fires();
                waking::wake_by_ref(&waker);
                Some(waker)
            }
            Event::Source(key, happened) => {
                let record = self.records.get(key.index());
                let delivery = record.readiness.event(key.generation(), happened);
                // If events disarm their source, the other awaited direction is armed again.
                if !self.is_epoll && self.wants(key).contains(&true) {
                    // An error means that the source was removed meanwhile, which concerns no waiter.
                    let _ = self.way.rearm(key, None, &|| self.wants(key));
                }
                record.deliver(delivery, || self.records.free(key))
            }
        }
    }

    /// Stops the clock. Returns false if it is stopped already. From now on timers are exact to the
    /// nanosecond, because the thread that stops the clock expects it.
    #[cfg(feature = "test-clock")]
    pub(crate) fn stop_clock(&self) -> bool {
        self.timers.gather_no_more();
        self.clock.stop()
    }

    /// Makes a leader that sleeps in the poller look up; does nothing if none sleeps, if this sleep was
    /// interrupted already, or in the child of a fork. The reason must be visible already: a token in a
    /// seat, an earlier deadline, a host in the line, a share without an owner. Aborts the process if the
    /// system refuses the call.
    pub(crate) fn interrupt(&self) {
        self.slumber.interrupt(|| {
            if self.is_inherited() {
                return;
            }
            self.counters.interrupts.add_shared(1);
            // A thread that sleeps on a descriptor which was closed meanwhile sleeps on.
            or_abort(self.way.interrupt());
        });
    }

    /// Interrupts a leader that sleeps if a `block_on` may have ended with events in its share, so that the
    /// leader steals them. Called by the thread of a `block_on` after its share was dropped.
    #[inline]
    pub(crate) fn offer_unowned(&self) {
        if self.shares.has_unowned() {
            self.interrupt();
        }
    }

    /// Makes the arming of a timer by the current thread known. Asks the owner for a thread that leads if
    /// the timer is the earliest, as the first one is, or if this thread will not lead here by itself.
    /// Ignores an error. Interrupts the leader for the earliest timer, so that it announces the deadline.
    #[inline]
    fn start_leader_for_timer(&self, is_earliest: bool) {
        // A timer cannot return an error. If no thread can be found to lead, the timer fires when a thread
        // comes that leads.
        let _ = here::here(|here| self.lead_or_start_leader(here));
        if is_earliest {
            let _ = self.start_leader();
            self.interrupt();
        }
    }

    /// Returns the descriptor on which a leader waits, if there is one.
    #[cfg(unix)]
    pub(crate) fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.way.descriptor()
    }

    /// Returns the number of registered sources.
    pub(crate) fn sources(&self) -> usize {
        self.records.in_use()
    }

    /// Returns the number of armed timers.
    pub(crate) fn timers(&self) -> usize {
        self.timers.armed()
    }

    /// Returns whether a timer is armed or due, or a task waits for a source, or has waited for one and given
    /// up. Reads the word of each source.
    pub(crate) fn is_awaited(&self) -> bool {
        self.timers.any() || self.records.any_awaited()
    }

    /// Returns whether anything could happen here: a source is registered, or a timer armed or due.
    pub(crate) fn is_needed(&self) -> bool {
        self.sources() > 0 || self.timers.any()
    }
}

/// Keeps the clock of a reactor from leaping while it exists.
pub(crate) type ClockHeld = simulated::ClockHold<Reactor>;

impl Clocked for Reactor {
    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn interrupt(&self) {
        self.interrupt();
    }
}

impl std::fmt::Debug for Reactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reactor").field("way", &self.way).finish_non_exhaustive()
    }
}

#[cfg(all(test, paceline_epoll, not(any(paceline_loom, paceline_shuttle, miri))))]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    /// A source that cannot be registered is counted for a moment.
    #[test]
    fn a_registration_that_fails_is_gone_like_any_other() {
        let (reactor, _batch) = Reactor::new(WayChoice::Best, Duration::ZERO, Duration::ZERO).unwrap();
        let file = std::fs::File::open("Cargo.toml").unwrap();
        // SAFETY: the file stays open; it is not registered.
        let error = unsafe { reactor.register(raw::of_fd(file.as_fd())) }.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(reactor.sources(), 0);
    }
}
