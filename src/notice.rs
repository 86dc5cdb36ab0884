//! Messages on standard error: [`print()`] and its like, and the [`ReportName`]s of the environment for
//! reports, which are told [`InTurn`].

mod in_turn;
mod requests;

use std::fmt;
use std::io::{self, Write};
use std::process;
use std::sync::Once;

pub(crate) use in_turn::{InTurn, Untold};
pub(crate) use requests::{ReportName, print_start};

/// Prints a line that begins with "paceline: ", with one write. Ignores errors: if standard error is closed
/// or full, `eprintln!` would panic.
#[cold]
pub(crate) fn print(text: impl fmt::Display) {
    let line = format!("paceline: {text}\n");
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// Prints a line as [`print()`] does, but for which no one has asked: in a test of the standard library's
/// harness it is captured with the other output of the test.
#[cold]
pub(crate) fn print_captured(text: impl fmt::Display) {
    struct Whole(String);
    impl fmt::Display for Whole {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            // A failure is kept from `eprint!`, which would panic.
            let _ = f.write_str(&self.0);
            Ok(())
        }
    }
    eprint!("{}", Whole(format!("paceline: {text}\n")));
}

/// Returns what a call of the operating system returns that fails only if its descriptor is not what it was.
/// If it does fail, aborts the process with a message: neither events nor timers would come any more, tasks
/// would wait for ever, and each further try would fail at once, in a loop.
#[inline]
pub(crate) fn or_abort<T>(result: io::Result<T>) -> T {
    result.unwrap_or_else(|error| abort(&error))
}

#[cold]
fn abort(error: &io::Error) -> ! {
    /// Several threads may get here at once, and one message is enough.
    static ABORT: Once = Once::new();
    ABORT.call_once(|| {
        print(format_args!(
            "aborted, because the runtime cannot wait for events any more: {error}. Other code in this process has \
             probably closed a descriptor that it did not open. A program that closes all descriptors, to become a \
             daemon perhaps, has to do so before it uses a runtime"
        ));
        process::abort();
    });
    unreachable!("the first caller does not return");
}
