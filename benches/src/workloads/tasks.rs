//! What are the costs of tasks, wakes, timers and their memory? Runs the `tasks` program, which measures
//! them.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::Outcome;
use crate::driver::child::Child;
use crate::driver::plan::Plan;
use crate::driver::results::Results;

pub(super) const QUESTION: &str =
    "spawn, fan-out, wake, yield, ping-pong, timers, memory (the `tasks` program)";

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let program = program()?;
    println!("\n## Task costs; one process, on all CPUs, no load\n");
    let mut figures = ask(&program, plan)?;
    figures["name"] = "tasks".into();
    results.add(figures);
    Ok(())
}

fn ask(program: &Path, plan: &Plan) -> Result<Value, Box<dyn std::error::Error>> {
    let raw = std::env::temp_dir().join(format!("paceline-bench-tasks-{}.json", std::process::id()));
    let mut command = Command::new(program);
    command.arg("--json").arg(&raw);
    if plan.quick {
        command.arg("--quick");
    }
    let mut child = Child::spawn(&mut command)?;
    if !child.0.wait()?.success() {
        return Err("the `tasks` program failed".into());
    }
    let figures = serde_json::from_str(&std::fs::read_to_string(&raw)?)?;
    std::fs::remove_file(&raw)?;
    Ok(figures)
}

fn program() -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("tasks"))
}

/// Builds the `tasks` program, since `cargo run` builds only the program that it runs, so the one beside it
/// may be missing or old. Does so under cargo only: a copied program brings its neighbour along.
pub(super) fn prepare() -> Outcome {
    let program = program()?;
    if let Some(cargo) = std::env::var_os("CARGO") {
        build(&cargo, &program)?;
    }
    if program.exists() {
        return Ok(());
    }
    Err("there is no `tasks` program beside this one: `cargo build --release -p paceline-bench`".into())
}

fn build(cargo: &OsStr, program: &Path) -> Outcome {
    // Programs are in TARGET/release, regardless of how cargo was told the target folder.
    let Some(target) = program.parent().and_then(Path::parent) else { return Ok(()) };
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--bin", "tasks", "--manifest-path", manifest]);
    command.arg("--target-dir").arg(target);
    // Other features than this program's would build all crates again.
    if !cfg!(feature = "paceline") {
        command.arg("--no-default-features");
    }
    if command.status()?.success() { Ok(()) } else { Err("the `tasks` program does not build".into()) }
}
