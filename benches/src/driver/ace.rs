//! The original of the pattern: a C++ server on `ACE_TP_Reactor`, built if the library is installed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

pub(crate) const NAME: &str = "ace";

const SOURCE: &str = include_str!("../../ace/server.cpp");
const HEADER: &str = "/usr/include/ace/TP_Reactor.h";
const VERSION_HEADER: &str = "/usr/include/ace/Version.h";

/// Compiles the program at the first call and returns its path, or the reason for the tables if that is
/// impossible.
pub(crate) fn program() -> Result<&'static Path, &'static str> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PROGRAM.get_or_init(compile).as_deref().map_err(String::as_str)
}

/// Returns the version that ACE's headers state.
pub(crate) fn version() -> Option<String> {
    let text = std::fs::read_to_string(VERSION_HEADER).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("#define ACE_VERSION "))?;
    Some(line.trim().trim_matches('"').to_owned())
}

fn compile() -> Result<PathBuf, String> {
    if !Path::new(HEADER).exists() {
        return Err("ACE is not installed (Debian: libace-dev)".to_owned());
    }
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = own.with_file_name("ace-server");
    if newer(&program, &own) {
        return Ok(program);
    }
    // Under another name first, so that an interrupted compiler leaves no partial program behind.
    let fresh = own.with_file_name("ace-server.new");
    let mut compiler = Command::new("g++")
        .args(["-O2", "-std=c++17", "-pthread", "-w", "-x", "c++", "-", "-o"])
        .arg(&fresh)
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
        std::fs::rename(&fresh, &program).map_err(|error| error.to_string())?;
        return Ok(program);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(format!("the ACE server does not compile: {}", text.lines().next().unwrap_or_default()))
}

/// Returns whether `one` is newer than `other`. The source is part of this program, so a server that is newer
/// than this program is up to date.
fn newer(one: &Path, other: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    changed(one).is_some_and(|one| changed(other).is_some_and(|other| one > other))
}
