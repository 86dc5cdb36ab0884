//! Paths of a [`Disk`], with their symbolic links. Relative paths begin at the root.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, is_separator};

use super::disk::{Disk, ROOT_INODE, Result};
use super::inode::{Content, Ino};
use crate::sim::net::Errno;

/// As many as on Linux.
const MOST_LINKS: u32 = 40;
/// In bytes, as on Linux.
const LONGEST_NAME: usize = 255;
const LONGEST_PATH: usize = 4095;

/// A part of a path.
#[derive(Debug)]
pub(super) enum PathStep {
    Root,
    Name(OsString),
    /// `.`, which matters at the end of a path only.
    Here,
    /// `..`
    Above,
}

/// Where a path leads to.
#[derive(Debug)]
pub(super) struct PathEnd {
    pub(super) directory: Ino,
    /// The last part of the path, or of the last link that was followed.
    pub(super) last: PathStep,
    /// What is there, or the error of a call that needs it.
    pub(super) found: Result<Ino>,
    /// The path ends in a slash after the name, so it is one of a directory.
    pub(super) has_slash: bool,
}

impl PathEnd {
    /// Returns the directory and the name for a new directory. Nothing may be there.
    pub(super) fn free(self) -> Result<(Ino, OsString)> {
        match (self.found, self.last) {
            (Err(Errno::NoEntry), PathStep::Name(name)) => Ok((self.directory, name)),
            (Err(Errno::NameTooLong), _) => Err(Errno::NameTooLong),
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
        self.walk_to(path, follows, false)
    }

    /// Does the same for a call that may create a file there, which a slash at the end excludes. That is an
    /// error before a symbolic link is followed.
    pub(super) fn walk_to_create(&self, path: &Path, follows: bool) -> Result<PathEnd> {
        self.walk_to(path, follows, true)
    }

    fn walk_to(&self, path: &Path, follows: bool, creates: bool) -> Result<PathEnd> {
        check(path)?;
        let (mut at, mut links, mut last) = (ROOT_INODE, 0, PathStep::Root);
        let (mut left, mut has_slash) = (steps(path), ends_in_slash(path));
        while let Some(step) = left.pop_front() {
            let name = match step {
                PathStep::Name(name) => name,
                step => {
                    match step {
                        PathStep::Root => at = ROOT_INODE,
                        PathStep::Above => at = self.above(at)?,
                        _ => _ = self.directory_at(at)?,
                    }
                    last = step;
                    continue;
                }
            };
            let entries = &self.directory_at(at)?.live;
            let is_last = left.is_empty();
            if is_last && has_slash && creates {
                return Err(Errno::IsDirectory);
            }
            let found = match entries.get(&name) {
                _ if name.len() > LONGEST_NAME => Err(Errno::NameTooLong),
                found => found.copied().ok_or(Errno::NoEntry),
            };
            let target = found.ok().and_then(|ino| match &self.inode(ino).content {
                Content::Symlink(target) if follows || !is_last => Some(target),
                _ => None,
            });
            if let Some(target) = target {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::TooManyLinks);
                }
                has_slash |= is_last && ends_in_slash(target);
                for step in steps(target).into_iter().rev() {
                    left.push_front(step);
                }
            } else if is_last {
                let found = match found {
                    Ok(ino) if has_slash && !self.inode(ino).is_directory() => Err(Errno::NotDirectory),
                    found => found,
                };
                return Ok(PathEnd { directory: at, last: PathStep::Name(name), found, has_slash });
            } else {
                at = found?;
            }
        }
        Ok(PathEnd { directory: at, last, found: Ok(at), has_slash: false })
    }

    /// Finds what a path leads to, and not what a symbolic link at its end leads to, unless a slash follows.
    pub(super) fn find_itself(&self, path: &Path) -> Result<Ino> {
        self.walk(path, ends_in_slash(path))?.found
    }
}

/// Returns the error of a text that cannot be a path.
pub(super) fn check(path: &Path) -> Result<()> {
    let bytes = path.as_os_str().as_encoded_bytes();
    match bytes.len() {
        _ if bytes.contains(&0) => Err(Errno::Invalid),
        0 => Err(Errno::NoEntry),
        len if len > LONGEST_PATH => Err(Errno::NameTooLong),
        _ => Ok(()),
    }
}

fn ends_in_slash(path: &Path) -> bool {
    let last = path.as_os_str().as_encoded_bytes().last();
    last.is_some_and(|byte| is_separator(char::from(*byte)))
}

/// Returns whether the last part of a path is `.`, which [`components`](Path::components) leaves out.
fn ends_in_dot(path: &Path) -> bool {
    let is_slash = |byte: &u8| is_separator(char::from(*byte));
    let mut parts = path.as_os_str().as_encoded_bytes().rsplit(is_slash);
    parts.find(|part| !part.is_empty()) == Some(b".")
}

fn steps(path: &Path) -> VecDeque<PathStep> {
    let step = |component: Component<'_>| match component {
        Component::Normal(name) => Some(PathStep::Name(name.to_owned())),
        Component::ParentDir => Some(PathStep::Above),
        Component::RootDir => Some(PathStep::Root),
        Component::Prefix(_) | Component::CurDir => None,
    };
    path.components().filter_map(step).chain(ends_in_dot(path).then_some(PathStep::Here)).collect()
}
