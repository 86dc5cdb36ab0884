//! On what the figures were taken.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

/// Kernel, processor, versions, date. `null` where the system does not say.
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

/// The share of all cores, in percent, that others use while nothing of ours runs (stolen time included).
pub(crate) fn foreign_load() -> f64 {
    let before = cpu_ticks();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let after = cpu_ticks();
    let all = after.1.saturating_sub(before.1).max(1);
    after.0.saturating_sub(before.0) as f64 / all as f64 * 100.0
}

/// Busy and all ticks of all cores since the system started.
fn cpu_ticks() -> (u64, u64) {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().next().unwrap_or_default();
    // user, nice, system, idle, iowait, irq, softirq, steal; guest time is in user already.
    let ticks: Vec<u64> =
        line.split_whitespace().skip(1).take(8).filter_map(|word| word.parse().ok()).collect();
    let all = ticks.iter().sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    (all - idle, all)
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The rivals' versions from the lock file beside the package or its workspace.
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
