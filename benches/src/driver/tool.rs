//! Programs of others that some workloads need.

use std::process::{Command, Stdio};

/// `Err` says that there is none, in words for the tables. On Debian the package is called like the program.
pub(crate) fn require(program: &str) -> Result<(), String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        // What it answers does not matter: not all know the option.
        Ok(_) => Ok(()),
        Err(error) => Err(format!("needs {program}, which does not start here: {error}")),
    }
}
