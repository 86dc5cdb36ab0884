//! [`Whole`]: a stream that limits how long its peer may take for a message.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use paceline::Timer;
use paceline::prelude::*;

/// The number of messages that were read, which the reader counts.
pub(crate) type Count = Arc<AtomicU64>;

/// A stream with an error on reads if no message was completed for this time.
#[derive(Debug)]
pub(crate) struct Whole<S> {
    stream: S,
    limit: Duration,
    count: Count,
    /// The number of the message in progress, and its timer.
    begun: Option<(u64, Timer)>,
}

impl<S> Whole<S> {
    pub(crate) fn new(stream: S, limit: Duration, count: Count) -> Self {
        Self { stream, limit, count, begun: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Whole<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        let now = this.count.load(Ordering::Relaxed);
        // The start of a message that is already in the reader's buffer is not seen here: its time begins
        // with its next byte.
        let begun = this.begun.take().filter(|(number, _)| *number == now);
        if read.is_ready() {
            this.begun = begun.or_else(|| Some((now, Timer::after(this.limit))));
            return read;
        }
        this.begun = begun;
        let Some((_, timer)) = &mut this.begun else { return Poll::Pending };
        Pin::new(timer).poll(cx).map(|_| {
            let what = format!("a message has not come whole within {:?}", this.limit);
            Err(io::Error::new(io::ErrorKind::TimedOut, what))
        })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Whole<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use paceline::net::unix::UnixStream;
    use paceline::timeout;

    use super::*;

    #[test]
    fn what_has_begun_has_its_time_and_nothing_has_all_of_it() {
        let (stream, mut other) = UnixStream::pair().expect("there are descriptors");
        let (count, mut buf) = (Count::default(), [0; 8]);
        let mut stream = Whole::new(stream, Duration::from_millis(20), count.clone());
        paceline::block_on(async {
            assert!(timeout(Duration::from_millis(60), stream.read(&mut buf)).await.is_err());
            other.write_all(b"ab").await.expect("it is connected");
            assert_eq!(stream.read(&mut buf).await.expect("it is there"), 2);
            count.fetch_add(1, Ordering::Relaxed);
            assert!(timeout(Duration::from_millis(60), stream.read(&mut buf)).await.is_err());
            other.write_all(b"c").await.expect("it is connected");
            assert_eq!(stream.read(&mut buf).await.expect("it is there"), 1);
            let late =
                timeout(Duration::from_secs(10), stream.read(&mut buf)).await.expect("it has its time");
            let late = late.expect_err("there is half a message");
            assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        });
    }
}
