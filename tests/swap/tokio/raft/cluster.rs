//! The cluster, its clients, and what goes wrong.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openraft::{BasicNode, Config, Raft, SnapshotPolicy};
use paceline::sim::{self, Network, Rng, Sim};
use tokio::time::{Instant, sleep, timeout};

use crate::record::Record;
use crate::rpc::{self, Peers, Request, Written};
use crate::store::{Bug, Content, Disk, Log, Machine};
use crate::{Types, WriteRequest};

const NODES: [u64; 3] = [1, 2, 3];
const CLIENTS: u64 = 2;

/// The first fault is after this time.
const FAULTS: Duration = Duration::from_secs(1);
/// All faults end here.
const HEALED: Duration = Duration::from_secs(12);
/// Clients begin no further write.
const WRITTEN: Duration = Duration::from_secs(14);
/// The cluster has to be one again after this time without faults.
const PATIENCE: Duration = Duration::from_secs(30);

/// The content of each node's state machine.
type Contents = BTreeMap<u64, Arc<Mutex<Content>>>;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn config() -> Arc<Config> {
    let config = Config {
        heartbeat_interval: 100,
        election_timeout_min: 300,
        election_timeout_max: 600,
        install_snapshot_timeout: 500,
        // So that a node that was away for a while gets a snapshot.
        snapshot_policy: SnapshotPolicy::LogsSinceLast(15),
        max_in_snapshot_log_to_keep: 5,
        replication_lag_threshold: 10,
        ..Config::default()
    };
    Arc::new(config.validate().expect("it is valid"))
}

/// One life of a node.
async fn node(node: u64, bug: Bug, content: Arc<Mutex<Content>>, record: Arc<Record>) {
    let disk = match Disk::new(bug) {
        Ok(disk) => disk,
        Err(error) => return record.fails(format!("n{node} does not start: {error}")),
    };
    let machine = Machine::new(node, disk.clone(), content, record.clone());
    let peers = Peers { node, record: record.clone() };
    let raft: Raft<Types> = match Raft::new(node, config(), peers, Log(disk), machine).await {
        Ok(raft) => raft,
        Err(error) => return record.fails(format!("n{node} does not start: {error}")),
    };
    let mut metrics = raft.metrics();
    tokio::spawn(async move {
        while metrics.borrow_and_update().running_state.is_ok() && metrics.changed().await.is_ok() {}
        let state = metrics.borrow().running_state.clone();
        record.fails(format!("n{node} stops: {state:?}"));
    });
    if node == NODES[0] && raft.is_initialized().await == Ok(false) {
        let members = NODES.map(|node| (node, BasicNode::new(rpc::address(node))));
        // The node may have got a leader meanwhile, if it had been initialized before a crash.
        let _ = raft.initialize(BTreeMap::from(members)).await;
    }
    rpc::serve(raft).await;
}

/// Writes numbers until the time is over, each one until it is acknowledged.
async fn client(client: u64, end: Instant, record: Arc<Record>) {
    let mut rng = sim::rng();
    let mut leader = NODES[0];
    for number in 0.. {
        if Instant::now() > end {
            return;
        }
        let write = WriteRequest { client, number };
        loop {
            let (address, request) = (rpc::address(leader), Request::Write(write));
            match timeout(millis(700), rpc::ask::<Written>(&address, &request)).await {
                Ok(Ok(Ok(index))) => {
                    record.acknowledges(write, index);
                    break;
                }
                Ok(Ok(Err(Some(other)))) if other != leader => leader = other,
                _ => leader = NODES[rng.below(3) as usize],
            }
            sleep(millis(20 + rng.below(60))).await;
        }
        sleep(millis(rng.below(150))).await;
    }
}

/// Plans faults, at times and places that the seed decides.
fn plan_faults(sim: &mut Sim, rng: &mut Rng) {
    let mut begin = FAULTS;
    loop {
        begin += millis(30 + rng.below(250));
        if begin >= HEALED {
            break;
        }
        // A quick restart happens within an election, which a long absence ends.
        let length = if rng.chance(0.5) { 10 + rng.below(200) } else { 200 + rng.below(1_500) };
        let end = (begin + millis(length)).min(HEALED);
        let first = rng.below(3);
        let second = (first + 1 + rng.below(2)) % 3;
        let [a, b] = [first, second].map(|at| format!("n{}", at + 1));
        let c = format!("n{}", 3 - first - second + 1);
        let kind = rng.below(6);
        let (breaks, heals) = (sim.network(), sim.network());
        let names = [a.clone(), b.clone(), c.clone()];
        sim.at(begin, move || match kind {
            0 => breaks.partition(&a, &b),
            1 => breaks.partition_oneway(&a, &b),
            2 => breaks.hold(&a, &b),
            3 => [b, c].iter().for_each(|other| breaks.partition(&a, other)),
            _ => crash(&breaks, &a),
        });
        let [a, b, c] = names;
        sim.at(end, move || match kind {
            0 | 1 => heals.repair(&a, &b),
            2 => heals.release(&a, &b),
            3 => [b, c].iter().for_each(|other| heals.repair(&a, other)),
            _ => heals.restart(&a),
        });
    }
}

/// Crashes a node, unless another fault has done so.
fn crash(network: &Network, name: &str) {
    if network.is_up(name) {
        sim::note(format_args!("{name} crashes"));
        network.crash(name);
    }
}

/// The work of a run.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    pub writes: usize,
    pub terms: usize,
}

/// Runs the cluster once.
///
/// # Panics
///
/// If it breaks one of Raft's promises, or does not recover.
pub fn run(sim: &mut Sim, bug: Bug) -> Done {
    let record = Arc::new(Record::default());
    let mut contents = Contents::new();
    for number in NODES {
        let content = Arc::<Mutex<Content>>::default();
        contents.insert(number, content.clone());
        let record = record.clone();
        sim.node(&format!("n{number}"), move || node(number, bug, content.clone(), record.clone()));
    }
    let network = sim.network();
    network.set_latency(millis(1)..=millis(20));
    network.set_loss(0.01);
    let mut rng = sim.rng();
    plan_faults(sim, &mut rng);

    let begin = sim.block_on(async { Instant::now() });
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| sim.client(&format!("client{number}"), client(number, begin + WRITTEN, record.clone())))
        .collect();
    // The first thing that goes wrong ends the run.
    let watched = record.clone();
    while sim.report().elapsed < WRITTEN {
        sim.run_for(millis(100));
        watched.check();
    }
    let done = record.clone();
    sim.block_on(async move {
        for client in clients {
            let ended = timeout(PATIENCE, client).await;
            record.check();
            assert!(ended.is_ok(), "a client still waits, long after all faults");
        }
        let agreed = timeout(PATIENCE, async {
            while !is_one(&contents) {
                sleep(millis(50)).await;
                record.check();
            }
        });
        assert!(agreed.await.is_ok(), "the nodes have not applied the same: {:?}", last_applied(&contents));
        for (node, content) in &contents {
            record.compare(*node, &content.lock().unwrap().writes);
        }
        record.check();
    });
    let report = sim.report();
    assert_eq!(report.panics, 0, "{report}");
    Done { writes: done.acknowledged(), terms: done.terms() }
}

/// Whether all nodes have the same content.
fn is_one(contents: &Contents) -> bool {
    let mut all = contents.values().map(|content| content.lock().unwrap().clone());
    let first = all.next().expect("there are nodes");
    all.all(|other| other.applied == first.applied)
}

fn last_applied(contents: &Contents) -> Vec<String> {
    let all = contents.iter();
    all.map(|(node, content)| format!("n{node}: {:?}", content.lock().unwrap().applied)).collect()
}
