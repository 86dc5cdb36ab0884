//! The numbers of hosts and sockets, and the versions of addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A host of the simulated network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HostId(pub(super) u32);

impl HostId {
    /// The host that was added first.
    pub(crate) const FIRST: Self = Self(0);
}

/// A socket of the simulated network. A number is not used again, so calls on a closed socket fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SocketId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl SocketId {
    /// Returns the number in one word.
    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.generation) << u32::BITS | u64::from(self.index)
    }

    /// Returns the number of [`to_bits`](Self::to_bits).
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, generation: (bits >> u32::BITS) as u32 }
    }

    pub(super) const MIN: Self = Self { index: 0, generation: 0 };
    pub(super) const MAX: Self = Self { index: u32::MAX, generation: u32::MAX };
}

/// The version of the addresses of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// `AF_INET`.
    V4,
    /// `AF_INET6`. The socket also carries IPv4 with mapped addresses, unless it is limited to IPv6.
    V6,
}

impl Family {
    pub(super) fn unspecified(self) -> SocketAddr {
        match self {
            Family::V4 => (Ipv4Addr::UNSPECIFIED, 0).into(),
            Family::V6 => (Ipv6Addr::UNSPECIFIED, 0).into(),
        }
    }

    /// Returns the address as a socket of this family shows it.
    pub(super) fn shown(self, address: SocketAddr) -> SocketAddr {
        match (self, address.ip()) {
            (Family::V6, IpAddr::V4(v4)) => (v4.to_ipv6_mapped(), address.port()).into(),
            _ => address,
        }
    }
}
