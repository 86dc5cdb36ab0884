//! [`Metadata`] of a simulated file.
//!
//! The standard library makes this type from a `struct stat` of the system only, and shows that by
//! [`as_raw_stat`](std::os::linux::fs::MetadataExt::as_raw_stat). So the metadata of a real file is copied,
//! and that part of the copy is written. The real file is a socket, because these have no time of creation,
//! which is elsewhere in the type.

use std::fs::{File, FileTimes, Metadata};
use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::os::linux::fs::MetadataExt as _;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use rustix::fs::{MemfdFlags, memfd_create};

use super::unsupported;
use crate::simulated::files::{FileKind, FileStatus, StatusChange};

/// The metadata of a real file, and where in it the `struct stat` is.
fn pattern() -> Option<&'static (Metadata, usize)> {
    static PATTERN: OnceLock<Option<(Metadata, usize)>> = OnceLock::new();
    let make = || {
        let (socket, _) = UnixStream::pair().ok()?;
        let metadata = File::from(OwnedFd::from(socket)).metadata().ok()?;
        #[expect(deprecated, reason = "only this method says where the part is")]
        let part = ptr::from_ref(metadata.as_raw_stat()).addr();
        let at = part.checked_sub(ptr::from_ref(&metadata).addr())?;
        let is_inside = at + size_of::<libc::stat>() <= size_of::<Metadata>();
        (is_inside && at % align_of::<libc::stat>() == 0).then_some((metadata, at))
    };
    PATTERN.get_or_init(make).as_ref()
}

/// Returns the metadata of a simulated file.
pub(super) fn of(status: &FileStatus) -> io::Result<Metadata> {
    let made = pattern().map(|(metadata, at)| {
        let mut made = metadata.clone();
        let stat = stat_of(status);
        // SAFETY: `pattern` has checked that a `struct stat` at this place is inside of the value, and
        // aligned. The standard library itself shows the place as one, which is plain data of the system.
        unsafe { ptr::from_mut(&mut made).byte_add(*at).cast::<libc::stat>().write(stat) };
        made
    });
    // Other versions of the standard library may keep values elsewhere.
    let is_right = |made: &Metadata| made.len() == status.len && made.ino() == status.number;
    made.filter(is_right).ok_or_else(|| {
        unsupported("this version of the standard library has no metadata for files of a simulation")
    })
}

fn stat_of(status: &FileStatus) -> libc::stat {
    let kind = match status.kind {
        FileKind::File => libc::S_IFREG,
        FileKind::Directory => libc::S_IFDIR,
        FileKind::Symlink => libc::S_IFLNK,
    };
    // SAFETY: all fields are numbers.
    let mut stat: libc::stat = unsafe { mem::zeroed() };
    stat.st_mode = kind | status.mode;
    stat.st_ino = status.number;
    stat.st_nlink = status.links.into();
    stat.st_size = status.len as _;
    stat.st_blksize = 4096;
    stat.st_blocks = status.len.div_ceil(512) as _;
    (stat.st_atime, stat.st_atime_nsec) = parts(status.accessed);
    (stat.st_mtime, stat.st_mtime_nsec) = parts(status.modified);
    (stat.st_ctime, stat.st_ctime_nsec) = parts(status.modified);
    stat
}

fn parts(time: Duration) -> (i64, i64) {
    (time.as_secs() as i64, time.subsec_nanos().into())
}

/// Returns the times in a value of the standard library, which only a real file shows.
pub(super) fn times_of(times: FileTimes) -> io::Result<StatusChange> {
    let unset = SystemTime::UNIX_EPOCH + Duration::from_nanos(1);
    let file = File::from(memfd_create(c"paceline-times", MemfdFlags::CLOEXEC)?);
    file.set_times(FileTimes::new().set_accessed(unset).set_modified(unset))?;
    file.set_times(times)?;
    let metadata = file.metadata()?;
    let [accessed, modified] = [metadata.accessed()?, metadata.modified()?].map(|time| {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        (time != unset).then_some(since)
    });
    Ok(StatusChange { mode: None, accessed, modified })
}
