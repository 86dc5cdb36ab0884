//! Counts the instructions of one operation.
//!
//! A case runs twice under callgrind: with its warm-up only, and with so many operations more. The difference
//! of the two runs has no start, set-up and end. So the program need not tell callgrind when to count, and
//! needs no header of valgrind.

use std::process::{Child, Command, ExitCode, Stdio};

use super::{Outcome, case_named};
use crate::cases::Case;

/// The role in which this program runs under callgrind.
pub(super) const ROLE: &str = "run";

/// The role: `run CASE OPERATIONS`.
pub(super) fn run(case: &str, operations: &str) -> Outcome<ExitCode> {
    case_named(case)?.run(operations.parse()?);
    Ok(ExitCode::SUCCESS)
}

pub(super) fn is_installed() -> bool {
    let version =
        Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

/// Instructions per operation.
pub(super) fn count(case: &Case) -> Outcome<f64> {
    let operations =
        case.counted.ok_or_else(|| format!("`{}` does not repeat, so it is only timed", case.name))?;
    // Both at once, where there are two cores.
    let (few, many) = (start(case, 0)?, start(case, operations)?);
    let (few, many) = (total(few, case)?, total(many, case)?);
    Ok((many as f64 - few as f64) / operations as f64)
}

fn start(case: &Case, operations: u64) -> Outcome<Child> {
    Ok(Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args([ROLE, case.name, &operations.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?)
}

/// Returns the total that callgrind prints at the end.
fn total(child: Child, case: &Case) -> Outcome<u64> {
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected :"));
    match collected {
        Some((_, number)) if output.status.success() => Ok(number.trim().parse()?),
        _ => Err(format!("`{}` under callgrind ended with {}:\n{said}", case.name, output.status).into()),
    }
}
