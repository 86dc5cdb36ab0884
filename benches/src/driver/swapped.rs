//! A program written for tokio, built twice: unchanged, and with paceline in the place of tokio. The two
//! builds have the same code, and manifests that differ in two lines.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The names of the rivals in the tables.
pub(crate) const RIVALS: &[&str] = &["axum-tokio", "axum-paceline"];

const MANIFEST: &str = include_str!("../../axum/Cargo.toml");
const SOURCE: &str = include_str!("../../axum/src/main.rs");

/// The start of the manifest's dependency on tokio.
const DEPENDENCY: &str = "\ntokio = { ";

/// Builds the program of a rival at the first call and returns its path, or the reason if that fails. Returns
/// `None` for other rivals.
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
        let stand_in = root.join("src/tokio").canonicalize()?;
        let path = format!("path = {:?}", stand_in.display().to_string());
        // One line for the program itself, and one for its dependencies.
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
    // Cargo only warns if a patch is not used.
    let tree = cargo(&["tree"])?;
    let has_ours = String::from_utf8_lossy(&tree.stdout).contains("paceline v");
    if has_ours != is_swapped {
        return Err(io::Error::other("`cargo tree` shows the wrong runtime"));
    }
    Ok(package.join("target/release/axum-hello"))
}

/// Cargo rebuilds files that were written, even if their content is the same.
fn write_if_new(path: &Path, text: &str) -> io::Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) { Ok(()) } else { fs::write(path, text) }
}
