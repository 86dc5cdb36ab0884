//! Files in a simulation: each node has a file system of its own, in memory.
//!
//! It survives the crash of its node, but for what was not synced. The model is what POSIX promises, and no
//! more:
//!
//! - *Content.* The writes and changes of length of a file are pending until `sync_all` or `sync_data` of
//!   that file. In a crash, each sector of a pending write survives, or does not, independently of all
//!   others: a system writes its dirty pages in any order. So a write that spans sectors may be torn.
//! - *Entries.* A name that was created, removed or renamed is pending until a sync of its directory, also if
//!   the file itself was synced. In a crash, the oldest pending changes of entries survive, up to one that
//!   does not: file systems have a journal of these. A rename is durable as a whole, or not at all.
//! - *Attributes*, which are times and permissions, are pending until `sync_all`.
//!
//! [`Files::set_survival`] sets the probability with which a part survives. Each crash draws one from that
//! range. What a crash loses of one file's content is one fault, which a plan may leave out, and so is what
//! it loses of all entries. What is left out survives as a whole. The random numbers are the same in either
//! case.
//!
//! The model makes no choices and knows no clock: its callers pass random numbers and times. The calls for
//! files are in the trait [`FileCalls`](crate::simulated::files::FileCalls), which `calls` implements, and
//! `blocking::fs` has the types that programs use.
//!
//! | file | content |
//! |---|---|
//! | `calls` | the calls, at the present time, on the present node; each change is an event |
//! | `control` | [`Files`]: settings and inspection, for the test |
//! | `disk` | the file system of a node: inodes, changes of entries, sync, crash |
//! | `entries` | calls that change entries |
//! | `open` | open files, and the calls for them |
//! | `inode` | content and attributes, live and durable |
//! | `paths` | paths, with symbolic links |

mod calls;
mod control;
mod disk;
mod entries;
mod handle;
mod inode;
mod open;
mod paths;

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use control::Files;
use disk::Disk;

use super::net::HostId;
use super::rng::Rng;

/// As disks have it.
const SECTOR: usize = 512;

/// The files of all nodes.
#[derive(Debug)]
pub(super) struct SimulatedFiles(Mutex<FilesState>);

#[derive(Debug)]
struct FilesState {
    disks: BTreeMap<HostId, Disk>,
    /// The host of each open file.
    hosts: BTreeMap<u64, HostId>,
    /// The number of the file that was opened last.
    last: u64,
    random: Rng,
    survival: RangeInclusive<f64>,
    sector: usize,
}

impl SimulatedFiles {
    pub(super) fn new(random: Rng) -> Self {
        Self(Mutex::new(FilesState {
            disks: BTreeMap::new(),
            hosts: BTreeMap::new(),
            last: 0,
            random,
            survival: 0.0..=1.0,
            sector: SECTOR,
        }))
    }

    fn state(&self) -> MutexGuard<'_, FilesState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws whether something goes wrong for an open file, by a probability of its disk. Returns a random
    /// number if so.
    fn goes_wrong(&self, file: u64, probability: impl FnOnce(&Disk) -> f64) -> Option<u64> {
        let FilesState { disks, hosts, random, .. } = &mut *self.state();
        let probability = probability(disks.get(hosts.get(&file)?)?);
        (probability > 0.0 && random.chance(probability)).then(|| random.next_u64())
    }

    /// Loses what was not synced on a host. Returns texts of what was lost.
    ///
    /// A part is lost if the random numbers say so, and `may_lose` returns true for its kind.
    fn crash(&self, host: HostId, mut may_lose: impl FnMut(&str) -> bool) -> Vec<String> {
        let FilesState { disks, hosts, random, survival, sector, .. } = &mut *self.state();
        hosts.retain(|_, of| *of != host);
        let Some(disk) = disks.get_mut(&host) else { return Vec::new() };
        let (least, most) = (*survival.start(), *survival.end());
        let mut drawn = None;
        let mut survives = || {
            let probability = *drawn.get_or_insert_with(|| least + (most - least) * random.fraction());
            random.chance(probability)
        };
        disk.crash(*sector, &mut survives, &mut may_lose)
    }
}

impl FilesState {
    fn disk(&mut self, host: HostId, now: Duration) -> &mut Disk {
        self.disks.entry(host).or_insert_with(|| Disk::new(now))
    }
}
