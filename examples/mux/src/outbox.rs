//! The frames to be sent next, many by one call.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::io::AsyncWrite;

use crate::frame::{Frame, HEADER, MAX_PAYLOAD};

/// How many pieces of memory one call writes, each with a DATA frame and the frames behind it.
const PIECES: usize = 32;
/// Room behind a DATA frame for further frames, so that it is seldom moved.
const BEHIND: usize = 64;

/// Frames in the order in which they are sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pieces: VecDeque<Vec<u8>>,
    /// How many bytes of the first piece were written.
    written: usize,
    /// Written pieces, for later frames.
    done: Vec<Vec<u8>>,
}

/// Memory for DATA frames, which is reused.
#[derive(Debug, Default)]
pub(crate) struct Spare(Vec<Vec<u8>>);

impl Spare {
    /// Returns an empty frame with room for its maximum size.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_else(|| Vec::with_capacity(HEADER + MAX_PAYLOAD + BEHIND))
    }

    pub(crate) fn memory(&self) -> usize {
        self.0.iter().map(Vec::capacity).sum()
    }
}

impl Outbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.pieces.len() >= PIECES
    }

    /// Appends a frame.
    pub(crate) fn push(&mut self, stream: u32, frame: Frame<'_>) {
        match self.pieces.back_mut() {
            Some(last) => frame.encode(stream, last),
            None => {
                let mut piece = Vec::with_capacity(BEHIND);
                frame.encode(stream, &mut piece);
                self.pieces.push_back(piece);
            }
        }
    }

    /// Appends a frame that is a piece of its own.
    pub(crate) fn push_encoded(&mut self, frame: Vec<u8>) {
        self.pieces.push_back(frame);
    }

    /// Recycles the memory of written pieces.
    pub(crate) fn recycle(&mut self, spare: &mut Spare) {
        let room = PIECES.saturating_sub(spare.0.len());
        spare.0.extend(self.done.drain(..).take(room));
    }

    /// Writes, and returns the number of bytes.
    pub(crate) fn poll_write<IO: AsyncWrite + Unpin>(
        &mut self,
        io: &mut IO,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut slices = [IoSlice::new(&[]); PIECES];
        let mut skip = self.written;
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            *slice = IoSlice::new(&piece[skip..]);
            skip = 0;
        }
        let len = self.pieces.len().min(PIECES);
        let written = ready!(Pin::new(io).poll_write_vectored(cx, &slices[..len]))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.advance(written);
        Poll::Ready(Ok(written))
    }

    fn advance(&mut self, written: usize) {
        self.written += written;
        while self.pieces.front().is_some_and(|first| self.written >= first.len()) {
            let mut piece = self.pieces.pop_front().expect("it is there");
            self.written -= piece.len();
            piece.clear();
            // Pieces for few bytes are too small for a frame, and grown ones exceed the limits.
            if piece.capacity() >= HEADER + MAX_PAYLOAD && piece.capacity() <= HEADER + MAX_PAYLOAD + BEHIND {
                self.done.push(piece);
            }
        }
    }
}
