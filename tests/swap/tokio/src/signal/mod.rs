//! Signals of the process.

#[cfg(unix)]
mod registry;
#[cfg(unix)]
pub mod unix;

use std::io;

/// Waits for the next Ctrl-C, from when this is first polled.
pub async fn ctrl_c() -> io::Result<()> {
    unix::signal(unix::SignalKind::interrupt())?.recv().await;
    Ok(())
}
