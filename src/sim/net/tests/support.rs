//! Two hosts, and short forms of the calls.

use std::hash::{DefaultHasher, Hash};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::sim::Rng;

use super::super::{Errno, Family, HostId, Kernel, PacketBody, Settings, SocketId, SocketReadiness};

/// A network of the hosts `a` and `b`.
pub(super) struct Net {
    pub(super) kernel: Kernel,
}

pub(super) const A: HostId = HostId(0);
pub(super) const B: HostId = HostId(1);

impl Deref for Net {
    type Target = Kernel;

    fn deref(&self) -> &Kernel {
        &self.kernel
    }
}

impl DerefMut for Net {
    fn deref_mut(&mut self) -> &mut Kernel {
        &mut self.kernel
    }
}

/// Returns the random numbers of this seed.
pub(super) fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut rng = Rng::new(seed);
    move || rng.next_u64()
}

pub(super) fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

pub(super) fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(super) fn net() -> Net {
    net_with(Settings::default(), 1)
}

pub(super) fn net_with(settings: Settings, seed: u64) -> Net {
    let mut kernel = Kernel::new(settings, random(seed));
    assert_eq!([kernel.add_host("a"), kernel.add_host("b")], [A, B]);
    Net { kernel }
}

/// Settings with small buffers, so that a test fills them soon.
pub(super) fn small() -> Settings {
    Settings { send_buffer: 3000, receive_buffer: 3000, segment: 1000, ..Settings::default() }
}

/// Returns whether a call failed with the error.
#[track_caller]
pub(super) fn assert_errno<T: std::fmt::Debug>(result: io::Result<T>, errno: Errno) {
    let error = result.expect_err("the call succeeded");
    assert_eq!(error.raw_os_error(), io::Error::from(errno).raw_os_error(), "{error}");
    assert_eq!(error.kind(), io::Error::from(errno).kind());
}

impl Net {
    /// Runs the network for a time.
    pub(super) fn run(&mut self, time: Duration) {
        let until = self.now() + time;
        self.advance(until);
    }

    /// Runs the network from event to event until a condition holds.
    #[track_caller]
    pub(super) fn run_until(&mut self, mut condition: impl FnMut(&mut Kernel) -> bool) {
        while !condition(&mut self.kernel) {
            let at = self.kernel.next_event().expect("nothing happens any more");
            self.kernel.advance(at);
        }
    }

    /// Returns a listener at a port of all addresses.
    pub(super) fn listener(&mut self, host: HostId, port: u16, backlog: usize) -> SocketId {
        let id = self.tcp_socket(host, Family::V4).unwrap();
        self.set_reuse_address(id, true).unwrap();
        self.bind(id, any(port)).unwrap();
        self.listen(id, backlog).unwrap();
        id
    }

    /// Starts a connection from a host.
    #[track_caller]
    pub(super) fn dial(&mut self, from: HostId, to: SocketAddr) -> SocketId {
        let family = if to.is_ipv4() { Family::V4 } else { Family::V6 };
        let id = self.tcp_socket(from, family).unwrap();
        assert_errno(self.connect(id, to), Errno::InProgress);
        id
    }

    /// Returns the two ends of a connection from `a` to port 80 of `b`.
    pub(super) fn pair(&mut self) -> (SocketId, SocketId) {
        let listener = self.listener(B, 80, 8);
        let client = self.dial(A, v4(B, 80));
        self.run_until(|kernel| kernel.readiness(listener).unwrap().contains(SocketReadiness::READABLE));
        let (server, _) = self.accept(listener).unwrap();
        self.close(listener).unwrap();
        self.clear_edges();
        (client, server)
    }

    /// Returns the two ends of a connection inside of `a`.
    pub(super) fn local_pair(&mut self) -> (SocketId, SocketId) {
        let listener = self.listener(A, 80, 8);
        let client = self.dial(A, "127.0.0.1:80".parse().unwrap());
        let (server, _) = self.accept(listener).unwrap();
        self.close(listener).unwrap();
        self.clear_edges();
        (client, server)
    }

    /// Returns a UDP socket at a port of all addresses.
    pub(super) fn datagram(&mut self, host: HostId, port: u16) -> SocketId {
        let id = self.udp_socket(host, Family::V4).unwrap();
        self.bind(id, any(port)).unwrap();
        id
    }

    pub(super) fn clear_edges(&mut self) {
        while self.next_edge().is_some() {}
    }

    /// Returns the edges of a socket, and forgets those of others.
    pub(super) fn edges(&mut self, id: SocketId) -> Vec<SocketReadiness> {
        let mut edges = Vec::new();
        while let Some((other, readiness)) = self.next_edge() {
            if other == id {
                edges.push(readiness);
            }
        }
        edges
    }

    pub(super) fn is(&self, id: SocketId, readiness: SocketReadiness) -> bool {
        self.readiness(id).unwrap().contains(readiness)
    }

    /// Reads what there is. The result is true if the stream has ended.
    pub(super) fn read_all(&mut self, id: SocketId) -> (Vec<u8>, bool) {
        let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            match self.recv(id, &mut buffer) {
                Ok(0) => return (bytes, true),
                Ok(count) => bytes.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return (bytes, false),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Writes until the send buffer is full. Returns how much fits.
    pub(super) fn fill(&mut self, id: SocketId) -> usize {
        let mut sent = 0;
        loop {
            match self.send(id, &[7; 999]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return sent,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Returns the pending error of a socket.
    #[track_caller]
    pub(super) fn error(&mut self, id: SocketId) -> Option<i32> {
        self.take_error(id).unwrap().map(|error| error.raw_os_error().unwrap())
    }

    /// Returns a hash over the packets from now on.
    pub(super) fn trace_hash(&mut self) -> Arc<Mutex<DefaultHasher>> {
        let hash = Arc::new(Mutex::new(DefaultHasher::new()));
        let target = hash.clone();
        self.set_trace(move |now, _, fate, packet| {
            let mut hasher = target.lock().unwrap();
            (now, fate, packet.from, packet.to).hash(&mut *hasher);
            if let PacketBody::Tcp(segment) = &packet.body {
                (segment.seq, segment.ack, segment.window, &segment.data).hash(&mut *hasher);
            }
        });
        hash
    }

    /// Asserts that nothing is left after all sockets have been closed and time has passed.
    #[track_caller]
    pub(super) fn assert_no_leak(&mut self) {
        while let Some(at) = self.kernel.next_event() {
            self.kernel.advance(at);
        }
        let usage = self.usage();
        assert_eq!((usage.sockets, usage.ports, usage.connections, usage.held), (0, 0, 0, 0), "{usage:?}");
    }
}

pub(super) fn v4(host: HostId, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::from([192, 168, 0, host.0 as u8 + 1]), port)
}

pub(super) fn v6(host: HostId, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, host.0 as u16 + 1]), port)
}

pub(super) fn any(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::from([0, 0, 0, 0]), port)
}
