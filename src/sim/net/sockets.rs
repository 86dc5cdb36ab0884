//! The table of the sockets.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::errno::Errno;
use super::ids::{Family, HostId, SocketId};
use super::tcp::Tcp;
use super::udp::Udp;
use super::unix::Unix;

#[derive(Debug)]
pub(super) enum SocketKind {
    Tcp(Box<Tcp>),
    Udp(Box<Udp>),
    Unix(Box<Unix>),
}

#[derive(Debug)]
pub(super) struct SocketState {
    pub(super) host: HostId,
    pub(super) family: Family,
    pub(super) only_v6: bool,
    pub(super) reuse_address: bool,
    /// The local address; the port is 0 if the socket is not bound. IPv4 addresses are never mapped here.
    pub(super) local: SocketAddr,
    pub(super) remote: Option<SocketAddr>,
    /// The socket has its port by `bind` or `listen`, and not by a connection.
    pub(super) is_bound: bool,
    /// The program chose the number of the port, so the socket keeps it after its connection has ended.
    pub(super) keeps_port: bool,
    /// The program has closed the socket, or has not accepted it yet: it has no readiness.
    pub(super) is_hidden: bool,
    /// The socket waits in the queue of the edges.
    pub(super) has_edge: bool,
    /// The time of the earliest timer event of the socket.
    pub(super) timer: Option<Duration>,
    pub(super) kind: SocketKind,
}

impl SocketState {
    pub(super) fn new(host: HostId, family: Family, kind: SocketKind) -> Self {
        Self {
            host,
            family,
            only_v6: false,
            reuse_address: false,
            local: family.unspecified(),
            remote: None,
            is_bound: false,
            keeps_port: false,
            is_hidden: false,
            has_edge: false,
            timer: None,
            kind,
        }
    }

    pub(super) fn tcp(&mut self) -> Result<&mut Tcp, Errno> {
        match &mut self.kind {
            SocketKind::Tcp(tcp) => Ok(tcp),
            _ => Err(Errno::NotSupported),
        }
    }

    pub(super) fn udp(&mut self) -> Result<&mut Udp, Errno> {
        match &mut self.kind {
            SocketKind::Udp(udp) => Ok(udp),
            _ => Err(Errno::NotSupported),
        }
    }

    /// Returns whether packets for the address are for this socket, as far as its local address says. The
    /// address is not that of a datagram inside of a connection.
    pub(super) fn accepts(&self, address: IpAddr) -> bool {
        if !self.local.ip().is_unspecified() {
            return self.local.ip() == address;
        }
        match self.family {
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6() || !self.only_v6 && self.local.is_ipv6(),
        }
    }

    /// Returns whether there is an address that both sockets accept.
    pub(super) fn overlaps(&self, other: &SocketState) -> bool {
        match (self.local.ip().is_unspecified(), other.local.ip().is_unspecified()) {
            (true, true) => self.family == other.family || (self.is_dual() || other.is_dual()),
            (true, false) => self.accepts(other.local.ip()),
            (false, _) => other.accepts(self.local.ip()),
        }
    }

    pub(super) fn is_dual(&self) -> bool {
        self.family == Family::V6 && !self.only_v6
    }

    pub(super) fn is_tcp(&self) -> bool {
        matches!(self.kind, SocketKind::Tcp(_))
    }
}

/// The sockets by number.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    slots: Vec<(u32, Option<SocketState>)>,
    free: Vec<u32>,
}

impl Sockets {
    pub(super) fn insert(&mut self, socket: SocketState) -> SocketId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.1 = Some(socket);
        SocketId { index, generation: slot.0 }
    }

    pub(super) fn remove(&mut self, id: SocketId) -> Option<SocketState> {
        let slot = self.slots.get_mut(id.index as usize).filter(|slot| slot.0 == id.generation)?;
        let socket = slot.1.take()?;
        slot.0 += 1;
        self.free.push(id.index);
        Some(socket)
    }

    pub(super) fn get(&self, id: SocketId) -> Result<&SocketState, Errno> {
        match self.slots.get(id.index as usize) {
            Some((generation, Some(socket))) if *generation == id.generation => Ok(socket),
            _ => Err(Errno::BadDescriptor),
        }
    }

    pub(super) fn get_mut(&mut self, id: SocketId) -> Result<&mut SocketState, Errno> {
        match self.slots.get_mut(id.index as usize) {
            Some((generation, Some(socket))) if *generation == id.generation => Ok(socket),
            _ => Err(Errno::BadDescriptor),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SocketId, &SocketState)> {
        self.slots.iter().enumerate().filter_map(|(index, (generation, socket))| {
            let id = SocketId { index: index as u32, generation: *generation };
            socket.as_ref().map(|socket| (id, socket))
        })
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
