//! `std::fs`, whose files belong to the simulation if one runs.
//!
//! Without the feature `sim`, this module is [`std::fs`]. With it, the module has the same names: in a
//! [simulation](mod@crate::sim), they act on the files of the present node, and elsewhere on the real ones.
//! The calls block, so make them in [`unblock`](crate::unblock()) or the like. `tokio::fs` of the package
//! that replaces tokio makes the same calls.
//!
//! A node's files are kept in memory. They survive a [crash](crate::sim::Network::crash) of the node, except
//! for what was not synced: see [`Files`](crate::sim::Files) and the guide. All paths are simulated, and
//! relative ones begin at the root. In the beginning there is an empty directory `/tmp` only.
//!
//! Results are those of Linux, errors included, but for these:
//!
//! - Permissions are kept and not checked, and there is no umask.
//! - There is no time of creation, reading does not change the time of access, and the time of a change of
//!   the attributes is that of the last modification.
//! - A directory has the length 0 and one link, and a `seek` from its end is an error.
//! - The entries of a directory are in the order of their names.
//! - A file has at most 1 GiB.
//!
//! ```
//! use std::io::Write;
//! use paceline::blocking::fs::{self, File};
//! use paceline::sim::Sim;
//!
//! // Replaces a file as a whole: after a crash it has the old content or the new one.
//! fn replace(content: &[u8]) -> std::io::Result<()> {
//!     let mut file = File::create("/state.new")?;
//!     file.write_all(content)?;
//!     file.sync_all()?;
//!     fs::rename("/state.new", "/state")?;
//!     File::open("/")?.sync_all()
//! }
//!
//! let mut sim = Sim::new(7);
//! sim.block_on(paceline::unblock(|| replace(b"one"))).unwrap();
//! assert_eq!(fs::read("/state").unwrap(), b"one", "the test itself has files, too");
//! ```
//!
//! # Errors
//!
//! An open file whose node has crashed, and one that another simulation or thread uses, returns an error. A
//! call that simulations do not know returns one of the kind
//! [`Unsupported`](std::io::ErrorKind::Unsupported).

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

mod dir;
mod file;
#[cfg_attr(not(all(target_os = "linux", target_pointer_width = "64")), path = "metadata_unknown.rs")]
mod metadata;
mod options;

pub use dir::{DirBuilder, DirEntry, ReadDir, read_dir};
pub use file::File;
pub use options::OpenOptions;
pub use std::fs::{FileTimes, FileType, Metadata, Permissions};

use super::files::{FileCalls, FileKind, FileStatus, FileTarget, StatusChange};
use super::with_simulation;

/// Makes `call` if this thread is in a simulation, and else `real`.
fn here_or<T>(
    call: impl FnOnce(&dyn FileCalls) -> io::Result<T>,
    real: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let mut call = Some(call);
    let simulated = with_simulation(|simulation| call.take().map(|call| call(simulation.files()))).flatten();
    simulated.unwrap_or_else(real)
}

/// Returns the error of a call that simulations do not know.
fn unsupported(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, text)
}

/// Returns the permission bits.
fn mode_of(permissions: &Permissions) -> u32 {
    #[cfg(unix)]
    return std::os::unix::fs::PermissionsExt::mode(permissions) & 0o7777;
    #[cfg(not(unix))]
    return if permissions.readonly() { 0o444 } else { 0o644 };
}

/// As [`std::fs::canonicalize`].
pub fn canonicalize<P: AsRef<Path>>(path: P) -> io::Result<PathBuf> {
    let path = path.as_ref();
    here_or(|files| files.canonicalize(path), || std::fs::canonicalize(path))
}

/// As [`std::fs::copy`].
pub fn copy<P: AsRef<Path>, Q: AsRef<Path>>(from: P, to: Q) -> io::Result<u64> {
    let (from, to) = (from.as_ref(), to.as_ref());
    let simulated = |files: &dyn FileCalls| {
        let mut source = File::open(from)?;
        let FileStatus { kind, mode, .. } = files.status(FileTarget::Path(from))?;
        if kind != FileKind::File {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "only a regular file can be copied"));
        }
        // The target may be another link to the source. Then nothing is left to copy.
        let mut target = File::create(to)?;
        files.change(FileTarget::Path(to), StatusChange { mode: Some(mode), ..StatusChange::default() })?;
        let mut content = Vec::new();
        source.read_to_end(&mut content)?;
        target.write_all(&content)?;
        Ok(content.len() as u64)
    };
    here_or(simulated, || std::fs::copy(from, to))
}

/// As [`std::fs::create_dir`].
pub fn create_dir<P: AsRef<Path>>(path: P) -> io::Result<()> {
    DirBuilder::new().create(path)
}

/// As [`std::fs::create_dir_all`].
pub fn create_dir_all<P: AsRef<Path>>(path: P) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(path)
}

/// As [`std::fs::exists`].
pub fn exists<P: AsRef<Path>>(path: P) -> io::Result<bool> {
    let path = path.as_ref();
    let simulated = |files: &dyn FileCalls| match files.status(FileTarget::Path(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        status => status.map(|_| true),
    };
    here_or(simulated, || std::fs::exists(path))
}

/// As [`std::fs::hard_link`].
pub fn hard_link<P: AsRef<Path>, Q: AsRef<Path>>(original: P, link: Q) -> io::Result<()> {
    let (original, link) = (original.as_ref(), link.as_ref());
    here_or(|files| files.hard_link(original, link), || std::fs::hard_link(original, link))
}

/// As [`std::fs::metadata`]. In a simulation, it is known on Linux with 64 bits only, and there is no time of
/// creation.
pub fn metadata<P: AsRef<Path>>(path: P) -> io::Result<Metadata> {
    let path = path.as_ref();
    here_or(|files| metadata::of(&files.status(FileTarget::Path(path))?), || std::fs::metadata(path))
}

/// As [`std::fs::symlink_metadata`]. In a simulation, as [`metadata()`].
pub fn symlink_metadata<P: AsRef<Path>>(path: P) -> io::Result<Metadata> {
    let path = path.as_ref();
    here_or(
        |files| metadata::of(&files.status(FileTarget::LinkItself(path))?),
        || std::fs::symlink_metadata(path),
    )
}

/// As [`std::fs::read`].
pub fn read<P: AsRef<Path>>(path: P) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.read_to_end(&mut content)?;
    Ok(content)
}

/// As [`std::fs::read_link`].
pub fn read_link<P: AsRef<Path>>(path: P) -> io::Result<PathBuf> {
    let path = path.as_ref();
    here_or(|files| files.read_link(path), || std::fs::read_link(path))
}

/// As [`std::fs::read_to_string`].
pub fn read_to_string<P: AsRef<Path>>(path: P) -> io::Result<String> {
    let mut content = String::new();
    File::open(path)?.read_to_string(&mut content)?;
    Ok(content)
}

/// As [`std::fs::remove_dir`].
pub fn remove_dir<P: AsRef<Path>>(path: P) -> io::Result<()> {
    let path = path.as_ref();
    here_or(|files| files.remove_dir(path), || std::fs::remove_dir(path))
}

/// As [`std::fs::remove_dir_all`].
pub fn remove_dir_all<P: AsRef<Path>>(path: P) -> io::Result<()> {
    let path = path.as_ref();
    here_or(|files| dir::remove_all(files, path), || std::fs::remove_dir_all(path))
}

/// As [`std::fs::remove_file`].
pub fn remove_file<P: AsRef<Path>>(path: P) -> io::Result<()> {
    let path = path.as_ref();
    here_or(|files| files.remove_file(path), || std::fs::remove_file(path))
}

/// As [`std::fs::rename`].
pub fn rename<P: AsRef<Path>, Q: AsRef<Path>>(from: P, to: Q) -> io::Result<()> {
    let (from, to) = (from.as_ref(), to.as_ref());
    here_or(|files| files.rename(from, to), || std::fs::rename(from, to))
}

/// As [`std::fs::set_permissions`]. A simulation keeps the permissions, and does not check them.
pub fn set_permissions<P: AsRef<Path>>(path: P, perm: Permissions) -> io::Result<()> {
    let path = path.as_ref();
    let change = StatusChange { mode: Some(mode_of(&perm)), ..StatusChange::default() };
    here_or(|files| files.change(FileTarget::Path(path), change), || std::fs::set_permissions(path, perm))
}

/// As [`std::fs::write`].
pub fn write<P: AsRef<Path>, C: AsRef<[u8]>>(path: P, contents: C) -> io::Result<()> {
    File::create(path)?.write_all(contents.as_ref())
}

/// For the package that replaces tokio: this module, and what `std::fs` lacks.
#[doc(hidden)]
pub mod for_tokio {
    pub use super::*;

    /// Returns the real file, or the simulated one as the error.
    pub fn into_real(file: File) -> Result<std::fs::File, File> {
        file::into_real(file)
    }

    /// As [`std::os::unix::fs::symlink`].
    #[cfg(unix)]
    pub fn symlink<P: AsRef<Path>, Q: AsRef<Path>>(original: P, link: Q) -> io::Result<()> {
        let (original, link) = (original.as_ref(), link.as_ref());
        here_or(|files| files.symlink(original, link), || std::os::unix::fs::symlink(original, link))
    }

    /// As [`std::os::windows::fs::symlink_dir`].
    #[cfg(windows)]
    pub fn symlink_dir<P: AsRef<Path>, Q: AsRef<Path>>(original: P, link: Q) -> io::Result<()> {
        let (original, link) = (original.as_ref(), link.as_ref());
        here_or(|files| files.symlink(original, link), || std::os::windows::fs::symlink_dir(original, link))
    }

    /// As [`std::os::windows::fs::symlink_file`].
    #[cfg(windows)]
    pub fn symlink_file<P: AsRef<Path>, Q: AsRef<Path>>(original: P, link: Q) -> io::Result<()> {
        let (original, link) = (original.as_ref(), link.as_ref());
        here_or(|files| files.symlink(original, link), || std::os::windows::fs::symlink_file(original, link))
    }
}
