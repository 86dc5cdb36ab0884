//! A program that knows tokio only, built twice: as it is, and with paceline in the place of tokio. No line of it differs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The rivals, as the tables call them.
pub(crate) const RIVALS: &[&str] = &["axum-tokio", "axum-paceline"];

/// The program of one of them, built at the first call; or why there is none.
pub(crate) fn program(rival: &str) -> Option<Result<&'static Path, &'static str>> {
    static PROGRAMS: [OnceLock<Result<PathBuf, String>>; 2] = [const { OnceLock::new() }; 2];
    let at = RIVALS.iter().position(|known| *known == rival)?;
    Some(PROGRAMS[at].get_or_init(|| build(rival, at == 1)).as_deref().map_err(String::as_str))
}

fn build(rival: &str, is_swapped: bool) -> Result<PathBuf, String> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = package.parent().unwrap_or(package).join("target").join(rival);
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--quiet", "--manifest-path"]).arg(package.join("axum/Cargo.toml"));
    cargo.arg("--target-dir").arg(&target);
    // The lock file is the program's own, of which each of the two needs another one.
    let lock = package.join("axum/Cargo.lock");
    let _ = std::fs::remove_file(&lock);
    if is_swapped {
        let stand_in = package.parent().unwrap_or(package).join("tests/swap/tokio");
        cargo.arg("--config").arg(format!("patch.crates-io.tokio.path={:?}", stand_in.display().to_string()));
    }
    let built = cargo.status().map_err(|error| format!("cargo does not start: {error}"))?;
    let _ = std::fs::remove_file(&lock);
    if !built.success() {
        return Err(format!("{rival} does not build: {built}"));
    }
    Ok(target.join("release/axum-hello"))
}
