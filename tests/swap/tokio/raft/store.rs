//! A store in memory: a [`Disk`] that outlives the crash of its node, a log on it, and a state machine.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::Cursor;
use std::ops::RangeBounds;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use openraft::storage::{LogFlushed, RaftLogStorage, RaftStateMachine};
use openraft::{
    AnyError, BasicNode, Entry, EntryPayload, LogId, LogState, OptionalSend, RaftLogReader,
    RaftSnapshotBuilder, Snapshot, SnapshotMeta, StorageError, StorageIOError, StoredMembership, Vote,
};
use paceline::sim;
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
    /// After a restart, the state machine says that it has applied one entry more than its snapshot has.
    Applied,
    /// A purge takes one entry more than it should.
    Purge,
    /// A purge does not wait for the snapshot that has the purged entries.
    EarlyPurge,
}

/// The stored state of a node. A crash takes nothing from it but a write that was not finished.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    bug: Bug,
    files: Arc<Mutex<Files>>,
}

#[derive(Debug, Default)]
struct Files {
    vote: Option<Vote<u64>>,
    /// The vote before, for [`Bug::OlderVote`].
    older_vote: Option<Vote<u64>>,
    log: BTreeMap<u64, Entry<Types>>,
    purged: Option<LogId<u64>>,
    committed: Option<LogId<u64>>,
    snapshot: Option<(Meta, Vec<u8>)>,
}

type Meta = SnapshotMeta<u64, BasicNode>;
type Stored<T> = Result<T, StorageError<u64>>;

impl Files {
    /// The last entry in the snapshot.
    fn snapshot_end(&self) -> Option<LogId<u64>> {
        self.snapshot.as_ref().and_then(|(meta, _)| meta.last_log_id)
    }
}

impl Disk {
    pub fn new(bug: Bug) -> Self {
        Self { bug, files: Arc::default() }
    }

    fn read(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap()
    }

    /// Writes, which takes a time, and is done at the end of it.
    async fn write(&self, write: impl FnOnce(&mut Files)) {
        self.write_within(Duration::from_millis(3), write).await;
    }

    /// Writes a snapshot, which takes longer.
    async fn write_snapshot(&self, write: impl FnOnce(&mut Files)) {
        self.write_within(Duration::from_millis(50), write).await;
    }

    async fn write_within(&self, longest: Duration, write: impl FnOnce(&mut Files)) {
        let micros = sim::rng().below(longest.as_micros() as u64);
        tokio::time::sleep(Duration::from_micros(micros)).await;
        write(&mut self.read());
    }
}

/// The log, and the vote beside it.
#[derive(Clone, Debug)]
pub struct Log(pub Disk);

impl RaftLogReader<Types> for Log {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> Stored<Vec<Entry<Types>>> {
        Ok(self.0.read().log.range(range).map(|(_, entry)| entry.clone()).collect())
    }
}

impl RaftLogStorage<Types> for Log {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Stored<LogState<Types>> {
        let files = self.0.read();
        let last = files.log.last_key_value().map(|(_, entry)| entry.log_id);
        Ok(LogState { last_purged_log_id: files.purged, last_log_id: last.or(files.purged) })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote<u64>) -> Stored<()> {
        self.0.write(|files| files.older_vote = files.vote.replace(*vote)).await;
        Ok(())
    }

    async fn read_vote(&mut self) -> Stored<Option<Vote<u64>>> {
        let mut files = self.0.read();
        match self.0.bug {
            Bug::Vote => files.vote = None,
            Bug::OlderVote => files.vote = files.older_vote,
            _ => {}
        }
        Ok(files.vote)
    }

    async fn save_committed(&mut self, committed: Option<LogId<u64>>) -> Stored<()> {
        self.0.write(|files| files.committed = committed).await;
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
        self.0.write(|files| files.log.extend(entries)).await;
        flushed.log_io_completed(Ok(()));
        Ok(())
    }

    async fn truncate(&mut self, from: LogId<u64>) -> Stored<()> {
        self.0.write(|files| drop(files.log.split_off(&from.index))).await;
        Ok(())
    }

    async fn purge(&mut self, last: LogId<u64>) -> Stored<()> {
        // When a node gets a snapshot, openraft 0.9.25 asks for the purge while the state machine still
        // installs it. After a crash in between, entries that were committed would be in neither of them.
        while self.0.bug != Bug::EarlyPurge && self.0.read().snapshot_end() < Some(last) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let first = last.index + 1 + u64::from(self.0.bug == Bug::Purge);
        self.0
            .write(|files| {
                files.purged = Some(last);
                files.log = files.log.split_off(&first);
            })
            .await;
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
            let next = read.applied.and_then(|last| disk.read().log.get(&(last.index + 1)).map(|e| e.log_id));
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
        self.disk
            .write_snapshot(|files| {
                // A newer one may have been installed meanwhile.
                if meta.last_log_id >= files.snapshot_end() {
                    files.snapshot = Some((meta.clone(), bytes.clone()));
                }
            })
            .await;
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
        self.disk.write_snapshot(|files| files.snapshot = Some((meta.clone(), bytes))).await;
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
