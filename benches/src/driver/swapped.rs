//! A program that knows tokio only, built twice: as it is, and with paceline in the place of tokio. No line of its code differs, and
//! two of its manifest.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The rivals, as the tables call them.
pub(crate) const RIVALS: &[&str] = &["axum-tokio", "axum-paceline"];

const MANIFEST: &str = include_str!("../../axum/Cargo.toml");
const SOURCE: &str = include_str!("../../axum/src/main.rs");

/// How the manifest asks for tokio.
const DEPENDENCY: &str = "\ntokio = { ";

/// The program of one of them, built at the first call; or why there is none.
pub(crate) fn program(rival: &str) -> Option<Result<&'static Path, &'static str>> {
    static PROGRAMS: [OnceLock<Result<PathBuf, String>>; 2] = [const { OnceLock::new() }; 2];
    let at = RIVALS.iter().position(|known| *known == rival)?;
    let build = || build(rival, at == 1).map_err(|error| format!("{rival} does not build: {error}"));
    Some(PROGRAMS[at].get_or_init(build).as_deref().map_err(String::as_str))
}

fn build(rival: &str, is_swapped: bool) -> io::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let package = root.join("target").join(rival);
    let mut manifest = MANIFEST.to_owned();
    if is_swapped {
        let stand_in = root.join("tests/swap/tokio").canonicalize()?;
        let path = format!("path = {:?}", stand_in.display().to_string());
        // For itself, and for what it depends on.
        manifest = manifest.replace(DEPENDENCY, &format!("{DEPENDENCY}{path}, "));
        manifest += &format!("\n[patch.crates-io]\ntokio = {{ {path} }}\n");
    }
    fs::create_dir_all(package.join("src"))?;
    write_if_new(&package.join("Cargo.toml"), &manifest)?;
    write_if_new(&package.join("src/main.rs"), SOURCE)?;
    let cargo = |arguments: &[&str]| Command::new("cargo").args(arguments).current_dir(&package).output();
    let built = cargo(&["build", "--release", "--quiet", "--target-dir", "target"])?;
    if !built.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&built.stderr).into_owned()));
    }
    // A patch that does not take is only a warning.
    let tree = cargo(&["tree"])?;
    let has_ours = String::from_utf8_lossy(&tree.stdout).contains("paceline v");
    if has_ours != is_swapped {
        return Err(io::Error::other("it is on the other one's runtime, as `cargo tree` says"));
    }
    Ok(package.join("target/release/axum-hello"))
}

/// Cargo takes what was written for changed.
fn write_if_new(path: &Path, text: &str) -> io::Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) { Ok(()) } else { fs::write(path, text) }
}
