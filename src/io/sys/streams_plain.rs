//! Stream sockets as the standard library has them: it knows what the platform needs.

use crate::reactor::Source;
use std::io;

/// There is no better way than `read` of std's.
#[inline]
pub(in crate::io) fn read_stream<T>(_: &Source, _: &mut [u8]) -> Option<io::Result<usize>> {
    None
}

/// There is no better way than `write` of std's.
#[inline]
pub(in crate::io) fn write_stream<T>(_: &Source, _: &[u8]) -> Option<io::Result<usize>> {
    None
}
