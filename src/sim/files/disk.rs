//! [`Disk`]: the file system of one node.
//!
//! Directory entries have a live and a durable version. Each call that changes entries adds one
//! [`EntryChange`] to a list, and a sync of a directory applies those that touch it to the durable version. A
//! rename to another directory is one change of both, so it is never half durable.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::iter;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::handle::FileHandle;
use super::inode::{Content, Directory, FileContent, Ino, Inode, LostChanges, MOST_PENDING};
use crate::sim::net::Errno;

pub(super) type Result<T> = std::result::Result<T, Errno>;

pub(super) const ROOT_INODE: Ino = 1;
const DIRECTORY_MODE: u32 = 0o755;

#[derive(Debug)]
pub(super) struct Disk {
    pub(super) inodes: BTreeMap<Ino, Inode>,
    next: Ino,
    /// The changes of entries that are not synced, the oldest first.
    pub(super) pending: VecDeque<EntryChange>,
    pub(super) open: BTreeMap<u64, FileHandle>,
    /// The bytes of all files that programs can see.
    pub(super) used: u64,
    pub(super) capacity: u64,
    /// The probability that a read, a write or a sync fails.
    pub(super) errors: f64,
    /// The probability that a read returns a wrong bit.
    pub(super) corruption: f64,
}

/// A change of directory entries that is durable as a whole, or not at all.
#[derive(Debug)]
pub(super) struct EntryChange {
    pub(super) edits: Vec<EntryEdit>,
    /// What it did, for the text of a crash.
    text: String,
}

/// The entry of that name in a directory leads to that inode now, or to none.
#[derive(Debug)]
pub(super) struct EntryEdit {
    pub(super) directory: Ino,
    pub(super) name: OsString,
    pub(super) to: Option<Ino>,
}

impl Disk {
    /// Makes a file system with an empty directory `/tmp`.
    pub(super) fn new(now: Duration) -> Self {
        let mut disk = Self {
            inodes: BTreeMap::new(),
            next: ROOT_INODE,
            pending: VecDeque::new(),
            open: BTreeMap::new(),
            used: 0,
            capacity: u64::MAX,
            errors: 0.0,
            corruption: 0.0,
        };
        let root = disk.add(Self::directory(), DIRECTORY_MODE, now, (ROOT_INODE, OsString::new()));
        debug_assert_eq!(root, ROOT_INODE);
        disk.create((ROOT_INODE, "tmp".into()), Self::directory(), 0o777, now).expect("the root is there");
        disk.sync_entries(ROOT_INODE);
        disk
    }

    pub(super) fn directory() -> Content {
        Content::Directory(Directory { live: BTreeMap::new(), durable: BTreeMap::new() })
    }

    /// Adds an inode, which no entry leads to yet.
    pub(super) fn add(&mut self, content: Content, mode: u32, now: Duration, place: (Ino, OsString)) -> Ino {
        let ino = self.next;
        self.next += 1;
        self.inodes.insert(ino, Inode::new(content, mode, now, place));
        ino
    }

    pub(super) fn inode(&self, ino: Ino) -> &Inode {
        self.inodes.get(&ino).expect("a reference keeps its inode")
    }

    pub(super) fn inode_mut(&mut self, ino: Ino) -> &mut Inode {
        self.inodes.get_mut(&ino).expect("a reference keeps its inode")
    }

    pub(super) fn directory_at(&self, ino: Ino) -> Result<&Directory> {
        match &self.inode(ino).content {
            Content::Directory(directory) => Ok(directory),
            _ => Err(Errno::NotDirectory),
        }
    }

    pub(super) fn directory_at_mut(&mut self, ino: Ino) -> Option<&mut Directory> {
        match &mut self.inode_mut(ino).content {
            Content::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    pub(super) fn file_at_mut(&mut self, ino: Ino) -> Result<&mut FileContent> {
        match &mut self.inode_mut(ino).content {
            Content::File(file) => Ok(file),
            Content::Directory(_) => Err(Errno::IsDirectory),
            Content::Symlink(_) => Err(Errno::Invalid),
        }
    }

    pub(super) fn keep(&mut self, ino: Ino) {
        self.inode_mut(ino).references += 1;
    }

    /// Takes a reference away. Frees the inode if that was the last one.
    pub(super) fn release(&mut self, ino: Ino) {
        let inode = self.inode_mut(ino);
        inode.references -= 1;
        if inode.references == 0 && ino != ROOT_INODE {
            self.inodes.remove(&ino);
        }
    }

    /// Takes a reference of an entry or of an open file away. If programs cannot see the inode any more, its
    /// room is free. What is durable may come back by a crash.
    pub(super) fn leave(&mut self, ino: Ino) {
        let inode = self.inode_mut(ino);
        if inode.links == 0 && inode.opens == 0 {
            if let Content::File(file) = &mut inode.content {
                let freed = std::mem::take(&mut file.live).len() as u64;
                self.used -= freed;
            }
        }
        self.release(ino);
    }

    /// Changes entries as programs see them.
    pub(super) fn edit(&mut self, text: String, edits: Vec<EntryEdit>, now: Duration) {
        for EntryEdit { directory, name, to } in &edits {
            self.keep(*directory);
            if let Some(ino) = *to {
                // Once for the entry, and once for the change itself.
                let inode = self.inode_mut(ino);
                inode.references += 2;
                inode.links += 1;
                inode.place = (*directory, name.clone());
            }
            let Some(entries) = self.directory_at_mut(*directory) else { continue };
            let before = match to {
                Some(ino) => entries.live.insert(name.clone(), *ino),
                None => entries.live.remove(name),
            };
            self.inode_mut(*directory).attributes.modified = now;
            if let Some(before) = before {
                self.inode_mut(before).links -= 1;
                self.leave(before);
            }
        }
        self.pending.push_back(EntryChange { edits, text });
        if self.pending.len() > MOST_PENDING {
            if let Some(oldest) = self.pending.pop_front() {
                self.settle(oldest);
            }
        }
    }

    /// Makes the entries of a directory durable, with all changes that touch it, and with the earlier ones
    /// of entries that these touch elsewhere.
    pub(super) fn sync_entries(&mut self, directory: Ino) {
        let mut needed: Vec<(Ino, OsString)> = Vec::new();
        let mut is_synced = vec![false; self.pending.len()];
        for (change, is_synced) in self.pending.iter().zip(&mut is_synced).rev() {
            let is_needed = |edit: &EntryEdit| {
                edit.directory == directory
                    || needed.iter().any(|(ino, name)| *ino == edit.directory && *name == edit.name)
            };
            if change.edits.iter().any(is_needed) {
                *is_synced = true;
                let elsewhere = change.edits.iter().filter(|edit| edit.directory != directory);
                needed.extend(elsewhere.map(|edit| (edit.directory, edit.name.clone())));
            }
        }
        let mut is_synced = is_synced.into_iter();
        let (synced, left): (VecDeque<_>, _) =
            std::mem::take(&mut self.pending).into_iter().partition(|_| is_synced.next() == Some(true));
        self.pending = left;
        synced.into_iter().for_each(|change| self.settle(change));
    }

    /// Makes a change of entries durable.
    fn settle(&mut self, change: EntryChange) {
        for EntryEdit { directory, name, to } in change.edits {
            let Some(entries) = self.directory_at_mut(directory) else { continue };
            // The change's own reference to the inode becomes that of the durable entry.
            let before = match to {
                Some(ino) => entries.durable.insert(name, ino),
                None => entries.durable.remove(&name),
            };
            if let Some(before) = before {
                self.release(before);
            }
            self.release(directory);
        }
    }

    /// Makes everything durable.
    pub(super) fn sync_all(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            self.settle(change);
        }
        for inode in self.inodes.values_mut() {
            inode.durable_attributes = inode.attributes;
            if let Content::File(file) = &mut inode.content {
                file.sync();
            }
        }
    }

    /// Loses what was not synced, but for those parts for which `survives` returns true, and closes all
    /// files. Of the changes of entries, the first ones survive, up to one that does not: file systems with
    /// a journal keep their order. Returns texts of what was lost.
    ///
    /// If `may_lose` returns false for the entries, or for the content of a file, that survives as a whole.
    /// It is asked if something of it is to be lost. `survives` is asked for each part in any case.
    pub(super) fn crash(
        &mut self,
        sector: usize,
        survives: &mut dyn FnMut() -> bool,
        may_lose: &mut dyn FnMut(&str) -> bool,
    ) -> Vec<String> {
        self.open.clear();
        let mut changes = std::mem::take(&mut self.pending);
        let drawn: Vec<_> = changes.iter().map(|_| survives()).collect();
        let lost_from = drawn.iter().position(|survives| !survives).filter(|_| may_lose("entries"));
        let lost_changes = changes.split_off(lost_from.unwrap_or(changes.len()));
        let mut lost: Vec<_> = lost_changes.into_iter().map(|change| change.text).collect();
        // Before the changes of entries, which may remove a file: that draws its numbers in any case.
        for ino in self.inodes.keys().copied().collect::<Vec<_>>() {
            let inode = self.inode_mut(ino);
            inode.attributes = inode.durable_attributes;
            if let Content::File(file) = &mut inode.content {
                let changes = file.crash(sector, survives, &mut || may_lose("content"));
                lost.extend(text_of(&self.path_of(ino), changes));
            }
        }
        changes.into_iter().for_each(|change| self.settle(change));
        for inode in self.inodes.values_mut() {
            if let Content::Directory(directory) = &mut inode.content {
                directory.live.clone_from(&directory.durable);
            }
        }
        self.recount();
        lost
    }

    /// Counts all references anew, and frees the inodes that no entry leads to.
    fn recount(&mut self) {
        for inode in self.inodes.values_mut() {
            (inode.links, inode.opens, inode.references) = (0, 0, 0);
        }
        let mut reached = vec![ROOT_INODE];
        while let Some(directory) = reached.pop() {
            let Ok(entries) = self.directory_at(directory) else { continue };
            for (name, ino) in entries.live.clone() {
                let inode = self.inode_mut(ino);
                inode.links += 1;
                // The entry is live and durable.
                inode.references += 2;
                inode.place = (directory, name);
                if inode.is_directory() {
                    reached.push(ino);
                }
            }
        }
        self.inodes.retain(|ino, inode| inode.references > 0 || *ino == ROOT_INODE);
        let len = |inode: &Inode| match &inode.content {
            Content::File(file) => file.live.len() as u64,
            _ => 0,
        };
        self.used = self.inodes.values().map(len).sum();
    }

    /// Returns the path of the last name that an inode was given.
    pub(super) fn path_of(&self, ino: Ino) -> PathBuf {
        // A directory above may be gone since a file in it was removed that is still open.
        let place = |ino: Ino| self.inodes.get(&ino).filter(|_| ino != ROOT_INODE).map(|inode| &inode.place);
        let places: Vec<_> = iter::successors(place(ino), |(directory, _)| place(*directory)).collect();
        places.into_iter().rev().fold("/".into(), |path: PathBuf, (_, name)| path.join(name))
    }
}

fn text_of(path: &Path, LostChanges { lost, torn }: LostChanges) -> Option<String> {
    let parts = [(lost, "lost"), (torn, "torn")].into_iter().filter(|(number, _)| *number > 0);
    let parts: Vec<_> = parts.map(|(number, what)| format!("{number} {what}")).collect();
    (!parts.is_empty()).then(|| format!("changes of {}: {}", path.display(), parts.join(", ")))
}
