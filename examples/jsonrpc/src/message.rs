//! Messages: incoming bytes become requests, answers, batches or errors; and outgoing messages.
//!
//! Parameters and results stay text ([`RawValue`]): only a handler that needs them parses them, and an id is
//! returned exactly as it was received.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::client::CallError;
use crate::{Error, Limits};

/// An incoming message.
#[derive(Debug)]
pub(crate) enum Message {
    One(Item),
    Batch(Vec<Item>),
}

#[derive(Debug)]
pub(crate) enum Item {
    Request(Request),
    Answer(Answer),
    /// Neither; replied to with this.
    Invalid(String),
}

#[derive(Debug)]
pub(crate) struct Request {
    /// `None` for a notification, which is not answered.
    pub(crate) id: Option<Box<RawValue>>,
    pub(crate) method: String,
    pub(crate) params: Option<Box<RawValue>>,
}

/// An answer to a call of this side.
#[derive(Debug)]
pub(crate) struct Answer {
    /// `None` if the id cannot belong to a call of this side.
    pub(crate) id: Option<u64>,
    /// `None` if the answer violates the specification.
    pub(crate) outcome: Option<Result<Box<RawValue>, Error>>,
}

/// The members of a request or an answer.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "there")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "there")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "there")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "there")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "there")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "there")]
    error: Option<&'a RawValue>,
}

/// Distinguishes a `null` from a missing member.
fn there<'a, D: Deserializer<'a>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Parses a message, or returns the error that answers all of it.
pub(crate) fn parse(bytes: &[u8], limits: &Limits) -> Result<Message, Error> {
    if bytes.len() > limits.message {
        return Err(too_long(limits));
    }
    let text = std::str::from_utf8(bytes).map_err(Error::parse)?;
    // serde_json has no limit for values that it only skips.
    if depth(text) > limits.depth {
        return Err(Error::parse(format_args!("nested deeper than {}", limits.depth)));
    }
    if !text.trim_start().starts_with('[') {
        let item = item(text);
        // An invalid item may come before the text that makes it invalid JSON.
        if matches!(item, Item::Invalid(_)) {
            serde_json::from_str::<IgnoredAny>(text).map_err(Error::parse)?;
        }
        return Ok(Message::One(item));
    }
    let items = serde_json::from_str::<Vec<&RawValue>>(text).map_err(Error::parse)?;
    match items.len() {
        0 => Err(Error::invalid_request("a batch of nothing")),
        len if len > limits.batch => {
            Err(Error::invalid_request(format_args!("a batch of more than {}", limits.batch)))
        }
        _ => Ok(Message::Batch(items.into_iter().map(|each| item(each.get())).collect())),
    }
}

/// The message may have been dropped already.
pub(crate) fn too_long(limits: &Limits) -> Error {
    Error::invalid_request(format_args!("longer than {} bytes", limits.message))
}

/// Returns how deep brackets are nested, outside of strings.
fn depth(text: &str) -> usize {
    let (mut now, mut most, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                now += 1;
                most = most.max(now);
            }
            b']' | b'}' => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

fn item(text: &str) -> Item {
    // serde would also accept an array for a struct.
    if !text.trim_start().starts_with('{') {
        return invalid(None, "not an object");
    }
    let envelope: Envelope<'_> = match serde_json::from_str(text) {
        Ok(envelope) => envelope,
        Err(error) => return invalid(None, error),
    };
    let Envelope { jsonrpc, id, method, params, result, error } = envelope;
    let is_ours = |version: &RawValue| {
        version.get() == r#""2.0""#
            || serde_json::from_str::<String>(version.get()).is_ok_and(|it| it == "2.0")
    };
    let is_ours = jsonrpc.is_some_and(is_ours);
    if method.is_none() && (result.is_some() || error.is_some()) {
        let outcome = match (result, error, is_ours) {
            (Some(result), None, true) => Some(Ok(result.to_owned())),
            (None, Some(error), true) => serde_json::from_str(error.get()).ok().map(Err),
            _ => None,
        };
        return Item::Answer(Answer { id: id.and_then(|id| id.get().parse().ok()), outcome });
    }
    if id.is_some_and(|id| id.get().starts_with(['{', '[', 't', 'f'])) {
        return invalid(None, "the id is not a string, a number or null");
    }
    if !is_ours {
        return invalid(id, r#""jsonrpc" is not "2.0""#);
    }
    let Some(method) = method.and_then(|method| serde_json::from_str(method.get()).ok()) else {
        return invalid(id, "the method is not a string");
    };
    if params.is_some_and(|params| !params.get().starts_with(['{', '['])) {
        return invalid(id, "the params are neither an object nor an array");
    }
    Item::Request(Request { id: id.map(ToOwned::to_owned), method, params: params.map(ToOwned::to_owned) })
}

fn invalid(id: Option<&RawValue>, what: impl std::fmt::Display) -> Item {
    Item::Invalid(error(id, &Error::invalid_request(what)))
}

/// Returns a reply with an error. A missing id is `null`, as specified for unknown ids.
pub(crate) fn error(id: Option<&RawValue>, error: &Error) -> String {
    let error = serde_json::to_string(error).expect("it has nothing that JSON has not");
    format!(r#"{{"jsonrpc":"2.0","error":{error},"id":{}}}"#, id.map_or("null", RawValue::get))
}

/// Returns a reply with a result.
pub(crate) fn result(id: &RawValue, result: &RawValue) -> String {
    format!(r#"{{"jsonrpc":"2.0","result":{result},"id":{id}}}"#)
}

/// Returns a call, or without an id a notification. Parameters that are `null` are left out.
pub(crate) fn request(id: Option<u64>, method: &str, params: &impl Serialize) -> Result<String, CallError> {
    let params = serde_json::to_string(params).map_err(|error| CallError::Params(error.to_string()))?;
    let method = serde_json::to_string(method).expect("a string is JSON");
    let mut text = format!(r#"{{"jsonrpc":"2.0","method":{method}"#);
    match params.as_bytes()[0] {
        b'[' | b'{' => text += &format!(r#","params":{params}"#),
        _ if params == "null" => {}
        _ => return Err(CallError::Params(params)),
    }
    if let Some(id) = id {
        text += &format!(r#","id":{id}"#);
    }
    Ok(text + "}")
}
