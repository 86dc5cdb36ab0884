//! Stands in for [`epoll`](super::epoll) in the scenarios of the whole pool: sources are the numbers of
//! virtual pipes, and a wait is one of shuttle's, until an event, an interrupt, or the deadline in virtual
//! time.
//!
//! The fake reports as epoll does: an edge for each write; no event for a pipe that was drained meanwhile; a
//! source that is added, or armed again, is reported if it is ready. Two waits at once are a fault (LF1).
#![cfg_attr(not(test), allow(dead_code))]

use std::collections::BTreeMap;
use std::io;
#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex as StdMutex, PoisonError, Weak};

use super::raw::RawSource;
use super::{BATCH, EventWait, Events, Wants, Way};
use crate::reactor::readiness::Happened;
use crate::reactor::{Direction, Key};
use crate::sync::{self, Condvar, Instant, Mutex, cores, process_static};

/// The key of an event that means only "look again".
const INTERRUPT: u64 = u64::MAX - 1;

process_static! {
    /// The run's pipes, by number. A lock of `std`: no thread takes a step of the scenario under it.
    static PIPES: StdMutex<Vec<Arc<Content>>> = StdMutex::default();
}

#[derive(Debug, Default)]
struct Content {
    /// The number of bytes to read.
    bytes: AtomicUsize,
    /// The pollers to which the read end was added.
    watched_by: StdMutex<Vec<Weak<Poller>>>,
}

impl Content {
    /// Returns the report that the pipe can be read; `None` if it is empty.
    fn happened(&self) -> Option<Happened> {
        let read = self.bytes.load(Relaxed) > 0;
        read.then_some(Happened { ready: [true, false], ..Happened::NOTHING })
    }

    /// Returns the pollers that watch the pipe and still exist.
    fn watchers(&self) -> Vec<Arc<Poller>> {
        let watchers = self.watched_by.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.iter().filter_map(Weak::upgrade).collect()
    }
}

/// Returns the pipe with this number, or an error.
fn pipe(raw: RawSource) -> io::Result<Arc<Content>> {
    let pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
    let found = usize::try_from(raw).ok().and_then(|number| pipes.get(number).cloned());
    found.ok_or_else(|| io::Error::other("there is no such pipe"))
}

/// A pipe of a scenario. Its read end is a source; writing never waits.
#[cfg(test)]
#[derive(Clone, Debug)]
pub(crate) struct Pipe(RawSource, Arc<Content>);

#[cfg(test)]
impl Pipe {
    /// Makes an empty pipe, with the run's next number.
    pub(crate) fn new() -> Self {
        let mut pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
        pipes.push(Arc::default());
        let number = RawSource::try_from(pipes.len() - 1).expect("a run has few pipes");
        Self(number, pipes[pipes.len() - 1].clone())
    }

    /// Returns the source to register.
    pub(crate) fn raw(&self) -> RawSource {
        self.0
    }

    /// Writes a byte, and reports an edge to each poller that watches the pipe.
    pub(crate) fn write(&self) {
        sync::step();
        self.1.bytes.fetch_add(1, Relaxed);
        self.1.watchers().iter().for_each(|poller| poller.report(self.0));
    }

    /// Reads a byte, or returns `WouldBlock`.
    pub(crate) fn read(&self) -> io::Result<()> {
        sync::step();
        let one_less = |bytes: usize| bytes.checked_sub(1);
        match self.1.bytes.fetch_update(Relaxed, Relaxed, one_less) {
            Ok(_) => Ok(()),
            Err(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

#[derive(Debug, Default)]
struct Poller {
    state: Mutex<FakeState>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct FakeState {
    /// The sources that were added, and their keys.
    sources: BTreeMap<RawSource, Key>,
    /// Sources with an edge that no wait has looked at yet.
    edges: Vec<RawSource>,
    /// Whether an interrupt was not reported yet.
    interrupted: bool,
    /// Whether a thread waits.
    waited_on: bool,
}

impl Poller {
    /// Changes the state and wakes the thread that waits.
    fn change(&self, change: impl FnOnce(&mut FakeState)) {
        change(&mut sync::lock(&self.state));
        self.bell.notify_all();
    }

    /// Adds an edge of a source that may have become ready, unless the source was not added, or has an edge
    /// already.
    fn report(&self, raw: RawSource) {
        self.change(|state| {
            if state.sources.contains_key(&raw) && !state.edges.contains(&raw) {
                state.edges.push(raw);
            }
        });
    }
}

#[derive(Debug, Default)]
struct Fake(Arc<Poller>);

pub(super) fn new_checked() -> io::Result<Option<Box<dyn Way>>> {
    Ok(Some(Box::new(Fake::default())))
}

impl Way for Fake {
    #[cfg(unix)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        unreachable!("a scenario's poller has no descriptor")
    }

    unsafe fn add(&self, raw: RawSource, key: Key) -> io::Result<()> {
        let pipe = pipe(raw)?;
        sync::lock(&self.0.state).sources.insert(raw, key);
        let mut watchers = pipe.watched_by.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.push(Arc::downgrade(&self.0));
        drop(watchers);
        self.report_if_ready(raw, &pipe);
        Ok(())
    }

    fn is_ready(&self, _: RawSource, _: Direction) -> bool {
        true
    }

    fn rearm(&self, _: Key, asks: Option<(RawSource, Direction)>, _: Wants<'_>) -> io::Result<()> {
        if let Some((raw, Direction::Read)) = asks {
            self.report_if_ready(raw, &*pipe(raw)?);
        }
        Ok(())
    }

    fn delete(&self, raw: RawSource, _: Key) -> io::Result<()> {
        let pipe = pipe(raw)?;
        let mut watchers = pipe.watched_by.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|poller| !std::ptr::eq(poller.as_ptr(), &*self.0));
        drop(watchers);
        let mut state = sync::lock(&self.0.state);
        state.sources.remove(&raw);
        state.edges.retain(|edge| *edge != raw);
        Ok(())
    }

    fn announce(&self, deadline: Option<Instant>, _: Instant, events: &mut Events) -> io::Result<()> {
        events.deadline = deadline;
        Ok(())
    }

    fn wait(&self, events: &mut Events, wait: EventWait) -> io::Result<()> {
        events.list.clear();
        cores::charge(|costs| costs.wait);
        let mut state = sync::lock(&self.0.state);
        if std::mem::replace(&mut state.waited_on, true) {
            sync::fault("LF1: two threads wait at one poller");
        }
        loop {
            state.collect(events);
            if !events.list.is_empty() || wait == EventWait::None {
                break;
            }
            state = self.sleep(state, events.deadline);
        }
        state.waited_on = false;
        drop(state);
        cores::charge(|costs| costs.event * events.list.len() as u64);
        Ok(())
    }

    fn interrupt(&self) -> io::Result<()> {
        cores::charge(|costs| costs.interrupt);
        self.0.change(|state| state.interrupted = true);
        Ok(())
    }
}

impl Fake {
    /// Adds an edge if the pipe can be read.
    fn report_if_ready(&self, raw: RawSource, pipe: &Content) {
        if pipe.happened().is_some() {
            self.0.report(raw);
        }
    }

    /// Waits until the state changes, or until the deadline, or for a moment.
    fn sleep<'a>(
        &self,
        state: sync::MutexGuard<'a, FakeState>,
        deadline: Option<Instant>,
    ) -> sync::MutexGuard<'a, FakeState> {
        let bell = &self.0.bell;
        let woken = match deadline {
            None => bell.wait(state).ok(),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                bell.wait_timeout(state, left).map(|(state, _)| state).ok()
            }
        };
        woken.expect("no thread panics under it")
    }
}

impl FakeState {
    /// Moves the interrupt, a deadline that has passed, and up to [`BATCH`] edges into `events`. Drops the
    /// edge of a pipe that was drained meanwhile.
    fn collect(&mut self, events: &mut Events) {
        if std::mem::take(&mut self.interrupted) {
            events.list.push((INTERRUPT, Happened::default()));
        }
        events.add_clock_event();
        let most = self.edges.len().min(BATCH);
        for raw in self.edges.drain(..most) {
            let happened = pipe(raw).ok().and_then(|pipe| pipe.happened());
            if let (Some(key), Some(happened)) = (self.sources.get(&raw), happened) {
                events.list.push((key.0, happened));
            }
        }
    }
}
