//! [`Error`]: the error object of an answer.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The error object of JSON-RPC 2.0, section 5.1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Error {
    /// One of the constants here, or a code of the handler's own. The specification reserves -32768 to
    /// -32000.
    pub code: i64,
    /// The meaning, for people.
    pub message: Cow<'static, str>,
    /// Details of this case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl Error {
    /// Invalid JSON, or nested too deep.
    pub const PARSE: i64 = -32700;
    /// Valid JSON, but no request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters do not fit the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The handler failed, and the caller is not at fault.
    pub const INTERNAL: i64 = -32603;
    /// The method has not answered in time. Servers may choose codes from here to -32099.
    pub const LATE: i64 = -32000;
    /// Too many calls are running.
    pub const BUSY: i64 = -32001;
    /// The transport does not support this.
    pub const TRANSPORT: i64 = -32002;

    /// Returns an error with a code and its meaning.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Adds the details of this case.
    pub fn about(mut self, what: impl fmt::Display) -> Self {
        self.data = Some(Value::String(what.to_string()));
        self
    }

    pub(crate) fn parse(what: impl fmt::Display) -> Self {
        Self::new(Self::PARSE, "Parse error").about(what)
    }

    pub(crate) fn invalid_request(what: impl fmt::Display) -> Self {
        Self::new(Self::INVALID_REQUEST, "Invalid Request").about(what)
    }

    /// For handlers: the parameters are wrong.
    pub fn invalid_params(what: impl fmt::Display) -> Self {
        Self::new(Self::INVALID_PARAMS, "Invalid params").about(what)
    }

    /// For handlers: an internal failure. The text is sent to the caller.
    pub fn internal(what: impl fmt::Display) -> Self {
        Self::new(Self::INTERNAL, "Internal error").about(what)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)?;
        match &self.data {
            Some(Value::String(data)) => write!(f, ": {data}"),
            Some(data) => write!(f, ": {data}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
