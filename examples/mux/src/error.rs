//! What may go wrong, and what the peer is told then.

use std::io;
use std::sync::Arc;
use std::time::Duration;
use std::{error, fmt};

/// Why a connection has ended, or a stream.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The transport failed.
    Io(Arc<io::Error>),
    /// The peer has broken a rule of the protocol. It was told so.
    Violation(Violation),
    /// The peer has ended the connection with an error, and says why.
    Told {
        /// The code: those of [`Code`], or the peer's own.
        code: u32,
        /// Its words.
        reason: Arc<str>,
    },
    /// Nothing came from the peer for so long, not even an answer to a ping.
    Silent(Duration),
    /// The peer has taken nothing for so long.
    Deaf(Duration),
    /// The transport has ended, and no GOODBYE was said.
    Cut,
    /// One of the sides has said GOODBYE: there are no new streams, or the stream was given up with the connection.
    Goodbye,
    /// The connection's driver was dropped.
    Abandoned,
    /// This side has opened as many streams as there are numbers.
    Spent,
    /// The stream was reset by the peer, for this reason: see [`Stream::reset`](crate::Stream::reset).
    Reset(u32),
    /// The stream's writing side has been closed.
    Closed,
}

/// A rule of the protocol that the peer has broken.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// Of which kind it is.
    pub code: Code,
    /// What it did, in words.
    pub what: Arc<str>,
}

/// What a GOODBYE says to whoever has broken a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Code {
    /// A frame that nobody knows, or that cannot come then.
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
            Error::Abandoned => f.write_str("nobody drives the connection: its driver was dropped"),
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
