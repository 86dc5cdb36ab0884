//! What goes out next: frames that are being written, many by one call.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::io::AsyncWrite;

use crate::frame::{Frame, HEADER, MAX_PAYLOAD};

/// So many pieces of memory are written by one call, each with a DATA frame and what comes after it.
const PIECES: usize = 32;
/// Room behind a DATA frame for what follows it, so that it is seldom moved.
const BEHIND: usize = 64;

/// Frames in the order in which they go out.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pieces: VecDeque<Vec<u8>>,
    /// So much of the first one has been written.
    written: usize,
    /// Pieces that were written, for frames to come.
    done: Vec<Vec<u8>>,
}

/// Memory for DATA frames, which goes round.
#[derive(Debug, Default)]
pub(crate) struct Spare(Vec<Vec<u8>>);

impl Spare {
    /// An empty frame with room for all that it may have.
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

    /// Gives back the memory of what was written.
    pub(crate) fn recycle(&mut self, spare: &mut Spare) {
        let room = PIECES.saturating_sub(spare.0.len());
        spare.0.extend(self.done.drain(..).take(room));
    }

    /// Writes some, and says how many bytes.
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
            // Those that were made for a few bytes are no use for a frame, those that have grown are none for the limits.
            if piece.capacity() >= HEADER + MAX_PAYLOAD && piece.capacity() <= HEADER + MAX_PAYLOAD + BEHIND {
                self.done.push(piece);
            }
        }
    }
}
