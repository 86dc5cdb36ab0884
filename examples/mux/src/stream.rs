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
/// Reads and writes by the traits of `futures`, also by reference, so that one task may read while another
/// one writes; if several tasks read, or several write, the latest one is woken. `close` ends the write side:
/// the peer reads to the end, and may go on writing.
///
/// Dropping a stream gives up the directions that have not ended: the peer's reads and writes fail then. A
/// closed direction is still sent to its end.
///
/// A write takes as many bytes as the peer's window allows, and waits if that is none. `flush` and `close`
/// wait until the driver has taken all written bytes.
#[derive(Debug)]
pub struct Stream {
    shared: Arc<Shared>,
    id: u32,
    /// The code for the peer if this is dropped before both sides have ended.
    code: u32,
}

impl Stream {
    pub(crate) fn new(shared: Arc<Shared>, id: u32) -> Self {
        Self { shared, id, code: DROPPED }
    }

    /// Returns the number: odd if the client has opened the stream.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Resets the stream with a code: the peer's reads and writes fail with this code. Dropping a stream is
    /// the same with code 0, and a stream that was not accepted has code 1; the programs define the other
    /// codes.
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
