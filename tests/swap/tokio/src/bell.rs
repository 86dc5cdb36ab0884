//! [`Bell`]: how a signal handler, which may do little, tells an ordinary thread that there is something to be looked at.

use std::ffi::c_int;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::net::{SendFlags, send};

/// Where there is no such flag, the standard library has the process ignore `SIGPIPE` anyway.
#[cfg(not(target_vendor = "apple"))]
const FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
#[cfg(target_vendor = "apple")]
const FLAGS: SendFlags = SendFlags::DONTWAIT;

/// Each ring is a byte in the socket at the other end.
#[derive(Clone, Debug)]
pub(crate) struct Bell(Arc<UnixStream>);

impl Bell {
    /// A bell, and where it is heard.
    pub(crate) fn new() -> io::Result<(Self, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        Ok((Self(Arc::new(ours)), theirs))
    }

    pub(crate) fn ring(&self) {
        // A socket that is full has been rung.
        let _ = send(&*self.0, &[0], FLAGS);
    }

    /// Rings at each signal of this kind, for as long as the process lives. Before it does, it calls `also`.
    ///
    /// # Safety
    ///
    /// `also` does what a signal handler may: it takes no lock, allocates nothing and does not panic.
    pub(crate) unsafe fn ring_at(
        &self,
        number: c_int,
        also: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<()> {
        let bell = self.clone();
        let handler = move || {
            also();
            bell.ring();
        };
        // SAFETY: `ring` makes one system call, and the caller promises it for `also`. The handler, with what it owns, is never dropped.
        unsafe { signal_hook_registry::register(number, handler).map(drop) }
    }
}
