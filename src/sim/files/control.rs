//! [`Files`]: the files of a simulation's nodes, as its test sees them.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, Weak};
use std::thread;

use super::FilesState;
use super::disk::Disk;
use crate::sim::control::Network;
use crate::sim::simulation::Simulated;

/// The files of a simulation: made by [`Sim::files`](crate::sim::Sim::files). Names are those of nodes, as
/// for a [`Network`].
///
/// # Panics
///
/// Each method panics if a name belongs to no node, if the [`Sim`](crate::sim::Sim) was dropped, and if
/// another thread calls it.
///
/// ```
/// use std::time::Duration;
/// use paceline::blocking::fs;
/// use paceline::sim::Sim;
///
/// let mut sim = Sim::new(7);
/// sim.node("server", || async {
///     if !fs::exists("/state").unwrap() {
///         fs::write("/state", "a").unwrap();
///         // Without these lines, the file may be gone, or empty, after the crash.
///         fs::File::open("/state").unwrap().sync_all().unwrap();
///         fs::File::open("/").unwrap().sync_all().unwrap();
///     }
/// });
/// sim.run_for(Duration::from_secs(1));
/// let network = sim.network();
/// network.crash("server");
/// network.restart("server");
/// let state = sim.files().on("server", || fs::read_to_string("/state"));
/// assert_eq!(state.unwrap(), "a");
/// ```
#[derive(Clone)]
pub struct Files(pub(in crate::sim) Weak<Simulated>);

impl Files {
    #[track_caller]
    fn simulation(&self) -> Arc<Simulated> {
        let simulation = self.0.upgrade().expect("the simulation of these files is gone");
        assert!(
            simulation.thread == thread::current().id(),
            "files are used on their simulation's thread only"
        );
        simulation
    }

    #[track_caller]
    fn with<R>(&self, call: impl FnOnce(&mut FilesState) -> R) -> R {
        call(&mut self.simulation().files.state())
    }

    #[track_caller]
    fn with_disk<R>(&self, name: &str, call: impl FnOnce(&mut Disk) -> R) -> R {
        let simulation = self.simulation();
        let host = Network(self.0.clone()).host(&simulation, name);
        let now = simulation.wall_of(host);
        call(simulation.files.state().disk(host, now))
    }

    /// Calls `call` as if a task of the node did: the functions of [`blocking::fs`](crate::blocking::fs) act
    /// on the node's files. The node may be down.
    ///
    /// ```
    /// use paceline::blocking::fs;
    /// use paceline::sim::Sim;
    ///
    /// let mut sim = Sim::new(7);
    /// let files = sim.files();
    /// let client = sim.client("client", async { fs::read_to_string("/settings") });
    /// files.on("client", || fs::write("/settings", "verbose")).unwrap();
    /// files.sync("client");
    /// assert_eq!(sim.block_on(client).unwrap(), "verbose");
    /// ```
    #[track_caller]
    pub fn on<R>(&self, name: &str, call: impl FnOnce() -> R) -> R {
        let simulation = self.simulation();
        let host = Network(self.0.clone()).host(&simulation, name);
        simulation.on_host(host, call)
    }

    /// Makes all changes of the node's files durable.
    #[track_caller]
    pub fn sync(&self, name: &str) {
        self.with_disk(name, Disk::sync_all);
    }

    /// Sets with which probability a part of what was not synced survives a crash: a sector of a write, a
    /// change of a length, or a change of a directory entry. Each crash draws a number of that range. The
    /// default is 0 to 1. With `0.0..=0.0` all of it is always lost.
    ///
    /// ```
    /// use paceline::blocking::fs;
    /// use paceline::sim::Sim;
    ///
    /// let mut sim = Sim::new(7);
    /// sim.node("server", || async {});
    /// let (files, network) = (sim.files(), sim.network());
    /// for (survival, survives) in [(0.0, false), (1.0, true)] {
    ///     files.set_survival(survival..=survival);
    ///     files.on("server", || fs::write("/new", "content")).unwrap();
    ///     network.crash("server");
    ///     assert_eq!(files.on("server", || fs::exists("/new")).unwrap(), survives);
    ///     network.restart("server");
    /// }
    /// ```
    ///
    /// # Panics
    ///
    /// If the range is empty, or not within 0 and 1.
    #[track_caller]
    pub fn set_survival(&self, probability: RangeInclusive<f64>) {
        let is_within = !probability.is_empty() && *probability.start() >= 0.0 && *probability.end() <= 1.0;
        assert!(is_within, "{probability:?} is no range of probabilities");
        self.with(|state| state.survival = probability);
    }

    /// Sets the size of a sector, which a crash does not tear, for all nodes. The default is 512 bytes. With
    /// one byte, each byte of a write is lost or not.
    ///
    /// # Panics
    ///
    /// If it is zero.
    #[track_caller]
    pub fn set_sector(&self, bytes: usize) {
        assert!(bytes > 0, "a sector has at least one byte");
        self.with(|state| state.sector = bytes);
    }

    /// Sets how many bytes the files of a node may have. A write that needs more fails with
    /// [`StorageFull`](std::io::ErrorKind::StorageFull). There is no limit by default, and one file has at
    /// most 1 GiB.
    ///
    /// ```
    /// use std::io::ErrorKind;
    /// use paceline::blocking::fs;
    ///
    /// let sim = paceline::sim::Sim::new(7);
    /// sim.files().set_capacity("test", 10);
    /// fs::write("/a", "12345678").unwrap();
    /// assert_eq!(fs::write("/b", "12345678").unwrap_err().kind(), ErrorKind::StorageFull);
    /// ```
    #[track_caller]
    pub fn set_capacity(&self, name: &str, bytes: u64) {
        self.with_disk(name, |disk| disk.capacity = bytes);
    }

    /// Sets with which probability a read of the node returns one bit wrong, without an error. What is stored
    /// stays as it is. The default is 0.
    ///
    /// # Panics
    ///
    /// If that is no probability.
    #[track_caller]
    pub fn set_corruption(&self, name: &str, probability: f64) {
        assert!((0.0..=1.0).contains(&probability), "{probability} is no probability");
        self.with_disk(name, |disk| disk.corruption = probability);
    }

    /// Sets with which probability a read, a write or a sync of the node fails, with the error that a broken
    /// disk has (`EIO`). A sync that fails makes nothing durable. The default is 0.
    ///
    /// # Panics
    ///
    /// If that is no probability.
    #[track_caller]
    pub fn set_errors(&self, name: &str, probability: f64) {
        assert!((0.0..=1.0).contains(&probability), "{probability} is no probability");
        self.with_disk(name, |disk| disk.errors = probability);
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").finish_non_exhaustive()
    }
}
