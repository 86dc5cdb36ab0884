//! [`FileHandle`]: an open file.

use super::inode::Ino;

#[derive(Clone, Copy, Debug)]
pub(super) struct FileHandle {
    pub(super) ino: Ino,
    pub(super) cursor: u64,
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) appends: bool,
}
