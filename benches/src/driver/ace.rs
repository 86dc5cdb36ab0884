//! The pattern's original: a C++ server on `ACE_TP_Reactor`, built when the library is there.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

pub(crate) const NAME: &str = "ace";

const SOURCE: &str = include_str!("../../ace/server.cpp");
const HEADER: &str = "/usr/include/ace/TP_Reactor.h";

/// The program, compiled at the first call; or why there is none, in words for the tables.
pub(crate) fn program() -> Result<&'static Path, &'static str> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PROGRAM.get_or_init(compile).as_deref().map_err(String::as_str)
}

fn compile() -> Result<PathBuf, String> {
    if !Path::new(HEADER).exists() {
        return Err("ACE is not installed (Debian: libace-dev)".to_owned());
    }
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = own.with_file_name("ace-server");
    let mut compiler = Command::new("g++")
        .args(["-O2", "-std=c++17", "-pthread", "-w", "-x", "c++", "-", "-o"])
        .arg(&program)
        .args(["-x", "none", "-lACE"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("ACE is installed, g++ is not: {error}"))?;
    if let Some(mut input) = compiler.stdin.take() {
        input.write_all(SOURCE.as_bytes()).map_err(|error| error.to_string())?;
    }
    let output = compiler.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(program);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(format!("the ACE server does not compile: {}", text.lines().next().unwrap_or_default()))
}
