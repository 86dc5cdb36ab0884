//! [`Nodes`]: the programs that run on the hosts of a simulation.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::net::HostId;

pub(super) type Main = Box<dyn FnMut() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// The nodes: their names, and their programs, which a restart runs again.
#[derive(Default)]
pub(super) struct Nodes {
    programs: Mutex<BTreeMap<HostId, NodeProgram>>,
    /// Not only in the network, because a rule of the network may ask for the name of a node.
    names: Mutex<BTreeMap<HostId, String>>,
}

pub(super) struct NodeProgram {
    pub(super) at: &'static Location<'static>,
    /// Taken out while it is called.
    pub(super) main: Option<Main>,
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all().keys()).finish()
    }
}

impl Nodes {
    pub(super) fn all(&self) -> MutexGuard<'_, BTreeMap<HostId, NodeProgram>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn names(&self) -> MutexGuard<'_, BTreeMap<HostId, String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
