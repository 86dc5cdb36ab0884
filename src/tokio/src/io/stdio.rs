//! The standard streams. Their calls block, so the runtime's blocking threads make them, one at a time: bytes
//! that were read wait in a buffer, and a write is done when its bytes were copied; `flush` waits until they
//! are written.

use std::future::Future;
use std::io::{self, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use real::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::buf::{Buf, MAX_BUF_SIZE};
use crate::context;
use crate::runtime::SHUTTING_DOWN;
use crate::task::JoinHandle;

/// The tasks' part of a stream. The other part is the standard library's, which the whole process shares.
#[derive(Debug)]
struct Behind<S> {
    stream: fn() -> S,
    /// Empty while a call has it.
    buf: Buf,
    under_way: Option<JoinHandle<(io::Result<()>, Buf)>>,
    needs_flush: bool,
}

impl<S> Behind<S> {
    fn new(stream: fn() -> S) -> Self {
        Self { stream, buf: Buf::default(), under_way: None, needs_flush: false }
    }

    /// Waits for the call in progress, if any, and returns whether there was one.
    fn poll_call(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let Some(call) = &mut self.under_way else {
            return Poll::Ready(Ok(false));
        };
        let result = ready!(Pin::new(call).poll(cx));
        self.under_way = None;
        let (result, buf) = result?;
        self.buf = buf;
        Poll::Ready(result.map(|()| true))
    }
}

impl<S: Read + 'static> Behind<S> {
    fn poll_read(&mut self, cx: &mut Context<'_>, dst: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let was_called = ready!(self.poll_call(cx))?;
            if was_called || !self.buf.is_empty() || dst.remaining() == 0 {
                self.buf.give(dst);
                return Poll::Ready(Ok(()));
            }
            let (stream, mut buf) = (self.stream, std::mem::take(&mut self.buf));
            let max = dst.remaining().min(MAX_BUF_SIZE);
            self.under_way =
                Some(context::expect().spawn_blocking(move || (buf.fill(&mut stream(), max), buf)));
        }
    }
}

impl<S: Write + 'static> Behind<S> {
    /// Starts a call. If the runtime ends first, the call is made all the same: the last output of a program
    /// is not lost.
    fn call(
        &mut self,
        call: impl FnOnce(&mut S, &mut Buf) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let runtime = context::expect();
        if runtime.shared.blocking.is_closed() {
            return Err(io::Error::other(SHUTTING_DOWN));
        }
        let (stream, mut buf) = (self.stream, std::mem::take(&mut self.buf));
        let call = move || (call(&mut stream(), &mut buf), buf);
        self.under_way = Some(runtime.try_spawn_blocking(call, None)?);
        Ok(())
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, src: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_call(cx))?;
        let len = self.buf.take(src, MAX_BUF_SIZE);
        self.call(|stream, buf| buf.drain(stream))?;
        self.needs_flush = true;
        Poll::Ready(Ok(len))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while ready!(self.poll_call(cx))? || self.needs_flush {
            if std::mem::take(&mut self.needs_flush) {
                self.call(|stream, _| stream.flush())?;
            }
        }
        Poll::Ready(Ok(()))
    }
}

macro_rules! stream {
    ($name:ident, $of:ident) => {
        #[derive(Debug)]
        pub struct $name(Behind<io::$name>);

        pub fn $of() -> $name {
            $name(Behind::new(io::$of))
        }

        #[cfg(unix)]
        impl std::os::fd::AsRawFd for $name {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                io::$of().as_raw_fd()
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsFd for $name {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                // SAFETY: the standard streams exist for the life of the process, as the standard library
                // assumes, too.
                unsafe { std::os::fd::BorrowedFd::borrow_raw(std::os::fd::AsRawFd::as_raw_fd(self)) }
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsRawHandle for $name {
            fn as_raw_handle(&self) -> std::os::windows::io::RawHandle {
                io::$of().as_raw_handle()
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsHandle for $name {
            fn as_handle(&self) -> std::os::windows::io::BorrowedHandle<'_> {
                let handle = std::os::windows::io::AsRawHandle::as_raw_handle(self);
                // SAFETY: as above.
                unsafe { std::os::windows::io::BorrowedHandle::borrow_raw(handle) }
            }
        }
    };
}

macro_rules! sink {
    ($name:ident) => {
        impl AsyncWrite for $name {
            fn poll_write(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                src: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.0.poll_write(cx, src)
            }

            fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.0.poll_flush(cx)
            }

            fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }
        }
    };
}

stream!(Stdin, stdin);
stream!(Stdout, stdout);
stream!(Stderr, stderr);
sink!(Stdout);
sink!(Stderr);

impl AsyncRead for Stdin {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        dst: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.poll_read(cx, dst)
    }
}
