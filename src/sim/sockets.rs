//! The calls for sockets of a simulation: each is a call of the network stack in `net`, at the virtual time.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown};
use std::time::Duration;

use socket2::SockRef;

use super::net::{Errno, Family, Kernel, SocketId, SocketReadiness, UnixKind};
use super::network::{NetworkState, placeholder};
use super::simulation::Simulated;
use crate::simulated::{
    Address, AddressFamily, BorrowedDescriptor, MaybeSimulated, OwnedDescriptor, RawDescriptor, Received,
    SocketCalls, SocketEvents, SocketNumber, SocketType,
};

/// Returns whether an option of the descriptor is set. The options of a socket are those of the descriptor
/// that stands for it.
fn option(descriptor: RawDescriptor, get: impl FnOnce(SockRef<'_>) -> io::Result<bool>) -> bool {
    // SAFETY: a descriptor that stands for a socket is open: its owner makes a call with it, or ends its
    // registration.
    let descriptor = unsafe { BorrowedDescriptor::borrow_raw(descriptor) };
    get(SockRef::from(&descriptor)).unwrap_or(false)
}

impl Simulated {
    /// Calls `call` with the socket.
    fn on<R>(&self, socket: SocketNumber, call: impl FnOnce(&mut NetworkState, SocketId) -> R) -> R {
        self.network(|network| call(network, SocketId::from_bits(socket.0)))
    }
}

impl SocketCalls for Simulated {
    fn socket(&self, kind: SocketType) -> io::Result<OwnedDescriptor> {
        let host = self.host();
        self.network(|network| {
            let descriptor = placeholder(kind)?;
            let kernel = &mut network.kernel;
            let id = match (kind.family, kind.is_stream) {
                (AddressFamily::V4, true) => kernel.tcp_socket(host, Family::V4),
                (AddressFamily::V4, false) => kernel.udp_socket(host, Family::V4),
                (AddressFamily::V6, true) => kernel.tcp_socket(host, Family::V6),
                (AddressFamily::V6, false) => kernel.udp_socket(host, Family::V6),
                (AddressFamily::Unix, is_stream) => kernel.unix_socket(host, unix_kind(is_stream)),
            }?;
            network.stand_for(descriptor.raw(), id, kind);
            Ok(descriptor)
        })
    }

    fn pair(&self, is_stream: bool) -> io::Result<[OwnedDescriptor; 2]> {
        let (host, kind) = (self.host(), SocketType { is_stream, family: AddressFamily::Unix });
        self.network(|network| {
            let descriptors = [placeholder(kind)?, placeholder(kind)?];
            let (one, other) = network.kernel.unix_pair(host, unix_kind(is_stream))?;
            network.stand_for(descriptors[0].raw(), one, kind);
            network.stand_for(descriptors[1].raw(), other, kind);
            Ok(descriptors)
        })
    }

    fn adopt(&self, descriptor: RawDescriptor, family: AddressFamily) -> io::Result<()> {
        let (host, kind) = (self.host(), SocketType { is_stream: true, family });
        let family = if family == AddressFamily::V6 { Family::V6 } else { Family::V4 };
        self.network(|network| {
            if !network.is_known(descriptor) {
                let id = network.kernel.tcp_socket(host, family)?;
                network.stand_for(descriptor, id, kind);
            }
            Ok(())
        })
    }

    fn find(&self, descriptor: RawDescriptor) -> Option<SocketNumber> {
        self.network.find(descriptor).map(SocketNumber)
    }

    fn bind(&self, socket: SocketNumber, address: Address) -> io::Result<()> {
        self.on(socket, |network, id| {
            let address = match address {
                Address::Ip(address) => address,
                Address::Path(path) => return or_by_abandoned(network, |kernel| kernel.unix_bind(id, &path)),
            };
            let descriptor = network.descriptor(id);
            if descriptor.is_some_and(|it| option(it, |socket| socket.reuse_address())) {
                network.kernel.set_reuse_address(id, true)?;
            }
            if address.is_ipv6() && descriptor.is_some_and(|it| option(it, |socket| socket.only_v6())) {
                network.kernel.set_only_v6(id, true)?;
            }
            or_by_abandoned(network, |kernel| kernel.bind(id, address))
        })
    }

    fn listen(&self, socket: SocketNumber, backlog: usize) -> io::Result<()> {
        self.on(socket, |network, id| network.kernel.listen(id, backlog))
    }

    fn connect(&self, socket: SocketNumber, address: Address) -> io::Result<()> {
        let result = self.on(socket, |network, id| match address {
            Address::Ip(address) => network.kernel.connect(id, address),
            Address::Path(path) => network.kernel.unix_connect(id, &path),
        });
        let is_begun = |error: &io::Error| error.raw_os_error() == Some(Errno::InProgress as i32);
        result.or_else(|error| if is_begun(&error) { Ok(()) } else { Err(error) })
    }

    fn accept(&self, socket: SocketNumber) -> io::Result<(OwnedDescriptor, Address)> {
        self.on(socket, |network, id| {
            let kind = network.kind(id);
            let (accepted, peer) = if kind.family == AddressFamily::Unix {
                let (accepted, peer) = network.kernel.unix_accept(id)?;
                (accepted, Address::Path(peer.unwrap_or_default()))
            } else {
                let (accepted, peer) = network.kernel.accept(id)?;
                (accepted, Address::Ip(peer))
            };
            let descriptor = placeholder(kind).inspect_err(|_| _ = network.kernel.close(accepted))?;
            network.stand_for(descriptor.raw(), accepted, kind);
            Ok((descriptor, peer))
        })
    }

    fn receive(&self, socket: SocketNumber, buffer: &mut [u8], peeks: bool) -> io::Result<Received> {
        self.on(socket, |network, id| {
            let (kind, kernel) = (network.kind(id), &mut network.kernel);
            if kind.family == AddressFamily::Unix {
                let (len, from) = kernel.unix_recv_from(id, buffer, peeks)?;
                return Ok((len, Some(Address::Path(from.unwrap_or_default()))));
            }
            Ok(match (kind.is_stream, peeks) {
                (true, false) => (kernel.recv(id, buffer)?, None),
                (true, true) => (kernel.peek(id, buffer)?, None),
                (false, false) => kernel.recv_from(id, buffer).map(|(len, from)| (len, Some(from.into())))?,
                (false, true) => kernel.peek_from(id, buffer).map(|(len, from)| (len, Some(from.into())))?,
            })
        })
    }

    fn send(&self, socket: SocketNumber, slices: &[IoSlice<'_>], to: Option<Address>) -> io::Result<usize> {
        let joined: Vec<u8>;
        let bytes = match slices {
            [one] => &**one,
            several => {
                joined = several.iter().flat_map(|slice| slice.iter().copied()).collect();
                &joined
            }
        };
        self.on(socket, |network, id| match to {
            Some(Address::Ip(to)) => network.kernel.send_to(id, bytes, to),
            Some(Address::Path(to)) => network.kernel.unix_send_to(id, bytes, &to),
            None => network.kernel.send(id, bytes),
        })
    }

    fn shutdown(&self, socket: SocketNumber, how: Shutdown) -> io::Result<()> {
        self.on(socket, |network, id| network.kernel.shutdown(id, how))
    }

    fn local_addr(&self, socket: SocketNumber) -> io::Result<Address> {
        self.on(socket, |network, id| match network.kind(id).family {
            AddressFamily::Unix => Ok(Address::Path(network.kernel.unix_path(id)?.unwrap_or_default())),
            _ => Ok(Address::Ip(network.kernel.local_addr(id)?)),
        })
    }

    fn peer_addr(&self, socket: SocketNumber) -> io::Result<Address> {
        self.on(socket, |network, id| match network.kind(id).family {
            AddressFamily::Unix => Ok(Address::Path(network.kernel.unix_peer_path(id)?.unwrap_or_default())),
            _ => Ok(Address::Ip(network.kernel.peer_addr(id)?)),
        })
    }

    fn take_error(&self, socket: SocketNumber) -> io::Result<Option<io::Error>> {
        self.on(socket, |network, id| network.kernel.take_error(id))
    }

    fn look_up(&self, name: &str) -> Option<Vec<IpAddr>> {
        if name == "localhost" {
            return Some(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        self.network(|network| network.kernel.lookup(name).map(<[IpAddr]>::to_vec))
    }

    fn watch(&self, socket: SocketNumber, key: u64) {
        self.on(socket, |network, id| {
            if let Some(open) = network.open.get_mut(&socket.0) {
                open.key = Some(key);
            }
            network.kernel.push_edge(id);
        });
    }

    fn close(&self, socket: SocketNumber) {
        self.on(socket, |network, id| {
            let is_abortive = |socket: SockRef<'_>| Ok(socket.linger()? == Some(Duration::ZERO));
            if network.descriptor(id).is_some_and(|it| option(it, is_abortive)) {
                let _ = network.kernel.set_abortive(id, true);
            }
            // Programs remove the path from the file system, which has no such file.
            let _ = network.kernel.unlink_own(id);
            network.close(id);
        });
    }

    fn readiness(&self, socket: SocketNumber) -> SocketEvents {
        self.on(socket, |network, id| network.kernel.readiness(id).map(events).unwrap_or_default())
    }

    fn next_event(&self) -> Option<(u64, SocketEvents)> {
        // The clock may have leapt, and the call below may run rules, which may read it.
        self.show_time();
        self.network(|network| {
            if let Some(key) = network.crashed.pop_front() {
                let ended = SocketEvents { hangup: true, error: true, ..SocketEvents::default() };
                return Some((key, ended));
            }
            loop {
                let (id, readiness) = network.kernel.next_edge()?;
                if let Some(key) = network.open.get(&id.to_bits()).and_then(|open| open.key) {
                    return Some((key, events(readiness)));
                }
            }
        })
    }

    fn until_next(&self) -> Option<Duration> {
        // Probes of a closed window are sent for ever, so the network always has a next event. Without this,
        // a deadlock would not be found.
        if !self.count_leap() {
            return None;
        }
        let now = self.elapsed();
        self.network(|network| network.kernel.next_event().map(|at| at.saturating_sub(now)))
    }
}

/// Calls `bind`, once more if an abandoned socket may have the address.
fn or_by_abandoned(
    network: &mut NetworkState,
    bind: impl Fn(&mut Kernel) -> io::Result<()>,
) -> io::Result<()> {
    match bind(&mut network.kernel) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            network.close_abandoned();
            bind(&mut network.kernel)
        }
        result => result,
    }
}

fn unix_kind(is_stream: bool) -> UnixKind {
    if is_stream { UnixKind::Stream } else { UnixKind::Datagram }
}

fn events(readiness: SocketReadiness) -> SocketEvents {
    SocketEvents {
        readable: readiness.contains(SocketReadiness::READABLE),
        writable: readiness.contains(SocketReadiness::WRITABLE),
        read_hangup: readiness.contains(SocketReadiness::READ_HANGUP),
        hangup: readiness.contains(SocketReadiness::HANGUP),
        error: readiness.contains(SocketReadiness::ERROR),
    }
}
