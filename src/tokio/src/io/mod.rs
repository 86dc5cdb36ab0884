//! The real tokio's traits and utilities, and the parts of `io` that need a runtime.

#[cfg(all(unix, feature = "net"))]
mod async_fd;
#[cfg(any(feature = "fs", feature = "io-std"))]
pub(crate) mod buf;
#[cfg(any(feature = "net", all(unix, feature = "process")))]
mod interest;
#[cfg(any(feature = "net", all(unix, feature = "process")))]
mod ready;
#[cfg(any(feature = "net", all(unix, feature = "process")))]
#[cfg_attr(not(feature = "net"), allow(dead_code, reason = "the pipes of a child need less than a socket"))]
pub(crate) mod registration;
#[cfg(feature = "io-std")]
mod stdio;

pub use real::io::*;

#[cfg(feature = "io-std")]
pub use stdio::{Stderr, Stdin, Stdout, stderr, stdin, stdout};
#[cfg(any(feature = "net", all(unix, feature = "process")))]
pub use {interest::Interest, ready::Ready};

/// Descriptors of the program.
#[cfg(all(unix, feature = "net"))]
pub mod unix {
    #[allow(deprecated, reason = "its old name")]
    pub use super::async_fd::AsyncFdTryNewError;
    pub use super::async_fd::{
        AsyncFd, AsyncFdReadyGuard, AsyncFdReadyMutGuard, AsyncFdRegisterError, TryIoError,
    };
}
