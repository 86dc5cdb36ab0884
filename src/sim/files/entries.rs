//! The calls of a [`Disk`] that change directory entries. Errors are those of Linux.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::disk::{Disk, EntryEdit, ROOT_INODE, Result};
use super::inode::{Content, Ino};
use super::paths::{PathStep, check};
use crate::sim::net::Errno;
use crate::simulated::files::FileStatus;

impl Disk {
    /// Adds an inode with a name.
    pub(super) fn create(
        &mut self,
        (directory, name): (Ino, OsString),
        content: Content,
        mode: u32,
        now: Duration,
    ) -> Result<Ino> {
        self.directory_at(directory)?;
        let ino = self.add(content, mode, now, (directory, name.clone()));
        let text = format!("create {}", self.path_of(ino).display());
        self.edit(text, vec![EntryEdit { directory, name, to: Some(ino) }], now);
        Ok(ino)
    }

    pub(super) fn create_dir(&mut self, path: &Path, mode: u32, now: Duration) -> Result<()> {
        let place = self.walk(path, false)?.free()?;
        self.create(place, Self::directory(), mode, now).map(drop)
    }

    pub(super) fn symlink(&mut self, original: &Path, link: &Path, now: Duration) -> Result<()> {
        check(link).and(check(original))?;
        let place = self.walk(link, false)?.free_for_file()?;
        self.create(place, Content::Symlink(original.to_owned()), 0o777, now).map(drop)
    }

    pub(super) fn hard_link(&mut self, original: &Path, link: &Path, now: Duration) -> Result<()> {
        check(original).and(check(link))?;
        let ino = self.find_itself(original)?;
        let (directory, name) = self.walk(link, false)?.free_for_file()?;
        if self.inode(ino).is_directory() {
            return Err(Errno::NotPermitted);
        }
        let text = format!("link {}", link.display());
        self.edit(text, vec![EntryEdit { directory, name, to: Some(ino) }], now);
        Ok(())
    }

    pub(super) fn remove_file(&mut self, path: &Path, now: Duration) -> Result<()> {
        let place = self.walk(path, false)?;
        let is_directory = self.inode(place.found?).is_directory();
        let PathStep::Name(name) = place.last else { return Err(Errno::IsDirectory) };
        if is_directory {
            return Err(Errno::IsDirectory);
        }
        let edit = EntryEdit { directory: place.directory, name, to: None };
        self.edit(format!("remove {}", path.display()), vec![edit], now);
        Ok(())
    }

    pub(super) fn remove_dir(&mut self, path: &Path, now: Duration) -> Result<()> {
        let place = self.walk(path, false)?;
        let name = match place.last {
            PathStep::Name(name) => name,
            PathStep::Here => return Err(Errno::Invalid),
            PathStep::Above => return Err(Errno::NotEmpty),
            PathStep::Root => return Err(Errno::Busy),
        };
        if !self.directory_at(place.found?)?.live.is_empty() {
            return Err(Errno::NotEmpty);
        }
        let edit = EntryEdit { directory: place.directory, name, to: None };
        self.edit(format!("remove {}", path.display()), vec![edit], now);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path, now: Duration) -> Result<()> {
        check(from).and(check(to))?;
        let (source, target) = (self.walk(from, false)?, self.walk(to, false)?);
        let (PathStep::Name(from_name), PathStep::Name(to_name)) = (source.last, target.last) else {
            return Err(Errno::Busy);
        };
        // Both names are looked up before a slash at the end of one matters.
        if target.found == Err(Errno::NameTooLong) && source.found != Err(Errno::NoEntry) {
            return Err(Errno::NameTooLong);
        }
        let ino = source.found?;
        let is_directory = self.inode(ino).is_directory();
        if target.has_slash && !is_directory {
            return Err(Errno::NotDirectory);
        }
        if self.is_inside(target.directory, ino) {
            return Err(Errno::Invalid);
        }
        match target.found {
            Ok(replaced) if self.is_inside(source.directory, replaced) => return Err(Errno::NotEmpty),
            Ok(replaced) if replaced == ino => return Ok(()),
            Ok(replaced) => match (is_directory, self.directory_at(replaced)) {
                (true, Ok(entries)) if !entries.live.is_empty() => return Err(Errno::NotEmpty),
                (true, Err(error)) => return Err(error),
                (false, Ok(_)) => return Err(Errno::IsDirectory),
                _ => {}
            },
            Err(Errno::NoEntry) => {}
            Err(error) => return Err(error),
        }
        let edits = vec![
            EntryEdit { directory: target.directory, name: to_name, to: Some(ino) },
            EntryEdit { directory: source.directory, name: from_name, to: None },
        ];
        self.edit(format!("rename {} to {}", from.display(), to.display()), edits, now);
        Ok(())
    }

    /// Returns whether the directory is `above`, or inside of it.
    fn is_inside(&self, mut directory: Ino, above: Ino) -> bool {
        while directory != above {
            if directory == ROOT_INODE {
                return false;
            }
            directory = self.inode(directory).place.0;
        }
        true
    }

    pub(super) fn read_link(&self, path: &Path) -> Result<PathBuf> {
        match &self.inode(self.find_itself(path)?).content {
            Content::Symlink(target) => Ok(target.clone()),
            _ => Err(Errno::Invalid),
        }
    }

    pub(super) fn read_dir(&self, path: &Path) -> Result<Vec<(OsString, FileStatus)>> {
        let entries = self.directory_at(self.walk(path, true)?.found?)?;
        Ok(entries.live.iter().map(|(name, ino)| (name.clone(), self.inode(*ino).status(*ino))).collect())
    }

    pub(super) fn canonicalize(&self, path: &Path) -> Result<PathBuf> {
        let place = self.walk(path, true)?;
        let ino = place.found?;
        Ok(match place.last {
            PathStep::Name(name) => self.path_of(place.directory).join(name),
            _ => self.path_of(ino),
        })
    }
}
