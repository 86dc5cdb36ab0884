//! [`SocketAddr`]: the name of a Unix socket, if it has one.

#[cfg(target_os = "android")]
use std::os::android::net::SocketAddrExt;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net;
use std::path::Path;
use std::{fmt, io};

use rustix::net::{SocketAddrAny, SocketAddrUnix};

/// The address of a Unix socket: a path, on Linux a name in the abstract namespace, or none.
#[derive(Clone)]
pub struct SocketAddr(pub(super) net::SocketAddr);

impl SocketAddr {
    /// A path with a leading zero byte is a name in the abstract namespace, on systems that have one.
    pub(super) fn of_path(path: &Path) -> io::Result<Self> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(name) = path.as_os_str().as_bytes().strip_prefix(b"\0") {
            return net::SocketAddr::from_abstract_name(name).map(Self);
        }
        net::SocketAddr::from_pathname(path).map(Self)
    }

    /// Converts from the result of a system call.
    pub(super) fn of_system(addr: Option<SocketAddrAny>) -> io::Result<Self> {
        let addr = addr.and_then(|addr| SocketAddrUnix::try_from(addr).ok());
        let Some(addr) = &addr else { return Self::of_path(Path::new("")) };
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(name) = addr.abstract_name() {
            return net::SocketAddr::from_abstract_name(name).map(Self);
        }
        let path = addr.path_bytes().unwrap_or_default();
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        Self::of_path(Path::new(std::ffi::OsStr::from_bytes(path)))
    }

    /// Converts for a system call.
    pub(super) fn to_system(&self) -> io::Result<socket2::SockAddr> {
        if let Some(path) = self.as_pathname() {
            return socket2::SockAddr::unix(path);
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(name) = self.as_abstract_name() {
            let path = [b"\0", name].concat();
            return socket2::SockAddr::unix(std::ffi::OsStr::from_bytes(&path));
        }
        socket2::SockAddr::unix("")
    }

    pub fn is_unnamed(&self) -> bool {
        self.0.is_unnamed()
    }

    pub fn as_pathname(&self) -> Option<&Path> {
        self.0.as_pathname()
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn as_abstract_name(&self) -> Option<&[u8]> {
        self.0.as_abstract_name()
    }
}

impl fmt::Debug for SocketAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<net::SocketAddr> for SocketAddr {
    fn from(addr: net::SocketAddr) -> Self {
        Self(addr)
    }
}

impl From<SocketAddr> for net::SocketAddr {
    fn from(addr: SocketAddr) -> Self {
        addr.0
    }
}
