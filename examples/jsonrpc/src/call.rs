//! [`Call`]: what a handler gets.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::Error;
use crate::peer::Peer;

/// A call of one of our methods.
#[derive(Debug)]
pub struct Call {
    pub(crate) method: String,
    pub(crate) captured: Vec<String>,
    pub(crate) params: Option<Box<RawValue>>,
    pub(crate) peer: Option<Peer>,
}

impl Call {
    /// The method's name, as it was called.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// What was in the place of a star of the method's pattern: 0 is the first one. Empty if there is no such star.
    pub fn captured(&self, star: usize) -> &str {
        self.captured.get(star).map_or("", String::as_str)
    }

    /// The parameters, if they are such. Where there are none, they are `null`.
    pub fn params<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let text = self.params.as_ref().map_or("null", |params| params.get());
        serde_json::from_str(text).map_err(Error::invalid_params)
    }

    /// The parameters as they came.
    pub fn into_params(self) -> Option<Box<RawValue>> {
        self.params
    }

    /// Who called, to be called or told in turn. HTTP has no way back.
    pub fn peer(&self) -> Result<&Peer, Error> {
        let none = || Error::new(Error::TRANSPORT, "This transport has no way back");
        self.peer.as_ref().ok_or_else(none)
    }
}
