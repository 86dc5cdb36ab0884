//! [`Call`]: the argument of a handler.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::Error;
use crate::peer::Peer;

/// A call of a local method.
#[derive(Debug)]
pub struct Call {
    pub(crate) method: String,
    pub(crate) captured: Vec<String>,
    pub(crate) params: Option<Box<RawValue>>,
    pub(crate) peer: Option<Peer>,
}

impl Call {
    /// Returns the method's name, as it was called.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the text in the place of a star of the method's pattern: 0 is the first one. Empty if there is
    /// no such star.
    pub fn captured(&self, star: usize) -> &str {
        self.captured.get(star).map_or("", String::as_str)
    }

    /// Parses the parameters. Missing ones are parsed as `null`.
    pub fn params<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let text = self.params.as_ref().map_or("null", |params| params.get());
        serde_json::from_str(text).map_err(Error::invalid_params)
    }

    /// Returns the parameters as they were received.
    pub fn into_params(self) -> Option<Box<RawValue>> {
        self.params
    }

    /// Returns the caller, which can be called or notified in turn. HTTP has no way back.
    pub fn peer(&self) -> Result<&Peer, Error> {
        let none = || Error::new(Error::TRANSPORT, "This transport has no way back");
        self.peer.as_ref().ok_or_else(none)
    }
}
