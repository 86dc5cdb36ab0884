//! Requests and their answers as JSON over TCP, each after its length, with a connection for each request.

use std::io;
use std::sync::Arc;

use openraft::error::{InstallSnapshotError, NetworkError, RPCError, RaftError, RemoteError, Unreachable};
use openraft::network::RPCOption;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::{BasicNode, Raft, RaftNetwork, RaftNetworkFactory};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::record::Record;
use crate::{Types, WriteRequest};

/// A request to a node, of another one or of a client.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub enum Request {
    Append(AppendEntriesRequest<Types>),
    Vote(VoteRequest<u64>),
    Snapshot(InstallSnapshotRequest<Types>),
    Write(WriteRequest),
}

/// The index of a write, or the node to ask instead, if one is known.
pub type Written = Result<u64, Option<u64>>;

/// Returns the address of a node, by its name.
pub fn address(node: u64) -> String {
    format!("n{node}:7000")
}

async fn send(stream: &mut TcpStream, message: &impl Serialize) -> io::Result<()> {
    let json = serde_json::to_vec(message)?;
    let mut bytes = (json.len() as u32).to_be_bytes().to_vec();
    bytes.extend(json);
    stream.write_all(&bytes).await
}

async fn receive<T: DeserializeOwned>(stream: &mut TcpStream) -> io::Result<T> {
    let length = stream.read_u32().await?;
    let mut bytes = vec![0; length as usize];
    stream.read_exact(&mut bytes).await?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// Asks a node.
pub async fn ask<T: DeserializeOwned>(address: &str, request: &Request) -> io::Result<T> {
    let mut stream = TcpStream::connect(address).await?;
    send(&mut stream, request).await?;
    receive(&mut stream).await
}

/// Answers requests for as long as the node lives.
pub async fn serve(raft: Raft<Types>) {
    let listener = TcpListener::bind("0.0.0.0:7000").await.expect("the port is free");
    loop {
        let (stream, _peer) = listener.accept().await.expect("a connection is accepted");
        let raft = raft.clone();
        // A peer that is gone does not need an answer.
        tokio::spawn(async move { drop(answer(stream, raft).await) });
    }
}

async fn answer(mut stream: TcpStream, raft: Raft<Types>) -> io::Result<()> {
    match receive(&mut stream).await? {
        Request::Append(request) => send(&mut stream, &raft.append_entries(request).await).await,
        Request::Vote(request) => send(&mut stream, &raft.vote(request).await).await,
        Request::Snapshot(request) => send(&mut stream, &raft.install_snapshot(request).await).await,
        Request::Write(write) => {
            let written: Written = match raft.client_write(write).await {
                Ok(written) => Ok(written.log_id.index),
                Err(error) => Err(error.forward_to_leader().and_then(|forward| forward.leader_id)),
            };
            send(&mut stream, &written).await
        }
    }
}

/// Makes the connections of a node to the others.
pub struct Peers {
    pub node: u64,
    pub record: Arc<Record>,
}

impl RaftNetworkFactory<Types> for Peers {
    type Network = Peer;

    async fn new_client(&mut self, target: u64, node: &BasicNode) -> Peer {
        Peer { from: self.node, target, address: node.addr.clone(), record: self.record.clone() }
    }
}

/// Another node, as a node asks it.
pub struct Peer {
    from: u64,
    target: u64,
    address: String,
    record: Arc<Record>,
}

type Failed<E> = RPCError<u64, BasicNode, RaftError<u64, E>>;

impl Peer {
    async fn ask<T, E>(&self, request: Request) -> Result<T, Failed<E>>
    where
        T: DeserializeOwned,
        E: std::error::Error + DeserializeOwned,
    {
        match ask::<Result<T, RaftError<u64, E>>>(&self.address, &request).await {
            Ok(answer) => answer.map_err(|error| RemoteError::new(self.target, error).into()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                Err(Unreachable::new(&error).into())
            }
            Err(error) => Err(NetworkError::new(&error).into()),
        }
    }
}

impl RaftNetwork<Types> for Peer {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, Failed<openraft::error::Infallible>> {
        // None but a leader sends this.
        self.record.leads(self.from, request.vote.leader_id.term);
        self.ask(Request::Append(request)).await
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<Types>,
        _option: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, Failed<InstallSnapshotError>> {
        self.ask(Request::Snapshot(request)).await
    }

    async fn vote(
        &mut self,
        request: VoteRequest<u64>,
        _option: RPCOption,
    ) -> Result<VoteResponse<u64>, Failed<openraft::error::Infallible>> {
        self.ask(Request::Vote(request)).await
    }
}
