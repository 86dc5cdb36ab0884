//! The command line of an example: `--help`, wrong arguments, and errors.
//!
//! Each example includes this file by `#[path]`, so it needs no crate.

#![allow(dead_code)] // Each example uses a part of it.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::{env, fmt, iter};

pub(crate) type AnyError = Box<dyn Error + Send + Sync>;

/// Calls `body` with the arguments of the program.
///
/// `-h` and `--help` print the header of `source`, the example's main file, instead. The exit code is 2 if
/// the arguments are wrong, and 1 after any other error; a line on stderr names the error.
pub(crate) fn run(source: &str, body: impl FnOnce(&[&str]) -> Result<(), AnyError>) -> ExitCode {
    let mut args = env::args_os().map(|arg| arg.to_string_lossy().into_owned());
    let program = args.next().unwrap_or_default();
    let args: Vec<String> = args.collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if args.iter().any(|arg| matches!(*arg, "-h" | "--help")) {
        // A reader that closes the pipe, such as `head`, has read enough.
        let _ = io::stdout().write_all(help(source).as_bytes());
        return ExitCode::SUCCESS;
    }
    let Err(error) = body(&args) else { return ExitCode::SUCCESS };
    let name = Path::new(&program).file_stem().unwrap_or_default().to_string_lossy();
    eprintln!("{name}: {}", with_causes(&*error));
    ExitCode::from(if is_about_arguments(&*error) { 2 } else { 1 })
}

/// Refuses wrong arguments, and says which ones the example takes.
pub(crate) fn refuse(args: &[&str], takes: &str) -> AnyError {
    let given = args.join(" ");
    Refused(format!("cannot use \"{given}\": this example takes {takes} (see --help)")).into()
}

/// Refuses all arguments.
pub(crate) fn none(args: &[&str]) -> Result<(), AnyError> {
    if args.is_empty() { Ok(()) } else { Err(refuse(args, "no arguments")) }
}

/// Returns the address to serve on: the only argument, if there is one.
pub(crate) fn address<'a>(args: &[&'a str]) -> Result<Option<&'a str>, AnyError> {
    match args {
        [] => Ok(None),
        [address] if !address.starts_with('-') => Ok(Some(address)),
        _ => Err(refuse(args, "an ADDRESS:PORT to serve on, or no arguments")),
    }
}

/// Formats an error with its causes.
pub(crate) fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Returns the header of a source file, with its commands indented.
fn help(source: &str) -> String {
    let (mut text, mut is_code) = (String::new(), false);
    for line in source.lines().map_while(|line| line.strip_prefix("//!")) {
        if line.starts_with(" ```") {
            is_code = !is_code;
            continue;
        }
        let line = line.strip_prefix(' ').unwrap_or(line);
        text += if is_code { "    " } else { "" };
        text += line;
        text += "\n";
    }
    text
}

/// Returns whether an error is about refused arguments, or about an invalid address, which the calls that
/// listen or connect report.
fn is_about_arguments(error: &(dyn Error + 'static)) -> bool {
    let is_invalid = |error: &io::Error| error.kind() == io::ErrorKind::InvalidInput;
    error.is::<Refused>() || error.downcast_ref().is_some_and(is_invalid)
}

#[derive(Debug)]
struct Refused(String);

impl Error for Refused {}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
