//! A store in the files of the simulation: a [`Disk`], a log on it, and a state machine.
//!
//! Each document is a file of its own, which a new version replaces as a whole: it is written beside the
//! old one, synced, renamed, and the folder is synced. A crash may happen between any two of these calls.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{Cursor, ErrorKind, Write};
use std::ops::RangeBounds;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use openraft::storage::{LogFlushed, RaftLogStorage, RaftStateMachine};
use openraft::{
    AnyError, BasicNode, Entry, EntryPayload, LogId, LogState, OptionalSend, RaftLogReader,
    RaftSnapshotBuilder, Snapshot, SnapshotMeta, StorageError, StorageIOError, StoredMembership, Vote,
};
use paceline::blocking::fs::{self, File};
use paceline::sim;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::record::Record;
use crate::{Types, WriteRequest};

/// A bug of the store that is planted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bug {
    #[default]
    None,
    /// No vote is on the disk, so a node votes again after a restart.
    Vote,
    /// The last vote is not on the disk, and a restart reads the one before.
    OlderVote,
    /// A vote is written and not synced, nor its name.
    UnsyncedVote,
    /// After a restart, the state machine says that it has applied one entry more than its snapshot has.
    Applied,
    /// A purge takes one entry more than it should.
    Purge,
    /// A purge does not wait for the snapshot that has the purged entries.
    EarlyPurge,
}

/// The stored state of a node: what its files had at the start of its life, and what it has written since.
#[derive(Clone, Debug)]
pub struct Disk {
    bug: Bug,
    files: Arc<Mutex<Files>>,
    /// Taken by a write of the document.
    writes: Arc<[tokio::sync::Mutex<()>; 4]>,
}

#[derive(Clone, Copy, Debug)]
enum Document {
    Votes,
    Log,
    Committed,
    Snapshot,
}

#[derive(Debug, Default)]
struct Files {
    votes: Votes,
    log: Entries,
    committed: Option<LogId<u64>>,
    snapshot: Option<(Meta, Vec<u8>)>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Votes {
    last: Option<Vote<u64>>,
    /// The vote before, for [`Bug::OlderVote`].
    older: Option<Vote<u64>>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Entries {
    entries: BTreeMap<u64, Entry<Types>>,
    purged: Option<LogId<u64>>,
}

type Meta = SnapshotMeta<u64, BasicNode>;
type Stored<T> = Result<T, StorageError<u64>>;

const FOLDER: &str = "/raft";

impl Document {
    fn path(self) -> String {
        format!("{FOLDER}/{self:?}.json")
    }

    fn read<T: Default + DeserializeOwned>(self) -> Result<T, String> {
        match fs::read(self.path()) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(T::default()),
            bytes => serde_json::from_slice(&bytes.expect("a file can be read"))
                .map_err(|error| format!("{} is torn: {error}", self.path())),
        }
    }
}

impl Files {
    /// The last entry in the snapshot.
    fn snapshot_end(&self) -> Option<LogId<u64>> {
        self.snapshot.as_ref().and_then(|(meta, _)| meta.last_log_id)
    }
}

impl Disk {
    /// Reads the files. Returns the reason if one of them is not complete.
    pub fn new(bug: Bug) -> Result<Self, String> {
        if !fs::exists(FOLDER).unwrap() {
            fs::create_dir(FOLDER).unwrap();
            sync("/");
        }
        let files = Files {
            votes: Document::Votes.read()?,
            log: Document::Log.read()?,
            committed: Document::Committed.read()?,
            snapshot: Document::Snapshot.read()?,
        };
        Ok(Self { bug, files: Arc::new(Mutex::new(files)), writes: Arc::default() })
    }

    fn read(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap()
    }

    /// Changes a document and writes it, which takes a time, and is done at the end of it.
    async fn write<T: Clone + Serialize>(
        &self,
        document: Document,
        of: fn(&mut Files) -> &mut T,
        change: impl FnOnce(&mut T),
    ) {
        let _written = self.writes[document as usize].lock().await;
        let mut next = of(&mut self.read()).clone();
        change(&mut next);
        self.replace(document, &serde_json::to_vec(&next).expect("a document is JSON")).await;
        *of(&mut self.read()) = next;
    }

    async fn replace(&self, document: Document, content: &[u8]) {
        // A snapshot takes longer.
        let longest = if matches!(document, Document::Snapshot) { 50_000 } else { 3_000 };
        let pause = || {
            let micros = sim::rng().below(longest / 3);
            tokio::time::sleep(Duration::from_micros(micros))
        };
        let syncs = self.bug != Bug::UnsyncedVote || !matches!(document, Document::Votes);
        let (path, new) = (document.path(), format!("{}.new", document.path()));
        let mut file = File::create(&new).unwrap();
        file.write_all(content).unwrap();
        pause().await;
        if syncs {
            file.sync_all().unwrap();
        }
        pause().await;
        fs::rename(new, path).unwrap();
        pause().await;
        if syncs {
            sync(FOLDER);
        }
    }
}

/// Makes the entries of a folder durable.
fn sync(folder: &str) {
    File::open(folder).unwrap().sync_all().unwrap();
}

/// The log, and the vote beside it.
#[derive(Clone, Debug)]
pub struct Log(pub Disk);

impl RaftLogReader<Types> for Log {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> Stored<Vec<Entry<Types>>> {
        Ok(self.0.read().log.entries.range(range).map(|(_, entry)| entry.clone()).collect())
    }
}

impl RaftLogStorage<Types> for Log {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Stored<LogState<Types>> {
        let files = self.0.read();
        let last = files.log.entries.last_key_value().map(|(_, entry)| entry.log_id);
        Ok(LogState { last_purged_log_id: files.log.purged, last_log_id: last.or(files.log.purged) })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote<u64>) -> Stored<()> {
        self.0
            .write(Document::Votes, |files| &mut files.votes, |votes| votes.older = votes.last.replace(*vote))
            .await;
        Ok(())
    }

    async fn read_vote(&mut self) -> Stored<Option<Vote<u64>>> {
        let mut files = self.0.read();
        match self.0.bug {
            Bug::Vote => files.votes.last = None,
            Bug::OlderVote => files.votes.last = files.votes.older,
            _ => {}
        }
        Ok(files.votes.last)
    }

    async fn save_committed(&mut self, committed: Option<LogId<u64>>) -> Stored<()> {
        self.0.write(Document::Committed, |files| &mut files.committed, |stored| *stored = committed).await;
        Ok(())
    }

    async fn read_committed(&mut self) -> Stored<Option<LogId<u64>>> {
        Ok(self.0.read().committed)
    }

    async fn append<I>(&mut self, entries: I, flushed: LogFlushed<Types>) -> Stored<()>
    where
        I: IntoIterator<Item = Entry<Types>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<_> = entries.into_iter().map(|entry| (entry.log_id.index, entry)).collect();
        self.0.write(Document::Log, |files| &mut files.log, |log| log.entries.extend(entries)).await;
        flushed.log_io_completed(Ok(()));
        Ok(())
    }

    async fn truncate(&mut self, from: LogId<u64>) -> Stored<()> {
        let truncate = |log: &mut Entries| drop(log.entries.split_off(&from.index));
        self.0.write(Document::Log, |files| &mut files.log, truncate).await;
        Ok(())
    }

    async fn purge(&mut self, last: LogId<u64>) -> Stored<()> {
        // When a node gets a snapshot, openraft 0.9.25 asks for the purge while the state machine still
        // installs it. After a crash in between, entries that were committed would be in neither of them.
        while self.0.bug != Bug::EarlyPurge && self.0.read().snapshot_end() < Some(last) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let first = last.index + 1 + u64::from(self.0.bug == Bug::Purge);
        let purge = |log: &mut Entries| {
            log.purged = Some(last);
            log.entries = log.entries.split_off(&first);
        };
        self.0.write(Document::Log, |files| &mut files.log, purge).await;
        Ok(())
    }
}

/// The state of a state machine: the writes by their indices. Kept in memory, and on the disk as of the last
/// snapshot.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Content {
    pub applied: Option<LogId<u64>>,
    pub membership: StoredMembership<u64, BasicNode>,
    pub writes: BTreeMap<u64, WriteRequest>,
}

/// The state machine of a node.
#[derive(Clone, Debug)]
pub struct Machine {
    node: u64,
    disk: Disk,
    content: Arc<Mutex<Content>>,
    record: Arc<Record>,
}

impl Machine {
    /// Begins with the content of the last snapshot. `content` is what the test looks at.
    pub fn new(node: u64, disk: Disk, content: Arc<Mutex<Content>>, record: Arc<Record>) -> Self {
        let snapshot = disk.read().snapshot.as_ref().map(|(_, bytes)| bytes.clone());
        let mut read = snapshot.map_or_else(Content::default, |bytes| parse(&bytes));
        if disk.bug == Bug::Applied {
            let next = read
                .applied
                .and_then(|last| disk.read().log.entries.get(&(last.index + 1)).map(|e| e.log_id));
            read.applied = next.or(read.applied);
        }
        *content.lock().unwrap() = read;
        Self { node, disk, content, record }
    }
}

fn parse(bytes: &[u8]) -> Content {
    serde_json::from_slice(bytes).expect("a snapshot is complete")
}

impl RaftSnapshotBuilder<Types> for Machine {
    async fn build_snapshot(&mut self) -> Stored<Snapshot<Types>> {
        let content = self.content.lock().unwrap().clone();
        let bytes = serde_json::to_vec(&content).expect("a content is JSON");
        let meta = Meta {
            last_log_id: content.applied,
            last_membership: content.membership,
            snapshot_id: format!("n{} {:?}", self.node, content.applied),
        };
        let stored = (meta.clone(), bytes.clone());
        let keep = |snapshot: &mut Option<(Meta, Vec<u8>)>| {
            // A newer one may have been installed meanwhile.
            if stored.0.last_log_id >= snapshot.as_ref().and_then(|(meta, _)| meta.last_log_id) {
                *snapshot = Some(stored);
            }
        };
        self.disk.write(Document::Snapshot, |files| &mut files.snapshot, keep).await;
        Ok(Snapshot { meta, snapshot: Box::new(Cursor::new(bytes)) })
    }
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotBuilder = Self;

    async fn applied_state(&mut self) -> Stored<(Option<LogId<u64>>, StoredMembership<u64, BasicNode>)> {
        let content = self.content.lock().unwrap();
        Ok((content.applied, content.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Stored<Vec<()>>
    where
        I: IntoIterator<Item = Entry<Types>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut content = self.content.lock().unwrap();
        let mut answers = Vec::new();
        for entry in entries {
            let (id, expected) = (entry.log_id, content.applied.map_or(0, |last| last.index + 1));
            if id.index != expected {
                let error = AnyError::error(format!("{id} is applied where {expected} is next"));
                return Err(StorageIOError::apply(id, error).into());
            }
            self.record.applies(self.node, &entry);
            content.applied = Some(id);
            match entry.payload {
                EntryPayload::Blank => {}
                EntryPayload::Normal(write) => drop(content.writes.insert(id.index, write)),
                EntryPayload::Membership(members) => {
                    content.membership = StoredMembership::new(Some(id), members);
                }
            }
            answers.push(());
        }
        Ok(answers)
    }

    async fn get_snapshot_builder(&mut self) -> Self {
        // A copy of the present content: the machine goes on while the snapshot is written.
        let content = Arc::new(Mutex::new(self.content.lock().unwrap().clone()));
        Self { content, ..self.clone() }
    }

    async fn begin_receiving_snapshot(&mut self) -> Stored<Box<Cursor<Vec<u8>>>> {
        Ok(Box::default())
    }

    async fn install_snapshot(&mut self, meta: &Meta, snapshot: Box<Cursor<Vec<u8>>>) -> Stored<()> {
        let bytes = snapshot.into_inner();
        let content = parse(&bytes);
        if content.applied != meta.last_log_id {
            self.record.fails(format!("n{} installs {:?} as {meta}", self.node, content.applied));
        }
        let stored = Some((meta.clone(), bytes));
        self.disk.write(Document::Snapshot, |files| &mut files.snapshot, |snapshot| *snapshot = stored).await;
        *self.content.lock().unwrap() = content;
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Stored<Option<Snapshot<Types>>> {
        let files = self.disk.read();
        let found = files.snapshot.as_ref();
        Ok(found.map(|(meta, bytes)| Snapshot {
            meta: meta.clone(),
            snapshot: Box::new(Cursor::new(bytes.clone())),
        }))
    }
}
