//! [`FramedReader`]: turns bytes, cut anywhere, into messages.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use paceline::prelude::*;
use paceline::timeout;

use crate::Limits;
use crate::session::{Incoming, Reader};
use crate::transport::framed::Framing;

/// The least size of a read.
const READ: usize = 4 << 10;
/// The size that an empty buffer keeps.
pub(super) const KEEP: usize = 64 << 10;

/// Reads messages, cut anywhere.
pub(crate) struct FramedReader<R> {
    stream: R,
    /// The unparsed bytes are from `start` to `end`; there is no newline before `seen`.
    buf: Vec<u8>,
    start: usize,
    seen: usize,
    end: usize,
    framing: Option<Framing>,
    /// How many bytes to skip; of a line that is too long, all to its end.
    skip: usize,
    most: usize,
    limit: Duration,
    /// The writer reads this.
    has_lengths: Arc<AtomicBool>,
}

impl<R: AsyncRead + Unpin + Send + 'static> Reader for FramedReader<R> {
    async fn next(&mut self) -> io::Result<Option<Incoming>> {
        let mut since = None;
        loop {
            if let Some(incoming) = self.parse() {
                return Ok(Some(incoming));
            }
            self.make_space();
            let read = self.stream.read(&mut self.buf[self.end..]);
            let read = if self.start == self.end && self.skip == 0 {
                read.await?
            } else {
                let since = since.get_or_insert_with(Instant::now);
                timeout(self.limit.saturating_sub(since.elapsed()), read).await??
            };
            if read == 0 {
                return Ok(self.rest());
            }
            self.end += read;
            // A busy peer is read from in larger pieces.
            if self.end == self.buf.len() && self.end < KEEP {
                self.buf.resize(2 * self.end, 0);
            }
        }
    }
}

impl<R> FramedReader<R> {
    pub(super) fn new(
        stream: R,
        framing: Option<Framing>,
        limits: &Limits,
        has_lengths: Arc<AtomicBool>,
    ) -> Self {
        let most = limits.message.min((1 << 24) - 1);
        let (buf, limit) = (Vec::new(), limits.partial);
        Self { stream, buf, start: 0, seen: 0, end: 0, framing, skip: 0, most, limit, has_lengths }
    }

    /// Returns the next message, if it is complete.
    fn parse(&mut self) -> Option<Incoming> {
        let first = *self.buf[..self.end].get(self.start)?;
        let framing = *self.framing.get_or_insert_with(|| {
            self.has_lengths.store(first == 0, Ordering::Relaxed);
            if first == 0 { Framing::Lengths } else { Framing::Lines }
        });
        match framing {
            Framing::Lines => self.line(),
            Framing::Lengths => self.frame(),
        }
    }

    fn line(&mut self) -> Option<Incoming> {
        let newline = self.buf[self.seen..self.end].iter().position(|byte| *byte == b'\n');
        let Some(at) = newline.map(|at| self.seen + at) else {
            self.seen = self.end;
            let is_too_long = self.end - self.start > self.most;
            if self.skip > 0 || is_too_long {
                (self.start, self.seen, self.end) = (0, 0, 0);
            }
            // Reported once.
            let is_news = is_too_long && self.skip == 0;
            self.skip |= usize::from(is_too_long);
            return is_news.then_some(Incoming::TooLong);
        };
        let line = self.start..at;
        (self.start, self.seen) = (at + 1, at + 1);
        match std::mem::take(&mut self.skip) {
            0 if line.len() > self.most => Some(Incoming::TooLong),
            0 => Some(Incoming::Message(self.buf[line].to_vec())),
            // The end of the long line.
            _ => self.parse(),
        }
    }

    fn frame(&mut self) -> Option<Incoming> {
        let there = (self.end - self.start).min(self.skip);
        self.skip -= there;
        self.start += there;
        let (head, rest) = self.buf[self.start..self.end].split_first_chunk::<4>()?;
        let len = u32::from_be_bytes(*head) as usize;
        if len > self.most {
            self.start += 4;
            self.skip = len;
            return Some(Incoming::TooLong);
        }
        let message = rest.get(..len)?.to_vec();
        self.start += 4 + len;
        Some(Incoming::Message(message))
    }

    /// Handles the end of the stream. A last line may have no newline.
    fn rest(&mut self) -> Option<Incoming> {
        let rest = self.buf[self.start..self.end].to_vec();
        let is_skipped = std::mem::take(&mut self.skip) > 0;
        (self.start, self.seen, self.end) = (0, 0, 0);
        match self.framing {
            _ if is_skipped || rest.is_empty() => None,
            Some(Framing::Lines) => Some(Incoming::Message(rest)),
            _ => Some(Incoming::Partial),
        }
    }

    /// Makes room to read into: twice the current size, so that a long message is seldom copied.
    fn make_space(&mut self) {
        if self.start == self.end {
            (self.start, self.seen, self.end) = (0, 0, 0);
            if self.buf.len() > KEEP {
                self.buf = Vec::new();
            }
        }
        if self.start > 0 {
            self.buf.copy_within(self.start..self.end, 0);
            (self.seen, self.end) = (self.seen.saturating_sub(self.start), self.end - self.start);
            self.start = 0;
        }
        if self.buf.len() - self.end < READ {
            self.buf.resize((2 * self.end).max(READ) + READ, 0);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use super::*;

    /// Returns its bytes in pieces with lengths from a seed.
    struct Pieces<'a>(&'a [u8], u64);

    impl AsyncRead for Pieces<'_> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            self.1 = self.1.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let most = if self.1 >> 63 == 0 { 3 } else { 20_000 };
            let piece = (1 + (self.1 >> 33) as usize % most).min(buf.len()).min(self.0.len());
            let (now, later) = self.0.split_at(piece);
            buf[..piece].copy_from_slice(now);
            self.0 = later;
            Poll::Ready(Ok(piece))
        }
    }

    fn messages(bytes: &'static [u8], seed: u64) -> Vec<Option<Vec<u8>>> {
        let limits = Limits { message: 10_000, ..Limits::default() };
        let mut reader = FramedReader::new(Pieces(bytes, seed), None, &limits, Arc::default());
        let mut messages = Vec::new();
        paceline::block_on(async {
            while let Some(incoming) = reader.next().await.expect("it has no errors") {
                assert!(reader.buf.len() <= 4 * KEEP, "{} bytes are kept", reader.buf.len());
                messages.push(match incoming {
                    Incoming::Message(bytes) => Some(bytes),
                    Incoming::TooLong | Incoming::Partial => None,
                });
            }
        });
        messages
    }

    #[test]
    fn however_it_is_cut_it_is_the_same() {
        let lens = [1, 0, 10_000, 10_001, 2, 300_000, 9_999, 5];
        let texts: Vec<_> = lens.iter().map(|len| vec![b'x'; *len]).collect();
        let wanted: Vec<_> = texts.iter().map(|text| (text.len() <= 10_000).then(|| text.clone())).collect();
        let lines = texts.iter().flat_map(|text| [text.as_slice(), b"\n"].concat()).collect::<Vec<_>>();
        let frame = |text: &Vec<u8>| [&(text.len() as u32).to_be_bytes(), text.as_slice()].concat();
        let frames: Vec<_> = texts.iter().flat_map(frame).collect();
        let (lines, frames): (&[u8], &[u8]) = (lines.leak(), frames.leak());
        for seed in 0..100 {
            assert!(messages(lines, seed) == wanted, "lines, seed {seed}");
            assert!(messages(frames, seed) == wanted, "lengths, seed {seed}");
        }
        // An end in the middle: a last line may be complete, a message with a length is not.
        assert_eq!(messages(b"ab\nc", 1), [Some(b"ab".to_vec()), Some(b"c".to_vec())]);
        assert_eq!(messages(b"\0\0\0\x02abc", 1), [Some(b"ab".to_vec()), None]);
        assert_eq!(messages(b"\0\0\0\x02a", 1), [None]);
    }

    #[test]
    fn half_a_message_has_its_time_and_nothing_has_all_of_it() {
        let limits = Limits { partial: Duration::from_millis(20), ..Limits::default() };
        let (one, mut other) = pair();
        let mut reader = FramedReader::new(one, None, &limits, Arc::default());
        paceline::block_on(async {
            assert!(timeout(Duration::from_millis(60), reader.next()).await.is_err());
            other.write_all(b"{\n{").await.expect("it is connected");
            assert!(matches!(reader.next().await, Ok(Some(Incoming::Message(_)))));
            let late = reader.next().await.err().expect("there is half a message");
            assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        });
    }

    fn pair() -> (paceline::net::unix::UnixStream, paceline::net::unix::UnixStream) {
        paceline::net::unix::UnixStream::pair().expect("there are descriptors")
    }

    /// On any input, the reader neither panics nor keeps more than its limit.
    #[test]
    fn any_bytes_do() {
        for seed in 0..200_u64 {
            let mut state = seed;
            let byte = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                // Many zeros and newlines, so that there are frames and lines.
                [0, 0, b'\n', b'{', (state >> 40) as u8][(state >> 33) as usize % 5]
            };
            let bytes: Vec<u8> = std::iter::repeat_with(byte).take(50_000).collect();
            messages(bytes.leak(), seed);
        }
    }
}
