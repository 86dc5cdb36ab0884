//! Signals of the process.

#[cfg(unix)]
pub(crate) mod registry;
#[cfg(all(test, unix, feature = "rt"))]
mod tests;
#[cfg(unix)]
pub mod unix;

use std::io;

/// Waits for the next Ctrl-C after the first poll.
pub async fn ctrl_c() -> io::Result<()> {
    unix::signal(unix::SignalKind::interrupt())?.recv().await;
    Ok(())
}
