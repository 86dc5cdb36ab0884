//! TCP.

pub(super) mod listener;
pub(super) mod socket;
mod split;
pub(super) mod stream;

pub use split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
