//! [`UCred`]: the owner of the process at the other end.

use std::io;
use std::os::unix::net::UnixStream;

use super::{gid_t, pid_t, uid_t};

/// The user, the group and, on systems that report it, the process of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UCred {
    pid: Option<pid_t>,
    uid: uid_t,
    gid: gid_t,
}

impl UCred {
    pub fn uid(&self) -> uid_t {
        self.uid
    }

    pub fn gid(&self) -> gid_t {
        self.gid
    }

    pub fn pid(&self) -> Option<pid_t> {
        self.pid
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn of_peer(stream: &UnixStream) -> io::Result<Self> {
        let peer = rustix::net::sockopt::socket_peercred(stream)?;
        Ok(Self {
            pid: Some(peer.pid.as_raw_nonzero().get()),
            uid: peer.uid.as_raw(),
            gid: peer.gid.as_raw(),
        })
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(super) fn of_peer(stream: &UnixStream) -> io::Result<Self> {
        use std::os::fd::AsRawFd;

        let (mut uid, mut gid) = (0, 0);
        // SAFETY: the descriptor is open, and both results have room.
        match unsafe { libc::getpeereid(stream.as_raw_fd(), &mut uid, &mut gid) } {
            0 => Ok(Self { pid: None, uid, gid }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
