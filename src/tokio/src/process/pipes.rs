//! This process's ends of a child's standard streams.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll, ready};

use real::io::{AsyncRead, AsyncWrite, ReadBuf};
use rustix::buffer::spare_capacity;

use crate::io::registration::{Direction, Registration};

macro_rules! ends {
    ($($name:ident)+) => {$(
        #[derive(Debug)]
        pub struct $name(Registration<OwnedFd>);

        impl $name {
            #[track_caller]
            pub fn from_std(inner: std::process::$name) -> io::Result<Self> {
                let fd = OwnedFd::from(inner);
                rustix::io::ioctl_fionbio(&fd, true)?;
                Registration::of_ready(fd).map(Self)
            }

            pub fn into_owned_fd(self) -> io::Result<OwnedFd> {
                let fd = self.0.into_inner()?;
                // Another process inherits it, and most programs expect a blocking descriptor.
                rustix::io::ioctl_fionbio(&fd, false)?;
                Ok(fd)
            }
        }

        impl TryFrom<$name> for Stdio {
            type Error = io::Error;

            fn try_from(end: $name) -> io::Result<Self> {
                end.into_owned_fd().map(Self::from)
            }
        }

        impl AsRawFd for $name {
            fn as_raw_fd(&self) -> RawFd {
                self.0.get_ref().as_raw_fd()
            }
        }

        impl AsFd for $name {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.0.get_ref().as_fd()
            }
        }
    )+};
}

ends!(ChildStdin ChildStdout ChildStderr);

impl AsyncWrite for ChildStdin {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // Any system takes so many slices at once. With more, a partial write proves nothing about the pipe.
        let full = bufs.iter().take(16).map(|buf| buf.len()).sum();
        self.0.poll_up_to(Direction::Write, cx, full, |fd| Ok(rustix::io::writev(fd, bufs)?))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The output streams of a child.
pub(super) trait Output {
    fn pipe(&self) -> &Registration<OwnedFd>;
}

macro_rules! outputs {
    ($($name:ident)+) => {$(
        impl Output for $name {
            fn pipe(&self) -> &Registration<OwnedFd> {
                &self.0
            }
        }

        impl AsyncRead for $name {
            fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
                poll_read(&self.0, cx, buf)
            }
        }
    )+};
}

outputs!(ChildStdout ChildStderr);

fn poll_read(
    pipe: &Registration<OwnedFd>,
    cx: &mut Context<'_>,
    buf: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>> {
    // SAFETY: only initialised bytes are written there, those that were read.
    let room = unsafe { buf.unfilled_mut() };
    let full = room.len();
    let read = |fd: &OwnedFd| Ok(rustix::io::read(fd, &mut *room)?.0.len());
    let len = ready!(pipe.poll_up_to(Direction::Read, cx, full, read))?;
    // SAFETY: so many bytes were read into the room.
    unsafe { buf.assume_init(len) };
    buf.advance(len);
    Poll::Ready(Ok(()))
}

/// Reads to the end.
pub(super) fn poll_to_end(
    from: &impl Output,
    cx: &mut Context<'_>,
    into: &mut Vec<u8>,
) -> Poll<io::Result<()>> {
    /// Half of the capacity of a pipe on Linux.
    const ROOM: usize = 32 * 1024;
    loop {
        if into.spare_capacity_mut().len() < ROOM {
            into.reserve(ROOM);
        }
        let read = |fd: &OwnedFd| Ok(rustix::io::read(fd, spare_capacity(into))?);
        if ready!(from.pipe().poll_io(Direction::Read, cx, read))? == 0 {
            return Poll::Ready(Ok(()));
        }
    }
}
