//! [`Source`]: a descriptor in the reactor's hands, and the ways to wait for it.
//!
//! A wait that sees the I/O (`poll_io`, `poll_transfer`, `perform`) trusts the cached readiness: it tries the
//! operation while the word says that it is worth a try, and clears readiness when the operation proves
//! otherwise. The word is behind the operating system until somebody has looked for events, so a caller who may come
//! back before that gets one try more ([`Wait::Unsure`]). A *blind* wait (`poll_blind`, [`BlindWait`]) does not see
//! what its caller does next, so it asks for an event that comes after it began, and re-arms the source so that one
//! comes if the source *is* ready.

use std::future::poll_fn;
use std::io;
use std::mem;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use super::marks::Noted;
use super::raw::RawSource;
use super::readiness::{Proof, Snapshot, Until};
use super::record::{Displace, Record, Wait};
use super::waiters::Listed;
use super::{Direction, Key, Reactor};
use crate::frame::{self, Here};
use crate::sync::Ordering;

/// A descriptor registered with a reactor; dropping it deregisters.
#[derive(Debug)]
pub(crate) struct Source {
    reactor: Arc<Reactor>,
    /// The record of `key`, found once.
    record: NonNull<Record>,
    key: Key,
    raw: RawSource,
}

// SAFETY: the record is `Sync`, and the reactor keeps it alive.
unsafe impl Send for Source {}
// SAFETY: as above.
unsafe impl Sync for Source {}

/// What a direction's `blind` word says while a `poll_readable` or `poll_writable` waits; the low half is the tick.
const BLIND: u32 = 1 << 16;

impl Source {
    /// Registers `raw`.
    ///
    /// # Safety
    ///
    /// `raw` stays open until this `Source` is dropped or deregistered.
    pub(crate) unsafe fn new(reactor: Arc<Reactor>, raw: RawSource) -> io::Result<Source> {
        // SAFETY: as the caller promises.
        let key = unsafe { reactor.register(raw)? };
        let record = NonNull::from(reactor.records.get(key.index()));
        Ok(Source { reactor, record, key, raw })
    }

    /// Takes the descriptor out of the reactor.
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
    fn tick(&self, direction: Direction) -> u16 {
        self.record().readiness.snapshot().tick(direction)
    }

    /// Runs `op` until it says something else than `WouldBlock`, waiting for readiness in between. One waiter a
    /// direction: the task of the last caller is woken, and one that it displaces is woken at once, if at all.
    #[inline]
    pub(crate) fn poll_io<R>(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        displace: Displace,
        mut op: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.try_or_wait(direction, &mut op, || {
            self.wait_in_cell(direction, Until::Ready, cx.waker(), displace)
        })
    }

    /// Like [`poll_io`](Self::poll_io), for transfers of which one that moves less than `full` bytes proves that
    /// the socket is drained (or full): readiness is cleared without asking again. So `full` is no more than one call is
    /// sure to move, and 0 where a short transfer proves nothing.
    #[inline]
    pub(crate) fn poll_transfer(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        displace: Displace,
        full: usize,
        mut op: impl FnMut() -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let mut tick = 0;
        let moved = ready!(self.poll_io(direction, cx, displace, || {
            tick = self.tick(direction);
            op()
        }))?;
        // Nothing moved is the end of the stream: it stays ready.
        if 0 < moved && moved < full {
            self.record().readiness.clear(direction, tick, Proof::ShortTransfer);
        }
        Poll::Ready(Ok(moved))
    }

    /// The async form of [`poll_io`](Self::poll_io): any number of these may wait at once.
    pub(crate) async fn perform<R>(
        &self,
        direction: Direction,
        mut op: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        let mut waiter = Waiter::default();
        poll_fn(|cx| {
            let wait = || waiter.poll(self, direction, Until::Ready, cx);
            self.try_or_wait(direction, &mut op, wait)
        })
        .await
    }

    /// Tries `op` whenever it is worth a try, until it says something else than `WouldBlock` or `wait` has begun a wait.
    #[inline]
    fn try_or_wait<R>(
        &self,
        direction: Direction,
        op: &mut impl FnMut() -> io::Result<R>,
        mut wait: impl FnMut() -> io::Result<Wait>,
    ) -> Poll<io::Result<R>> {
        let readiness = &self.record().readiness;
        loop {
            let before = readiness.snapshot();
            if before.has(direction, Until::Ready) {
                if let Some(result) = attempt(op) {
                    return Poll::Ready(result);
                }
                readiness.clear(direction, before.tick(direction), Proof::WouldBlock);
                continue;
            }
            match wait()? {
                Wait::Waiting => return Poll::Pending,
                // Whatever the word says: whoever waits already is woken, too.
                Wait::Unsure => return attempt(op).map_or(Poll::Pending, Poll::Ready),
                Wait::Over | Wait::Occupied => {}
            }
        }
    }

    /// Waits until an operation is worth a try, as far as is known; one waiter a direction, the last one.
    pub(crate) fn poll_ready(&self, direction: Direction, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.reach_or_wait(direction, Until::Ready, || {
            self.wait_in_cell(direction, Until::Ready, cx.waker(), Displace::Quietly)
        })
    }

    /// The async form of [`poll_ready`](Self::poll_ready): any number of these may wait at once.
    pub(crate) async fn ready(&self, direction: Direction) -> io::Result<()> {
        self.reach(direction, Until::Ready).await
    }

    /// Waits until an event came after `seen`, whatever it says; any number of these may wait at once.
    pub(crate) async fn event(&self, direction: Direction, seen: Snapshot) -> io::Result<()> {
        self.reach(direction, Until::Told(seen.tick(direction))).await
    }

    async fn reach(&self, direction: Direction, until: Until) -> io::Result<()> {
        let mut waiter = Waiter::default();
        poll_fn(|cx| self.reach_or_wait(direction, until, || waiter.poll(self, direction, until, cx))).await
    }

    /// Who waits here is woken by the next event also where the wait is [`Wait::Unsure`]: it just is not tried, as nobody here knows how.
    fn reach_or_wait(
        &self,
        direction: Direction,
        until: Until,
        mut wait: impl FnMut() -> io::Result<Wait>,
    ) -> Poll<io::Result<()>> {
        loop {
            // Its end makes each source ready, for those who find out by trying.
            self.reactor.assert_open()?;
            if self.known().0.has(direction, until) {
                // It may have ended in between.
                return Poll::Ready(self.reactor.assert_open());
            }
            if let Wait::Waiting | Wait::Unsure = wait()? {
                return Poll::Pending;
            }
        }
    }

    /// Runs `op` if it is worth a try, else says `WouldBlock` for it.
    pub(crate) fn try_once<R>(
        &self,
        direction: Direction,
        op: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        let readiness = &self.record().readiness;
        let before = readiness.snapshot();
        // What is known stays up to date without a wait only where each edge is reported, and somebody looks: this thread, at last.
        let is_told = || self.reactor.sys.is_epoll && frame::here(|here| self.reactor.turn(here).is_some());
        if !before.has(direction, Until::Ready) && is_told() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        op().inspect_err(|error| {
            if error.kind() == io::ErrorKind::WouldBlock {
                readiness.clear(direction, before.tick(direction), Proof::WouldBlock);
            }
        })
    }

    /// What is known right now.
    pub(crate) fn known(&self) -> (Snapshot, Noted) {
        let record = self.record();
        // In this order: whoever sees an event in the word sees what it said.
        (record.readiness.snapshot(), record.marked.get())
    }

    /// An operation that somebody else ran said `WouldBlock`. What came after `seen` is kept.
    pub(crate) fn forget(&self, direction: Direction, seen: Snapshot) {
        self.record().readiness.clear(direction, seen.tick(direction), Proof::WouldBlock);
    }

    /// What was said beside readiness has been seen to, unless something was said after `seen`.
    pub(crate) fn forget_marks(&self, seen: Noted) {
        self.record().marked.forget(seen);
    }

    /// That a new source counts as ready is taken back; what an event said is not.
    pub(crate) fn presume_not_ready(&self, direction: Direction) {
        self.record().readiness.clear(direction, 0, Proof::WouldBlock);
    }

    /// A blind wait, one waiter a direction.
    pub(crate) fn poll_blind(&self, direction: Direction, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let blind = &self.record().blind[direction as usize];
        // Relaxed: the contract is one waiter a direction; what is awaited lives in the readiness word.
        let tick = match blind.load(Ordering::Relaxed) {
            0 => {
                let tick = self.tick(direction);
                blind.store(BLIND | u32::from(tick), Ordering::Relaxed);
                tick
            }
            waiting => waiting as u16,
        };
        let result = self.wait_in_cell(direction, Until::After(tick), cx.waker(), Displace::Yes);
        if let Ok(Wait::Waiting | Wait::Unsure) = result {
            return Poll::Pending;
        }
        blind.store(0, Ordering::Relaxed);
        Poll::Ready(result.map(|_| ()))
    }

    /// Leaves `waker` in the direction's cell.
    #[inline]
    fn wait_in_cell(
        &self,
        direction: Direction,
        until: Until,
        waker: &Waker,
        displace: Displace,
    ) -> io::Result<Wait> {
        let free = || self.reactor.records.free(self.key);
        let tick = self.tick(direction);
        frame::here(|here| {
            let copy = |waker: &Waker| here.copy(waker);
            match self.record().enter(direction, until, waker, copy, displace, free) {
                Wait::Waiting => self.go_on_waiting(here, direction, until, tick),
                // It comes back, and this was a look.
                Wait::Unsure => {
                    self.reactor.turn(here).inspect(|turn| _ = self.was_here(direction, *turn, tick));
                    Ok(Wait::Unsure)
                }
                settled => Ok(settled),
            }
        })
    }

    /// Whether a wait began in this turn already, and no event came since.
    #[inline]
    fn was_here(&self, direction: Direction, turn: u32, tick: u16) -> bool {
        let this = turn << 16 | u32::from(tick);
        let last = &self.record().waits[direction as usize];
        // Relaxed: a number that is out of date costs a try that was not needed.
        let again = last.load(Ordering::Relaxed) == this;
        last.store(this, Ordering::Relaxed);
        again
    }

    /// Who waits is where an event finds it: has the poller report to it, too. `tick` was the direction's before it came.
    #[inline]
    fn go_on_waiting(&self, here: &Here, direction: Direction, until: Until, tick: u16) -> io::Result<Wait> {
        let reactor = &*self.reactor;
        let turn = reactor.note_wait(here)?;
        // An edge reports itself; only who does not trust the cached readiness needs another look.
        if !reactor.sys.is_epoll || matches!(until, Until::After(_)) {
            reactor.sys.way.rearm(self.key, Some((self.raw, direction)), &|| reactor.wants(self.key))?;
        }
        let Some(turn) = turn else { return Ok(Wait::Unsure) };
        // After an event somebody has looked, whoever it was. Who tried nevertheless would find what a quick peer has sent
        // meanwhile, and so stay with this one peer for ever while others wait for their turn.
        Ok(if self.was_here(direction, turn, tick) { Wait::Unsure } else { Wait::Waiting })
    }
}

/// Runs `op`, again if a signal ended it; `None` if it would block.
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
        // SAFETY: it stays open as long as it is registered, as the caller of `new` promised.
        unsafe { std::os::fd::BorrowedFd::borrow_raw(self.raw) }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // Nobody is left to tell; the descriptor may be closed already by a caller that broke its promise.
        let _ = self.reactor.deregister(self.key, self.raw);
    }
}

/// One future's place among those that wait for a source: in the cell if that is free, else on the list.
#[derive(Debug, Default)]
struct Waiter(Option<Listed>);

impl Waiter {
    /// Never [`Wait::Occupied`].
    fn poll(
        &mut self,
        source: &Source,
        direction: Direction,
        until: Until,
        cx: &mut Context<'_>,
    ) -> io::Result<Wait> {
        let record = source.record();
        let listed = match &self.0 {
            Some(listed) => listed,
            None => match source.wait_in_cell(direction, until, cx.waker(), Displace::No)? {
                Wait::Occupied => self.0.insert(record.lists[direction as usize].add(cx.waker())),
                settled => return Ok(settled),
            },
        };
        let tick = source.tick(direction);
        if record.stay_listed(direction, until, cx.waker(), listed) {
            return frame::here(|here| source.go_on_waiting(here, direction, until, tick));
        }
        self.0 = None;
        Ok(Wait::Over)
    }
}

/// A blind wait as the state of a future; any number may wait at once. Dropping it ends the wait.
#[derive(Debug)]
pub(crate) struct BlindWait {
    direction: Direction,
    after: Option<u16>,
    waiter: Waiter,
}

impl BlindWait {
    pub(crate) fn new(direction: Direction) -> Self {
        Self { direction, after: None, waiter: Waiter::default() }
    }

    pub(crate) fn poll(&mut self, source: &Source, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tick = *self.after.get_or_insert_with(|| source.tick(self.direction));
        loop {
            if self.waiter.poll(source, self.direction, Until::After(tick), cx)? != Wait::Over {
                return Poll::Pending;
            }
            if source.record().readiness.snapshot().has(self.direction, Until::After(tick)) {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
