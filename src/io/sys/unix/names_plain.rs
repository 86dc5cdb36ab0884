//! Names of Unix sockets where there is no abstract namespace: a path.

use rustix::net::SocketAddrUnix;
use std::io;
use std::os::unix::net::SocketAddr;
use std::path::Path;

/// A path as the standard library's type of address.
pub(in crate::io) fn unix_address(path: &Path) -> io::Result<SocketAddr> {
    SocketAddr::from_pathname(path)
}

/// A path as the address to give the kernel.
pub(super) fn to_kernel(path: &Path) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new(path)?)
}
