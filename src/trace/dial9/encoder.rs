//! [`Encoder`]: the frames of dial9's format. All numbers are in little-endian order.

use crate::trace::names::{Label, Labels};
use crate::trace::varint;

/// What a file begins with: a magic number, and the version of the format.
const HEADER: [u8; 5] = *b"TRC\0\x01";

/// How a frame begins.
const SCHEMA: u8 = 1;
const EVENT: u8 = 2;
const STRING_POOL: u8 = 3;
const TIME_RESET: u8 = 5;
const ANNOTATIONS: u8 = 6;

/// The types of fields.
pub(super) const BOOL: u8 = 3;
pub(super) const TEXT: u8 = 4;
pub(super) const NAME: u8 = 7;
pub(super) const VARINT: u8 = 9;
pub(super) const MAP: u8 = 10;
pub(super) const U8: u8 = 11;
pub(super) const U32: u8 = 13;
/// Added to a type: the value may be absent.
pub(super) const OPTIONAL: u8 = 0x80;

/// The layout of an event. All events have a time.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) name: &'static str,
    /// The name and the type of each field.
    pub(super) fields: &'static [(&'static str, u8)],
    /// What a field means: its index, a key and a value.
    pub(super) annotations: &'static [(u16, &'static str, &'static str)],
}

/// The values of an event, in the order of its fields.
#[derive(Debug, Default)]
pub(super) struct Values(Vec<u8>);

impl Values {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn byte(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    pub(super) fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn varint(mut self, value: u64) -> Self {
        varint::push(&mut self.0, value);
        self
    }

    pub(super) fn optional_varint(self, value: Option<u64>) -> Self {
        match value {
            Some(value) => self.byte(1).varint(value),
            None => self.byte(0),
        }
    }

    pub(super) fn text(mut self, text: &str) -> Self {
        push_text(&mut self.0, text);
        self
    }

    pub(super) fn map(self, entries: &[(&str, String)]) -> Self {
        let values = self.u32(entries.len() as u32);
        entries.iter().fold(values, |values, (key, value)| values.text(key).text(value))
    }
}

/// A file, as far as it is written.
#[derive(Debug)]
pub(super) struct Encoder {
    bytes: Vec<u8>,
    /// The time of the last event, in nanoseconds.
    time: u64,
    names: Labels,
}

impl Encoder {
    /// Begins a file. The number of each schema is its index.
    pub(super) fn new<'s>(schemas: impl Iterator<Item = &'s Schema>) -> Self {
        let mut bytes = HEADER.to_vec();
        schemas.zip(0..).for_each(|(schema, number)| push_schema(&mut bytes, schema, number));
        Self { bytes, time: 0, names: Labels::default() }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the number of a name, for a field of the type [`NAME`]. Writes the name if it is new.
    pub(super) fn name(&mut self, name: impl Into<Label>) -> u32 {
        let (bytes, name) = (&mut self.bytes, name.into());
        self.names.number(name, |number| {
            bytes.push(STRING_POOL);
            // One name follows.
            bytes.extend(1_u32.to_le_bytes());
            bytes.extend(number.to_le_bytes());
            push_text(bytes, &name.to_string());
        })
    }

    /// Writes an event of the schema with this number. Its time counts from that of the event before it, in
    /// 24 bits; if that does not do, a frame sets the time.
    pub(super) fn event(&mut self, schema: u16, time: u64, values: Values) {
        let mut since = time.wrapping_sub(self.time);
        if since >= 1 << 24 {
            self.bytes.push(TIME_RESET);
            self.bytes.extend(time.to_le_bytes());
            since = 0;
        }
        self.time = time;
        self.bytes.push(EVENT);
        self.bytes.extend(schema.to_le_bytes());
        self.bytes.extend(&since.to_le_bytes()[..3]);
        self.bytes.extend(values.0);
    }
}

fn push_schema(bytes: &mut Vec<u8>, schema: &Schema, number: u16) {
    bytes.push(SCHEMA);
    bytes.extend(number.to_le_bytes());
    push_key(bytes, schema.name);
    // Its events have a time.
    bytes.push(1);
    bytes.extend((schema.fields.len() as u16).to_le_bytes());
    for (name, kind) in schema.fields {
        push_key(bytes, name);
        bytes.push(*kind);
    }
    if schema.annotations.is_empty() {
        return;
    }
    bytes.push(ANNOTATIONS);
    varint::push(bytes, number.into());
    bytes.extend((schema.annotations.len() as u16).to_le_bytes());
    for (field, key, value) in schema.annotations {
        bytes.extend(field.to_le_bytes());
        push_key(bytes, key);
        push_text(bytes, value);
    }
}

/// Appends a short text, the length of which has 16 bits.
fn push_key(bytes: &mut Vec<u8>, key: &str) {
    bytes.extend((key.len() as u16).to_le_bytes());
    bytes.extend(key.as_bytes());
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
}
