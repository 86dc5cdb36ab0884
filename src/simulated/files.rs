//! The calls for files that a simulation answers, and what they pass.

use std::ffi::OsString;
use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An open file of a simulation. A number is not used again, so calls on a closed file fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileNumber(pub(crate) u64);

/// What a directory entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    File,
    Directory,
    Symlink,
}

/// What is known of a file, a directory or a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStatus {
    pub(crate) kind: FileKind,
    pub(crate) number: u64,
    pub(crate) links: u32,
    pub(crate) len: u64,
    /// The permission bits.
    pub(crate) mode: u32,
    /// Times since 1970.
    pub(crate) accessed: Duration,
    pub(crate) modified: Duration,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenFlags {
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) append: bool,
    pub(crate) truncate: bool,
    pub(crate) create: bool,
    pub(crate) create_new: bool,
    pub(crate) mode: u32,
}

/// What a call acts on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FileTarget<'a> {
    Open(FileNumber),
    Path(&'a Path),
    /// A path whose last component is not followed if it is a symbolic link.
    LinkItself(&'a Path),
}

/// A change of what is known of a file. `None` leaves a value as it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StatusChange {
    pub(crate) mode: Option<u32>,
    pub(crate) accessed: Option<Duration>,
    pub(crate) modified: Option<Duration>,
}

/// The calls. A path is one of the node whose task makes the call. All calls come from the simulation's
/// thread, but for `close`.
pub(crate) trait FileCalls {
    fn open(&self, path: &Path, flags: OpenFlags) -> io::Result<FileNumber>;
    fn close(&self, file: FileNumber);
    /// Reads at the position, or at the cursor, which then moves.
    fn read(&self, file: FileNumber, buffer: &mut [u8], at: Option<u64>) -> io::Result<usize>;
    fn write(&self, file: FileNumber, bytes: &[u8], at: Option<u64>) -> io::Result<usize>;
    fn seek(&self, file: FileNumber, to: SeekFrom) -> io::Result<u64>;
    fn set_len(&self, file: FileNumber, len: u64) -> io::Result<()>;
    /// Makes the content of a file durable, or the entries of a directory; with `all`, also the times and
    /// permissions.
    fn sync(&self, file: FileNumber, all: bool) -> io::Result<()>;
    fn status(&self, of: FileTarget<'_>) -> io::Result<FileStatus>;
    fn change(&self, of: FileTarget<'_>, change: StatusChange) -> io::Result<()>;
    fn create_dir(&self, path: &Path, mode: u32) -> io::Result<()>;
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn hard_link(&self, original: &Path, link: &Path) -> io::Result<()>;
    fn symlink(&self, original: &Path, link: &Path) -> io::Result<()>;
    fn read_link(&self, path: &Path) -> io::Result<PathBuf>;
    /// Returns the names in a directory, in order.
    fn read_dir(&self, path: &Path) -> io::Result<Vec<(OsString, FileStatus)>>;
    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf>;
}
