//! Messages on standard error that are printed without a request.

use std::fmt;
use std::io::{self, Write};

/// Prints a line that begins with "paceline: ", with one write. Ignores errors: if standard error is closed
/// or full, `eprintln!` would panic.
#[cold]
pub(crate) fn print(text: impl fmt::Display) {
    let line = format!("paceline: {text}\n");
    let _ = io::stderr().lock().write_all(line.as_bytes());
}
