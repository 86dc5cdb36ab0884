//! Errors, and the codes that the peer receives.

use std::io;
use std::sync::Arc;
use std::time::Duration;
use std::{error, fmt};

/// Why a connection or a stream has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The transport failed.
    Io(Arc<io::Error>),
    /// The peer has broken a rule of the protocol, and was told so.
    Violation(Violation),
    /// The peer has ended the connection with an error.
    Told {
        /// The code: one of [`Code`], or the peer's own.
        code: u32,
        /// The reason in words.
        reason: Arc<str>,
    },
    /// The peer has sent nothing for so long, not even an answer to a ping.
    Silent(Duration),
    /// The peer has read nothing for so long.
    Deaf(Duration),
    /// The transport has ended without a GOODBYE.
    Cut,
    /// One of the sides has sent GOODBYE: there are no new streams, or the stream ended with the connection.
    Goodbye,
    /// The connection's driver was dropped.
    Abandoned,
    /// This side has used all stream numbers.
    Spent,
    /// The peer has reset the stream with this code: see [`Stream::reset`](crate::Stream::reset).
    Reset(u32),
    /// The stream's write side has been closed.
    Closed,
}

/// A rule of the protocol that the peer has broken.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The kind of rule.
    pub code: Code,
    /// The violation in words.
    pub what: Arc<str>,
}

/// The codes of a GOODBYE after a broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Code {
    /// An unknown frame, or one that is not allowed in this state.
    Protocol = 1,
    /// More bytes than the window allows, or more credit than there can be.
    Window = 2,
    /// More streams than are allowed.
    Streams = 3,
    /// A frame that is too long or too short.
    Length = 4,
    /// Another version of the protocol.
    Version = 5,
}

impl Violation {
    pub(crate) fn new(code: Code, what: impl Into<Arc<str>>) -> Self {
        Self { code, what: what.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(error) => write!(f, "the connection failed: {error}"),
            Error::Violation(violation) => {
                write!(f, "the peer has broken the protocol ({:?}): {}", violation.code, violation.what)
            }
            Error::Told { code, reason } => {
                write!(f, "the peer has ended the connection (code {code}): {reason:?}")
            }
            Error::Silent(time) => write!(f, "nothing came from the peer for more than {time:?}"),
            Error::Deaf(time) => write!(f, "the peer has taken nothing for more than {time:?}"),
            Error::Cut => f.write_str("the connection was cut: it ended without a GOODBYE"),
            Error::Goodbye => f.write_str("the connection has no new streams any more: GOODBYE was said"),
            Error::Abandoned => f.write_str("the driver of the connection was dropped"),
            Error::Spent => {
                f.write_str("this connection has had as many streams as it can: make another one")
            }
            Error::Reset(code) => write!(f, "the peer has reset the stream (code {code})"),
            Error::Closed => f.write_str("the stream was closed for writing"),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Error::Io(error) => Some(&**error),
            _ => None,
        }
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Io(cause) => cause.kind(),
            Error::Violation(_) => io::ErrorKind::InvalidData,
            Error::Told { .. } => io::ErrorKind::ConnectionAborted,
            Error::Silent(_) | Error::Deaf(_) => io::ErrorKind::TimedOut,
            Error::Cut => io::ErrorKind::UnexpectedEof,
            Error::Goodbye | Error::Abandoned => io::ErrorKind::NotConnected,
            Error::Spent => io::ErrorKind::Other,
            Error::Reset(_) => io::ErrorKind::ConnectionReset,
            Error::Closed => io::ErrorKind::BrokenPipe,
        };
        io::Error::new(kind, error)
    }
}
