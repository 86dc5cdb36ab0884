//! Directories, and what is in them.

use std::ffi::OsString;
use std::fs::{FileType, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::vec;

use super::{here_or, metadata};
use crate::simulated::files::{FileCalls, FileKind, FileStatus, FileTarget};

/// As [`std::fs::DirBuilder`].
#[derive(Debug)]
pub struct DirBuilder {
    real: std::fs::DirBuilder,
    recursive: bool,
    mode: u32,
}

impl DirBuilder {
    /// As [`std::fs::DirBuilder::new`].
    #[must_use]
    #[expect(clippy::new_without_default, reason = "that of std has none")]
    pub fn new() -> Self {
        Self { real: std::fs::DirBuilder::new(), recursive: false, mode: 0o755 }
    }

    /// As [`std::fs::DirBuilder::recursive`].
    pub fn recursive(&mut self, recursive: bool) -> &mut Self {
        self.real.recursive(recursive);
        self.recursive = recursive;
        self
    }

    /// As [`std::fs::DirBuilder::create`].
    pub fn create<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        let path = path.as_ref();
        let simulated = |files: &dyn FileCalls| match self.recursive {
            true => create_all(files, path, self.mode),
            false => files.create_dir(path, self.mode),
        };
        here_or(simulated, || self.real.create(path))
    }
}

#[cfg(unix)]
impl std::os::unix::fs::DirBuilderExt for DirBuilder {
    fn mode(&mut self, mode: u32) -> &mut Self {
        std::os::unix::fs::DirBuilderExt::mode(&mut self.real, mode);
        self.mode = mode & 0o7777;
        self
    }
}

fn create_all(files: &dyn FileCalls, path: &Path, mode: u32) -> io::Result<()> {
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    let is_directory = || files.status(FileTarget::Path(path)).is_ok_and(|it| it.kind == FileKind::Directory);
    let result = match (files.create_dir(path, mode), path.parent()) {
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
            create_all(files, parent, mode)?;
            files.create_dir(path, mode)
        }
        (result, _) => result,
    };
    if is_directory() { Ok(()) } else { result }
}

pub(super) fn remove_all(files: &dyn FileCalls, path: &Path) -> io::Result<()> {
    if files.status(FileTarget::LinkItself(path))?.kind == FileKind::Symlink {
        return files.remove_file(path);
    }
    // A link in `path` may be among what is removed, as may be the directory before a `..` there.
    let folder = files.canonicalize(path)?;
    for (name, status) in files.read_dir(path)? {
        let path = folder.join(name);
        match status.kind {
            FileKind::Directory => remove_all(files, &path)?,
            FileKind::File | FileKind::Symlink => files.remove_file(&path)?,
        }
    }
    match files.remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// As [`std::fs::read_dir`]. In a simulation, the entries are in the order of their names.
pub fn read_dir<P: AsRef<Path>>(path: P) -> io::Result<ReadDir> {
    let path = path.as_ref();
    let simulated = |files: &dyn FileCalls| {
        Ok(ReadDir(Entries::Simulated(path.to_owned(), files.read_dir(path)?.into_iter())))
    };
    here_or(simulated, || std::fs::read_dir(path).map(|real| ReadDir(Entries::Real(real))))
}

/// As [`std::fs::ReadDir`].
#[derive(Debug)]
pub struct ReadDir(Entries);

#[derive(Debug)]
enum Entries {
    Real(std::fs::ReadDir),
    Simulated(PathBuf, vec::IntoIter<(OsString, FileStatus)>),
}

impl Iterator for ReadDir {
    type Item = io::Result<DirEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Entries::Real(entries) => Some(entries.next()?.map(|entry| DirEntry(Entry::Real(entry)))),
            Entries::Simulated(folder, entries) => {
                let (name, status) = entries.next()?;
                Some(Ok(DirEntry(Entry::Simulated(folder.clone(), name, status))))
            }
        }
    }
}

/// As [`std::fs::DirEntry`].
#[derive(Debug)]
pub struct DirEntry(Entry);

#[derive(Debug)]
enum Entry {
    Real(std::fs::DirEntry),
    Simulated(PathBuf, OsString, FileStatus),
}

impl DirEntry {
    /// As [`std::fs::DirEntry::path`].
    #[must_use]
    pub fn path(&self) -> PathBuf {
        match &self.0 {
            Entry::Real(entry) => entry.path(),
            Entry::Simulated(folder, name, _) => folder.join(name),
        }
    }

    /// As [`std::fs::DirEntry::file_name`].
    #[must_use]
    pub fn file_name(&self) -> OsString {
        match &self.0 {
            Entry::Real(entry) => entry.file_name(),
            Entry::Simulated(_, name, _) => name.clone(),
        }
    }

    /// As [`std::fs::DirEntry::metadata`]. In a simulation, as [`metadata`](super::metadata()).
    pub fn metadata(&self) -> io::Result<Metadata> {
        match &self.0 {
            Entry::Real(entry) => entry.metadata(),
            Entry::Simulated(..) => super::symlink_metadata(self.path()),
        }
    }

    /// As [`std::fs::DirEntry::file_type`]. In a simulation, as [`metadata`](super::metadata()).
    pub fn file_type(&self) -> io::Result<FileType> {
        match &self.0 {
            Entry::Real(entry) => entry.file_type(),
            Entry::Simulated(_, _, status) => metadata::of(status).map(|metadata| metadata.file_type()),
        }
    }
}

#[cfg(unix)]
impl std::os::unix::fs::DirEntryExt for DirEntry {
    fn ino(&self) -> u64 {
        match &self.0 {
            Entry::Real(entry) => std::os::unix::fs::DirEntryExt::ino(entry),
            Entry::Simulated(_, _, status) => status.number,
        }
    }
}
