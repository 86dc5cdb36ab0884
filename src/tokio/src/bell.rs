//! [`Bell`]: notifies an ordinary thread from a signal handler, in which little is allowed.

use std::ffi::c_int;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::net::{SendFlags, send};

/// On systems without this flag, the standard library makes the process ignore `SIGPIPE` anyway.
#[cfg(not(target_vendor = "apple"))]
const FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
#[cfg(target_vendor = "apple")]
const FLAGS: SendFlags = SendFlags::DONTWAIT;

/// Calls `heard` after one or more rings, for the life of the process. A thread runs nothing else.
pub(crate) fn listen(mut rings: UnixStream, mut heard: impl FnMut()) -> ! {
    loop {
        match rings.read(&mut [0; 128]) {
            Ok(_) => heard(),
            // A signal with a handler of another crate.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The bell is never dropped, so this socket has no end.
            Err(error) => panic!("the socket that is written to at each signal cannot be read: {error}"),
        }
    }
}

/// Each ring is a byte in the socket at the other end.
#[derive(Clone, Debug)]
pub(crate) struct Bell(Arc<UnixStream>);

impl Bell {
    /// Returns a bell, and the socket for its listener.
    pub(crate) fn new() -> io::Result<(Self, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        Ok((Self(Arc::new(ours)), theirs))
    }

    pub(crate) fn ring(&self) {
        // A full socket means that the bell has been rung.
        let _ = send(&*self.0, &[0], FLAGS);
    }

    /// Rings at each signal of this kind, for the life of the process, after a call of `also`.
    ///
    /// # Safety
    ///
    /// `also` must be allowed in a signal handler: it takes no lock, allocates nothing and does not panic.
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
        // SAFETY: `ring` makes one system call, and the caller promises the same for `also`. The handler and
        // its captures are never dropped.
        unsafe { signal_hook_registry::register(number, handler).map(drop) }
    }
}
