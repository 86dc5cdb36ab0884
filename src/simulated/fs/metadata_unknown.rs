//! The metadata of a simulated file, on a system where its type cannot be made.

use std::fs::{FileTimes, Metadata};
use std::io;

use super::unsupported;
use crate::simulated::files::{FileStatus, StatusChange};

pub(super) fn of(_: &FileStatus) -> io::Result<Metadata> {
    Err(unsupported("files of a simulation have metadata on Linux with 64 bits only"))
}

pub(super) fn times_of(_: FileTimes) -> io::Result<StatusChange> {
    Err(unsupported("times of files of a simulation are set on Linux with 64 bits only; use `set_modified`"))
}
