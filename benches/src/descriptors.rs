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
    const SPARE: usize = 100;
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if (needed + SPARE) as u64 > allowed {
        let text = format!("needs {} descriptors, {allowed} are allowed (ulimit -Hn)", needed + SPARE);
        return Err(io::Error::other(text));
    }
    Ok(())
}
