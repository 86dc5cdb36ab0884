//! Waiting through `polling`'s own interface: one-shot interest, armed anew by whoever waits.
//!
//! Works on every platform that `polling` supports. It costs a system call per wait for readiness and several
//! per wait for events, where [`super::epoll`] needs none and one.

use std::collections::HashMap;
use std::io;
use std::num::NonZeroUsize;
use std::time::Duration;

use polling::{Event, Poller};

use super::raw::{self, RawSource};
use super::{BATCH, Direction, Events, Patience, Wants, Way};
use crate::reactor::Key;
use crate::reactor::readiness::Happened;
use crate::sync::{self, Instant, Mutex};

#[derive(Debug)]
pub(super) struct Portable {
    poller: Poller,
    /// Who is registered. The lock orders re-arming against deletion and against itself: interest is read under
    /// it, so the last one to arm arms for everybody.
    sources: Mutex<HashMap<Key, RawSource>>,
}

impl Portable {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { poller: Poller::new()?, sources: Mutex::new(HashMap::new()) })
    }
}

impl Way for Portable {
    #[cfg(unix)]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        raw::descriptor(&self.poller)
    }

    unsafe fn add(&self, raw: RawSource, key: Key) -> io::Result<()> {
        let mut sources = sync::lock(&self.sources);
        // SAFETY: as the caller promises.
        unsafe { raw::add(&self.poller, raw, key.0 as usize)? };
        sources.insert(key, raw);
        Ok(())
    }

    fn delete(&self, raw: RawSource, key: Key) -> io::Result<()> {
        let mut sources = sync::lock(&self.sources);
        sources.remove(&key);
        raw::delete(&self.poller, raw)
    }

    fn rearm(&self, key: Key, _: Option<(RawSource, Direction)>, wants: Wants<'_>) -> io::Result<()> {
        let sources = sync::lock(&self.sources);
        let Some(&raw) = sources.get(&key) else { return Ok(()) };
        let [read, write] = wants();
        raw::modify(&self.poller, raw, Event::new(key.0 as usize, read, write))
    }

    fn announce(&self, deadline: Option<Instant>, _: Instant, events: &mut Events) -> io::Result<()> {
        events.deadline = deadline;
        Ok(())
    }

    fn wait(&self, events: &mut Events, patience: Patience) -> io::Result<()> {
        let timeout = events.limit(patience);
        let capacity = NonZeroUsize::new(BATCH).expect("a batch holds events");
        let raw = events.raw.get_or_insert_with(|| polling::Events::with_capacity(capacity));
        raw.clear();
        events.list.clear();
        let mut result = self.poller.wait(raw, timeout);
        // `polling` can find a notification announced that is not there yet, and then gives up before it has noted that
        // the next one is to be sent again (L9). Another wait notes it; the caller looks at everything after each.
        while result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            result = self.poller.wait(raw, Some(Duration::ZERO));
        }
        match result {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        events.list.extend(raw.iter().map(|event| {
            let happened = Happened { read: event.readable, write: event.writable, ..Happened::default() };
            (event.key as u64, happened)
        }));
        // Events that never stop must not hide that time passes.
        events.note_deadline();
        Ok(())
    }

    fn interrupt(&self) -> io::Result<()> {
        self.poller.notify()
    }
}
