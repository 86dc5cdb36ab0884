//! Pipes, anonymous and named ones.

use std::fs::{self, File};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};

use crate::io::registration::{Direction, Registration};
use crate::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
use crate::net::transfer::{as_uninit, poll_fill};

/// Returns a new pipe.
pub fn pipe() -> io::Result<(Sender, Receiver)> {
    let (receiver, sender) = new_pipe()?;
    Ok((Sender::from_owned_fd_unchecked(sender)?, Receiver::from_owned_fd_unchecked(receiver)?))
}

#[cfg(not(target_vendor = "apple"))]
fn new_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    use rustix::pipe::{PipeFlags, pipe_with};
    Ok(pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?)
}

#[cfg(target_vendor = "apple")]
fn new_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    use rustix::io::{FdFlags, fcntl_setfd};
    let (receiver, sender) = rustix::pipe::pipe()?;
    for end in [&receiver, &sender] {
        fcntl_setfd(end, FdFlags::CLOEXEC)?;
        set_nonblocking(end, true)?;
    }
    Ok((receiver, sender))
}

/// Options for opening a named pipe.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    read_write: bool,
    unchecked: bool,
}

impl OpenOptions {
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn read_write(&mut self, value: bool) -> &mut Self {
        self.read_write = value;
        self
    }

    pub fn unchecked(&mut self, value: bool) -> &mut Self {
        self.unchecked = value;
        self
    }

    pub fn open_receiver<P: AsRef<Path>>(&self, path: P) -> io::Result<Receiver> {
        Receiver::from_file_unchecked(self.open(path.as_ref(), fs::OpenOptions::new().read(true))?)
    }

    pub fn open_sender<P: AsRef<Path>>(&self, path: P) -> io::Result<Sender> {
        Sender::from_file_unchecked(self.open(path.as_ref(), fs::OpenOptions::new().write(true))?)
    }

    fn open(&self, path: &Path, options: &mut fs::OpenOptions) -> io::Result<File> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if self.read_write {
            options.read(true).write(true);
        }
        let file = options.custom_flags(libc::O_NONBLOCK).open(path)?;
        if !self.unchecked {
            check_pipe(file.as_fd())?;
        }
        Ok(file)
    }
}

/// The write end of a pipe.
#[derive(Debug)]
pub struct Sender {
    io: Registration<File>,
}

/// The read end of a pipe.
#[derive(Debug)]
pub struct Receiver {
    io: Registration<File>,
}

/// The methods of both ends; `$modes` are the access modes that they may have.
macro_rules! end {
    ($end:ident, $direction:ident, $interest:ident, $poll_ready:ident, $until_ready:ident, $modes:expr, $not:literal) => {
        impl $end {
            pub fn from_file(file: File) -> io::Result<Self> {
                Self::from_owned_fd(file.into())
            }

            pub fn from_owned_fd(owned_fd: OwnedFd) -> io::Result<Self> {
                check_pipe(owned_fd.as_fd())?;
                let mode = fcntl_getfl(&owned_fd)? & OFlags::RWMODE;
                if !$modes.contains(&mode) {
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, $not));
                }
                set_nonblocking(&owned_fd, true)?;
                Self::from_owned_fd_unchecked(owned_fd)
            }

            pub fn from_file_unchecked(file: File) -> io::Result<Self> {
                Ok(Self { io: Registration::new(file)? })
            }

            pub fn from_owned_fd_unchecked(owned_fd: OwnedFd) -> io::Result<Self> {
                Self::from_file_unchecked(owned_fd.into())
            }

            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                Ok(self.io.ready(interest).await?.ready)
            }

            pub async fn $until_ready(&self) -> io::Result<()> {
                self.ready(Interest::$interest).await.map(drop)
            }

            pub fn $poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.io.poll_ready(Direction::$direction, cx).map_ok(drop)
            }

            pub fn try_io<R>(&self, f: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
                self.io.try_io(Interest::$interest, |_| f())
            }

            pub fn into_blocking_fd(self) -> io::Result<OwnedFd> {
                let fd = self.into_nonblocking_fd()?;
                set_nonblocking(&fd, false)?;
                Ok(fd)
            }

            pub fn into_nonblocking_fd(self) -> io::Result<OwnedFd> {
                self.io.into_inner().map(OwnedFd::from)
            }
        }

        impl AsFd for $end {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.io.get_ref().as_fd()
            }
        }

        impl AsRawFd for $end {
            fn as_raw_fd(&self) -> RawFd {
                self.io.get_ref().as_raw_fd()
            }
        }
    };
}

end!(
    Sender,
    Write,
    WRITABLE,
    poll_write_ready,
    writable,
    [OFlags::WRONLY, OFlags::RDWR],
    "not in O_WRONLY or O_RDWR access mode"
);
end!(
    Receiver,
    Read,
    READABLE,
    poll_read_ready,
    readable,
    [OFlags::RDONLY, OFlags::RDWR],
    "not in O_RDONLY or O_RDWR access mode"
);

impl Sender {
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.io.try_io(Interest::WRITABLE, |mut io| io.write(buf))
    }

    pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.io.try_io(Interest::WRITABLE, |mut io| io.write_vectored(bufs))
    }
}

impl AsyncWrite for Sender {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.io.poll_io(Direction::Write, cx, |mut io| io.write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.io.poll_io(Direction::Write, cx, |mut io| io.write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Receiver {
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        let buf = as_uninit(buf);
        self.io.try_io(Interest::READABLE, |io| read(io, buf))
    }

    pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.io.try_io(Interest::READABLE, |mut io| io.read_vectored(bufs))
    }

    #[cfg(feature = "io-util")]
    pub fn try_read_buf<B: bytes::BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        use crate::net::transfer::fill;
        // SAFETY: `read` returns how many bytes it has written.
        let read = |io: &File| unsafe { fill(buf, |buf| Ok((read(io, buf)?, ()))) };
        Ok(self.io.try_io(Interest::READABLE, read)?.0)
    }
}

impl AsyncRead for Receiver {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read =
            |buf: &mut [MaybeUninit<u8>]| self.io.poll_io(Direction::Read, cx, |io| Ok((read(io, buf)?, ())));
        // SAFETY: `read` returns how many bytes it has written.
        unsafe { poll_fill(buf, read) }
    }
}

/// Reads, and returns how many bytes of `buf` have been written.
fn read(pipe: &File, buf: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    let (read, _) = rustix::io::read(pipe, buf)?;
    Ok(read.len())
}

fn check_pipe(fd: BorrowedFd<'_>) -> io::Result<()> {
    if FileType::from_raw_mode(fstat(fd)?.st_mode) == FileType::Fifo {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a pipe"))
}

fn set_nonblocking(fd: &OwnedFd, on: bool) -> io::Result<()> {
    let before = fcntl_getfl(fd)?;
    let flags = if on { before | OFlags::NONBLOCK } else { before - OFlags::NONBLOCK };
    if flags != before {
        fcntl_setfl(fd, flags)?;
    }
    Ok(())
}
