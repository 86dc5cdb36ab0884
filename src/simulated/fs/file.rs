//! [`File`]: an open file, real or simulated.

use std::fmt;
use std::fs::{File as StdFile, FileTimes, Metadata, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use super::{metadata, mode_of};
use crate::simulated::files::{FileCalls, FileNumber, FileTarget, StatusChange};
use crate::simulated::{Simulation, is_current};

/// As [`std::fs::File`]; a file of the present node if a simulation runs where it is opened.
pub struct File(pub(super) Opened);

pub(super) enum Opened {
    Real(StdFile),
    /// Shared by clones, which have one cursor.
    Simulated(Arc<SimulatedFile>),
}

pub(super) struct SimulatedFile {
    simulation: Weak<dyn Simulation>,
    number: FileNumber,
}

impl SimulatedFile {
    pub(super) fn new(simulation: &Arc<dyn Simulation>, number: FileNumber) -> Self {
        Self { simulation: Arc::downgrade(simulation), number }
    }

    fn call<T>(&self, call: impl FnOnce(&dyn FileCalls, FileNumber) -> io::Result<T>) -> io::Result<T> {
        match self.simulation.upgrade().filter(|simulation| is_current(&**simulation)) {
            Some(simulation) => call(simulation.files(), self.number),
            None => {
                Err(io::Error::other("a file of a simulation was used outside of it, or by another thread"))
            }
        }
    }

    fn change(&self, change: StatusChange) -> io::Result<()> {
        self.call(|files, number| files.change(FileTarget::Open(number), change))
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        if let Some(simulation) = self.simulation.upgrade() {
            simulation.files().close(self.number);
        }
    }
}

impl File {
    /// As [`std::fs::File::sync_all`]. In a simulation, the content of the file survives a crash from now on;
    /// for an open directory, its entries do.
    pub fn sync_all(&self) -> io::Result<()> {
        match &self.0 {
            Opened::Real(file) => file.sync_all(),
            Opened::Simulated(file) => file.call(|files, number| files.sync(number, true)),
        }
    }

    /// As [`std::fs::File::sync_data`]. In a simulation, as [`sync_all`](Self::sync_all) without times and
    /// permissions.
    pub fn sync_data(&self) -> io::Result<()> {
        match &self.0 {
            Opened::Real(file) => file.sync_data(),
            Opened::Simulated(file) => file.call(|files, number| files.sync(number, false)),
        }
    }

    /// As [`std::fs::File::set_len`].
    pub fn set_len(&self, size: u64) -> io::Result<()> {
        match &self.0 {
            Opened::Real(file) => file.set_len(size),
            Opened::Simulated(file) => file.call(|files, number| files.set_len(number, size)),
        }
    }

    /// As [`std::fs::File::metadata`]. In a simulation, as [`metadata`](super::metadata()).
    pub fn metadata(&self) -> io::Result<Metadata> {
        match &self.0 {
            Opened::Real(file) => file.metadata(),
            Opened::Simulated(file) => {
                metadata::of(&file.call(|files, number| files.status(FileTarget::Open(number)))?)
            }
        }
    }

    /// As [`std::fs::File::try_clone`].
    pub fn try_clone(&self) -> io::Result<File> {
        Ok(File(match &self.0 {
            Opened::Real(file) => Opened::Real(file.try_clone()?),
            Opened::Simulated(file) => Opened::Simulated(file.clone()),
        }))
    }

    /// As [`std::fs::File::set_permissions`]. A simulation keeps them, and does not check them.
    pub fn set_permissions(&self, perm: Permissions) -> io::Result<()> {
        match &self.0 {
            Opened::Real(file) => file.set_permissions(perm),
            Opened::Simulated(file) => {
                file.change(StatusChange { mode: Some(mode_of(&perm)), ..StatusChange::default() })
            }
        }
    }

    /// As [`std::fs::File::set_times`].
    pub fn set_times(&self, times: FileTimes) -> io::Result<()> {
        match &self.0 {
            Opened::Real(file) => file.set_times(times),
            Opened::Simulated(file) => file.change(metadata::times_of(times)?),
        }
    }

    /// As [`std::fs::File::set_modified`].
    pub fn set_modified(&self, time: SystemTime) -> io::Result<()> {
        match &self.0 {
            Opened::Real(file) => file.set_modified(time),
            Opened::Simulated(file) => {
                let modified = time.duration_since(SystemTime::UNIX_EPOCH).map_err(io::Error::other)?;
                file.change(StatusChange { modified: Some(modified), ..StatusChange::default() })
            }
        }
    }

    fn read_here(&self, buf: &mut [u8], at: Option<u64>) -> io::Result<usize> {
        match &self.0 {
            Opened::Real(file) => real_read(file, buf, at),
            Opened::Simulated(file) => file.call(|files, number| files.read(number, buf, at)),
        }
    }

    fn write_here(&self, buf: &[u8], at: Option<u64>) -> io::Result<usize> {
        match &self.0 {
            Opened::Real(file) => real_write(file, buf, at),
            Opened::Simulated(file) => file.call(|files, number| files.write(number, buf, at)),
        }
    }
}

#[cfg(unix)]
fn real_read(mut file: &StdFile, buf: &mut [u8], at: Option<u64>) -> io::Result<usize> {
    match at {
        Some(at) => std::os::unix::fs::FileExt::read_at(file, buf, at),
        None => file.read(buf),
    }
}

#[cfg(unix)]
fn real_write(mut file: &StdFile, buf: &[u8], at: Option<u64>) -> io::Result<usize> {
    match at {
        Some(at) => std::os::unix::fs::FileExt::write_at(file, buf, at),
        None => file.write(buf),
    }
}

#[cfg(not(unix))]
fn real_read(mut file: &StdFile, buf: &mut [u8], _: Option<u64>) -> io::Result<usize> {
    file.read(buf)
}

#[cfg(not(unix))]
fn real_write(mut file: &StdFile, buf: &[u8], _: Option<u64>) -> io::Result<usize> {
    file.write(buf)
}

impl Read for &File {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.read_here(buf, None)
    }
}

impl Write for &File {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.write_here(buf, None)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for &File {
    fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
        match &self.0 {
            Opened::Real(file) => (&*file).seek(pos),
            Opened::Simulated(file) => file.call(|files, number| files.seek(number, pos)),
        }
    }
}

impl Read for File {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buf)
    }
}

impl Write for File {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        (&*self).write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for File {
    fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
        (&*self).seek(pos)
    }
}

impl From<StdFile> for File {
    fn from(file: StdFile) -> Self {
        Self(Opened::Real(file))
    }
}

/// Returns the real file, or the simulated one as the error.
pub(super) fn into_real(file: File) -> Result<StdFile, File> {
    match file.0 {
        Opened::Real(file) => Ok(file),
        simulated @ Opened::Simulated(_) => Err(File(simulated)),
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Opened::Real(file) => file.fmt(f),
            Opened::Simulated(file) => f.debug_struct("File").field("simulated", &file.number.0).finish(),
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::io;
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
    use std::os::unix::fs::FileExt;

    use super::{File, Opened, StdFile};

    impl FileExt for File {
        fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
            self.read_here(buf, Some(offset))
        }

        fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
            self.write_here(buf, Some(offset))
        }
    }

    impl AsFd for File {
        /// # Panics
        ///
        /// If the file is simulated.
        #[track_caller]
        fn as_fd(&self) -> BorrowedFd<'_> {
            match &self.0 {
                Opened::Real(file) => file.as_fd(),
                Opened::Simulated(_) => panic!(
                    "a file of a simulation has no descriptor: use its methods, or open a real file by `std::fs`"
                ),
            }
        }
    }

    impl AsRawFd for File {
        /// # Panics
        ///
        /// If the file is simulated.
        #[track_caller]
        fn as_raw_fd(&self) -> RawFd {
            self.as_fd().as_raw_fd()
        }
    }

    impl From<OwnedFd> for File {
        fn from(fd: OwnedFd) -> Self {
            StdFile::from(fd).into()
        }
    }

    impl FromRawFd for File {
        unsafe fn from_raw_fd(fd: RawFd) -> Self {
            // SAFETY: the caller keeps the promises of `from_raw_fd`.
            unsafe { StdFile::from_raw_fd(fd) }.into()
        }
    }
}

#[cfg(windows)]
mod windows {
    use std::os::windows::io::{
        AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle, RawHandle,
    };

    use super::{File, Opened, StdFile};

    impl AsHandle for File {
        /// # Panics
        ///
        /// If the file is simulated.
        #[track_caller]
        fn as_handle(&self) -> BorrowedHandle<'_> {
            match &self.0 {
                Opened::Real(file) => file.as_handle(),
                Opened::Simulated(_) => panic!(
                    "a file of a simulation has no handle: use its methods, or open a real file by `std::fs`"
                ),
            }
        }
    }

    impl AsRawHandle for File {
        /// # Panics
        ///
        /// If the file is simulated.
        #[track_caller]
        fn as_raw_handle(&self) -> RawHandle {
            self.as_handle().as_raw_handle()
        }
    }

    impl From<OwnedHandle> for File {
        fn from(handle: OwnedHandle) -> Self {
            StdFile::from(handle).into()
        }
    }

    impl FromRawHandle for File {
        unsafe fn from_raw_handle(handle: RawHandle) -> Self {
            // SAFETY: the caller keeps the promises of `from_raw_handle`.
            unsafe { StdFile::from_raw_handle(handle) }.into()
        }
    }
}
