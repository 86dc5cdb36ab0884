//! [`Exit`]: notices the end of a child.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};
use std::task::{Context, Poll};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::reaper;
use crate::context;
use crate::io::registration::{Direction, Registration};

#[derive(Debug)]
pub(super) enum Exit {
    /// On Linux: readable when the child ends. Wakes only the tasks that wait for this child.
    Pidfd(Registration<OwnedFd>),
    /// The reaper wakes all waiting tasks when any child ends.
    Sigchld,
}

impl Exit {
    #[track_caller]
    pub(super) fn of(child: &Child) -> io::Result<Self> {
        match open(child) {
            Some(pidfd) => Registration::of_ready(pidfd).map(Self::Pidfd),
            None => {
                // The runtime is not needed here, but a program without one should get the same panic
                // everywhere.
                context::expect_io();
                Ok(Self::Sigchld)
            }
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>, child: &mut Child) -> Poll<io::Result<ExitStatus>> {
        while let Self::Pidfd(pidfd) = self {
            match pidfd.poll_ready(Direction::Read, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(seen)) => {
                    if let Some(status) = child.try_wait()? {
                        return Poll::Ready(Ok(status));
                    }
                    if !is_readable(pidfd.get_ref())? {
                        // No event has been reported: the descriptor was merely worth a look.
                        pidfd.forget(seen);
                        continue;
                    }
                    // The child has ended, but is being traced, and its tracer comes first. The signal comes
                    // after the tracer's wait.
                }
                // The runtime of the spawn has ended. The signal wakes tasks in any runtime.
                Poll::Ready(Err(_)) => {}
            }
            *self = Self::Sigchld;
        }
        // Before the check, so that an end that it does not see wakes this task.
        reaper::wake_at_sigchld(cx.waker())?;
        match child.try_wait()? {
            Some(status) => Poll::Ready(Ok(status)),
            None => Poll::Pending,
        }
    }
}

fn is_readable(fd: &OwnedFd) -> io::Result<bool> {
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    Ok(rustix::io::retry_on_intr(|| poll(&mut fds, Some(&Timespec::default())))? > 0)
}

#[cfg(target_os = "linux")]
fn open(child: &Child) -> Option<OwnedFd> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn open(_: &Child) -> Option<OwnedFd> {
    None
}
