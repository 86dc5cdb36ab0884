//! How many descriptors a process may have: 10 000 connections need more than most systems allow at first.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// As far as the system allows; children inherit it.
pub(crate) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    // A failure leaves the old limit, which `allow` looks at.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// `Err` says why not, in words for the tables.
pub(crate) fn allow(needed: usize) -> io::Result<()> {
    const SPARE: usize = 100;
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if (needed + SPARE) as u64 > allowed {
        let text = format!("needs {} descriptors, {allowed} are allowed (ulimit -Hn)", needed + SPARE);
        return Err(io::Error::other(text));
    }
    Ok(())
}
