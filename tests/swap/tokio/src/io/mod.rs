//! The real tokio's traits and utilities, and what of `io` needs a runtime.

pub use real::io::*;
