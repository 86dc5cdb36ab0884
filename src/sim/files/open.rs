//! The calls of a [`Disk`] for open files. Errors are those of Linux.

use std::io::SeekFrom;
use std::path::Path;
use std::time::Duration;

use super::disk::{Disk, Result};
use super::handle::FileHandle;
use super::inode::{Content, ContentChange, FileContent};
use crate::sim::net::Errno;
use crate::simulated::files::OpenFlags;

/// Upper bound of the length of a file, which is kept in memory: 1 GiB.
const MOST_BYTES: u64 = 1 << 30;

impl Disk {
    /// Opens a file under this number. Returns whether that has changed something.
    pub(super) fn open(&mut self, number: u64, path: &Path, flags: OpenFlags, now: Duration) -> Result<bool> {
        let OpenFlags { read, write, append, truncate, create, create_new, mode } = flags;
        let writes = write || append;
        let is_wrong = truncate && append && !create_new || (create || create_new || truncate) && !writes;
        if is_wrong || !(read || writes) {
            return Err(Errno::Invalid);
        }
        let may_create = create || create_new;
        let place = match may_create {
            // A link that leads nowhere counts as a file for `create_new`.
            true => self.walk_to_create(path, !create_new)?,
            false => self.walk(path, true)?,
        };
        let is_new = place.found == Err(Errno::NoEntry);
        let ino = match place.found {
            Ok(_) if create_new => return Err(Errno::Exists),
            Ok(ino) if self.inode(ino).is_directory() && writes => return Err(Errno::IsDirectory),
            Err(Errno::NoEntry) if may_create => {
                let content = Content::File(FileContent::default());
                self.create(place.free()?, content, mode, now)?
            }
            found => found?,
        };
        self.keep(ino);
        self.inode_mut(ino).opens += 1;
        self.open.insert(number, FileHandle { ino, cursor: 0, reads: read, writes, appends: append });
        let truncates = truncate && !is_new;
        if truncates {
            self.set_len(number, 0, now)?;
        }
        Ok(is_new || truncates)
    }

    pub(super) fn close(&mut self, number: u64) {
        // A crash has closed it.
        if let Some(file) = self.open.remove(&number) {
            self.inode_mut(file.ino).opens -= 1;
            self.leave(file.ino);
        }
    }

    pub(super) fn read(&mut self, number: u64, buffer: &mut [u8], at: Option<u64>) -> Result<usize> {
        let file = self.open_file(number)?;
        if !file.reads {
            return Err(Errno::BadDescriptor);
        }
        let from = usize::try_from(at.unwrap_or(file.cursor)).unwrap_or(usize::MAX);
        let live = &self.file_at_mut(file.ino)?.live;
        let rest = live.get(from..).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        if at.is_none() {
            self.set_cursor(number, file.cursor + len as u64);
        }
        Ok(len)
    }

    /// Writes. Returns where.
    pub(super) fn write(&mut self, number: u64, bytes: &[u8], at: Option<u64>, now: Duration) -> Result<u64> {
        let file = self.open_file(number)?;
        if !file.writes {
            return Err(Errno::BadDescriptor);
        }
        let len = self.file_at_mut(file.ino)?.live.len() as u64;
        let from = if file.appends { len } else { at.unwrap_or(file.cursor) };
        // That does not even move the cursor of a file that is open to append.
        if bytes.is_empty() {
            return Ok(from);
        }
        let end = from.saturating_add(bytes.len() as u64);
        self.grow(len, end.max(len))?;
        self.file_at_mut(file.ino)?.change(ContentChange::Write(from as usize, bytes.to_owned()));
        self.inode_mut(file.ino).attributes.modified = now;
        if at.is_none() {
            self.set_cursor(number, end);
        }
        Ok(from)
    }

    pub(super) fn set_len(&mut self, number: u64, to: u64, now: Duration) -> Result<()> {
        let file = self.open_file(number)?;
        if !file.writes {
            return Err(Errno::Invalid);
        }
        let len = self.file_at_mut(file.ino)?.live.len() as u64;
        self.grow(len, to)?;
        self.file_at_mut(file.ino)?.change(ContentChange::SetLen(to as usize));
        self.inode_mut(file.ino).attributes.modified = now;
        Ok(())
    }

    /// Takes room for a file that gets another length.
    fn grow(&mut self, from: u64, to: u64) -> Result<()> {
        if to > MOST_BYTES {
            return Err(Errno::TooLarge);
        }
        let used = self.used - from + to;
        if to > from && used > self.capacity {
            return Err(Errno::NoSpace);
        }
        self.used = used;
        Ok(())
    }

    pub(super) fn seek(&mut self, number: u64, to: SeekFrom) -> Result<u64> {
        let file = self.open_file(number)?;
        let inode = self.inode(file.ino);
        let end = inode.status(file.ino).len;
        let position = match to {
            // A directory has no length. File systems differ here, and this is what tmpfs does.
            SeekFrom::End(_) if inode.is_directory() => None,
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => file.cursor.checked_add_signed(by),
            SeekFrom::End(by) => end.checked_add_signed(by),
        };
        let position = position.filter(|position| i64::try_from(*position).is_ok()).ok_or(Errno::Invalid)?;
        self.set_cursor(number, position);
        Ok(position)
    }

    pub(super) fn sync(&mut self, number: u64, all: bool) -> Result<()> {
        let ino = self.open_file(number)?.ino;
        let inode = self.inode_mut(ino);
        if all {
            inode.durable_attributes = inode.attributes;
        }
        match &mut inode.content {
            Content::File(file) => file.sync(),
            Content::Directory(_) => self.sync_entries(ino),
            Content::Symlink(_) => {}
        }
        Ok(())
    }

    pub(super) fn open_file(&self, number: u64) -> Result<FileHandle> {
        self.open.get(&number).copied().ok_or(Errno::BadDescriptor)
    }

    fn set_cursor(&mut self, number: u64, cursor: u64) {
        if let Some(file) = self.open.get_mut(&number) {
            file.cursor = cursor;
        }
    }
}
