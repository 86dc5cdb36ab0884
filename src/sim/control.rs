//! [`Network`]: the hosts of a simulation and the links between them, as its test sees them.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, SystemTime};

use super::journal::Incident;
use super::net::{HostId, Kernel, Packet, RuleId, Verdict};
use super::network::{NetworkState, TEST};
use super::nodes::{Main, NodeProgram};
use super::simulation::Simulated;
use super::system;
use crate::observed::{SpawnMeta, TaskKind};

impl Simulated {
    /// Adds a host, and returns it.
    ///
    /// # Panics
    ///
    /// If there is a host of that name.
    pub(super) fn add_host(&self, name: &str) -> HostId {
        let is_new = self.network(|network| network.kernel.lookup(name).is_none());
        assert!(is_new, "there is a node {name:?} already");
        let host = self.network(|network| network.kernel.add_host(name));
        self.nodes.names().insert(host, name.to_owned());
        host
    }

    /// Adds a node with a program, and starts it.
    pub(super) fn add_node(&self, name: &str, at: &'static Location<'static>, main: Main) {
        let host = self.add_host(name);
        self.nodes.all().insert(host, NodeProgram { at, main: Some(main) });
        self.start(host);
    }

    /// Spawns the program of a node.
    fn start(&self, host: HostId) {
        let taken = self.nodes.all().get_mut(&host).and_then(|node| Some((node.main.take()?, node.at)));
        let Some((mut main, at)) = taken else { return };
        let program = catch_unwind(AssertUnwindSafe(|| self.on_host(host, &mut main)));
        if let Some(node) = self.nodes.all().get_mut(&host) {
            node.main = Some(main);
        }
        let program = program.unwrap_or_else(|panic| resume_unwind(panic));
        let meta = SpawnMeta::new(TaskKind::Task, at);
        self.on_host(host, || self.handle().spawn_with(program, meta).detach());
    }
}

/// The network of a simulation: made by [`Sim::network`](super::Sim::network). Names are those of nodes; the
/// test itself, and the tasks that it spawns, are on a host named `test`.
///
/// Faults may be injected by the test, by a task, and at a time by [`Sim::at`](super::Sim::at). See the
/// [module](super#the-network).
///
/// # Panics
///
/// Each method panics if a name belongs to no node, if the [`Sim`](super::Sim) was dropped, if another thread
/// calls it, and if a rule calls it (see [`add_rule`](Self::add_rule)).
///
/// ```
/// use std::time::Duration;
/// use paceline::net::{TcpListener, TcpStream};
/// use paceline::sim::Sim;
/// use paceline::{Timer, timeout};
///
/// let mut sim = Sim::new(7);
/// sim.node("server", || async {
///     let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
///     loop {
///         drop(listener.accept().await);
///     }
/// });
/// let network = sim.network();
/// network.set_latency(Duration::from_millis(10)..=Duration::from_millis(20));
/// network.partition("test", "server");
/// let repaired = network.clone();
/// sim.at(Duration::from_secs(5), move || repaired.repair("test", "server"));
///
/// // The connection succeeds after the repair, when TCP sends the SYN again.
/// let elapsed = sim.block_on(async {
///     let begin = paceline::clock::now();
///     TcpStream::connect("server:80").await.unwrap();
///     paceline::clock::now() - begin
/// });
/// assert!(elapsed > Duration::from_secs(5) && elapsed < Duration::from_secs(10));
/// ```
#[derive(Clone)]
pub struct Network(pub(super) Weak<Simulated>);

impl Network {
    #[track_caller]
    fn simulation(&self) -> Arc<Simulated> {
        let simulation = self.0.upgrade().expect("the simulation of this network is gone");
        assert!(
            simulation.thread == thread::current().id(),
            "a network is used on its simulation's thread only"
        );
        simulation
    }

    #[track_caller]
    fn on<R>(&self, names: &[&str], call: impl FnOnce(&mut Kernel, &[HostId]) -> R) -> R {
        let simulation = self.simulation();
        let hosts: Vec<_> = names.iter().map(|name| self.host(&simulation, name)).collect();
        simulation.network(|network| call(&mut network.kernel, &hosts))
    }

    /// Calls `call` for a fault of this kind, unless the run's plan leaves it out. Returns whether it did.
    #[track_caller]
    fn inject(
        &self,
        kind: &str,
        names: &[&str],
        text: String,
        call: impl FnOnce(&mut Kernel, &[HostId]),
    ) -> bool {
        let simulation = self.simulation();
        let hosts: Vec<_> = names.iter().map(|name| self.host(&simulation, name)).collect();
        let happens = simulation.faults().happens(format_args!("{kind} {}", names.join(" ")));
        if happens {
            self.tell(hosts[0], text);
            simulation.network(|network| call(&mut network.kernel, &hosts));
        }
        happens
    }

    /// Adds a fault, or its end, to the journal.
    #[track_caller]
    fn tell(&self, host: HostId, text: String) {
        let simulation = self.simulation();
        simulation.record(&mut simulation.state(), host, Incident::Fault(text));
    }

    #[track_caller]
    pub(super) fn host(&self, simulation: &Simulated, name: &str) -> HostId {
        let host = simulation.network(|network| network.kernel.host(name));
        host.unwrap_or_else(|| {
            let names = simulation.network(|network| network.kernel.names().join(", "));
            panic!("there is no node {name:?}; the nodes are {names}")
        })
    }

    /// Returns the IPv4 address of a node.
    #[track_caller]
    pub fn address(&self, name: &str) -> IpAddr {
        self.on(&[name], |kernel, hosts| kernel.addresses(hosts[0])[0])
    }

    /// Sets how long packets travel between nodes, if nothing else is set for the two. Each packet takes a
    /// random time of the range. The default is 0.1 to 0.5 ms.
    #[track_caller]
    pub fn set_latency(&self, latency: RangeInclusive<Duration>) {
        assert_latency(&latency);
        self.on(&[], |kernel, _| kernel.set_default_latency(latency));
    }

    /// Sets which fraction of the packets between nodes is lost, if nothing else is set for the two. The
    /// default is 0. TCP sends lost packets again.
    #[track_caller]
    pub fn set_loss(&self, loss: f64) {
        assert!((0.0..=1.0).contains(&loss), "{loss} is no fraction");
        self.on(&[], |kernel, _| kernel.set_default_loss(loss));
    }

    /// Sets how long packets travel between two nodes.
    #[track_caller]
    pub fn set_latency_between(&self, a: &str, b: &str, latency: RangeInclusive<Duration>) {
        assert_latency(&latency);
        self.on(&[a, b], |kernel, hosts| kernel.set_latency(hosts[0], hosts[1], latency));
    }

    /// Sets which fraction of the packets between two nodes is lost.
    #[track_caller]
    pub fn set_loss_between(&self, a: &str, b: &str, loss: f64) {
        assert!((0.0..=1.0).contains(&loss), "{loss} is no fraction");
        self.on(&[a, b], |kernel, hosts| kernel.set_loss(hosts[0], hosts[1], loss));
    }

    /// Sets the MTU between nodes: the largest size of a TCP packet with its headers, for connections that
    /// are opened from now on. The default is 1500, as with Ethernet. Datagrams are not limited.
    ///
    /// # Panics
    ///
    /// If it is less than 576, which all networks can carry.
    #[track_caller]
    pub fn set_mtu(&self, bytes: usize) {
        assert!(bytes >= 576, "an MTU of {bytes} bytes is too small");
        self.on(&[], |kernel, _| kernel.settings_mut().segment = bytes - 40);
    }

    /// Limits the backlog of listeners from the next `listen` on, as `net.core.somaxconn` does. The default
    /// is 4096.
    #[track_caller]
    pub fn set_max_backlog(&self, connections: usize) {
        self.on(&[], |kernel, _| kernel.settings_mut().max_backlog = connections);
    }

    /// Sets how often TCP sends a segment again before the connection fails with `TimedOut`: `opening` for
    /// the SYN, `later` for data. The defaults are 6, which takes 127 seconds, and 15, about 15 minutes.
    #[track_caller]
    pub fn set_retries(&self, opening: u32, later: u32) {
        self.on(&[], |kernel, _| {
            let settings = kernel.settings_mut();
            (settings.syn_retries, settings.retries) = (opening, later);
        });
    }

    /// Drops all packets between two nodes until [`repair`](Self::repair), including those on their way. No
    /// socket gets an error.
    #[track_caller]
    pub fn partition(&self, a: &str, b: &str) {
        let text = format!("is cut off from {b}");
        self.inject("partition", &[a, b], text, |kernel, hosts| kernel.partition(hosts[0], hosts[1]));
    }

    /// Drops all packets from one node to another until [`repair`](Self::repair), including those on their
    /// way.
    #[track_caller]
    pub fn partition_oneway(&self, from: &str, to: &str) {
        let text = format!("reaches {to} no more");
        self.inject("partition oneway", &[from, to], text, |kernel, hosts| {
            kernel.partition_oneway(hosts[0], hosts[1]);
        });
    }

    /// Ends a partition in both directions, also a one-way partition.
    #[track_caller]
    pub fn repair(&self, a: &str, b: &str) {
        let (host, was_cut) = self.on(&[a, b], |kernel, hosts| {
            let was_cut = kernel.is_cut(hosts[0], hosts[1]);
            kernel.repair(hosts[0], hosts[1]);
            (hosts[0], was_cut)
        });
        if was_cut {
            self.tell(host, format!("reaches {b} again, and {b} it"));
        }
    }

    /// Queues all packets that are sent between two nodes, in both directions, until
    /// [`release`](Self::release). Packets that are on their way still arrive.
    #[track_caller]
    pub fn hold(&self, a: &str, b: &str) {
        let text = format!("has its packets to and from {b} held");
        self.inject("hold", &[a, b], text, |kernel, hosts| kernel.hold(hosts[0], hosts[1]));
    }

    /// Ends a [`hold`](Self::hold), and delivers the queued packets at once, in the order in which they were
    /// sent.
    #[track_caller]
    pub fn release(&self, a: &str, b: &str) {
        let (host, was_held) = self.on(&[a, b], |kernel, hosts| {
            let was_held = kernel.is_held(hosts[0], hosts[1]);
            kernel.release(hosts[0], hosts[1]);
            (hosts[0], was_held)
        });
        if !was_held {
            return;
        }
        self.tell(host, format!("gets what was held on the way from {b}, and {b} from it"));
    }

    /// Stops a node. Its sockets vanish without a packet, and its tasks are cancelled before any other is
    /// polled. A task that crashes its own node ends when it waits next. Code elsewhere that awaits a
    /// [`Task`](crate::Task) of the node panics, as for any task that was cancelled. A destructor that panics
    /// costs its own task only; [`Report::panics`](super::Report::panics) counts it.
    #[track_caller]
    pub fn crash(&self, name: &str) {
        assert_ne!(name, TEST, "the host of the test itself cannot crash");
        if !self.inject("crash", &[name], "crashes".into(), |kernel, hosts| kernel.crash(hosts[0])) {
            return;
        }
        let simulation = self.simulation();
        let host = self.host(&simulation, name);
        simulation.network(NetworkState::report_lost);
        simulation.crash_files(host, name);
        simulation.crash_tasks(host);
    }

    /// Runs the program of a node again after a [`crash`](Self::crash). Does nothing to a node that runs.
    #[track_caller]
    pub fn restart(&self, name: &str) {
        let (host, was_up) = self.on(&[name], |kernel, hosts| {
            let was_up = kernel.is_up(hosts[0]);
            kernel.restart(hosts[0]);
            (hosts[0], was_up)
        });
        if !was_up {
            self.tell(host, "starts again".into());
            let simulation = self.simulation();
            simulation.restart_tasks(host);
            simulation.start(host);
        }
    }

    /// Returns whether a node runs: it has not crashed, or was restarted since.
    #[track_caller]
    pub fn is_up(&self, name: &str) -> bool {
        self.on(&[name], |kernel, hosts| kernel.is_up(hosts[0]))
    }

    /// Adds a rule that decides about each packet between nodes, after the earlier rules. The first rule that
    /// does not let a packet [pass](Verdict::Pass) decides.
    ///
    /// ```
    /// use paceline::net::UdpSocket;
    /// use paceline::sim::{Sim, Verdict};
    ///
    /// let mut sim = Sim::new(7);
    /// sim.node("server", || async {
    ///     let socket = UdpSocket::bind("0.0.0.0:53").await.unwrap();
    ///     let (len, from) = socket.recv_from(&mut [0; 100]).await.unwrap();
    ///     assert_eq!(len, 1, "the first one is lost");
    ///     socket.send_to(b"done", from).await.unwrap();
    /// });
    /// let mut sent = 0;
    /// sim.network().add_rule(move |_packet| {
    ///     sent += 1;
    ///     if sent == 1 { Verdict::Drop } else { Verdict::Pass }
    /// });
    /// sim.block_on(async {
    ///     let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
    ///     socket.send_to(b"lost", "server:53").await.unwrap();
    ///     socket.send_to(b"!", "server:53").await.unwrap();
    ///     assert_eq!(socket.recv(&mut [0; 100]).await.unwrap(), 4);
    /// });
    /// ```
    #[track_caller]
    pub fn add_rule(&self, rule: impl FnMut(&Packet) -> Verdict + Send + 'static) -> RuleId {
        self.on(&[], |kernel, _| kernel.add_rule(rule))
    }

    /// Removes a rule.
    #[track_caller]
    pub fn remove_rule(&self, rule: RuleId) {
        // Dropped after the call.
        drop(self.on(&[], |kernel, _| kernel.remove_rule(rule)));
    }

    /// Returns what the wall clock of a node shows. At the start of the simulation it shows
    /// 2026-01-01 00:00 UTC.
    #[track_caller]
    pub fn wall_clock(&self, name: &str) -> SystemTime {
        let simulation = self.simulation();
        let host = self.host(&simulation, name);
        let offset = simulation.state().wall_offset_of(host);
        SystemTime::UNIX_EPOCH + system::wall_clock(simulation.elapsed(), offset)
    }

    /// Sets the wall clock of a node, forwards or back. It runs on from there, and a [crash](Self::crash)
    /// does not reset it. Timers and `Instant`s do not follow it. With [`sim_libc!`](crate::sim_libc!), it is
    /// the `SystemTime::now` of the node's tasks.
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::sim::Sim;
    ///
    /// let mut sim = Sim::new(7);
    /// sim.node("late", || async {});
    /// let network = sim.network();
    /// network.set_wall_clock("late", network.wall_clock("test") - Duration::from_secs(2));
    /// sim.run_for(Duration::from_secs(60));
    /// let skew = network.wall_clock("test").duration_since(network.wall_clock("late"));
    /// assert_eq!(skew.unwrap(), Duration::from_secs(2));
    /// ```
    ///
    /// # Panics
    ///
    /// If the time is before 1970, or more than 292 years from the time of a clock that was not set.
    #[track_caller]
    pub fn set_wall_clock(&self, name: &str, time: SystemTime) {
        let simulation = self.simulation();
        let host = self.host(&simulation, name);
        let Some(offset) = system::offset_of(time, simulation.elapsed()) else {
            panic!("a wall clock cannot show {time:?}");
        };
        self.tell(host, format!("has its wall clock set to {time:?}"));
        simulation.state().wall_offsets.insert(host, offset);
        simulation.show_time();
    }

    /// Returns a table of the sockets of a node, as netstat prints it.
    #[track_caller]
    pub fn netstat(&self, name: &str) -> String {
        self.on(&[name], |kernel, hosts| kernel.netstat(hosts[0]).to_string())
    }
}

#[track_caller]
fn assert_latency(latency: &RangeInclusive<Duration>) {
    assert!(!latency.is_empty(), "the range of the latency is empty: {latency:?}");
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}
