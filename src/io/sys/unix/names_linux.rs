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

/// Returns the part of an abstract name after the leading zero byte; `None` for a path.
fn abstract_name(path: &Path) -> Option<&[u8]> {
    path.as_os_str().as_bytes().strip_prefix(b"\0")
}

/// Converts a path, or an abstract name, to the standard library's address type. Returns `InvalidInput` if it
/// is too long.
pub(in crate::io) fn unix_address(path: &Path) -> io::Result<SocketAddr> {
    match abstract_name(path) {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(path),
    }
}

/// Converts a path, or an abstract name, to the address that the kernel takes. Returns an error if it is too
/// long.
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
