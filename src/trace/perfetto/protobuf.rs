//! [`Message`]: protobuf's encoding, as far as the writer needs it.

use crate::trace::varint;

/// The fields of a message, encoded.
#[derive(Debug, Default)]
pub(crate) struct Message(Vec<u8>);

/// How the value of a field is encoded.
const WIRE_VARINT: u64 = 0;
const FIXED64: u64 = 1;
const WIRE_BYTES: u64 = 2;

impl Message {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn uint(mut self, field: u64, value: u64) -> Self {
        self.key(field, WIRE_VARINT);
        varint::push(&mut self.0, value);
        self
    }

    pub(crate) fn fixed64(mut self, field: u64, value: u64) -> Self {
        self.key(field, FIXED64);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn text(mut self, field: u64, text: &str) -> Self {
        self.push_bytes(field, text.as_bytes());
        self
    }

    pub(crate) fn message(mut self, field: u64, message: Message) -> Self {
        self.push_bytes(field, &message.0);
        self
    }

    /// Adds the fields of another message to those of this one.
    pub(crate) fn with(mut self, fields: Message) -> Self {
        self.0.extend(fields.0);
        self
    }

    /// Adds a message as a field of this one. Unlike [`message`](Self::message), this works by reference, for
    /// a message that grows to the size of a file.
    pub(crate) fn push(&mut self, field: u64, message: &Message) {
        self.push_bytes(field, &message.0);
    }

    fn push_bytes(&mut self, field: u64, bytes: &[u8]) {
        self.key(field, WIRE_BYTES);
        varint::push(&mut self.0, bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn key(&mut self, field: u64, encoding: u64) {
        varint::push(&mut self.0, field << 3 | encoding);
    }
}
