//! An example in a process: its environment, its help and its errors.
//!
//! `tests/examples`, `tests/redis` and `tests/it/setups.rs` include this file, too.

#![allow(dead_code)] // Each includer uses a part of it.

use std::env;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Long enough for a program that only prints, on a busy machine.
const SOON: Duration = Duration::from_secs(30);

/// Returns the command for a program, with the same environment for all runs of the tests.
///
/// A panic prints no backtrace: its symbols take a hundred megabytes of memory, and seconds of a core.
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("RUST_BACKTRACE", "0").env_remove("RUST_LIB_BACKTRACE");
    let settings = env::vars_os().map(|(name, _)| name);
    settings.filter(|name| name.to_string_lossy().starts_with("PACELINE_")).for_each(|name| {
        command.env_remove(name);
    });
    command
}

/// Returns the output of a program until its end. After `limit` the program is killed, and the test fails.
#[track_caller]
pub fn output(child: Child, limit: Duration) -> Output {
    let pid = Pid::from_child(&child);
    let (ended, end) = mpsc::channel();
    thread::spawn(move || ended.send(child.wait_with_output()));
    match end.recv_timeout(limit) {
        Ok(output) => output.expect("it is ours"),
        Err(_) => {
            let stacks = stacks(pid.as_raw_nonzero().get().unsigned_abs());
            // The thread has not waited for the child yet, or is about to report its end.
            let _ = kill_process(pid, Signal::KILL);
            let said = end.recv_timeout(SOON);
            panic!("it has not ended within {limit:?}: {said:?}\n{stacks}");
        }
    }
}

/// Returns the functions in which the threads of a process are, if a debugger is installed.
pub fn stacks(process: u32) -> String {
    let arguments = ["-batch", "-ex", "thread apply all backtrace 40", "-p"];
    let output = Command::new("gdb").args(arguments).arg(process.to_string()).stdin(Stdio::null()).output();
    let text = output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned());
    let lines = text.lines().filter(|line| line.starts_with("Thread ") || line.contains("::"));
    lines.map(|line| line.chars().take(160).collect::<String>() + "\n").collect()
}

/// Returns the exit code of a program with these arguments, and its output on stdout and on stderr.
#[track_caller]
pub fn ends(program: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = command(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = output(command.spawn().expect("it can be started"), SOON);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Checks that a program prints its help, and refuses these arguments, and more than it takes.
#[track_caller]
pub fn explains_itself(program: &str, wrong: &[&[&str]]) {
    for option in ["--help", "-h"] {
        let (code, help, errors) = ends(program, &[option]);
        assert_eq!((code, &*errors), (Some(0), ""), "{program} {option}");
        assert!(help.contains("\n    cargo run "), "no example in what {program} says: {help}");
    }
    for args in [&["a", "b", "c", "d"][..], &["--nonsense"]].iter().chain(wrong) {
        let said = refuses(program, args, 2);
        assert!(args.iter().any(|arg| said.contains(arg)), "{program} {args:?}: {said}");
    }
}

/// Checks that a program ends with this code and a readable line on stderr, which is returned.
#[track_caller]
pub fn refuses(program: &str, args: &[&str], wanted: i32) -> String {
    let (code, said, errors) = ends(program, args);
    assert_eq!((code, &*said), (Some(wanted), ""), "{program} {args:?}: {errors}");
    let name = std::path::Path::new(program).file_stem().expect("a file").to_string_lossy();
    assert!(errors.starts_with(&format!("{name}: ")) && errors.lines().count() == 1, "{errors}");
    assert!(!errors.contains("Error:") && !errors.contains(" { "), "for programmers: {errors}");
    errors
}

/// Checks that a program names the address that is in use.
#[track_caller]
pub fn names_an_address_in_use(program: &str, before: &[&str], addr: &str) {
    let said = refuses(program, &[before, &[addr]].concat(), 1);
    assert!(said.contains(addr) && said.contains("Address already in use"), "{said}");
}
