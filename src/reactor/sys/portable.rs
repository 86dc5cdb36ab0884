//! Waiting through `polling`'s own interface: one-shot interest, armed anew by each waiter.
//!
//! Works on every platform that `polling` supports. The cost is a system call per wait for readiness and
//! several per wait for events, where [`super::epoll`] needs none and one.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::time::Duration;

use polling::{Event, Poller};

use super::raw::{self, RawSource};
use super::{BATCH, Direction, EventWait, Events, Wants, Way};
use crate::reactor::Key;
use crate::reactor::readiness::Happened;
use crate::sync::{self, Instant, Mutex};

#[derive(Debug)]
pub(super) struct Portable {
    poller: Poller,
    /// The registered sources. The lock orders re-arming against deletion and against itself: interest is
    /// read under it, so the last caller to arm arms for all waiters.
    sources: Mutex<BTreeMap<Key, RawSource>>,
}

impl Portable {
    /// Makes a poller, interrupts it and waits once, because some of the resources that it needs are
    /// requested only then. Returns the error of any of these steps.
    pub(super) fn new_checked() -> io::Result<Self> {
        let this = Self { poller: Poller::new()?, sources: Mutex::new(BTreeMap::new()) };
        this.interrupt()?;
        this.wait(&mut Events::new(), EventWait::None)?;
        Ok(this)
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
        // Not registered any more: there is nothing to arm.
        let Some(&raw) = sources.get(&key) else { return Ok(()) };
        let [read, write] = wants();
        raw::modify(&self.poller, raw, Event::new(key.0 as usize, read, write))
    }

    fn announce(&self, deadline: Option<Instant>, _: Instant, events: &mut Events) -> io::Result<()> {
        events.deadline = deadline;
        Ok(())
    }

    /// Waits until the deadline itself, which `polling` gets as a timeout.
    fn wait(&self, events: &mut Events, wait: EventWait) -> io::Result<()> {
        let timeout = events.limit(wait);
        let capacity = NonZeroUsize::new(BATCH).expect("a batch holds events");
        let raw = events.raw.get_or_insert_with(|| polling::Events::with_capacity(capacity));
        raw.clear();
        events.list.clear();
        let mut result = self.poller.wait(raw, timeout);
        // `polling` may see the announcement of a notification that has not arrived yet. Then it gives up
        // before it has noted that the next one has to be sent again. Another wait notes it; the caller
        // looks at everything after each wait.
        while result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            result = self.poller.wait(raw, Some(Duration::ZERO));
        }
        match result {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        events.list.extend(raw.iter().map(|event| {
            let happened = Happened { ready: [event.readable, event.writable], ..Happened::default() };
            (event.key as u64, happened)
        }));
        // An endless stream of events must not hide that time passes.
        events.add_clock_event();
        Ok(())
    }

    fn interrupt(&self) -> io::Result<()> {
        self.poller.notify()
    }
}
