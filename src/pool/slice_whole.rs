//! A short time slice, where there is none to be had.

/// Asks for one on the calling thread: in vain.
pub(super) fn shorten() {}
