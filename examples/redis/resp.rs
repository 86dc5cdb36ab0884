//! The protocol of redis, as far as a server reads it: bytes become commands.
//!
//! A command is an array of strings (`*2\r\n$3\r\nGET\r\n$1\r\na\r\n`), or a line of words (`GET a\r\n`) for
//! people. The bytes arrive in pieces, cut anywhere. [`Parser`] keeps those of an incomplete command, and
//! continues when more arrive: parsed bytes are not parsed again, however small the pieces are.
//!
//! The limits keep a connection's memory bounded. Announced lengths allocate nothing: the buffer grows as
//! bytes arrive.

use std::ops::{Index, Range};
use std::{fmt, mem};

/// A line: a command in words, or a length.
const MAX_LINE: usize = 64 * 1024;
/// The strings of a command.
const MAX_ARGS: i64 = 64 * 1024;
/// One string.
pub const MAX_BULK: i64 = 4 << 20;
/// The longest command in bytes.
const MAX_COMMAND: usize = 8 << 20;
/// The initial size of the buffer, and the size that an empty buffer keeps: a client that sends much is
/// likely to do so again.
const BUFFER: usize = 4 * 1024;
const KEPT: usize = 16 * 1024;

/// The bytes that were read, and how far they were parsed.
pub struct Parser {
    buffer: Vec<u8>,
    /// The bytes of the buffer that were read and not returned. The first byte begins a command.
    filled: Range<usize>,
    /// How many bytes of that command were parsed. These, and the ranges below, count from its start.
    at: usize,
    /// No line ends before this.
    scanned: usize,
    args: Vec<Range<usize>>,
    expects: Expects,
}

#[derive(Clone, Copy)]
enum Expects {
    Command,
    /// The number of strings.
    Strings(usize),
    /// The bytes of a string, and the number of strings after it.
    Bytes(usize, usize),
    /// The command was returned.
    Nothing,
}

/// One command: its name, and its arguments.
#[derive(Clone, Copy)]
pub struct Command<'a> {
    bytes: &'a [u8],
    args: &'a [Range<usize>],
}

/// The peer violates the protocol, so later bytes cannot be parsed either.
#[derive(Debug, PartialEq)]
pub struct ProtocolError(String);

impl Parser {
    pub fn new() -> Self {
        Self {
            buffer: vec![0; BUFFER],
            filled: 0..0,
            at: 0,
            scanned: 0,
            args: Vec::new(),
            expects: Expects::Command,
        }
    }

    /// Returns the buffer for the next read, which is never empty.
    pub fn space(&mut self) -> &mut [u8] {
        self.forget();
        if self.filled.is_empty() {
            self.filled = 0..0;
            if self.buffer.len() > KEPT {
                self.buffer = vec![0; BUFFER];
            }
        } else if self.filled.end == self.buffer.len() {
            self.buffer.copy_within(self.filled.clone(), 0);
            self.filled = 0..self.filled.len();
            if self.filled.end > self.buffer.len() / 2 {
                self.buffer.resize(2 * self.buffer.len(), 0);
            }
        }
        &mut self.buffer[self.filled.end..]
    }

    /// So many bytes were read into the buffer.
    pub fn filled(&mut self, bytes: usize) {
        self.filled.end += bytes;
    }

    /// Returns the next complete command.
    pub fn next(&mut self) -> Result<Option<Command<'_>>, ProtocolError> {
        self.forget();
        if !self.understand()? {
            return Ok(None);
        }
        self.expects = Expects::Nothing;
        Ok(Some(Command { bytes: &self.buffer[self.filled.start..][..self.at], args: &self.args }))
    }

    /// Drops the returned command when the next one is requested.
    fn forget(&mut self) {
        if let Expects::Nothing = self.expects {
            self.filled.start += mem::take(&mut self.at);
            self.scanned = 0;
            self.args.clear();
            self.args.shrink_to(KEPT / size_of::<Range<usize>>());
            self.expects = Expects::Command;
        }
    }

    /// Continues until a command is complete, or bytes are missing.
    fn understand(&mut self) -> Result<bool, ProtocolError> {
        loop {
            self.expects = match self.expects {
                Expects::Command if self.rest().first() == Some(&b'*') => {
                    let Some(line) = self.line("too big mbulk count string")? else { return Ok(false) };
                    match number(&self.bytes()[line][1..]) {
                        // An empty command is not answered.
                        Some(..=0) => Expects::Nothing,
                        Some(strings @ ..=MAX_ARGS) => Expects::Strings(strings as usize),
                        _ => return error("invalid multibulk length"),
                    }
                }
                Expects::Command => {
                    let Some(line) = self.line("too big inline request")? else { return Ok(false) };
                    self.words(line);
                    if self.args.is_empty() { Expects::Nothing } else { Expects::Strings(0) }
                }
                Expects::Strings(0) => return Ok(true),
                Expects::Strings(strings) => {
                    let Some(line) = self.line("too big bulk count string")? else { return Ok(false) };
                    let line = &self.bytes()[line];
                    let [b'$', digits @ ..] = line else {
                        let got = line
                            .first()
                            .map_or("an empty line".into(), |byte| format!("'{}'", byte.escape_ascii()));
                        return error(format!("expected '$', got {got}"));
                    };
                    match number(digits) {
                        Some(bytes @ 0..=MAX_BULK) => {
                            if self.at + bytes as usize > MAX_COMMAND {
                                return error("too big request");
                            }
                            Expects::Bytes(bytes as usize, strings - 1)
                        }
                        _ => return error("invalid bulk length"),
                    }
                }
                Expects::Bytes(bytes, strings) => {
                    let Some(end) = self.rest().get(bytes..bytes + 2) else { return Ok(false) };
                    if end != b"\r\n" {
                        return error("expected the end of a bulk");
                    }
                    self.args.push(self.at..self.at + bytes);
                    self.at += bytes + 2;
                    self.scanned = self.at;
                    Expects::Strings(strings)
                }
                Expects::Nothing => {
                    self.forget();
                    Expects::Command
                }
            };
        }
    }

    /// Returns the bytes of the command, and those that follow.
    fn bytes(&self) -> &[u8] {
        &self.buffer[self.filled.clone()]
    }

    /// Returns the bytes that were not parsed yet.
    fn rest(&self) -> &[u8] {
        &self.bytes()[self.at..]
    }

    /// Returns the next line, without its `*` and its end, if it is complete.
    fn line(&mut self, too_long: &str) -> Result<Option<Range<usize>>, ProtocolError> {
        let limit = self.filled.len().min(self.at + MAX_LINE);
        let Some(end) = self.bytes()[self.scanned..limit].iter().position(|&byte| byte == b'\n') else {
            self.scanned = limit;
            return if limit == self.at + MAX_LINE { error(too_long) } else { Ok(None) };
        };
        let end = self.scanned + end;
        let line = self.at..end - usize::from(end > self.at && self.bytes()[end - 1] == b'\r');
        (self.at, self.scanned) = (end + 1, end + 1);
        Ok(Some(line))
    }

    /// Splits a line into words. There are no quotes: strings with blanks are sent as an array.
    fn words(&mut self, line: Range<usize>) {
        let mut start = line.start;
        for word in self.buffer[self.filled.clone()][line].split(u8::is_ascii_whitespace) {
            if !word.is_empty() {
                self.args.push(start..start + word.len());
            }
            start += word.len() + 1;
        }
    }
}

impl<'a> Command<'a> {
    /// Returns the number of strings, including the name.
    pub fn len(self) -> usize {
        self.args.len()
    }

    /// Returns the strings after the first so many.
    pub fn from(self, first: usize) -> impl Iterator<Item = &'a [u8]> {
        self.args[first..].iter().map(move |range| &self.bytes[range.clone()])
    }
}

impl Index<usize> for Command<'_> {
    type Output = [u8];

    fn index(&self, index: usize) -> &[u8] {
        &self.bytes[self.args[index].clone()]
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Protocol error: {}", self.0)
    }
}

fn error<T>(what: impl Into<String>) -> Result<T, ProtocolError> {
    Err(ProtocolError(what.into()))
}

/// Parses a number as redis does: no sign but a minus, no leading zeros.
pub fn number(digits: &[u8]) -> Option<i64> {
    let is_plain = match digits.strip_prefix(b"-").unwrap_or(digits) {
        [b'0'] => digits.len() == 1,
        [b'1'..=b'9', ..] => true,
        _ => false,
    };
    if is_plain { std::str::from_utf8(digits).ok()?.parse().ok() } else { None }
}
