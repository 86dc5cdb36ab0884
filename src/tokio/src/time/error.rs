//! The errors of timers.

use std::error;
use std::fmt;
use std::io;

/// An error of timers, which no function here returns.
#[derive(Clone, Copy, Debug)]
pub struct Error(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Shutdown,
    AtCapacity,
    Invalid,
}

impl Error {
    pub fn shutdown() -> Error {
        Error(Kind::Shutdown)
    }

    pub fn is_shutdown(&self) -> bool {
        self.0 == Kind::Shutdown
    }

    pub fn at_capacity() -> Error {
        Error(Kind::AtCapacity)
    }

    pub fn is_at_capacity(&self) -> bool {
        self.0 == Kind::AtCapacity
    }

    pub fn invalid() -> Error {
        Error(Kind::Invalid)
    }

    pub fn is_invalid(&self) -> bool {
        self.0 == Kind::Invalid
    }
}

impl error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Shutdown => "the timer is shutdown, must be called from the context of Tokio runtime",
            Kind::AtCapacity => "timer is at capacity and cannot create a new entry",
            Kind::Invalid => "timer duration exceeds maximum duration",
        })
    }
}

/// A timeout was over first.
#[derive(Debug, PartialEq, Eq)]
pub struct Elapsed(());

impl Elapsed {
    pub(super) fn new() -> Self {
        Elapsed(())
    }
}

impl error::Error for Elapsed {}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Padded on request.
        "deadline has elapsed".fmt(f)
    }
}

impl From<Elapsed> for io::Error {
    fn from(_: Elapsed) -> io::Error {
        io::ErrorKind::TimedOut.into()
    }
}
