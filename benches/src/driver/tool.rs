//! External programs that some workloads need.

use std::process::{Command, Stdio};

/// Checks that a program is installed; `Err` has the reason for the tables. The Debian package has the name
/// of the program.
pub(crate) fn require(program: &str) -> Result<(), String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        // The output does not matter: not all programs know the option.
        Ok(_) => Ok(()),
        Err(error) => Err(format!("needs {program}, which does not start here: {error}")),
    }
}
