//! [`AsyncFd`]: a descriptor of the program, which makes its own calls when the descriptor is ready.

use std::error::Error;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::task::{Context, Poll, ready};
use std::{fmt, io};

use super::registration::{Direction, Event, Registration};
use super::{Interest, Ready};

/// A value with a descriptor that the runtime watches.
pub struct AsyncFd<T: AsRawFd> {
    // In this order: the descriptor is deregistered before it can be closed.
    registration: Registration<Lent>,
    inner: T,
}

/// The descriptor, which the inner value keeps open.
#[derive(Debug)]
struct Lent(RawFd);

impl AsFd for Lent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open while it is registered, as the caller of `register` promised, and
        // not negative.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

impl<T: AsRawFd> AsyncFd<T> {
    /// # Safety
    ///
    /// `inner` must return the same descriptor all the time, and keep it open until this is dropped.
    #[track_caller]
    pub unsafe fn register(inner: T) -> Result<Self, AsyncFdRegisterError<T>> {
        // SAFETY: as the caller promises.
        unsafe { Self::register_with_interest(inner, Interest::READABLE | Interest::WRITABLE) }
    }

    /// # Safety
    ///
    /// As for [`register`](Self::register).
    #[track_caller]
    pub unsafe fn register_with_interest(
        inner: T,
        _interest: Interest,
    ) -> Result<Self, AsyncFdRegisterError<T>> {
        // Everything is watched, regardless of the interest: each wait checks its own part.
        let fd = inner.as_raw_fd();
        if fd < 0 {
            return Err(AsyncFdRegisterError { inner, cause: io::Error::from_raw_os_error(libc::EBADF) });
        }
        match Registration::new(Lent(fd)) {
            Ok(registration) => Ok(Self { registration, inner }),
            Err(cause) => Err(AsyncFdRegisterError { inner, cause }),
        }
    }

    #[track_caller]
    #[deprecated(note = "unsound due to lack of I/O safety; use `AsyncFd::register` instead (see \
                         https://github.com/tokio-rs/tokio/pull/8587)")]
    pub fn new(inner: T) -> io::Result<Self> {
        // SAFETY: none: only the caller can keep the promise of `register`, so this function is deprecated.
        Ok(unsafe { Self::register(inner) }?)
    }

    #[track_caller]
    #[deprecated(
        note = "unsound due to lack of I/O safety; use `AsyncFd::register_with_interest` instead (see \
                         https://github.com/tokio-rs/tokio/pull/8587)"
    )]
    pub fn with_interest(inner: T, interest: Interest) -> io::Result<Self> {
        // SAFETY: as above.
        Ok(unsafe { Self::register_with_interest(inner, interest) }?)
    }

    #[track_caller]
    #[deprecated(note = "unsound due to lack of I/O safety; use `AsyncFd::register` instead (see \
                         https://github.com/tokio-rs/tokio/pull/8587)")]
    pub fn try_new(inner: T) -> Result<Self, AsyncFdRegisterError<T>> {
        // SAFETY: as above.
        unsafe { Self::register(inner) }
    }

    #[track_caller]
    #[deprecated(
        note = "unsound due to lack of I/O safety; use `AsyncFd::register_with_interest` instead (see \
                         https://github.com/tokio-rs/tokio/pull/8587)"
    )]
    pub fn try_with_interest(inner: T, interest: Interest) -> Result<Self, AsyncFdRegisterError<T>> {
        // SAFETY: as above.
        unsafe { Self::register_with_interest(inner, interest) }
    }

    pub fn get_ref(&self) -> &T {
        &self.inner
    }

    pub fn get_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    pub fn into_inner(self) -> T {
        let Self { registration, inner } = self;
        drop(registration);
        inner
    }

    pub fn poll_read_ready<'a>(&'a self, cx: &mut Context<'_>) -> Poll<io::Result<AsyncFdReadyGuard<'a, T>>> {
        let event = ready!(self.registration.poll_ready(Direction::Read, cx))?;
        Poll::Ready(Ok(AsyncFdReadyGuard { async_fd: self, event: Some(event) }))
    }

    pub fn poll_read_ready_mut<'a>(
        &'a mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyMutGuard<'a, T>>> {
        let event = ready!(self.registration.poll_ready(Direction::Read, cx))?;
        Poll::Ready(Ok(AsyncFdReadyMutGuard { async_fd: self, event: Some(event) }))
    }

    pub fn poll_write_ready<'a>(
        &'a self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyGuard<'a, T>>> {
        let event = ready!(self.registration.poll_ready(Direction::Write, cx))?;
        Poll::Ready(Ok(AsyncFdReadyGuard { async_fd: self, event: Some(event) }))
    }

    pub fn poll_write_ready_mut<'a>(
        &'a mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyMutGuard<'a, T>>> {
        let event = ready!(self.registration.poll_ready(Direction::Write, cx))?;
        Poll::Ready(Ok(AsyncFdReadyMutGuard { async_fd: self, event: Some(event) }))
    }

    pub async fn ready(&self, interest: Interest) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        let event = self.registration.ready(interest).await?;
        Ok(AsyncFdReadyGuard { async_fd: self, event: Some(event) })
    }

    pub async fn ready_mut(&mut self, interest: Interest) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        let event = self.registration.ready(interest).await?;
        Ok(AsyncFdReadyMutGuard { async_fd: self, event: Some(event) })
    }

    pub async fn readable(&self) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        self.ready(Interest::READABLE).await
    }

    pub async fn readable_mut(&mut self) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        self.ready_mut(Interest::READABLE).await
    }

    pub async fn writable(&self) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        self.ready(Interest::WRITABLE).await
    }

    pub async fn writable_mut(&mut self) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        self.ready_mut(Interest::WRITABLE).await
    }

    pub async fn async_io<R>(
        &self,
        interest: Interest,
        mut f: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration.async_io(interest, |_| f(&self.inner)).await
    }

    pub async fn async_io_mut<R>(
        &mut self,
        interest: Interest,
        mut f: impl FnMut(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration.async_io(interest, |_| f(&mut self.inner)).await
    }

    pub fn try_io<R>(&self, interest: Interest, f: impl FnOnce(&T) -> io::Result<R>) -> io::Result<R> {
        self.registration.try_io(interest, |_| f(&self.inner))
    }

    pub fn try_io_mut<R>(
        &mut self,
        interest: Interest,
        f: impl FnOnce(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration.try_io(interest, |_| f(&mut self.inner))
    }
}

impl<T: AsRawFd> AsRawFd for AsyncFd<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.inner.as_raw_fd()
    }
}

impl<T: AsRawFd> AsFd for AsyncFd<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.registration.get_ref().as_fd()
    }
}

impl<T: fmt::Debug + AsRawFd> fmt::Debug for AsyncFd<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncFd").field("inner", &self.inner).finish()
    }
}

/// The readiness of a descriptor, until the program clears it through this guard.
#[must_use = "You must explicitly choose whether to clear the readiness state by calling a method on ReadyGuard"]
pub struct AsyncFdReadyGuard<'a, T: AsRawFd> {
    async_fd: &'a AsyncFd<T>,
    event: Option<Event>,
}

/// [`AsyncFdReadyGuard`], which lends the descriptor out mutably.
#[must_use = "You must explicitly choose whether to clear the readiness state by calling a method on ReadyGuard"]
pub struct AsyncFdReadyMutGuard<'a, T: AsRawFd> {
    async_fd: &'a mut AsyncFd<T>,
    event: Option<Event>,
}

/// The methods of both guards; `try_io` lends out `$lent`.
macro_rules! guard {
    ($guard:ident, $name:literal, $lent:ty) => {
        impl<'a, T: AsRawFd> $guard<'a, T> {
            pub fn clear_ready(&mut self) {
                self.clear_ready_matching(Ready::ALL);
            }

            pub fn clear_ready_matching(&mut self, ready: Ready) {
                let Some(event) = self.event.take() else { return };
                self.async_fd.registration.forget(event.only(ready));
                let left = event.only(Ready::ALL - ready);
                self.event = (!left.ready.is_empty()).then_some(left);
            }

            pub fn retain_ready(&mut self) {}

            pub fn ready(&self) -> Ready {
                self.event.map_or(Ready::EMPTY, |event| event.ready)
            }

            pub fn try_io<R>(
                &mut self,
                f: impl FnOnce($lent) -> io::Result<R>,
            ) -> Result<io::Result<R>, TryIoError> {
                match f(self.async_fd) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.clear_ready();
                        Err(TryIoError(()))
                    }
                    result => Ok(result),
                }
            }
        }

        impl<T: fmt::Debug + AsRawFd> fmt::Debug for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct($name).field("async_fd", &self.async_fd).finish()
            }
        }
    };
}

guard!(AsyncFdReadyGuard, "ReadyGuard", &'a AsyncFd<T>);
guard!(AsyncFdReadyMutGuard, "MutReadyGuard", &mut AsyncFd<T>);

impl<'a, T: AsRawFd> AsyncFdReadyGuard<'a, T> {
    pub fn get_ref(&self) -> &'a AsyncFd<T> {
        self.async_fd
    }

    pub fn get_inner(&self) -> &'a T {
        self.async_fd.get_ref()
    }
}

impl<T: AsRawFd> AsyncFdReadyMutGuard<'_, T> {
    pub fn get_ref(&self) -> &AsyncFd<T> {
        self.async_fd
    }

    pub fn get_mut(&mut self) -> &mut AsyncFd<T> {
        self.async_fd
    }

    pub fn get_inner(&self) -> &T {
        self.async_fd.get_ref()
    }

    pub fn get_inner_mut(&mut self) -> &mut T {
        self.async_fd.get_mut()
    }
}

/// The descriptor was not ready.
#[derive(Debug)]
pub struct TryIoError(());

/// A descriptor could not be registered; this error contains the value.
pub struct AsyncFdRegisterError<T> {
    inner: T,
    cause: io::Error,
}

#[deprecated(note = "use `AsyncFdRegisterError` instead")]
pub type AsyncFdTryNewError<T> = AsyncFdRegisterError<T>;

impl<T> AsyncFdRegisterError<T> {
    pub fn into_parts(self) -> (T, io::Error) {
        (self.inner, self.cause)
    }
}

impl<T> fmt::Display for AsyncFdRegisterError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.cause, f)
    }
}

impl<T> fmt::Debug for AsyncFdRegisterError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.cause, f)
    }
}

impl<T> Error for AsyncFdRegisterError<T> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

impl<T> From<AsyncFdRegisterError<T>> for io::Error {
    fn from(error: AsyncFdRegisterError<T>) -> Self {
        error.cause
    }
}
