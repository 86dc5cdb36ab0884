//! Names of Unix sockets where there is no abstract namespace: a path.

use rustix::net::SocketAddrUnix;
use std::io;
use std::os::unix::net::SocketAddr;
use std::path::Path;

/// Converts a path to the standard library's address type.
pub(in crate::io) fn unix_address(path: &Path) -> io::Result<SocketAddr> {
    SocketAddr::from_pathname(path)
}

/// Converts a path to the address that the kernel takes.
pub(super) fn to_kernel(path: &Path) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new(path)?)
}
