//! Paths of a [`Disk`], with their symbolic links. Relative paths begin at the root.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path};

use super::disk::{Disk, ROOT_INODE, Result};
use super::inode::{Content, Ino};
use crate::sim::net::Errno;

/// As many as on Linux.
const MOST_LINKS: u32 = 40;

/// Where a path leads to.
#[derive(Debug)]
pub(super) struct PathEnd {
    pub(super) directory: Ino,
    /// Empty for a path that ends in the root or in `..`.
    pub(super) name: OsString,
    pub(super) ino: Option<Ino>,
}

impl PathEnd {
    /// Returns what is there.
    pub(super) fn found(&self) -> Result<Ino> {
        self.ino.ok_or(Errno::NoEntry)
    }

    /// Returns the directory and the name for a new entry, which must not be there.
    pub(super) fn free(self) -> Result<(Ino, OsString)> {
        if self.ino.is_some() { Err(Errno::Exists) } else { Ok((self.directory, self.name)) }
    }
}

impl Disk {
    fn above(&self, directory: Ino) -> Result<Ino> {
        self.directory_at(directory)?;
        Ok(self.inode(directory).place.0)
    }

    /// Finds a path. With `follows`, a symbolic link at its end is followed.
    pub(super) fn walk(&self, path: &Path, follows: bool) -> Result<PathEnd> {
        if path.as_os_str().is_empty() {
            return Err(Errno::NoEntry);
        }
        let (mut at, mut links) = (ROOT_INODE, 0);
        let mut left = steps(path);
        while let Some(step) = left.pop_front() {
            let Some(name) = step else {
                at = self.above(at)?;
                continue;
            };
            let found = self.directory_at(at)?.live.get(&name).copied();
            let is_last = left.is_empty();
            let target = found.and_then(|ino| match &self.inode(ino).content {
                Content::Symlink(target) if follows || !is_last => Some(target),
                _ => None,
            });
            match (target, found) {
                (Some(target), _) => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(Errno::TooManyLinks);
                    }
                    if target.is_absolute() {
                        at = ROOT_INODE;
                    }
                    for step in steps(target).into_iter().rev() {
                        left.push_front(step);
                    }
                }
                (None, ino) if is_last => return Ok(PathEnd { directory: at, name, ino }),
                (None, Some(ino)) => at = ino,
                (None, None) => return Err(Errno::NoEntry),
            }
        }
        Ok(PathEnd { directory: self.above(at)?, name: OsString::new(), ino: Some(at) })
    }
}

/// Returns the names in a path; `None` stands for `..`.
fn steps(path: &Path) -> VecDeque<Option<OsString>> {
    let step = |component: Component<'_>| match component {
        Component::Normal(name) => Some(Some(name.to_owned())),
        Component::ParentDir => Some(None),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    };
    path.components().filter_map(step).collect()
}
