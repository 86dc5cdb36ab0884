//! What Unix systems have.

use crate::pool;
use std::os::fd::BorrowedFd;

/// The descriptor on which the default instance waits, to be watched from the loop of another framework.
///
/// It is readable when a source of the default instance has something to report. Whoever sees that calls
/// [`block_on`](crate::block_on()) with a future that ends soon: the thread leads meanwhile, and hands events to their
/// tasks. `None` where the system's way to wait has no descriptor, or where there is none left to open.
///
/// Timers are not seen in it on systems other than Linux. Registering sources with it, or waiting on it directly, takes
/// events away from the tasks that wait for them.
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
    pool::default_descriptor()
}
