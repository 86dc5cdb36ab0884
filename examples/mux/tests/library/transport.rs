//! A transport that moves a few bytes at a time, and often none; and one that has all bytes from the start.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use paceline::prelude::*;

use crate::random::Random;

/// Cuts reads and writes at random.
pub(crate) struct Cut<T> {
    inner: T,
    random: Random,
}

impl<T> Cut<T> {
    pub(crate) fn new(inner: T, seed: u64) -> Self {
        Self { inner, random: Random::new(seed) }
    }

    /// Returns how many bytes to move; sometimes makes the task poll again.
    fn len(&mut self, cx: &Context<'_>, of: usize) -> Poll<usize> {
        if self.random.chance(4) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let most = [3, 100, 100_000][self.random.below(3)];
        Poll::Ready(of.min(1 + self.random.below(most)))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Cut<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let len = std::task::ready!(self.len(cx, buf.len()));
        Pin::new(&mut self.inner).poll_read(cx, &mut buf[..len])
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Cut<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let len = std::task::ready!(self.len(cx, buf.len()));
        Pin::new(&mut self.inner).poll_write(cx, &buf[..len])
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_close(cx)
    }
}

/// All bytes that a peer sends and receives. Each read fills all of its room.
pub(crate) struct Memory<'a> {
    pub(crate) said: &'a [u8],
    pub(crate) heard: Vec<u8>,
    pub(crate) reads: usize,
}

impl AsyncRead for Memory<'_> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.reads += 1;
        Pin::new(&mut self.said).poll_read(cx, buf)
    }
}

impl AsyncWrite for Memory<'_> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.heard).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
