//! Simulations: what the seed decides, and what is an error.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Output};

mod attribute;
mod blocking;
mod errors;
mod faults;
mod files;
mod net;
mod orders;
mod ours;
mod planted;
mod same;
mod tasks;
mod trace;

/// Calls `f`, which has to panic, and returns the message.
fn panic_of(f: impl FnOnce()) -> String {
    let panic: Box<dyn Any + Send> =
        catch_unwind(AssertUnwindSafe(f)).expect_err("a panic was expected, and there was none");
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string())).expect("it has a message")
}

/// Runs an ignored test of this binary in another process, with these variables.
fn in_another_process(test: &str, variables: &[(&str, &str)]) -> Output {
    another_process(test, "--nocapture", variables)
}

/// Does the same, with another option of the harness.
fn another_process(test: &str, capture: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("there is a binary"));
    command.args([test, "--exact", "--ignored", capture]);
    for asked in ["SEED", "SEEDS", "TRACE", "JOBS", "KEEP_GOING", "TIME_LIMIT", "PLAN"] {
        command.env_remove(format!("PACELINE_{asked}"));
    }
    command.envs(variables.iter().copied());
    command.output().expect("it starts")
}
