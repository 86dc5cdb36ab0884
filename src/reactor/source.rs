//! [`Source`]: a registered descriptor, and the ways to wait for it.
//!
//! A wait that sees the I/O (`poll_io`, `poll_transfer`) trusts the cached readiness: it tries the
//! operation while the word says that it is worth a try, and clears readiness when the operation proves
//! otherwise. The word is behind the operating system until a thread has looked for events, so a caller that
//! may come back before that gets one more try ([`Wait::Unsure`]).
//!
//! A *blind* wait (`poll_blind`) does not see what its caller does next. So it asks for an event that comes
//! after it began, and re-arms the source so that one comes if the source *is* ready. Such an event may have
//! been fetched before the wait began, and report an older state: for example the first event of a socket
//! that was not connected yet. If no operation follows that would find out, the wait asks the system before
//! it ends ([`Source::poll_until_ready`]).

use std::future::poll_fn;
use std::io;
use std::mem;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use super::here::{Here, here};
use super::marks::Marks;
use super::raw::RawSource;
use super::readiness::{Proof, Readiness, Until, Wait};
use super::record::Record;
use super::{Direction, Key, Reactor};
use crate::sync::Ordering;

/// A descriptor registered with a reactor. Dropping it deregisters the descriptor.
///
/// Its public methods are for the package that replaces tokio. They trust the cached readiness, so the caller
/// promises that an operation returns `WouldBlock` only if the *descriptor* did. An operation that reads
/// through a buffer breaks that and hangs: bytes that had arrived before are not reported again.
#[derive(Debug)]
pub struct Source {
    reactor: Arc<Reactor>,
    /// The record of `key`, looked up once.
    record: NonNull<Record>,
    pub(super) key: Key,
    raw: RawSource,
    /// Whether only the last task is woken that waits in a direction through [`poll_io`](Self::poll_io),
    /// [`poll_transfer`](Self::poll_transfer) or [`poll_ready`](Self::poll_ready).
    pub(crate) wakes_last: bool,
}

// SAFETY: the record is `Sync`, and the reactor keeps it alive.
unsafe impl Send for Source {}
// SAFETY: as above.
unsafe impl Sync for Source {}

/// The number of bytes that one call moves on any system if they are there. Linux stops at 0x7fff_f000, other
/// systems at `i32::MAX`.
const SURE_BYTES: usize = 1 << 30;

/// The flag of a direction's `blind` word while a `poll_readable` or `poll_writable` waits. The low half is
/// the count.
const BLIND: u32 = 1 << 16;

impl Source {
    /// Registers `raw` with the reactor, and keeps the reactor alive. Does not own the descriptor: the drop
    /// deregisters it, and leaves it open. Returns an error if the system does not take the descriptor, or if
    /// the reactor is closed.
    ///
    /// # Safety
    ///
    /// `raw` stays open until this `Source` is dropped or deregistered.
    pub(crate) unsafe fn new(reactor: Arc<Reactor>, raw: RawSource) -> io::Result<Source> {
        // SAFETY: as the caller promises.
        let key = unsafe { reactor.register(raw)? };
        let record = NonNull::from(reactor.records.get(key.index()));
        Ok(Source { reactor, record, key, raw, wakes_last: false })
    }

    /// Takes the descriptor out of the reactor as the drop does, and returns the error. Leaves it open.
    pub(crate) fn deregister(self) -> io::Result<()> {
        let this = mem::ManuallyDrop::new(self);
        let result = this.reactor.deregister(this.key, this.raw);
        // SAFETY: `this` is not used again, so the reference is moved out once.
        drop(unsafe { std::ptr::read(&this.reactor) });
        result
    }

    #[inline]
    fn record(&self) -> &Record {
        // SAFETY: records never move and live as long as the reactor, which this source keeps alive.
        unsafe { self.record.as_ref() }
    }

    #[inline]
    fn count(&self, direction: Direction) -> u16 {
        self.record().readiness.snapshot().count(direction)
    }

    /// Runs `op` until it returns something else than `WouldBlock` or `Interrupted`, waiting for readiness in
    /// between. Any number of tasks may wait at once. Returns an error, too, if a wait is needed and no
    /// thread can be found that leads, or the reactor is closed.
    #[inline]
    pub fn poll_io<R>(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        mut op: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        let readiness = &self.record().readiness;
        loop {
            let before = readiness.snapshot();
            if before.has(direction, Until::Ready) {
                if let Some(result) = attempt(&mut op) {
                    return Poll::Ready(result);
                }
                readiness.clear(direction, before.count(direction), Proof::WouldBlock);
                continue;
            }
            match self.wait(direction, Until::Ready, cx.waker(), self.wakes_last)? {
                Wait::Waiting => return Poll::Pending,
                // Whatever the word says: a waiter is stored already, and will be woken, too.
                Wait::Unsure => return attempt(&mut op).map_or(Poll::Pending, Poll::Ready),
                Wait::Over => {}
            }
        }
    }

    /// Does the same as [`poll_io`](Self::poll_io), for transfers: if one moves less than `full` bytes, the
    /// socket is drained (or full), and readiness is cleared without asking again. That holds for TCP in both
    /// directions and for the writing side of a Unix stream; where it does not, `full` has to be 0.
    #[inline]
    pub fn poll_transfer(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        full: usize,
        mut op: impl FnMut() -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let mut count = 0;
        let moved = ready!(self.poll_io(direction, cx, || {
            count = self.count(direction);
            op()
        }))?;
        // A transfer of nothing is the end of the stream, which stays ready.
        if 0 < moved && moved < full.min(SURE_BYTES) {
            self.record().readiness.clear(direction, count, Proof::ShortTransfer);
        }
        Poll::Ready(Ok(moved))
    }

    /// Waits until an operation is worth a try, as far as is known. Any number of tasks may wait at once.
    /// Returns an error once the reactor is closed, or if no thread can be found that leads.
    pub fn poll_ready(&self, direction: Direction, cx: &mut Context<'_>) -> Poll<io::Result<Readiness>> {
        self.reach(direction, Until::Ready, cx, self.wakes_last)
    }

    /// Waits until an event of this direction came after `seen`, whatever else it reports. Where events do
    /// not come unasked, asks for one. Any number of these may wait at once.
    pub async fn event(&self, direction: Direction, seen: Readiness) -> io::Result<Readiness> {
        let until = Until::Told(seen.count(direction));
        poll_fn(|cx| self.reach(direction, until, cx, false)).await
    }

    /// Waits until the condition holds. Returns an error once the reactor is closed, and that of a wait. The
    /// next event wakes the caller also if the wait is [`Wait::Unsure`]: no try is made, because there is no
    /// operation here.
    fn reach(
        &self,
        direction: Direction,
        until: Until,
        cx: &mut Context<'_>,
        gives_way: bool,
    ) -> Poll<io::Result<Readiness>> {
        loop {
            if self.record().readiness.snapshot().has(direction, until) {
                // The reactor's end makes each source ready, for callers that find out by trying.
                return Poll::Ready(self.reactor.assert_open().map(|()| self.readiness()));
            }
            if let Wait::Waiting | Wait::Unsure = self.wait(direction, until, cx.waker(), gives_way)? {
                return Poll::Pending;
            }
        }
    }

    /// Returns what is known at the moment. If an [end](Readiness::is_closed) was reported, asks the system
    /// whether it still holds, and forgets it if not.
    pub fn readiness(&self) -> Readiness {
        let word = &self.record().readiness;
        let now = word.snapshot();
        if !now.is_marked(Marks::ENDS) {
            return now;
        }
        word.unmark(now, Marks::ENDS.but(self.reactor.way.ends(self.raw)))
    }

    /// Clears readiness, because an operation that the caller ran returned `WouldBlock`. Events after `seen`
    /// are kept.
    pub fn forget(&self, direction: Direction, seen: Readiness) {
        self.record().readiness.clear(direction, seen.count(direction), Proof::WouldBlock);
    }

    /// Forgets that there was an error or urgent data, unless something was reported after `seen`.
    pub fn forget_marks(&self, seen: Readiness) {
        self.record().readiness.unmark(seen, Marks::PASSING);
    }

    /// Takes back that a new source counts as ready until an operation finds otherwise. The report of an
    /// event is kept.
    pub fn presume_not_ready(&self, direction: Direction) {
        self.record().readiness.clear(direction, 0, Proof::WouldBlock);
    }

    /// Polls a blind wait, which begins with the call that finds no count in `after`, and ends with an event
    /// that comes after that, whether or not the source is ready then. Any number may wait at once. A wait
    /// ends with an error if the reactor is closed, no thread can be found that leads, or the poller cannot
    /// be asked.
    pub(crate) fn poll_blind(
        &self,
        direction: Direction,
        after: &mut Option<u16>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let count = *after.get_or_insert_with(|| self.count(direction));
        let result = self.wait(direction, Until::After(count), cx.waker(), false);
        if let Ok(Wait::Waiting | Wait::Unsure) = result {
            return Poll::Pending;
        }
        *after = None;
        Poll::Ready(result.map(|_| ()))
    }

    /// Polls a blind wait that ends only when the source is ready: asks the system after each event, and
    /// waits again if it is not.
    pub(crate) fn poll_until_ready(
        &self,
        direction: Direction,
        after: &mut Option<u16>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_blind(direction, after, cx))?;
            // Read before the system is asked: an event that is fired after this ends the next wait.
            let count = self.count(direction);
            if self.reactor.way.is_ready(self.raw, direction) {
                return Poll::Ready(Ok(()));
            }
            *after = Some(count);
        }
    }

    /// Calls `poll` with the count of the blind wait that all tasks share which call this for a direction. An
    /// event wakes all of them, and ends the wait of the first one that polls; the others go on to wait.
    pub(crate) fn poll_shared(
        &self,
        direction: Direction,
        poll: impl FnOnce(&mut Option<u16>) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        let blind = &self.record().blind[direction as usize];
        // Relaxed suffices: the awaited state is in the readiness word, and each wait asks for an event that
        // comes if the source is ready.
        let waiting = blind.load(Ordering::Relaxed);
        let mut after = (waiting != 0).then_some(waiting as u16);
        let result = poll(&mut after);
        blind.store(after.map_or(0, |count| BLIND | u32::from(count)), Ordering::Relaxed);
        result
    }

    /// Waits in the direction's cell, or beside it, as [`Record::enter`] does. If the waker is stored there,
    /// makes the poller report to it, and returns what [`complete_wait`](Self::complete_wait) returns. A wait
    /// that is [`Wait::Unsure`] because another thread has the cell counts as a visit of this turn, too.
    #[inline]
    fn wait(&self, direction: Direction, until: Until, waker: &Waker, gives_way: bool) -> io::Result<Wait> {
        let free = || self.reactor.records.free(self.key);
        let count = self.count(direction);
        here(|here| {
            let copy = |waker: &Waker| here.copy(waker);
            match self.record().enter(direction, until, waker, gives_way, copy, free) {
                Wait::Waiting => self.complete_wait(here, direction, until, count),
                // The caller comes back, and this attempt counts as a look.
                Wait::Unsure => {
                    self.reactor.turn(here).inspect(|turn| _ = self.note_visit(direction, *turn, count));
                    Ok(Wait::Unsure)
                }
                Wait::Over => Ok(Wait::Over),
            }
        })
    }

    /// Records a wait in this turn. Returns whether a wait began in this turn already, and no event came
    /// since.
    #[inline]
    fn note_visit(&self, direction: Direction, turn: u32, count: u16) -> bool {
        let this = turn << 16 | u32::from(count);
        let last = &self.record().waits[direction as usize];
        // Relaxed suffices: an outdated number costs an unnecessary try.
        let again = last.load(Ordering::Relaxed) == this;
        last.store(this, Ordering::Relaxed);
        again
    }

    /// Completes a wait whose waker an event will find: makes the poller report to it, too. Returns
    /// [`Wait::Unsure`] if this thread does not lead here by itself, or if it has waited here before in this
    /// turn and no event has come since, else [`Wait::Waiting`]. Returns an error if no thread can be found
    /// that leads, if the reactor is closed, or if the poller cannot be asked. `count` was the direction's
    /// before the waker was stored.
    #[inline]
    fn complete_wait(&self, here: &Here, direction: Direction, until: Until, count: u16) -> io::Result<Wait> {
        let reactor = &*self.reactor;
        let turn = reactor.lead_or_start_leader(here)?;
        // An edge reports itself; only a wait that does not trust the cached readiness needs another report.
        if !reactor.is_epoll || matches!(until, Until::After(_)) {
            reactor.way.rearm(self.key, Some((self.raw, direction)), &|| reactor.wants(self.key))?;
        }
        let Some(turn) = turn else { return Ok(Wait::Unsure) };
        // After an event the source was looked at, by some thread. A further try would find what a quick peer
        // has sent meanwhile, and so stay with this one peer for ever while others wait for their turn.
        Ok(if self.note_visit(direction, turn, count) { Wait::Unsure } else { Wait::Waiting })
    }
}

/// Runs `op`, again if a signal ended it. Returns `None` if it would block.
#[inline]
fn attempt<R>(op: &mut impl FnMut() -> io::Result<R>) -> Option<io::Result<R>> {
    loop {
        match op() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return Some(result),
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl std::os::fd::AsFd for Source {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        // SAFETY: the descriptor stays open as long as it is registered, as the caller of `new` promised.
        unsafe { std::os::fd::BorrowedFd::borrow_raw(self.raw) }
    }
}

impl Drop for Source {
    /// Deregisters the descriptor, which stays open, and ignores an error.
    fn drop(&mut self) {
        // There is no caller to return an error to; the descriptor may be closed already by a caller that
        // broke its promise.
        let _ = self.reactor.deregister(self.key, self.raw);
    }
}
