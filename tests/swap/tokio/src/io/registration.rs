//! [`Registration`]: a descriptor that the current runtime watches, and the ways in which all sockets wait for it.
//!
//! What can be read or written is remembered until an operation says `WouldBlock`, as with the real one. Unlike there, a task is
//! charged for what it does and not for what it asks, and what came before the runtime was dropped may still be read.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::pin;
use std::task::{Context, Poll, ready};

use paceline::{Async, Readiness, Trusted};
use real::task::coop::poll_proceed;

use super::{Interest, Ready};
use crate::context;
use crate::runtime::{Handle, SHUTTING_DOWN};

#[cfg(unix)]
pub(crate) use std::os::fd::AsFd as Source;
#[cfg(windows)]
pub(crate) use std::os::windows::io::AsSocket as Source;

/// A descriptor of a runtime's, and whose it is.
pub(crate) struct Registration<T> {
    io: Async<T>,
    runtime: Handle,
}

impl<T> UnwindSafe for Registration<T> {}
impl<T> RefUnwindSafe for Registration<T> {}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// What a wait has found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) ready: Ready,
    seen: Readiness,
}

impl<T: Source> Registration<T> {
    /// Of a descriptor that is in non-blocking mode. Whether it is ready shows when the runtime has looked.
    #[track_caller]
    pub(crate) fn new(io: T) -> io::Result<Self> {
        let this = Self::of_ready(io)?;
        this.io.trusted().presume_unreadable();
        this.io.trusted().presume_unwritable();
        Ok(this)
    }

    /// [`new`](Self::new), for one that is worth a try right away.
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
        // It may have ended since.
        let Some(entered) = runtime.paceline().try_enter() else { return Err(gone()) };
        let io = Async::new_nonblocking(io).map_err(with_its_code)?;
        drop(entered);
        Ok(Self { io, runtime })
    }
}

/// The system's error, for those who look for its code: it lies one step back.
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

    /// For before the first operation: nothing is readable that has not said so.
    pub(crate) fn presume_unreadable(&self) {
        self.io.trusted().presume_unreadable();
    }

    /// Runs an operation as soon as it is worth a try, until it gets through. One task a direction, the last one.
    #[inline]
    pub(crate) fn poll_io<R>(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        op: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.charge(cx, |trusted, cx| match direction {
            Direction::Read => trusted.poll_read(cx, op),
            Direction::Write => trusted.poll_write(cx, op),
        })
    }

    /// [`poll_io`](Self::poll_io), for a transfer of bytes of which one of less than `full` proves that there is no more to be moved.
    #[inline]
    pub(crate) fn poll_up_to(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        full: usize,
        op: impl FnMut(&T) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        self.charge(cx, |trusted, cx| match direction {
            Direction::Read => trusted.poll_read_up_to(cx, full, op),
            Direction::Write => trusted.poll_write_up_to(cx, full, op),
        })
    }

    pub(crate) fn poll_ready(&self, direction: Direction, cx: &mut Context<'_>) -> Poll<io::Result<Event>> {
        let seen = ready!(self.charge(cx, |trusted, cx| match direction {
            Direction::Read => trusted.poll_read_ready(cx),
            Direction::Write => trusted.poll_write_ready(cx),
        }))?;
        let interest = match direction {
            Direction::Read => Interest::READABLE,
            Direction::Write => Interest::WRITABLE,
        };
        Poll::Ready(Ok(Event::of(seen, interest)))
    }

    /// Lets a task go on as long as it has not used up what it may do before others have their turn.
    #[inline]
    fn charge<R>(
        &self,
        cx: &mut Context<'_>,
        f: impl FnOnce(Trusted<'_, T>, &mut Context<'_>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        let coop = ready!(poll_proceed(cx));
        let result = ready!(f(self.io.trusted(), cx));
        coop.made_progress();
        Poll::Ready(result.map_err(|error| self.explain(error)))
    }

    /// Waits until the descriptor is ready for some of this. Any number of tasks may wait at once.
    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Event> {
        self.find(interest).await.map_err(|error| self.explain(error))
    }

    async fn find(&self, interest: Interest) -> io::Result<Event> {
        let trusted = self.io.trusted();
        let mut event = Event::of(trusted.readiness(), interest);
        if !event.ready.is_empty() {
            return if self.runtime.is_shut_down() { Err(gone()) } else { Ok(event) };
        }
        // Errors and the like come as events to be read.
        let reads = interest != Interest::WRITABLE;
        loop {
            let seen = event.seen;
            let now = match (reads, interest.is_writable()) {
                (true, false) => trusted.read_event(seen).await,
                (false, _) => trusted.write_event(seen).await,
                (true, true) => {
                    let (mut read, mut write) =
                        (pin!(trusted.read_event(seen)), pin!(trusted.write_event(seen)));
                    poll_fn(|cx| match read.as_mut().poll(cx) {
                        Poll::Pending => write.as_mut().poll(cx),
                        result => result,
                    })
                    .await
                }
            };
            event = Event::of(now?, interest);
            // What was ready has been seen by all who waited, even if somebody else was quicker to use it up.
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

    /// Runs an operation if it is known to be worth a try, and says `WouldBlock` for it if not.
    pub(crate) fn try_io<R>(
        &self,
        interest: Interest,
        op: impl FnOnce(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        let event = Event::of(self.io.trusted().readiness(), interest);
        if event.ready.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        op(self.get_ref()).inspect_err(|error| {
            if error.kind() == io::ErrorKind::WouldBlock {
                self.forget(event);
            }
        })
    }

    /// An operation said that this is so no more, unless it came again since. An end is for good.
    pub(crate) fn forget(&self, event: Event) {
        let (trusted, Event { ready, seen }) = (self.io.trusted(), event);
        if !(ready & Ready::READABLE).is_empty() {
            trusted.forget_read(seen);
        }
        if !(ready & Ready::WRITABLE).is_empty() {
            trusted.forget_write(seen);
        }
        if !(ready - Ready::READABLE - Ready::WRITABLE - Ready::READ_CLOSED - Ready::WRITE_CLOSED).is_empty()
        {
            trusted.forget_marks(seen);
        }
    }

    /// What became of the runtime matters more than who noticed. An error with a code is the operation's own.
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

    /// As if it had found these only.
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
