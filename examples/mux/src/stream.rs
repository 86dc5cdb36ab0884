//! A stream of a connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::io::{AsyncRead, AsyncWrite};

use crate::session::DROPPED;
use crate::shared::Shared;

/// One of many streams over one connection: bytes in both directions, each of which ends on its own.
///
/// It reads and writes by the traits of `futures`, also by a reference, so that one task may read while another one writes; where
/// several read, or several write, the one that came last is woken. `close` ends the writing side: the peer reads to the end, and may go
/// on writing.
///
/// Dropping it gives up what has not ended: the peer's reads and writes fail then. What was closed before goes out to its end.
///
/// A write takes what the peer's window has room for, and waits when that is none. `flush` waits until the driver has taken what was
/// written, and `close` as well.
#[derive(Debug)]
pub struct Stream {
    shared: Arc<Shared>,
    id: u32,
    /// What the peer is told if this is dropped before both sides have ended.
    code: u32,
}

impl Stream {
    pub(crate) fn new(shared: Arc<Shared>, id: u32) -> Self {
        Self { shared, id, code: DROPPED }
    }

    /// Its number: odd if the client has opened it.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Gives it up, and tells the peer why: its reads and writes fail with this code. Dropping a stream is the same with code 0, and one
    /// that nobody accepts has code 1; the others mean what both programs take them to mean.
    pub fn reset(mut self, code: u32) {
        self.code = code;
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.with(|session, wakes| session.let_go(self.id, self.code, wakes));
    }
}

impl AsyncRead for &Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.shared.with(|session, wakes| session.poll_read(self.id, cx, buf, wakes)).map_err(io::Error::from)
    }
}

impl AsyncWrite for &Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.shared
            .with(|session, wakes| session.poll_write(self.id, cx, buf, wakes))
            .map_err(io::Error::from)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared.with(|session, wakes| session.poll_flush(self.id, cx, wakes)).map_err(io::Error::from)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared.with(|session, wakes| session.poll_close(self.id, cx, wakes)).map_err(io::Error::from)
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &*self).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &*self).poll_close(cx)
    }
}
