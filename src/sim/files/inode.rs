//! [`Inode`]: a file, a directory or a symbolic link: what programs see of it, and what a crash leaves.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::simulated::files::{FileKind, FileStatus};

/// The number of an inode. It is not used again.
pub(super) type Ino = u64;

/// Upper bound of the changes of one file, and of those of all entries, that wait for a sync. If there are
/// more, the oldest becomes durable, as if the system had written it back by itself.
pub(super) const MOST_PENDING: usize = 1000;

#[derive(Debug)]
pub(super) struct Inode {
    pub(super) content: Content,
    pub(super) attributes: Attributes,
    pub(super) durable_attributes: Attributes,
    /// The entries that programs see.
    pub(super) links: u32,
    pub(super) opens: u32,
    /// Whatever keeps the inode: entries that programs see, durable ones, changes of entries that are not
    /// synced, and open files.
    pub(super) references: u32,
    /// The directory and the name of the entry that was the last one to lead to it. The root is in itself.
    pub(super) place: (Ino, OsString),
}

#[derive(Debug)]
pub(super) enum Content {
    File(FileContent),
    Directory(Directory),
    Symlink(PathBuf),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Attributes {
    pub(super) mode: u32,
    pub(super) accessed: Duration,
    pub(super) modified: Duration,
}

#[derive(Debug)]
pub(super) struct Directory {
    pub(super) live: BTreeMap<OsString, Ino>,
    pub(super) durable: BTreeMap<OsString, Ino>,
}

#[derive(Debug, Default)]
pub(super) struct FileContent {
    pub(super) live: Vec<u8>,
    durable: Vec<u8>,
    /// The changes that lead from `durable` to `live`.
    pending: VecDeque<ContentChange>,
}

#[derive(Debug)]
pub(super) enum ContentChange {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

/// What a crash did to the changes of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LostChanges {
    pub(super) lost: usize,
    /// Writes of which a part survives.
    pub(super) torn: usize,
}

impl Inode {
    pub(super) fn new(content: Content, mode: u32, now: Duration, place: (Ino, OsString)) -> Self {
        let attributes = Attributes { mode, accessed: now, modified: now };
        Self { content, attributes, durable_attributes: attributes, links: 0, opens: 0, references: 0, place }
    }

    pub(super) fn kind(&self) -> FileKind {
        match self.content {
            Content::File(_) => FileKind::File,
            Content::Directory(_) => FileKind::Directory,
            Content::Symlink(_) => FileKind::Symlink,
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        self.kind() == FileKind::Directory
    }

    pub(super) fn status(&self, number: Ino) -> FileStatus {
        let Attributes { mode, accessed, modified } = self.attributes;
        let len = match &self.content {
            Content::File(file) => file.live.len(),
            Content::Directory(_) => 0,
            Content::Symlink(target) => target.as_os_str().len(),
        };
        FileStatus { kind: self.kind(), number, links: self.links, len: len as u64, mode, accessed, modified }
    }
}

impl FileContent {
    pub(super) fn change(&mut self, change: ContentChange) {
        change.apply(&mut self.live);
        self.pending.push_back(change);
        if self.pending.len() > MOST_PENDING {
            if let Some(oldest) = self.pending.pop_front() {
                oldest.apply(&mut self.durable);
            }
        }
    }

    pub(super) fn sync(&mut self) {
        for change in self.pending.drain(..) {
            change.apply(&mut self.durable);
        }
    }

    /// Loses the changes that were not synced, but for those parts for which `survives` returns true. Each
    /// sector of a write is such a part. Loses nothing if something is to be lost and `may_lose` returns
    /// false.
    pub(super) fn crash(
        &mut self,
        sector: usize,
        survives: &mut dyn FnMut() -> bool,
        may_lose: &mut dyn FnMut() -> bool,
    ) -> LostChanges {
        let mut lost = LostChanges::default();
        self.live.clone_from(&self.durable);
        for change in &self.pending {
            let (all, kept) = match change {
                ContentChange::SetLen(_) => {
                    let kept = survives();
                    if kept {
                        change.apply(&mut self.live);
                    }
                    (1, usize::from(kept))
                }
                ContentChange::Write(at, bytes) => {
                    write_sectors(&mut self.live, *at, bytes, sector, survives)
                }
            };
            lost.lost += usize::from(kept == 0);
            lost.torn += usize::from(0 < kept && kept < all);
        }
        if lost != LostChanges::default() && !may_lose() {
            self.sync();
            self.live.clone_from(&self.durable);
            return LostChanges::default();
        }
        self.pending.clear();
        self.durable.clone_from(&self.live);
        lost
    }
}

impl ContentChange {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Write(at, bytes) => write(to, *at, bytes),
            Self::SetLen(len) => to.resize(*len, 0),
        }
    }
}

fn write(to: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if to.len() < end {
        to.resize(end, 0);
    }
    to[at..end].copy_from_slice(bytes);
}

/// Writes the sectors for which `survives` returns true. Returns how many there are, and how many survive.
fn write_sectors(
    to: &mut Vec<u8>,
    at: usize,
    bytes: &[u8],
    sector: usize,
    survives: &mut dyn FnMut() -> bool,
) -> (usize, usize) {
    let (mut all, mut kept, mut done) = (0, 0, 0);
    while done < bytes.len() {
        let len = (sector - (at + done) % sector).min(bytes.len() - done);
        all += 1;
        if survives() {
            kept += 1;
            write(to, at + done, &bytes[done..done + len]);
        }
        done += len;
    }
    (all, kept)
}
