//! Behaviour, from the outside.
#![allow(unreachable_pub)]

mod io;
#[cfg(unix)]
mod io_unix;
mod surface;
