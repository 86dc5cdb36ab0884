//! [`JoinError`]: why a task has no output.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Mutex;

use super::Id;

/// Why a task has no output: it was cancelled, or it panicked.
pub struct JoinError {
    id: Id,
    why: Why,
}

enum Why {
    Cancelled,
    Panic(Payload),
}

impl JoinError {
    pub(crate) fn cancelled(id: Id) -> Self {
        Self { id, why: Why::Cancelled }
    }

    pub(crate) fn panic(id: Id, payload: Box<dyn Any + Send>) -> Self {
        Self { id, why: Why::Panic(Payload::new(payload)) }
    }

    pub fn is_cancelled(&self) -> bool {
        matches!(self.why, Why::Cancelled)
    }

    pub fn is_panic(&self) -> bool {
        matches!(self.why, Why::Panic(_))
    }

    #[track_caller]
    pub fn into_panic(self) -> Box<dyn Any + Send + 'static> {
        self.try_into_panic().expect("`JoinError` reason is not a panic.")
    }

    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send + 'static>, Self> {
        match self.why {
            Why::Panic(payload) => Ok(payload.into_inner()),
            Why::Cancelled => Err(self),
        }
    }

    pub fn id(&self) -> Id {
        self.id
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Cancelled => write!(f, "task {} was cancelled", self.id),
            Why::Panic(payload) => match &payload.said {
                Some(said) => write!(f, "task {} panicked with message {said:?}", self.id),
                None => write!(f, "task {} panicked", self.id),
            },
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Cancelled => write!(f, "JoinError::Cancelled({:?})", self.id),
            Why::Panic(payload) => match &payload.said {
                Some(said) => write!(f, "JoinError::Panic({:?}, {said:?}, ...)", self.id),
                None => write!(f, "JoinError::Panic({:?}, ...)", self.id),
            },
        }
    }
}

impl std::error::Error for JoinError {}

impl From<JoinError> for io::Error {
    fn from(error: JoinError) -> Self {
        Self::other(match error.why {
            Why::Cancelled => "task was cancelled",
            Why::Panic(_) => "task panicked",
        })
    }
}

/// The payload of a panic, which need not be `Sync`; and its message, which is.
struct Payload {
    said: Option<String>,
    payload: Mutex<Box<dyn Any + Send>>,
}

impl Payload {
    fn new(payload: Box<dyn Any + Send>) -> Self {
        let said = payload.downcast_ref::<&'static str>().copied();
        let said = said.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).map(String::from);
        Self { said, payload: Mutex::new(payload) }
    }

    fn into_inner(self) -> Box<dyn Any + Send> {
        self.payload.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
