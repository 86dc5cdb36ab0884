//! Names of Unix sockets on Linux: a path, or after a leading zero byte a name in the abstract namespace.

use rustix::net::SocketAddrUnix;
use std::io;
#[cfg(target_os = "android")]
use std::os::android::net::SocketAddrExt;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::SocketAddr;
use std::path::Path;

/// The name behind the leading zero byte of an abstract one.
fn abstract_name(path: &Path) -> Option<&[u8]> {
    path.as_os_str().as_bytes().strip_prefix(b"\0")
}

/// A path as the standard library's type of address.
pub(in crate::io) fn unix_address(path: &Path) -> io::Result<SocketAddr> {
    match abstract_name(path) {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(path),
    }
}

/// A path as the address to give the kernel.
pub(super) fn to_kernel(path: &Path) -> io::Result<SocketAddrUnix> {
    Ok(match abstract_name(path) {
        Some(name) => SocketAddrUnix::new_abstract_name(name)?,
        None => SocketAddrUnix::new(path)?,
    })
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::{SocketAddrExt, unix_address};
    use std::path::Path;

    #[test]
    fn a_leading_zero_byte_makes_a_name_abstract() {
        let addr = unix_address(Path::new("\0with\0zeros")).unwrap();
        assert_eq!(addr.as_abstract_name(), Some(&b"with\0zeros"[..]));
        let addr = unix_address(Path::new("/run/a.sock")).unwrap();
        assert_eq!(addr.as_pathname(), Some(Path::new("/run/a.sock")));
    }
}
