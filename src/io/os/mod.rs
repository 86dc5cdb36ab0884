//! What only some operating systems have.

#[cfg(paceline_kqueue)]
pub mod kqueue;
#[cfg(any(paceline_kqueue, windows))]
mod ready;
#[cfg(unix)]
pub mod unix;
#[cfg(windows)]
pub mod windows;
