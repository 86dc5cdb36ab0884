//! Replies: they are appended to a buffer, which is sent when no more commands wait.

use std::io::Write;

pub fn simple(out: &mut Vec<u8>, text: &str) {
    line(out, format_args!("+{text}"));
}

pub fn error(out: &mut Vec<u8>, text: impl std::fmt::Display) {
    // One line, regardless of the bytes that the client has put into it.
    line(out, format_args!("-{}", text.to_string().replace(['\r', '\n'], " ")));
}

pub fn integer(out: &mut Vec<u8>, number: i64) {
    line(out, format_args!(":{number}"));
}

pub fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    line(out, format_args!("${}", bytes.len()));
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

pub fn null(out: &mut Vec<u8>) {
    out.extend_from_slice(b"$-1\r\n");
}

/// So many replies follow that belong together.
pub fn array(out: &mut Vec<u8>, len: usize) {
    line(out, format_args!("*{len}"));
}

fn line(out: &mut Vec<u8>, line: std::fmt::Arguments<'_>) {
    write!(out, "{line}\r\n").expect("a vector takes all");
}
