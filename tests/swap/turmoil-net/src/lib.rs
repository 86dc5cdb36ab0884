//! The names that the tests of turmoil-net import from it, made of paceline's simulated network.
//!
//! `shim::tokio::net` is `tokio::net` of the stand-in. A fixture is a simulation under the seed in the
//! variable `PACELINE_SEED`, which decides the order of its tasks.

use std::cell::RefCell;
use std::env;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

pub use paceline::sim::Verdict;
use paceline::sim::{self, Network, PacketBody, RuleId, Sim};

pub mod shim {
    pub mod tokio {
        pub use tokio::net;
    }
}

thread_local! {
    /// The network of the simulation on this thread, and the names of its hosts.
    static CURRENT: RefCell<Option<(Network, Vec<String>)>> = const { RefCell::new(None) };
}

fn current<R>(act: impl FnOnce(&Network, &[String]) -> R) -> R {
    CURRENT.with_borrow(|current| {
        let (network, names) = current.as_ref().expect("no fixture runs");
        act(network, names)
    })
}

/// The settings of the network that tests change.
#[derive(Clone, Copy, Debug)]
pub struct KernelConfig {
    mtu: usize,
    backlog: Option<usize>,
}

impl Default for KernelConfig {
    fn default() -> Self {
        Self { mtu: 1500, backlog: None }
    }
}

impl KernelConfig {
    pub fn mtu(self, mtu: usize) -> Self {
        Self { mtu, ..self }
    }

    /// Does nothing: the test that sets it uses no loopback.
    pub fn loopback_mtu(self, _mtu: usize) -> Self {
        self
    }

    pub fn default_backlog(self, backlog: usize) -> Self {
        Self { backlog: Some(backlog), ..self }
    }
}

pub mod fixture {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use super::*;

    /// A future, or its output, that is not `Send`.
    struct Here<T>(T);

    // SAFETY: a simulation polls and drops its tasks, and returns their output, on the thread that made it.
    unsafe impl<T> Send for Here<T> {}

    impl<F: Future + Unpin> Future for Here<F> {
        type Output = Here<F::Output>;

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
            Pin::new(&mut self.0).poll(cx).map(Here)
        }
    }

    fn begin(config: KernelConfig, names: Vec<String>) -> Sim {
        let seed = env::var("PACELINE_SEED").map_or(0, |seed| seed.parse().expect("the seed is a number"));
        let sim = Sim::new(seed);
        let network = sim.network();
        network.set_mtu(config.mtu);
        if let Some(backlog) = config.backlog {
            network.set_max_backlog(backlog);
        }
        // In a test, a connection that is cut has one second to fail. By Linux's default it takes 15 minutes.
        network.set_retries(6, 1);
        CURRENT.set(Some((network, names)));
        sim
    }

    /// Runs a future on one host.
    pub fn lo<F: Future + 'static>(future: F) -> F::Output {
        lo_with_config(KernelConfig::default(), future)
    }

    pub fn lo_with_config<F: Future + 'static>(config: KernelConfig, future: F) -> F::Output {
        begin(config, Vec::new()).block_on(Here(Box::pin(future))).0
    }

    type Server = Here<Pin<Box<dyn Future<Output = ()>>>>;

    /// Servers, and a client that ends the simulation.
    #[derive(Default)]
    pub struct ClientServer {
        config: KernelConfig,
        servers: Vec<(String, Server)>,
    }

    impl ClientServer {
        pub fn new() -> Self {
            Self::default()
        }

        pub fn with_config(config: KernelConfig) -> Self {
            Self { config, ..Self::default() }
        }

        pub fn server(mut self, name: &str, future: impl Future<Output = ()> + 'static) -> Self {
            self.servers.push((name.to_owned(), Here(Box::pin(future))));
            self
        }

        pub fn run<F: Future + 'static>(self, name: &str, future: F) -> F::Output {
            let names = self.servers.iter().map(|(name, _)| name.clone());
            let mut sim = begin(self.config, names.chain([name.to_owned()]).collect());
            for (name, server) in self.servers {
                sim.client(&name, server).detach();
            }
            // The tests expect that a server waits before the client's first poll.
            sim.run_for(Duration::from_nanos(1));
            let client = sim.client(name, Here(Box::pin(future)));
            sim.block_on(client).0
        }
    }
}

pub struct Packet {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub payload: Transport,
}

pub enum Transport {
    Udp(UdpDatagram),
    Tcp(TcpSegment),
}

pub struct UdpDatagram {
    pub payload: Vec<u8>,
}

pub struct TcpSegment {
    pub flags: TcpFlags,
    pub payload: Vec<u8>,
}

pub struct TcpFlags {
    pub syn: bool,
    pub ack: bool,
    pub fin: bool,
    pub rst: bool,
}

impl Packet {
    /// Returns `None` for a packet that turmoil-net does not have.
    fn of(packet: &sim::Packet) -> Option<Self> {
        let payload = match &packet.body {
            PacketBody::Tcp(segment) => {
                let (syn, ack, fin, rst) = (segment.syn, segment.ack.is_some(), segment.fin, segment.rst);
                Transport::Tcp(TcpSegment {
                    flags: TcpFlags { syn, ack, fin, rst },
                    payload: segment.data.clone(),
                })
            }
            PacketBody::Udp(bytes) => Transport::Udp(UdpDatagram { payload: bytes.clone() }),
            _ => return None,
        };
        Some(Self { src: packet.from.ip(), dst: packet.to.ip(), payload })
    }
}

pub trait Rule: Send + 'static {
    fn on_packet(&mut self, packet: &Packet) -> Verdict;
}

impl<F: FnMut(&Packet) -> Verdict + Send + 'static> Rule for F {
    fn on_packet(&mut self, packet: &Packet) -> Verdict {
        self(packet)
    }
}

pub struct Latency(Duration);

impl Latency {
    pub fn fixed(latency: Duration) -> Self {
        Self(latency)
    }
}

impl Rule for Latency {
    fn on_packet(&mut self, _packet: &Packet) -> Verdict {
        Verdict::Deliver(self.0)
    }
}

/// Adds a rule until the guard is dropped.
pub fn rule(mut rule: impl Rule) -> RuleGuard {
    let judge = move |packet: &_| Packet::of(packet).map_or(Verdict::Pass, |packet| rule.on_packet(&packet));
    RuleGuard(current(|network, _| network.add_rule(judge)))
}

#[must_use]
pub struct RuleGuard(RuleId);

impl RuleGuard {
    pub fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for RuleGuard {
    fn drop(&mut self) {
        current(|network, _| network.remove_rule(self.0));
    }
}

/// A host, by its name or address.
pub trait Host {
    fn name(self) -> String;
}

impl Host for &str {
    fn name(self) -> String {
        self.to_owned()
    }
}

impl Host for IpAddr {
    fn name(self) -> String {
        current(|network, names| {
            let name = names.iter().find(|name| network.address(name) == self);
            name.unwrap_or_else(|| panic!("no host has the address {self}")).clone()
        })
    }
}

pub struct Netstat {
    pub entries: Vec<NetstatEntry>,
    text: String,
}

pub struct NetstatEntry {
    pub proto: Proto,
    pub local: SocketAddr,
    pub peer: Option<SocketAddr>,
    pub state: Option<NetstatState>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Proto {
    Tcp,
    Udp,
}

#[derive(Debug, PartialEq, Eq)]
pub enum NetstatState {
    Listen,
    Established,
    Other,
}

/// Returns the sockets of a host, from the table that paceline prints.
pub fn netstat(host: impl Host) -> Netstat {
    let name = host.name();
    let text = current(|network, _| network.netstat(&name));
    Netstat {
        entries: text.lines().skip(1).map(|line| line.parse().expect("a row of netstat")).collect(),
        text,
    }
}

impl FromStr for NetstatEntry {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let [Some(proto), Some(_), Some(_), Some(local), Some(peer)] = [(); 5].map(|()| words.next()) else {
            return Err(line.to_owned());
        };
        Ok(Self {
            proto: if proto.starts_with("tcp") { Proto::Tcp } else { Proto::Udp },
            local: local.parse().map_err(|_| line.to_owned())?,
            peer: peer.parse().ok(),
            state: words.next().map(|state| match state {
                "LISTEN" => NetstatState::Listen,
                "ESTABLISHED" => NetstatState::Established,
                _ => NetstatState::Other,
            }),
        })
    }
}

impl fmt::Display for Netstat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
