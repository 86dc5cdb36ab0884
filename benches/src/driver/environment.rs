//! The system on which the figures were taken.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

/// Returns kernel, processor, versions and date; `null` for what is unknown.
pub(crate) fn describe() -> Value {
    let line = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let processor = line("/proc/cpuinfo").and_then(|text| {
        let model = text.lines().find(|line| line.starts_with("model name"))?;
        Some(model.split_once(':')?.1.trim().to_owned())
    });
    json!({
        "date": output("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]),
        "kernel": line("/proc/sys/kernel/osrelease"),
        "processor": processor,
        "cores": cores(),
        "rustc": output("rustc", &["--version"]),
        "versions": versions(),
        "commit": output("git", &["-C", PACKAGE, "describe", "--always", "--dirty", "--exclude", "*"]),
    })
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the rivals' versions from the lock file beside the package or its workspace.
fn versions() -> Value {
    let lock = ["Cargo.lock", "../Cargo.lock"]
        .iter()
        .find_map(|name| fs::read_to_string(std::path::Path::new(PACKAGE).join(name)).ok());
    let lock = lock.unwrap_or_default();
    let names = ["paceline", "tokio", "async-executor", "async-io", "async-task", "polling", "mio"];
    let version = |name: &str| {
        let entry =
            lock.split("[[package]]").find(|entry| entry.contains(&format!("name = \"{name}\"\n")))?;
        let line = entry.lines().find_map(|line| line.strip_prefix("version = "))?;
        Some(line.trim_matches('"').to_owned())
    };
    let mut versions: serde_json::Map<_, _> =
        names.iter().map(|name| ((*name).to_owned(), json!(version(name)))).collect();
    versions.insert(super::ace::NAME.to_owned(), json!(super::ace::version()));
    versions.into()
}
