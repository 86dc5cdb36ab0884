//! [`Registration`]: a descriptor that the current runtime watches, and the waits of all sockets for it.
//!
//! Readiness is cached until an operation returns `WouldBlock`, as in the real tokio. Unlike there, a task is
//! charged for its operations and not for its waits, and bytes that arrived before the runtime was dropped
//! may still be read.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::pin;
use std::task::{Context, Poll, ready};

use paceline::Async;
pub(crate) use paceline::Direction;
use paceline::{Readiness, Source as Watched};
use real::task::coop::poll_proceed;

use super::{Interest, Ready};
use crate::context;
use crate::runtime::{Handle, SHUTTING_DOWN};

#[cfg(unix)]
pub(crate) use std::os::fd::AsFd as Source;
#[cfg(windows)]
pub(crate) use std::os::windows::io::AsSocket as Source;

/// A descriptor and its runtime.
pub(crate) struct Registration<T> {
    io: Async<T>,
    runtime: Handle,
}

impl<T> UnwindSafe for Registration<T> {}
impl<T> RefUnwindSafe for Registration<T> {}

/// The result of a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) ready: Ready,
    seen: Readiness,
}

impl<T: Source> Registration<T> {
    /// Registers a descriptor in non-blocking mode. Its readiness is known after the runtime has looked.
    #[track_caller]
    pub(crate) fn new(io: T) -> io::Result<Self> {
        let this = Self::of_ready(io)?;
        this.io.source().presume_not_ready(Direction::Read);
        this.io.source().presume_not_ready(Direction::Write);
        Ok(this)
    }

    /// [`new`](Self::new), for a descriptor that is worth a try at once.
    #[track_caller]
    pub(crate) fn of_ready(io: T) -> io::Result<Self> {
        let runtime = context::expect();
        assert!(
            runtime.has_io(),
            "A Tokio 1.x context was found, but IO is disabled. Call `enable_io` on the runtime builder to enable IO."
        );
        if runtime.is_shut_down() {
            return Err(gone());
        }
        // The runtime may have ended since.
        let Some(entered) = runtime.paceline().try_enter() else { return Err(gone()) };
        let io = Async::new_nonblocking(io).map_err(with_its_code)?.wakes_last();
        drop(entered);
        runtime.shared.extras.note_registration();
        Ok(Self { io, runtime })
    }
}

/// Returns the system's error, which is one step back, for programs that check its code.
#[cold]
fn with_its_code(error: io::Error) -> io::Error {
    let cause = error.get_ref().and_then(|error| error.source());
    let code = cause.and_then(|cause| cause.downcast_ref::<io::Error>()).and_then(io::Error::raw_os_error);
    code.map_or(error, io::Error::from_raw_os_error)
}

impl<T> Registration<T> {
    #[inline]
    pub(crate) fn get_ref(&self) -> &T {
        self.io.get_ref()
    }

    pub(crate) fn into_inner(self) -> io::Result<T> {
        self.io.into_inner()
    }

    /// Called before the first operation: the descriptor is not readable before an event says so.
    pub(crate) fn presume_unreadable(&self) {
        self.io.source().presume_not_ready(Direction::Read);
    }

    /// Runs an operation as soon as it is worth a try, until it succeeds. One task per direction: the latest.
    #[inline]
    pub(crate) fn poll_io<R>(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        mut op: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        let op = || op(self.get_ref());
        self.charge(cx, |source, cx| source.poll_io(direction, cx, op))
    }

    /// [`poll_io`](Self::poll_io), for a transfer of bytes: moving less than `full` proves that no more can
    /// be moved.
    #[inline]
    pub(crate) fn poll_up_to(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        full: usize,
        mut op: impl FnMut(&T) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let op = || op(self.get_ref());
        self.charge(cx, |source, cx| source.poll_transfer(direction, cx, full, op))
    }

    pub(crate) fn poll_ready(&self, direction: Direction, cx: &mut Context<'_>) -> Poll<io::Result<Event>> {
        let seen = ready!(self.charge(cx, |source, cx| source.poll_ready(direction, cx)))?;
        let interest = match direction {
            Direction::Read => Interest::READABLE,
            Direction::Write => Interest::WRITABLE,
        };
        Poll::Ready(Ok(Event::of(seen, interest)))
    }

    /// Lets a task continue as long as it has budget left.
    #[inline]
    fn charge<R>(
        &self,
        cx: &mut Context<'_>,
        f: impl FnOnce(&Watched, &mut Context<'_>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        let coop = ready!(poll_proceed(cx));
        let result = ready!(f(self.io.source(), cx));
        coop.made_progress();
        Poll::Ready(result.map_err(|error| self.explain(error)))
    }

    /// Waits until the descriptor is ready for some of this. Any number of tasks may wait at once.
    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Event> {
        self.find(interest).await.map_err(|error| self.explain(error))
    }

    async fn find(&self, interest: Interest) -> io::Result<Event> {
        let source = self.io.source();
        let mut event = Event::of(source.readiness(), interest);
        if !event.ready.is_empty() {
            return if self.runtime.is_shut_down() { Err(gone()) } else { Ok(event) };
        }
        // Errors and priority data are reported as events of the read direction.
        let reads = interest != Interest::WRITABLE;
        loop {
            let seen = event.seen;
            let now = match (reads, interest.is_writable()) {
                (true, false) => source.event(Direction::Read, seen).await,
                (false, _) => source.event(Direction::Write, seen).await,
                (true, true) => {
                    let mut read = pin!(source.event(Direction::Read, seen));
                    let mut write = pin!(source.event(Direction::Write, seen));
                    poll_fn(|cx| match read.as_mut().poll(cx) {
                        Poll::Pending => write.as_mut().poll(cx),
                        result => result,
                    })
                    .await
                }
            };
            event = Event::of(now?, interest);
            // All waiting tasks have seen the event, even if another task was quicker to use it up.
            if !event.ready.is_empty() || interest.is_readable() || interest.is_writable() {
                return Ok(event);
            }
        }
    }

    /// [`poll_io`](Self::poll_io) for any number of tasks.
    pub(crate) async fn async_io<R>(
        &self,
        interest: Interest,
        mut op: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        loop {
            let event = self.ready(interest).await?;
            let coop = poll_fn(poll_proceed).await;
            match op(self.get_ref()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.forget(event),
                result => {
                    coop.made_progress();
                    return result;
                }
            }
        }
    }

    /// Runs an operation if it is worth a try, and otherwise returns `WouldBlock`.
    pub(crate) fn try_io<R>(
        &self,
        interest: Interest,
        op: impl FnOnce(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        let event = Event::of(self.io.source().readiness(), interest);
        if event.ready.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        op(self.get_ref()).inspect_err(|error| {
            if error.kind() == io::ErrorKind::WouldBlock {
                self.forget(event);
            }
        })
    }

    /// Clears this readiness after an operation has shown that it does not hold, unless it was reported again
    /// since. An end stays.
    pub(crate) fn forget(&self, event: Event) {
        let (source, Event { ready, seen }) = (self.io.source(), event);
        if !(ready & Ready::READABLE).is_empty() {
            source.forget(Direction::Read, seen);
        }
        if !(ready & Ready::WRITABLE).is_empty() {
            source.forget(Direction::Write, seen);
        }
        if !(ready - Ready::READABLE - Ready::WRITABLE - Ready::READ_CLOSED - Ready::WRITE_CLOSED).is_empty()
        {
            source.forget_marks(seen);
        }
    }

    /// The end of the runtime has priority over other causes. An error with a code is the operation's own.
    #[cold]
    fn explain(&self, error: io::Error) -> io::Error {
        let is_ours = error.raw_os_error().is_none() && self.runtime.is_shut_down();
        if is_ours { gone() } else { error }
    }
}

impl Event {
    fn of(seen: Readiness, interest: Interest) -> Self {
        Self { ready: Ready::from(seen) & Ready::of_interest(interest), seen }
    }

    /// Returns the event reduced to these kinds.
    pub(crate) fn only(self, ready: Ready) -> Self {
        Self { ready: self.ready & ready, seen: self.seen }
    }
}

impl<T: fmt::Debug> fmt::Debug for Registration<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get_ref().fmt(f)
    }
}

fn gone() -> io::Error {
    io::Error::other(SHUTTING_DOWN)
}
