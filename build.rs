//! Tells the crate what its compiler's standard library has beyond the minimum supported version.

use std::env;
use std::process::Command;

/// The minor version of Rust that brought `std::io::PipeReader` and `std::io::PipeWriter`.
const PIPES: u32 = 87;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(paceline_no_pipe)");
    // A compiler that does not say its version is taken for a recent one.
    if minor_version().is_some_and(|minor| minor < PIPES) {
        println!("cargo::rustc-cfg=paceline_no_pipe");
    }
}

/// The `85` of `rustc 1.85.0 (4d91de4e4 2025-02-17)`.
fn minor_version() -> Option<u32> {
    let output = Command::new(env::var_os("RUSTC")?).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split_whitespace().nth(1)?.split('.').nth(1)?.parse().ok()
}
