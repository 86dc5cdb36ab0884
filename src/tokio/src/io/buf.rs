//! [`Buf`]: the bytes that move between a caller and the thread of a blocking call.

use std::io::{self, IoSlice, Read, Write};

use real::io::ReadBuf;

/// The default maximum of bytes per blocking call.
pub(crate) const MAX_BUF_SIZE: usize = 2 * 1024 * 1024;

/// Bytes that were read and not fetched, or bytes to be written. The memory is reused.
#[derive(Debug, Default)]
pub(crate) struct Buf {
    /// All of it is initialised, so that it can be passed to a reader.
    store: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buf {
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    fn bytes(&self) -> &[u8] {
        &self.store[self.start..self.end]
    }

    /// Hands out as many bytes as fit.
    pub(crate) fn give(&mut self, dst: &mut ReadBuf<'_>) {
        let len = dst.remaining().min(self.end - self.start);
        dst.put_slice(&self.bytes()[..len]);
        self.start += len;
    }

    /// Takes bytes to be written, as many as allowed; returns their number.
    pub(crate) fn take(&mut self, src: &[u8], max: usize) -> usize {
        self.take_all(&[IoSlice::new(src)], max)
    }

    /// [`take`](Self::take) from several slices.
    pub(crate) fn take_all(&mut self, slices: &[IoSlice<'_>], max: usize) -> usize {
        debug_assert!(self.is_empty(), "what was read is given back first");
        self.store.clear();
        for slice in slices {
            let len = slice.len().min(max - self.store.len());
            self.store.extend_from_slice(&slice[..len]);
        }
        (self.start, self.end) = (0, self.store.len());
        self.end
    }

    /// Drops the bytes that were read; returns by how much the file's position is ahead of the caller's.
    #[cfg(feature = "fs")]
    pub(crate) fn discard(&mut self) -> usize {
        let len = self.end - self.start;
        self.start = self.end;
        len
    }

    /// Reads once.
    pub(crate) fn fill(&mut self, from: &mut impl Read, max: usize) -> io::Result<()> {
        debug_assert!(self.is_empty(), "it is asked for more only when all was fetched");
        (self.start, self.end) = (0, 0);
        if self.store.len() < max {
            self.store = vec![0; max];
        }
        loop {
            match from.read(&mut self.store[..max]) {
                Ok(len) => {
                    self.end = len;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes everything. Nothing is left, even after an error.
    pub(crate) fn drain(&mut self, to: &mut impl Write) -> io::Result<()> {
        let result = to.write_all(self.bytes());
        self.start = self.end;
        result
    }
}
