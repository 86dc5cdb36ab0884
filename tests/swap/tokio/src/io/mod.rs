//! The real tokio's traits and utilities, and what of `io` needs a runtime.

pub use real::io::*;

#[cfg(any(feature = "fs", feature = "io-std"))]
pub(crate) mod buf;
#[cfg(feature = "io-std")]
mod stdio;

#[cfg(feature = "io-std")]
pub use stdio::{Stderr, Stdin, Stdout, stderr, stdin, stdout};
