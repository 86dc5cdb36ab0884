//! Random operations, under many seeds, against a model of what a stream is.
//!
//! After each operation, and for each socket that is open:
//! - A read gives the bytes that the peer wrote, in order, without holes and repetitions. At the end of a
//!   stream that its writer has ended, all of them have been read.
//! - The level agrees with the calls: a socket is readable exactly if a peek does not return `EAGAIN`, and a
//!   writable socket accepts a byte.
//! - The edges agree with the level: a program that waits for an edge after each `EAGAIN` misses nothing.
//!
//! At the end everything is closed, and nothing is left.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::io::ErrorKind;
use std::net::Shutdown;

use super::super::{Family, HostId, Settings, SocketId, SocketReadiness};
use super::support::{A, B, Net, assert_errno, ms, net_with, random};

const C: HostId = HostId(2);
const HOSTS: [HostId; 3] = [A, B, C];

/// One end of a connection, as the model knows it.
#[derive(Debug, Default)]
struct End {
    /// The number of the connection, and which of its ends this is.
    name: (usize, usize),
    written: usize,
    read: usize,
    has_ended: bool,
    has_failed: bool,
    /// The readiness that a reactor with edges believes in.
    known: u8,
}

const READABLE: u8 = 1;
const WRITABLE: u8 = 2;

struct World {
    net: Net,
    random: Box<dyn FnMut() -> u64>,
    listeners: BTreeMap<SocketId, u8>,
    ends: BTreeMap<SocketId, End>,
    /// For each end of each connection: what was written, if it was ended in order.
    totals: BTreeMap<(usize, usize), usize>,
    /// The connection of a client, by its local port and host.
    dialed: BTreeMap<std::net::SocketAddr, usize>,
    connections: usize,
}

/// Returns the byte number `index` of a direction.
fn byte(name: (usize, usize), index: usize) -> u8 {
    (index * 31 + index / 256 + name.0 * 7 + name.1 * 101) as u8
}

impl World {
    fn new(seed: u64) -> Self {
        let settings = Settings {
            send_buffer: 500 + (seed % 7) as usize * 400,
            receive_buffer: 1 + (seed % 11) as usize * 300,
            segment: 20 + (seed % 5) as usize * 300,
            retries: 6,
            loss: if seed % 3 == 0 { 0.1 } else { 0.0 },
            latency: ms(1)..=ms(1 + seed % 4 * 100),
            loopback_latency: ms(seed % 2),
            ..Settings::default()
        };
        let mut net = net_with(settings, seed);
        assert_eq!(net.add_host("c"), C);
        let mut world = Self {
            net,
            random: Box::new(random(seed ^ 0xabcd)),
            listeners: BTreeMap::new(),
            ends: BTreeMap::new(),
            totals: BTreeMap::new(),
            dialed: BTreeMap::new(),
            connections: 0,
        };
        for host in HOSTS {
            world.listen(host);
        }
        world
    }

    fn below(&mut self, limit: usize) -> usize {
        ((self.random)() % limit as u64) as usize
    }

    fn host(&mut self) -> HostId {
        HOSTS[self.below(3)]
    }

    fn listen(&mut self, host: HostId) {
        let backlog = self.below(3);
        let id = self.net.listener(host, 80, backlog);
        self.listeners.insert(id, 0);
    }

    fn any_end(&mut self) -> Option<SocketId> {
        let index = self.below(self.ends.len().max(1));
        self.ends.keys().nth(index).copied()
    }

    fn dial(&mut self) {
        let (from, to) = (self.host(), self.host());
        if !self.net.is_up(from) {
            return;
        }
        let id = self.net.tcp_socket(from, Family::V4).unwrap();
        let to = super::support::v4(to, 80);
        self.net.connect(id, to).unwrap_err();
        self.connections += 1;
        let local = self.net.local_addr(id).unwrap();
        self.dialed.insert(local, self.connections);
        self.ends.insert(id, End { name: (self.connections, 0), ..End::default() });
    }

    fn accept(&mut self) {
        for id in self.listeners.keys().copied().collect::<Vec<_>>() {
            while let Ok((child, peer)) = self.net.accept(id) {
                let name = (self.dialed[&peer], 1);
                // A registration reports the level.
                let known = bits(self.net.readiness(child).unwrap());
                self.ends.insert(child, End { name, known, ..End::default() });
            }
            *self.listeners.get_mut(&id).unwrap() &= !READABLE;
        }
    }

    fn write(&mut self) {
        let (Some(id), count) = (self.any_end(), self.below(2000)) else { return };
        let end = self.ends.get_mut(&id).unwrap();
        let bytes: Vec<u8> = (0..count).map(|index| byte(end.name, end.written + index)).collect();
        match self.net.send(id, &bytes) {
            Ok(sent) => {
                end.written += sent;
                if sent < count {
                    end.known &= !WRITABLE;
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => end.known &= !WRITABLE,
            Err(error) => end.has_failed |= error.kind() != ErrorKind::BrokenPipe,
        }
    }

    fn read(&mut self, id: SocketId, limit: usize) {
        let mut buffer = vec![0; limit.max(1)];
        let end = self.ends.get_mut(&id).unwrap();
        let peer = (end.name.0, 1 - end.name.1);
        match self.net.recv(id, &mut buffer) {
            Ok(0) if end.has_failed => {}
            Ok(0) => {
                let total = self.totals.get(&peer);
                assert_eq!(Some(&end.read), total, "{:?}: the stream is not complete", end.name);
            }
            Ok(count) => {
                for got in &buffer[..count] {
                    assert_eq!(*got, byte(peer, end.read), "byte {} of {peer:?}", end.read);
                    end.read += 1;
                }
                if count < buffer.len() && !self.net.is(id, SocketReadiness::READ_HANGUP) {
                    end.known &= !READABLE;
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => end.known &= !READABLE,
            Err(_) => end.has_failed = true,
        }
    }

    /// Notes that a writer ends its stream. After a failure, the peer cannot see an end in order.
    fn note_end(&mut self, id: SocketId) {
        let end = self.ends.get_mut(&id).unwrap();
        if !end.has_ended {
            end.has_ended = true;
            self.totals.insert(end.name, end.written);
        }
    }

    fn close(&mut self) {
        let Some(id) = self.any_end() else { return };
        let is_abortive = self.below(4) == 0;
        self.net.set_abortive(id, is_abortive).unwrap();
        self.note_end(id);
        self.net.close(id).unwrap();
        self.ends.remove(&id);
    }

    fn crash(&mut self) {
        let host = self.host();
        if !self.net.is_up(host) {
            self.net.restart(host);
            return self.listen(host);
        }
        self.net.crash(host);
        let net = &self.net;
        self.ends.retain(|&id, _| net.readiness(id).is_ok());
        self.listeners.retain(|&id, _| net.readiness(id).is_ok());
    }

    fn step(&mut self) {
        let (a, b) = (self.host(), self.host());
        match self.below(100) {
            0..12 => self.dial(),
            12..22 => self.accept(),
            22..45 => self.write(),
            45..65 => {
                let (id, limit) = (self.any_end(), self.below(3000));
                if let Some(id) = id {
                    self.read(id, limit);
                }
            }
            65..69 => {
                if let Some(id) = self.any_end() {
                    if self.net.shutdown(id, Shutdown::Write).is_ok() {
                        self.note_end(id);
                    }
                }
            }
            69..75 => self.close(),
            75..77 => self.net.partition(a, b),
            77..78 => self.net.partition_oneway(a, b),
            78..81 => self.net.repair(a, b),
            81..82 => self.net.hold(a, b),
            82..84 => self.net.release(a, b),
            84..85 => self.crash(),
            _ => {
                let time = ms([0, 1, 10, 300, 5000][self.below(5)]);
                self.net.run(time);
            }
        }
    }

    /// Takes the edges, and compares the level, the edges and the calls.
    fn check(&mut self) {
        while let Some((id, readiness)) = self.net.next_edge() {
            if let Some(end) = self.ends.get_mut(&id) {
                end.known |= bits(readiness);
            } else if let Some(known) = self.listeners.get_mut(&id) {
                *known |= bits(readiness);
            }
        }
        for (&id, end) in &mut self.ends {
            let level = bits(self.net.kernel.readiness(id).unwrap());
            assert_eq!(level & !end.known, 0, "{:?}: an edge is missing", end.name);
            let may_read = level & READABLE != 0;
            match self.net.kernel.peek(id, &mut [0]) {
                Ok(_) => assert!(may_read, "{:?}: a read succeeds without readiness", end.name),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    assert!(!may_read, "{:?}: readable with nothing to read", end.name);
                }
                // The peek has taken the error.
                Err(_) => end.has_failed = true,
            }
        }
        for (&id, &known) in &self.listeners {
            let level = bits(self.net.kernel.readiness(id).unwrap());
            assert_eq!(level & !known, 0, "an edge of a listener is missing");
        }
    }

    /// Ends everything, and looks for what is left.
    fn finish(mut self) -> u64 {
        for (a, b) in [(A, B), (B, C), (C, A), (A, A), (B, B), (C, C)] {
            self.net.repair(a, b);
            self.net.release(a, b);
        }
        for id in self.ends.keys().chain(self.listeners.keys()) {
            self.net.kernel.close(*id).unwrap();
        }
        self.net.assert_no_leak();
        assert_eq!(self.net.usage().links, 0);
        self.net.now().as_nanos() as u64
    }
}

fn bits(readiness: SocketReadiness) -> u8 {
    let readable = readiness.contains(SocketReadiness::READABLE);
    let writable = readiness.contains(SocketReadiness::WRITABLE);
    (u8::from(readable) * READABLE) | (u8::from(writable) * WRITABLE)
}

fn run(seed: u64, steps: usize) -> (u64, u64) {
    let mut world = World::new(seed);
    let hash = world.net.trace_hash();
    for _ in 0..steps {
        world.step();
        world.check();
    }
    let end = world.finish();
    let hash = hash.lock().unwrap().finish();
    (hash, end)
}

#[test]
fn streams_keep_their_promises() {
    for seed in 0..3000 {
        let result = std::panic::catch_unwind(|| run(seed, 150));
        assert!(result.is_ok(), "seed {seed} fails");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..50 {
        assert_eq!(run(seed, 200), run(seed, 200), "seed {seed}");
    }
}

#[test]
fn a_writable_socket_accepts_a_byte() {
    for seed in 0..200 {
        let mut world = World::new(seed);
        for _ in 0..100 {
            world.step();
            world.net.clear_edges();
            for id in world.ends.keys().copied().collect::<Vec<_>>() {
                let is_writable = world.net.is(id, SocketReadiness::WRITABLE);
                let end = world.ends.get_mut(&id).unwrap();
                match world.net.send(id, &[byte(end.name, end.written)]) {
                    Ok(_) => end.written += 1,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        assert!(!is_writable, "seed {seed}")
                    }
                    Err(error) => end.has_failed |= error.kind() != ErrorKind::BrokenPipe,
                }
            }
        }
        let ids: Vec<_> = world.ends.keys().copied().collect();
        for id in ids {
            world.net.close(id).unwrap();
            assert_errno(world.net.send(id, b"x"), super::super::Errno::BadDescriptor);
        }
    }
}
