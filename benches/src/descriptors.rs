//! The limit of descriptors: 10 000 connections need more than the default of most systems.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit as far as the system allows; children inherit it.
pub(crate) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    // On failure the old limit stays, and `allow` checks it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Checks that a process may have so many descriptors. `Err` has the reason for the tables.
pub(crate) fn allow(needed: usize) -> io::Result<()> {
    let available = available();
    if needed > available {
        let text = format!("needs {needed} descriptors, {available} are available (ulimit -Hn)");
        return Err(io::Error::other(text));
    }
    Ok(())
}

/// Returns how many descriptors a process may have beside those that it has at its start.
pub(crate) fn available() -> usize {
    const AT_START: u64 = 100;
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(allowed.saturating_sub(AT_START)).unwrap_or(usize::MAX)
}
