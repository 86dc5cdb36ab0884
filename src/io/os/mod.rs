//! Types and functions that only some operating systems have.

#[cfg(paceline_kqueue)]
pub mod kqueue;
#[cfg(unix)]
pub mod unix;
#[cfg(windows)]
pub mod windows;
