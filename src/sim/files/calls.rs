//! The calls for files of a simulation, at the present time and on the present node. Each change is an event.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::disk::{Disk, Result};
use super::inode::Ino;
use crate::sim::events::SimEventKind;
use crate::sim::journal::Incident;
use crate::sim::net::{Errno, HostId};
use crate::sim::simulation::{SimState, Simulated};
use crate::sim::system;
use crate::simulated::files::{FileCalls, FileNumber, FileStatus, FileTarget, OpenFlags, StatusChange};

/// Upper bound of the losses that the text of a crash lists.
const MOST_LOSSES: usize = 8;

impl Simulated {
    /// Returns what the wall clock of a host shows.
    pub(super) fn wall_of(&self, host: HostId) -> Duration {
        system::wall_clock(self.elapsed(), self.state().wall_offset_of(host))
    }

    /// Loses what was not synced on a host that crashes.
    pub(in crate::sim) fn crash_files(&self, host: HostId, name: &str) {
        let lost = self.files.crash(host, |what| self.faults().happens(format_args!("lose {what} {name}")));
        if !lost.is_empty() {
            let more = lost.len().saturating_sub(MOST_LOSSES);
            let listed = lost[..lost.len() - more].join("; ");
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            let text = format!("loses what was not synced: {listed}{more}");
            self.add_file_event(host, Incident::Fault(text.clone()), &format!("{name} {text}"));
        }
    }

    fn add_file_event(&self, host: HostId, what: Incident, text: &str) {
        let mut state = self.state();
        self.record(&mut state, host, what);
        let (detail, task) = (state.events.hash_text(text), state.polled_id());
        self.add(state, SimEventKind::File, task, detail);
    }

    /// Calls `call` with the file system of the present node.
    fn on_disk<T>(&self, call: impl FnOnce(&mut Disk, Duration) -> Result<T>) -> io::Result<(HostId, T)> {
        let host = self.state().host_for_files()?;
        let now = self.wall_of(host);
        Ok((host, call(self.files.state().disk(host, now), now)?))
    }

    /// Calls `call` with the file system of the present node, and adds what it did to the events.
    fn change_disk<T>(
        &self,
        what: impl Display,
        call: impl FnOnce(&mut Disk, Duration) -> Result<T>,
    ) -> io::Result<T> {
        let (host, result) = self.on_disk(call)?;
        self.tell(host, what.to_string());
        Ok(result)
    }

    /// Calls `call` with an open file, on whichever node that is.
    fn on_file<T>(
        &self,
        file: FileNumber,
        call: impl FnOnce(&mut Disk, Duration) -> Result<T>,
    ) -> io::Result<(HostId, T)> {
        let host = self.files.state().hosts.get(&file.0).copied();
        let host = host.ok_or_else(|| io::Error::other("the node has crashed since it opened the file"))?;
        let now = self.wall_of(host);
        Ok((host, call(self.files.state().disk(host, now), now)?))
    }

    /// Does the same for a call that a broken disk does not answer.
    fn transfer<T>(
        &self,
        file: FileNumber,
        call: impl FnOnce(&mut Disk, Duration) -> Result<T>,
    ) -> io::Result<(HostId, T)> {
        let error = self.files.goes_wrong(file.0, |disk| disk.errors);
        if error.is_some() && self.inject(file, "has an error of its disk")? {
            return Err(Errno::Io.into());
        }
        self.on_file(file, call)
    }

    /// Returns whether the disk with an open file has a fault, unless the run's plan leaves it out.
    fn inject(&self, file: FileNumber, what: &str) -> io::Result<bool> {
        let (host, ()) = self.on_file(file, |_, _| Ok(()))?;
        let name = self.network.with_kernel(|kernel| kernel.name(host).to_owned());
        let happens = self.faults().happens(format_args!("{name} {what}"));
        if happens {
            self.record(&mut self.state(), host, Incident::Fault(what.into()));
        }
        Ok(happens)
    }

    /// Adds what was done to a file to the events.
    fn tell(&self, host: HostId, text: String) {
        self.add_file_event(host, Incident::File(text.clone()), &text);
    }
}

impl SimState {
    /// Returns the host whose files a call acts on.
    fn host_for_files(&mut self) -> io::Result<HostId> {
        let host = self.host();
        // A task that crashes its own node goes on until it waits; and destructors run after a crash.
        let has_crashed = self.cancels || self.host.is_none() && self.down.contains(&host);
        if has_crashed { Err(io::Error::other("the node has crashed")) } else { Ok(host) }
    }
}

impl FileCalls for Simulated {
    fn open(&self, path: &Path, flags: OpenFlags) -> io::Result<FileNumber> {
        let number = {
            let state = &mut *self.files.state();
            state.last += 1;
            state.last
        };
        let (host, changes) = self.on_disk(|disk, now| disk.open(number, path, flags, now))?;
        self.files.state().hosts.insert(number, host);
        if changes {
            let what = if flags.truncate { "creates or empties" } else { "creates" };
            self.tell(host, format!("{what} {}", path.display()));
        }
        Ok(FileNumber(number))
    }

    fn close(&self, file: FileNumber) {
        let state = &mut *self.files.state();
        if let Some(disk) = state.hosts.remove(&file.0).and_then(|host| state.disks.get_mut(&host)) {
            disk.close(file.0);
        }
    }

    fn read(&self, file: FileNumber, buffer: &mut [u8], at: Option<u64>) -> io::Result<usize> {
        let (_, len) = self.transfer(file, |disk, _| disk.read(file.0, buffer, at))?;
        let wrong = self.files.goes_wrong(file.0, |disk| disk.corruption).filter(|_| len > 0);
        if let Some(wrong) = wrong {
            if self.inject(file, "reads a wrong bit")? {
                buffer[wrong as usize % len] ^= 1 << (wrong >> 61);
            }
        }
        Ok(len)
    }

    fn write(&self, file: FileNumber, bytes: &[u8], at: Option<u64>) -> io::Result<usize> {
        let write = |disk: &mut Disk, now| {
            let from = disk.write(file.0, bytes, at, now)?;
            Ok((from, disk.path(file)?))
        };
        let (host, (from, path)) = self.transfer(file, write)?;
        let unit = if bytes.len() == 1 { "byte" } else { "bytes" };
        self.tell(host, format!("writes {} {unit} at {from} of {}", bytes.len(), path.display()));
        Ok(bytes.len())
    }

    fn seek(&self, file: FileNumber, to: SeekFrom) -> io::Result<u64> {
        self.on_file(file, |disk, _| disk.seek(file.0, to)).map(|(_, position)| position)
    }

    fn set_len(&self, file: FileNumber, len: u64) -> io::Result<()> {
        let set_len = |disk: &mut Disk, now| {
            disk.set_len(file.0, len, now)?;
            disk.path(file)
        };
        let (host, path) = self.transfer(file, set_len)?;
        self.tell(host, format!("sets the length of {} to {len}", path.display()));
        Ok(())
    }

    fn sync(&self, file: FileNumber, all: bool) -> io::Result<()> {
        let sync = |disk: &mut Disk, _| {
            disk.sync(file.0, all)?;
            disk.path(file)
        };
        let (host, path) = self.transfer(file, sync)?;
        self.tell(host, format!("syncs {}", path.display()));
        Ok(())
    }

    fn status(&self, of: FileTarget<'_>) -> io::Result<FileStatus> {
        let status = |disk: &mut Disk, _| disk.find(of).map(|ino| disk.inode(ino).status(ino));
        match of {
            FileTarget::Open(file) => self.on_file(file, status),
            _ => self.on_disk(status),
        }
        .map(|(_, status)| status)
    }

    fn change(&self, of: FileTarget<'_>, change: StatusChange) -> io::Result<()> {
        let set = |disk: &mut Disk, _| {
            let ino = disk.find(of)?;
            let inode = disk.inode_mut(ino);
            let attributes = &mut inode.attributes;
            attributes.mode = change.mode.unwrap_or(attributes.mode);
            attributes.accessed = change.accessed.unwrap_or(attributes.accessed);
            attributes.modified = change.modified.unwrap_or(attributes.modified);
            Ok(disk.path_of(ino))
        };
        let changed = match of {
            FileTarget::Open(file) => self.on_file(file, set),
            _ => self.on_disk(set),
        };
        let (host, path) = changed?;
        self.tell(host, format!("sets times or permissions of {}", path.display()));
        Ok(())
    }

    fn create_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        let what = format!("creates the directory {}", path.display());
        self.change_disk(what, |disk, now| disk.create_dir(path, mode, now))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let what = format!("removes the directory {}", path.display());
        self.change_disk(what, |disk, now| disk.remove_dir(path, now))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.change_disk(format_args!("removes {}", path.display()), |disk, now| disk.remove_file(path, now))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let what = format!("renames {} to {}", from.display(), to.display());
        self.change_disk(what, |disk, now| disk.rename(from, to, now))
    }

    fn hard_link(&self, original: &Path, link: &Path) -> io::Result<()> {
        let what = format!("links {} to {}", link.display(), original.display());
        self.change_disk(what, |disk, now| disk.hard_link(original, link, now))
    }

    fn symlink(&self, original: &Path, link: &Path) -> io::Result<()> {
        let what = format!("links {} to {} by its path", link.display(), original.display());
        self.change_disk(what, |disk, now| disk.symlink(original, link, now))
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        self.on_disk(|disk, _| disk.read_link(path)).map(|(_, target)| target)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<(OsString, FileStatus)>> {
        self.on_disk(|disk, _| disk.read_dir(path)).map(|(_, entries)| entries)
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        self.on_disk(|disk, _| disk.canonicalize(path)).map(|(_, path)| path)
    }
}

impl Disk {
    fn find(&self, target: FileTarget<'_>) -> Result<Ino> {
        match target {
            FileTarget::Open(file) => Ok(self.open_file(file.0)?.ino),
            FileTarget::Path(path) => self.walk(path, true)?.found,
            FileTarget::LinkItself(path) => self.find_itself(path),
        }
    }

    /// Returns the path of an open file, for texts.
    fn path(&self, file: FileNumber) -> Result<PathBuf> {
        Ok(self.path_of(self.open_file(file.0)?.ino))
    }
}
