//! [`ReadDir`]: the entries of a folder, which are fetched in batches.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::future::{Future, poll_fn};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::blocking;
use super::sync_fs::{self, FileType, Metadata};
use crate::context;
use crate::task::JoinHandle;

/// The number of entries per call on another thread.
const AT_ONCE: usize = 32;

pub async fn read_dir(path: impl AsRef<Path>) -> io::Result<ReadDir> {
    let path = path.as_ref().to_owned();
    blocking(move || Ok(ReadDir(State::Here(Entries::of(sync_fs::read_dir(path)?))))).await
}

#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct ReadDir(State);

#[derive(Debug)]
enum State {
    Here(Entries),
    Away(JoinHandle<Entries>),
    /// The thread with the entries has not returned them.
    Lost,
}

#[derive(Debug)]
struct Entries {
    fetched: VecDeque<io::Result<DirEntry>>,
    rest: sync_fs::ReadDir,
    is_at_end: bool,
}

impl Entries {
    fn of(rest: sync_fs::ReadDir) -> Self {
        Self { fetched: VecDeque::with_capacity(AT_ONCE), rest, is_at_end: false }.fetch()
    }

    fn fetch(mut self) -> Self {
        while self.fetched.len() < AT_ONCE {
            let Some(entry) = self.rest.next() else {
                self.is_at_end = true;
                break;
            };
            let is_error = entry.is_err();
            self.fetched.push_back(entry.map(DirEntry::of));
            if is_error {
                break;
            }
        }
        self
    }
}

impl ReadDir {
    pub async fn next_entry(&mut self) -> io::Result<Option<DirEntry>> {
        poll_fn(|cx| self.poll_next_entry(cx)).await
    }

    pub fn poll_next_entry(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<DirEntry>>> {
        loop {
            match std::mem::replace(&mut self.0, State::Lost) {
                State::Here(mut entries) => {
                    let next = entries.fetched.pop_front();
                    if next.is_some() || entries.is_at_end {
                        self.0 = State::Here(entries);
                        return Poll::Ready(next.transpose());
                    }
                    self.0 = State::Away(context::expect().spawn_blocking(move || entries.fetch()));
                }
                State::Away(mut fetching) => match Pin::new(&mut fetching).poll(cx) {
                    Poll::Ready(entries) => self.0 = State::Here(entries?),
                    Poll::Pending => {
                        self.0 = State::Away(fetching);
                        return Poll::Pending;
                    }
                },
                State::Lost => return Poll::Ready(Err(super::failed())),
            }
        }
    }
}

#[derive(Debug)]
pub struct DirEntry {
    /// Costs no further call if the system returns it with the name.
    file_type: Option<FileType>,
    std: Arc<sync_fs::DirEntry>,
}

impl DirEntry {
    fn of(std: sync_fs::DirEntry) -> Self {
        Self { file_type: std.file_type().ok(), std: Arc::new(std) }
    }

    pub fn path(&self) -> PathBuf {
        self.std.path()
    }

    pub fn file_name(&self) -> OsString {
        self.std.file_name()
    }

    pub async fn metadata(&self) -> io::Result<Metadata> {
        let std = self.std.clone();
        blocking(move || std.metadata()).await
    }

    pub async fn file_type(&self) -> io::Result<FileType> {
        if let Some(file_type) = self.file_type {
            return Ok(file_type);
        }
        let std = self.std.clone();
        blocking(move || std.file_type()).await
    }

    #[cfg(unix)]
    pub fn ino(&self) -> u64 {
        std::os::unix::fs::DirEntryExt::ino(&*self.std)
    }
}
