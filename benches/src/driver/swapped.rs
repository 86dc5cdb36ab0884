//! Programs written for tokio, each built twice: unchanged, and with paceline in the place of tokio. The two
//! builds have the same code, and manifests that differ in two lines.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A package, and the names of its two builds.
#[derive(Debug)]
struct Package {
    name: &'static str,
    builds: [&'static str; 2],
    manifest: &'static str,
    /// The files of `src`.
    sources: &'static [(&'static str, &'static str)],
}

const PACKAGES: [Package; 2] = [
    Package {
        name: "axum-hello",
        builds: ["axum-tokio", "axum-paceline"],
        manifest: include_str!("../../axum/Cargo.toml"),
        sources: &[("main.rs", include_str!("../../axum/src/main.rs"))],
    },
    Package {
        name: "fairness-scene",
        builds: ["fairness-tokio", "fairness-swapped"],
        manifest: include_str!("../../fairness/Cargo.toml"),
        sources: &[
            ("main.rs", include_str!("../../fairness/src/main.rs")),
            ("scene.rs", include_str!("../../fairness/src/scene.rs")),
            ("waits.rs", include_str!("../../fairness/src/waits.rs")),
        ],
    },
];

/// The rivals of the workload `axum`, as the tables name them.
pub(crate) const AXUM: &[&str] = &PACKAGES[0].builds;
/// The builds of a scene of the workload `fairness`.
pub(crate) const FAIRNESS: &[&str] = &PACKAGES[1].builds;

/// The start of the manifest's dependency on tokio.
const DEPENDENCY: &str = "\ntokio = { ";

/// Builds the program of a rival at the first call and returns its path, or the reason if that fails. Returns
/// `None` for other rivals.
pub(crate) fn program(rival: &str) -> Option<Result<&'static Path, &'static str>> {
    static PROGRAMS: [[OnceLock<Result<PathBuf, String>>; 2]; PACKAGES.len()] =
        [const { [const { OnceLock::new() }; 2] }; PACKAGES.len()];
    for (package, programs) in PACKAGES.iter().zip(&PROGRAMS) {
        if let Some(at) = package.builds.iter().position(|known| *known == rival) {
            let build = || build(package, at).map_err(|error| format!("{rival} does not build: {error}"));
            return Some(programs[at].get_or_init(build).as_deref().map_err(String::as_str));
        }
    }
    None
}

/// Builds all programs with these names, so that a failure shows before the first round.
pub(crate) fn prepare(rivals: &[&str]) -> Result<(), &'static str> {
    rivals.iter().try_for_each(|rival| program(rival).expect("the name of a build").map(drop))
}

/// Builds the package with tokio, or, at 1, with paceline in its place.
fn build(package: &Package, at: usize) -> io::Result<PathBuf> {
    let is_swapped = at == 1;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = root.join("target").join(package.builds[at]);
    let mut manifest = package.manifest.to_owned();
    if is_swapped {
        let stand_in = root.join("src/tokio").canonicalize()?;
        let path = format!("path = {:?}", stand_in.display().to_string());
        // One line for the program itself, and one for its dependencies.
        manifest = manifest.replace(DEPENDENCY, &format!("{DEPENDENCY}{path}, "));
        manifest += &format!("\n[patch.crates-io]\ntokio = {{ {path} }}\n");
    }
    fs::create_dir_all(folder.join("src"))?;
    write_if_new(&folder.join("Cargo.toml"), &manifest)?;
    for (name, text) in package.sources {
        write_if_new(&folder.join("src").join(name), text)?;
    }
    let cargo = |arguments: &[&str]| Command::new("cargo").args(arguments).current_dir(&folder).output();
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
    Ok(folder.join("target/release").join(package.name))
}

/// Cargo rebuilds files that were written, even if their content is the same.
fn write_if_new(path: &Path, text: &str) -> io::Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) { Ok(()) } else { fs::write(path, text) }
}
