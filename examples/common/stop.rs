//! Ctrl-C: the first one asks a server to stop, and the second one ends the program.
//!
//! Each example with a server includes this file by `#[path]`.

use std::future::Future;
use std::io;

/// Returns a future that is ready when the process is asked to end, by Ctrl-C or SIGTERM.
///
/// Signals are caught from this call on. After the first one, a second one ends the process at once, with
/// code 130.
#[cfg(unix)]
pub(crate) fn asked() -> io::Result<impl Future<Output = ()>> {
    use paceline::signal::{Signal, Signals};

    let mut signals = Signals::new([Signal::Interrupt, Signal::Terminate])?;
    Ok(async move {
        if let Err(error) = signals.next().await {
            return eprintln!("cannot wait for signals: {error}");
        }
        eprintln!("stopping; a second Ctrl-C ends the program at once");
        // On a thread of its own, because a drain of the runtime would wait for a task.
        std::thread::spawn(move || {
            if paceline::block_on(signals.next()).is_ok() {
                eprintln!("ended at once by a second signal");
                std::process::exit(130);
            }
        });
    })
}

/// Returns a future that is never ready: this system has no such signals.
#[cfg(not(unix))]
pub(crate) fn asked() -> io::Result<impl Future<Output = ()>> {
    Ok(std::future::pending())
}
