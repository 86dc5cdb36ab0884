//! The descriptor of the default instance's reactor, on Unix.

use crate::current;
use std::os::fd::BorrowedFd;

/// Returns the descriptor on which the default instance waits, to be watched from the event loop of another
/// framework.
///
/// The descriptor is readable while a source of the default instance has an event to report. The loop then
/// calls [`block_on`](crate::block_on()) with a future that ends soon: meanwhile the thread leads, and wakes
/// the tasks that wait for the events. Returns `None` if the system's poller has no descriptor, or if the
/// process cannot open one more.
///
/// On systems other than Linux the descriptor does not report timers. Registering sources with it, or waiting
/// on it directly, takes events away from the tasks that wait for them.
///
/// # Examples
///
/// ```
/// use paceline::os::unix::reactor_fd;
/// use rustix::event::{PollFd, PollFlags, poll};
///
/// # fn main() -> std::io::Result<()> {
/// let Some(fd) = reactor_fd() else { return Ok(()) };
/// let events = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&Default::default()))?;
/// println!("{events} descriptors have something to report");
/// # Ok(())
/// # }
/// ```
pub fn reactor_fd() -> Option<BorrowedFd<'static>> {
    current::default_descriptor()
}
