//! The context that foreign code finds on threads of this crate: none. With the feature
//! `tokio`, `compat/tokio_ambient.rs` is this module.

/// Marks that the thread runs foreign code, while the value exists.
#[derive(Debug)]
pub(crate) struct Ambient;

/// Announces that the calling thread runs foreign code from here on.
#[inline]
pub(crate) fn enter() -> Ambient {
    Ambient
}

/// Announces that a thread of this crate runs foreign code for the rest of its life.
#[inline]
pub(crate) fn move_in() {}

/// Runs a closure that blocks the thread.
#[inline]
pub(crate) fn beside<R>(blocks: impl FnOnce() -> R) -> R {
    blocks()
}
