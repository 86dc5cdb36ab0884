//! Waiting with poll(2) over a list of our own, one-shot as [`super::portable`] is.
//!
//! For sandboxes that refuse both epoll and the calls of `polling`. The cost of a wait grows with the number
//! of registered sources. Apart from the calls of a socket pair, which is the bell, waiting takes `poll` (or
//! `ppoll`) only.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::net::{RecvFlags, recv};

use super::raw::{self, RawSource};
use super::{Direction, EventWait, Events, Wants, Way, now};
use crate::reactor::Key;
use crate::reactor::readiness::Happened;
use crate::sync::{self, Mutex};

/// The flags to ask for that make a source readable.
const READ: PollFlags = PollFlags::IN.union(PollFlags::PRI);
/// The flags that are reported without being asked for, and concern both directions.
const BROKEN: PollFlags = PollFlags::HUP.union(PollFlags::ERR).union(PollFlags::NVAL);

#[derive(Debug)]
pub(super) struct PollList {
    list: Mutex<SourceList>,
    /// The end of the socket pair that is waited on.
    bell: UnixStream,
    /// The other end, which an interrupt writes to.
    ringer: UnixStream,
}

#[derive(Debug, Default)]
struct SourceList {
    /// The sources by key, and the flags to ask for: none for a source that is not armed.
    sources: BTreeMap<Key, (RawSource, PollFlags)>,
    /// Whether a leader waits, for what the list was when the wait began.
    is_waited_for: bool,
}

impl PollList {
    /// Makes a way without sources, and the pair of sockets that interrupts it.
    pub(super) fn new() -> io::Result<Self> {
        let (bell, ringer) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ringer.set_nonblocking(true)?;
        Ok(Self { list: Mutex::default(), bell, ringer })
    }

    /// Changes the list, and returns the result of `change`. Ends a wait in progress, so that the next one
    /// sees the change; an error is that of the interrupt, and the list is changed all the same.
    fn change<R>(&self, change: impl FnOnce(&mut SourceList) -> R) -> io::Result<R> {
        let mut list = sync::lock(&self.list);
        let result = change(&mut list);
        let is_waited_for = list.is_waited_for;
        drop(list);
        if is_waited_for {
            self.interrupt()?;
        }
        Ok(result)
    }

    /// Begins a wait, which a change of the list ends from now on. Returns the keys of the awaited sources,
    /// and what to poll: these sources, and the bell behind them.
    fn begin_wait(&self) -> (Vec<Key>, Vec<PollFd<'_>>) {
        let mut list = sync::lock(&self.list);
        list.is_waited_for = true;
        let awaited = list.sources.iter().filter(|(_, (_, asked))| !asked.is_empty());
        let (keys, mut polled): (Vec<_>, Vec<_>) = awaited
            .map(|(key, (raw, asked))| (*key, PollFd::from_borrowed_fd(raw::borrow(*raw), *asked)))
            .unzip();
        polled.push(PollFd::from_borrowed_fd(self.bell.as_fd(), PollFlags::IN));
        (keys, polled)
    }

    /// Ends a wait, for which [`begin_wait`](Self::begin_wait) returned `keys` and `polled`; `polled` is
    /// empty if the call failed. Adds the events of sources that are still on the list to `events`, and
    /// disarms these sources.
    fn end_wait(&self, keys: &[Key], polled: &[PollFd<'_>], events: &mut Events) {
        let mut list = sync::lock(&self.list);
        list.is_waited_for = false;
        for (key, said) in keys.iter().zip(polled) {
            let said = said.revents();
            let Some((_, asked)) = list.sources.get_mut(key).filter(|_| !said.is_empty()) else { continue };
            let broken = said.intersects(BROKEN);
            let is = |what| asked.intersects(what) && (broken || said.intersects(what));
            let happened = Happened { read: is(READ), write: is(PollFlags::OUT), ..Happened::NOTHING };
            *asked = PollFlags::empty();
            events.list.push((key.0, happened));
        }
    }
}

impl Way for PollList {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Rejects what epoll would reject: files and directories, and a descriptor that is on the list.
    unsafe fn add(&self, raw: RawSource, key: Key) -> io::Result<()> {
        raw::check(raw)?;
        // As epoll does: files and directories are always ready, so a wait for one means nothing. A
        // descriptor that is not open is an error here, too.
        let file_type = FileType::from_raw_mode(fstat(raw::borrow(raw))?.st_mode);
        if matches!(file_type, FileType::RegularFile | FileType::Directory) {
            return Err(rustix::io::Errno::PERM.into());
        }
        let mut list = sync::lock(&self.list);
        if list.sources.values().any(|(other, _)| *other == raw) {
            return Err(rustix::io::Errno::EXIST.into());
        }
        list.sources.insert(key, (raw, PollFlags::empty()));
        Ok(())
    }

    /// Ends a wait in progress, because the wait would keep the descriptor open.
    fn delete(&self, _: RawSource, key: Key) -> io::Result<()> {
        self.change(|list| _ = list.sources.remove(&key))
    }

    /// Ends a wait in progress, so that the next one asks for this source, too.
    fn rearm(&self, key: Key, _: Option<(RawSource, Direction)>, wants: Wants<'_>) -> io::Result<()> {
        self.change(|list| {
            let Some((_, asked)) = list.sources.get_mut(&key) else { return };
            // Read under the lock: the last caller to arm arms for all waiters.
            let [read, write] = wants();
            *asked = PollFlags::empty();
            asked.set(READ, read);
            asked.set(PollFlags::OUT, write);
        })
    }

    fn is_ready(&self, raw: RawSource, direction: Direction) -> bool {
        now::is_ready(raw::borrow(raw), direction)
    }

    fn announce(
        &self,
        deadline: Option<sync::Instant>,
        _: sync::Instant,
        events: &mut Events,
    ) -> io::Result<()> {
        events.deadline = deadline;
        Ok(())
    }

    fn wait(&self, events: &mut Events, wait: EventWait) -> io::Result<()> {
        events.list.clear();
        let (keys, mut polled) = self.begin_wait();
        // A limit that the system cannot express is none.
        let limit = events.limit(wait).and_then(|limit| Timespec::try_from(limit).ok());
        let waited = poll(&mut polled, limit.as_ref());
        if waited.is_ok() {
            // All rings so far count as one.
            while recv(&self.bell, &mut [0; 64], RecvFlags::empty()).is_ok_and(|(bytes, _)| bytes > 0) {}
        }
        self.end_wait(&keys, if waited.is_ok() { &polled } else { &[] }, events);
        match waited {
            Err(rustix::io::Errno::INTR) | Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        events.note_deadline();
        Ok(())
    }

    fn interrupt(&self) -> io::Result<()> {
        use std::io::{ErrorKind::WouldBlock, Write};
        match (&self.ringer).write(&[0]) {
            // A bell that is full has been rung.
            Err(error) if error.kind() != WouldBlock => Err(error),
            _ => Ok(()),
        }
    }
}
