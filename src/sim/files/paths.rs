//! Paths of a [`Disk`], with their symbolic links. Relative paths begin at the root.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, is_separator};

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
    /// What is there, or the error of a call that needs it.
    pub(super) found: Result<Ino>,
    /// The path ends in a slash after the name, so it is one of a directory.
    pub(super) has_slash: bool,
}

impl PathEnd {
    /// Returns the directory and the name for a new directory. Nothing may be there.
    pub(super) fn free(self) -> Result<(Ino, OsString)> {
        match self.found {
            Err(Errno::NoEntry) => Ok((self.directory, self.name)),
            _ => Err(Errno::Exists),
        }
    }

    /// Does the same for what is no directory.
    pub(super) fn free_for_file(self) -> Result<(Ino, OsString)> {
        let has_slash = self.has_slash;
        self.free().and_then(|place| if has_slash { Err(Errno::NoEntry) } else { Ok(place) })
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
        let (mut left, mut has_slash) = (steps(path), ends_in_slash(path));
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
                    has_slash |= is_last && ends_in_slash(target);
                    for step in steps(target).into_iter().rev() {
                        left.push_front(step);
                    }
                }
                (None, found) if is_last => {
                    let found = match found {
                        Some(ino) if has_slash && !self.inode(ino).is_directory() => Err(Errno::NotDirectory),
                        found => found.ok_or(Errno::NoEntry),
                    };
                    return Ok(PathEnd { directory: at, name, found, has_slash });
                }
                (None, Some(ino)) => at = ino,
                (None, None) => return Err(Errno::NoEntry),
            }
        }
        Ok(PathEnd { directory: self.above(at)?, name: OsString::new(), found: Ok(at), has_slash })
    }

    /// Finds what a path leads to, and not what a symbolic link at its end leads to, unless a slash follows.
    pub(super) fn find_itself(&self, path: &Path) -> Result<Ino> {
        self.walk(path, ends_in_slash(path))?.found
    }
}

/// Returns whether a slash is at the end of a path, or before a `.` there, which [`Path`] does not show.
fn ends_in_slash(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let last = bytes.strip_suffix(b".").unwrap_or(bytes).last();
    last.is_some_and(|byte| is_separator(char::from(*byte)))
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
