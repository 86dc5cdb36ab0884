//! [`Patient`]: a stream that limits how long its peer may read nothing.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use paceline::Timer;
use paceline::prelude::*;

/// A stream on which a write without progress for this time is an error. Reads have no limit.
#[derive(Debug)]
pub(crate) struct Patient<S> {
    stream: S,
    limit: Duration,
    /// Started when the write made no progress.
    stuck: Option<Timer>,
}

impl<S> Patient<S> {
    pub(crate) fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, stuck: None }
    }
}

/// The same stream. Each clone has a limit of its own.
impl<S: Clone> Clone for Patient<S> {
    fn clone(&self) -> Self {
        Self::new(self.stream.clone(), self.limit)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let written = Pin::new(&mut this.stream).poll_write(cx, buf);
        if written.is_ready() {
            this.stuck = None;
            return written;
        }
        let stuck = this.stuck.get_or_insert_with(|| Timer::after(this.limit));
        Pin::new(stuck).poll(cx).map(|_| {
            let what = format!("the peer has taken nothing for {:?}", this.limit);
            Err(io::Error::new(io::ErrorKind::TimedOut, what))
        })
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }
}
