//! What code of others finds on our threads: nothing but what is ours. See `tokio.rs`.

/// The thread runs code of others, as long as the value is there.
#[derive(Debug)]
pub(crate) struct Ambient;

/// From here on the calling thread runs code of others.
#[inline]
pub(crate) fn enter() -> Ambient {
    Ambient
}

/// From here on a thread of ours does, as long as it lives.
#[inline]
pub(crate) fn move_in() {}

/// Does what blocks the thread.
#[inline]
pub(crate) fn beside<R>(blocks: impl FnOnce() -> R) -> R {
    blocks()
}
