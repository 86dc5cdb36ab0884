//! [`Error`]: what an answer says when there is no result.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What went wrong with a call: the error object of JSON-RPC 2.0, section 5.1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Error {
    /// One of the constants here, or of the handler's own. From -32768 to -32000 they are the specification's.
    pub code: i64,
    /// What it means, for people.
    pub message: Cow<'static, str>,
    /// The case at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl Error {
    /// It is no JSON, or nested too deep.
    pub const PARSE: i64 = -32700;
    /// It is JSON, and no request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The method cannot use these parameters.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The handler has failed, and that is not the caller's fault.
    pub const INTERNAL: i64 = -32603;
    /// There is no answer within the time that the method has. Such codes, to -32099, are the server's to choose.
    pub const LATE: i64 = -32000;
    /// As many calls run as may.
    pub const BUSY: i64 = -32001;
    /// This transport cannot do that.
    pub const TRANSPORT: i64 = -32002;

    /// An error with a code and its meaning.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The same, and what was the case.
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

    /// For handlers: what is wrong with the parameters.
    pub fn invalid_params(what: impl fmt::Display) -> Self {
        Self::new(Self::INVALID_PARAMS, "Invalid params").about(what)
    }

    /// For handlers: what has failed. Say nothing that is none of the caller's business.
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
