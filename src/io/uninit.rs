//! Reading into uninitialized memory, for traits of other crates that provide such memory: to zero it first
//! costs as much as a small read.

use super::async_handle::Async;
use super::sys;
use super::transfer::poll_transfer;
use super::trust;
use crate::reactor::Direction;
use socket2::SockRef;
use std::io;
use std::mem::MaybeUninit;
use std::task::{Context, Poll};

impl<T> Async<T>
where
    for<'s> SockRef<'s>: From<&'s T>,
{
    /// Reads as `AsyncRead` does and returns the number of bytes at the beginning of `buf` that are
    /// initialized now. Unsafe code may rely on that number.
    #[inline]
    pub(crate) fn poll_read_uninit(
        &self,
        cx: &mut Context<'_>,
        buf: &mut [MaybeUninit<u8>],
    ) -> Poll<io::Result<usize>> {
        let (source, trust) = (self.source(), trust::of_read::<T>());
        poll_transfer(source, Direction::Read, trust, cx, buf.len(), || sys::read_uninit(self, buf))
    }
}
