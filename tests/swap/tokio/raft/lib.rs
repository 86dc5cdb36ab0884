//! A cluster of openraft in simulations of paceline: three nodes with a store in simulated files, RPCs over
//! the TCP of the simulated network, partitions and crashes at times that the seed decides, and checks of
//! what Raft promises.

pub mod cluster;
pub mod record;
pub mod rpc;
pub mod runtime;
pub mod store;

use std::fmt;
use std::io::Cursor;

use serde::{Deserialize, Serialize};

openraft::declare_raft_types!(
    /// The types of this program.
    pub Types:
        D = WriteRequest,
        R = (),
        NodeId = u64,
        Node = openraft::BasicNode,
        Entry = openraft::Entry<Types>,
        SnapshotData = Cursor<Vec<u8>>,
        AsyncRuntime = runtime::Seeded,
);

/// One write of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WriteRequest {
    pub client: u64,
    pub number: u64,
}

impl fmt::Display for WriteRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "write {} of client {}", self.number, self.client)
    }
}
