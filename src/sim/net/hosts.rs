//! The hosts, their names and addresses, and the ways between them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::ids::{HostId, SocketId};
use super::ports::Ports;

#[derive(Debug)]
pub(super) struct HostState {
    pub(super) name: String,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) is_up: bool,
    pub(super) tcp_ports: Ports,
    pub(super) udp_ports: Ports,
    /// The TCP connections by local and remote address.
    pub(super) connections: BTreeMap<(SocketAddr, SocketAddr), SocketId>,
    /// The listeners by port.
    pub(super) listeners: BTreeMap<u16, Vec<SocketId>>,
    /// The bound UNIX sockets by path.
    pub(super) paths: BTreeMap<Vec<u8>, SocketId>,
}

/// Where the packets for an address go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// To the sender's host itself.
    Local,
    /// To another host.
    Remote(HostId),
    /// To the network of the hosts, in which no host has the address.
    NoHost,
    /// There is no route to the network.
    NoNetwork,
}

/// The hosts of a network.
///
/// The host number `n`, counted from 1, has the addresses `192.168.0.0 + n` and `fd00::n`. Each host has
/// `127.0.0.0/8` and `::1` for itself.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    hosts: Vec<HostState>,
    by_address: BTreeMap<IpAddr, HostId>,
    by_name: BTreeMap<String, HostId>,
}

impl Hosts {
    /// Adds a host, with the given addresses or else the next free ones.
    ///
    /// # Panics
    ///
    /// If the name or an address is taken, or the range of 65 534 addresses is exhausted.
    pub(super) fn add(&mut self, name: &str, addresses: &[IpAddr]) -> HostId {
        let id = HostId(self.hosts.len() as u32);
        let addresses = if addresses.is_empty() { addresses_of(id) } else { addresses.to_vec() };
        assert!(self.by_name.insert(name.to_owned(), id).is_none(), "there is a host {name} already");
        for &address in &addresses {
            let previous = self.by_address.insert(address, id);
            assert!(previous.is_none(), "another host has the address {address} of {name}");
        }
        self.hosts.push(HostState {
            name: name.to_owned(),
            addresses,
            is_up: true,
            tcp_ports: Ports::default(),
            udp_ports: Ports::default(),
            connections: BTreeMap::new(),
            listeners: BTreeMap::new(),
            paths: BTreeMap::new(),
        });
        id
    }

    pub(super) fn find(&self, address: IpAddr) -> Option<HostId> {
        self.by_address.get(&address).copied()
    }

    pub(super) fn get(&self, id: HostId) -> &HostState {
        &self.hosts[id.0 as usize]
    }

    pub(super) fn get_mut(&mut self, id: HostId) -> &mut HostState {
        &mut self.hosts[id.0 as usize]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &HostState> {
        self.hosts.iter()
    }

    pub(super) fn by_name(&self, name: &str) -> Option<HostId> {
        self.by_name.get(name).copied()
    }

    pub(super) fn by_address(&self, address: IpAddr) -> Option<HostId> {
        self.by_address.get(&address).copied()
    }

    /// Returns whether a socket of the host may have the address as its own.
    pub(super) fn is_local(&self, host: HostId, address: IpAddr) -> bool {
        address.is_loopback() || address.is_unspecified() || self.by_address(address) == Some(host)
    }

    pub(super) fn route(&self, from: HostId, to: IpAddr) -> Route {
        if to.is_loopback() {
            return Route::Local;
        }
        match self.by_address(to) {
            Some(host) if host == from => Route::Local,
            Some(host) => Route::Remote(host),
            None if is_in_network(to) => Route::NoHost,
            None => Route::NoNetwork,
        }
    }

    /// Returns the address that a socket of `host` has towards `to`.
    pub(super) fn source(&self, host: HostId, to: IpAddr) -> Option<IpAddr> {
        match to {
            _ if self.by_address(to) == Some(host) => Some(to),
            IpAddr::V4(_) if to.is_loopback() => Some(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(_) if to.is_loopback() => Some(Ipv6Addr::LOCALHOST.into()),
            _ => self.get(host).addresses.iter().copied().find(|own| own.is_ipv4() == to.is_ipv4()),
        }
    }
}

fn addresses_of(id: HostId) -> Vec<IpAddr> {
    let number = id.0 + 1;
    assert!(number < 0xffff, "a simulated network has at most 65 534 hosts with addresses of its own");
    let [.., high, low] = number.to_be_bytes();
    let v4 = Ipv4Addr::new(192, 168, high, low);
    let v6 = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number as u16);
    vec![v4.into(), v6.into()]
}

fn is_in_network(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets().starts_with(&[192, 168]),
        IpAddr::V6(v6) => v6.segments()[..7] == [0xfd00, 0, 0, 0, 0, 0, 0],
    }
}
