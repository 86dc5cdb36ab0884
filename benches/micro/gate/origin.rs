//! The versions that the figures depend on besides this source. If they differ, they may be the reason for a
//! difference.

use std::process::Command;

/// One line for each.
pub(super) type Origin = Vec<String>;

/// Dependencies with code on the hot paths.
const DEPENDENCIES: [&str; 5] = ["async-task", "concurrent-queue", "event-listener", "polling", "rustix"];

/// Returns the origin of this build, as far as it is known.
pub(super) fn here() -> Origin {
    let compiler = said_by("rustc", &["--version"]).unwrap_or_else(|| "rustc unknown".to_owned());
    let library = said_by("getconf", &["GNU_LIBC_VERSION"]).unwrap_or_else(|| "libc unknown".to_owned());
    let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock");
    let lock = std::fs::read_to_string(lock).unwrap_or_default();
    let dependencies =
        DEPENDENCIES.iter().map(|name| format!("{name} {}", versions(&lock, name).join(" and ")));
    [compiler, platform(), library].into_iter().chain(dependencies).collect()
}

/// Returns the platform; figures of different platforms cannot be compared.
pub(super) fn platform() -> String {
    format!("{} {}", std::env::consts::ARCH, std::env::consts::OS)
}

fn said_by(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the versions of a package in a lock file.
fn versions<'a>(lock: &'a str, name: &str) -> Vec<&'a str> {
    let name = format!("name = \"{name}\"");
    let lines = lock.lines().zip(lock.lines().skip(1));
    lines
        .filter(|(line, _)| *line == name)
        .filter_map(|(_, next)| next.strip_prefix("version = \"")?.strip_suffix('"'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_versions_of_a_package_are_found() {
        let lock = "[[package]]\nname = \"rustix\"\nversion = \"0.38.1\"\n\n[[package]]\nname = \"rustix\"\nversion = \"1.0.5\"\n";
        assert_eq!(versions(lock, "rustix"), ["0.38.1", "1.0.5"]);
        assert!(versions(lock, "rust").is_empty());
    }
}
