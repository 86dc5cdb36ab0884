//! Stands in for `epoll` where the platform has none: its values do not exist.

use std::io;

use super::raw::RawSource;
use super::{Direction, Key, Patience};
use crate::reactor::readiness::Happened;
use crate::sync::Instant;

#[derive(Debug)]
pub(in crate::reactor) enum Epoll {}

#[derive(Debug)]
pub(in crate::reactor) struct Events {
    pub(super) deadline: Option<Instant>,
    never: Epoll,
}

impl Epoll {
    pub(super) fn new_checked() -> io::Result<Option<Self>> {
        Ok(None)
    }

    #[cfg(unix)]
    pub(super) fn descriptor(&self) -> std::os::fd::BorrowedFd<'_> {
        match *self {}
    }

    /// # Safety
    ///
    /// None: it cannot be called.
    pub(super) unsafe fn add(&self, _: RawSource, _: Key) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn rearm(&self, _: RawSource, _: Key, _: Direction) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn delete(&self, _: RawSource) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn announce(&self, _: Option<Instant>, _: &mut Events) -> io::Result<bool> {
        match *self {}
    }

    pub(super) fn wait(&self, _: &mut Events, _: Patience) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn interrupt(&self) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn events(&self) -> Events {
        match *self {}
    }
}

impl Events {
    pub(super) fn len(&self) -> usize {
        match self.never {}
    }

    pub(super) fn get(&self, _: usize) -> (u64, Happened) {
        match self.never {}
    }
}
