//! The state of a simulation's network: the simulated sockets in `net`, the placeholder descriptor of each,
//! and notes of what happened to packets.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::journal::{Incident, JournalEntry, PacketEntry};
use super::net::{Fate, Kernel, Packet, PacketBody, Settings, SocketId};
use super::plan::Faults;
use super::rng::Rng;
use super::tasks::NumberHasher;
#[cfg(unix)]
use crate::simulated::BorrowedDescriptor;
use crate::simulated::{AddressFamily, OwnedDescriptor, RawDescriptor, SocketType};

type ByNumber<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// The name of the host on which tasks run that belong to no node.
pub(super) const TEST: &str = "test";

/// The kernel, and the descriptors that stand for its sockets.
#[derive(Debug)]
pub(super) struct SimulatedNetwork {
    state: Mutex<NetworkState>,
    /// The packets of the call in progress.
    noted: Arc<Mutex<Vec<PacketNote>>>,
}

#[derive(Debug)]
pub(super) struct NetworkState {
    pub(super) kernel: Kernel,
    /// The sockets by their descriptors.
    sockets: ByNumber<u64, u64>,
    pub(super) open: ByNumber<u64, OpenSocket>,
    /// Reactor keys of sockets that a crash has removed, and whose hang-up is not reported yet.
    pub(super) crashed: VecDeque<u64>,
}

/// A socket that a descriptor stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenSocket {
    descriptor: RawDescriptor,
    kind: SocketType,
    /// Tells the descriptor from a later one of the same number.
    identity: u64,
    /// The key of its source in the reactor, once it has one.
    pub(super) key: Option<u64>,
}

/// What happened to a packet.
#[derive(Debug)]
pub(super) struct PacketNote {
    /// `None` if the journal does not tell of it.
    pub(super) entry: Option<JournalEntry>,
    pub(super) detail: u64,
    /// `None` unless the run is part of a check.
    pub(super) text: Option<String>,
}

impl SimulatedNetwork {
    /// Makes a network with one host, the test's.
    pub(super) fn new(
        mut random: Rng,
        keeps_texts: bool,
        tells_all: bool,
        faults: Arc<Mutex<Faults>>,
    ) -> Self {
        let noted = Arc::<Mutex<Vec<PacketNote>>>::default();
        let mut kernel = Kernel::new(Settings::default(), move || random.next_u64());
        kernel.add_host(TEST);
        let notes = noted.clone();
        kernel.set_trace(move |at, host, fate, packet| {
            let packet_entry = PacketEntry::new(fate, packet);
            let is_told = tells_all || packet_entry.is_told();
            let entry = is_told.then_some(JournalEntry { at, host, what: Incident::Packet(packet_entry) });
            locked(&notes).push(PacketNote::of(entry, fate, packet, keeps_texts));
        });
        kernel.set_loss_filter(move |from, to| locked(&faults).happens(format_args!("loss {from}>{to}")));
        let state = NetworkState {
            kernel,
            sockets: HashMap::default(),
            open: HashMap::default(),
            crashed: VecDeque::new(),
        };
        Self { state: Mutex::new(state), noted }
    }

    fn state(&self) -> MutexGuard<'_, NetworkState> {
        match self.state.try_lock() {
            Err(TryLockError::WouldBlock) => {
                panic!("a rule of the network calls the network, which calls the rule")
            }
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Ok(state) => state,
        }
    }

    /// Calls `call` with the kernel as it is.
    pub(super) fn with_kernel<R>(&self, call: impl FnOnce(&Kernel) -> R) -> R {
        call(&self.state().kernel)
    }

    /// Returns the number of the socket whose placeholder the descriptor is.
    pub(super) fn find(&self, descriptor: RawDescriptor) -> Option<u64> {
        self.state().sockets.get(&(descriptor as u64)).copied()
    }

    /// Calls `call` at the time `now`, and passes what happened to packets to `note`. Only the simulation's
    /// thread calls this.
    ///
    /// # Panics
    ///
    /// If `call`, or a rule that it runs, calls this again.
    pub(super) fn at<R>(
        &self,
        now: Duration,
        call: impl FnOnce(&mut NetworkState) -> R,
        note: impl FnMut(PacketNote),
    ) -> R {
        let mut state = self.state();
        state.kernel.advance(now);
        let result = call(&mut state);
        drop(state);
        let noted = std::mem::take(&mut *locked(&self.noted));
        noted.into_iter().for_each(note);
        result
    }
}

impl NetworkState {
    pub(super) fn descriptor(&self, id: SocketId) -> Option<RawDescriptor> {
        self.open.get(&id.to_bits()).map(|open| open.descriptor)
    }

    pub(super) fn kind(&self, id: SocketId) -> SocketType {
        let unknown = SocketType { is_stream: true, family: AddressFamily::V4 };
        self.open.get(&id.to_bits()).map_or(unknown, |open| open.kind)
    }

    /// Returns whether the descriptor is a placeholder, and not another one with the number of an earlier
    /// one.
    pub(super) fn is_known(&self, descriptor: RawDescriptor) -> bool {
        let id = self.sockets.get(&(descriptor as u64));
        id.and_then(|id| self.open.get(id)).is_some_and(|open| open.identity == identity(descriptor))
    }

    /// Makes the descriptor the placeholder of the socket. If it was that of another one, closes that.
    pub(super) fn stand_for(&mut self, descriptor: RawDescriptor, id: SocketId, kind: SocketType) {
        if let Some(earlier) = self.sockets.insert(descriptor as u64, id.to_bits()) {
            self.close(SocketId::from_bits(earlier));
            self.sockets.insert(descriptor as u64, id.to_bits());
        }
        let identity = identity(descriptor);
        self.open.insert(id.to_bits(), OpenSocket { descriptor, kind, identity, key: None });
    }

    /// Closes the sockets whose placeholder was closed without a call that the network has seen: sockets that
    /// no reactor has registered, or that were dropped outside of the simulation.
    pub(super) fn close_abandoned(&mut self) {
        let is_abandoned = |open: &OpenSocket| identity(open.descriptor) != open.identity;
        let all = self.open.iter().filter(|(_, open)| is_abandoned(open));
        let mut abandoned: Vec<_> = all.map(|(id, _)| SocketId::from_bits(*id)).collect();
        abandoned.sort_unstable();
        abandoned.into_iter().for_each(|id| self.close(id));
    }

    /// Queues a hang-up for each registered socket that a crash has removed: a task of another host may wait
    /// for it.
    pub(super) fn report_lost(&mut self) {
        let is_lost = |id: u64| self.kernel.readiness(SocketId::from_bits(id)).is_err();
        let mut lost: Vec<_> = self.open.keys().copied().filter(|id| is_lost(*id)).collect();
        lost.sort_unstable();
        self.crashed.extend(lost.iter().filter_map(|id| self.open[id].key));
    }

    pub(super) fn close(&mut self, id: SocketId) {
        if let Some(open) = self.open.remove(&id.to_bits()) {
            self.sockets.remove(&(open.descriptor as u64));
        }
        // The host may have crashed, and the socket with it.
        let _ = self.kernel.close(id);
    }
}

/// Returns what tells the socket behind a descriptor from others; 0 if the descriptor is closed.
#[cfg(unix)]
fn identity(descriptor: RawDescriptor) -> u64 {
    // SAFETY: the call only asks about the descriptor, which may be closed or another one by now.
    let descriptor = unsafe { BorrowedDescriptor::borrow_raw(descriptor) };
    rustix::fs::fstat(descriptor).map_or(0, |about| about.st_ino)
}

#[cfg(not(unix))]
fn identity(_: RawDescriptor) -> u64 {
    0
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PacketNote {
    /// Describes a packet, but not its content: a program may [note](super::note) what it receives.
    fn of(entry: Option<JournalEntry>, fate: Fate, packet: &Packet, keeps_text: bool) -> Self {
        let size = |bytes: &[u8]| bytes.len() as u64;
        let (what, words) = match &packet.body {
            PacketBody::Tcp(segment) => {
                let flags = [segment.syn, segment.fin, segment.rst].map(u64::from);
                let flags = flags.into_iter().fold(1, |all, flag| all << 1 | flag);
                (
                    "TCP segment",
                    [flags, segment.seq, segment.ack.map_or(0, |ack| ack + 1), size(&segment.data)],
                )
            }
            PacketBody::Udp(bytes) => ("UDP datagram", [2, 0, 0, size(bytes)]),
            PacketBody::Unreachable(_) => ("ICMP error", [3, 0, 0, 0]),
        };
        let ends = [packet.from, packet.to].map(|end| {
            let bits = match end.ip() {
                IpAddr::V4(ip) => u128::from(ip.to_bits()),
                IpAddr::V6(ip) => ip.to_bits(),
            };
            Rng::new(bits as u64 ^ (bits >> u64::BITS) as u64).next_u64() ^ u64::from(end.port())
        });
        let all = [fate as u64].into_iter().chain(ends).chain(words);
        let detail = all.fold(0, |hash, word| Rng::new(hash ^ word).next_u64());
        let text = keeps_text.then(|| {
            let fate = match fate {
                Fate::Sent => "sent",
                Fate::Held => "held",
                Fate::Delivered => "delivered",
                Fate::Dropped => "lost",
            };
            let [.., bytes] = words;
            format!("a {what} of {bytes} bytes from {} to {} is {fate}", packet.from, packet.to)
        });
        Self { entry, detail, text }
    }
}

/// Makes a descriptor that stands for a socket: a socket of the system that is not used.
pub(super) fn placeholder(kind: SocketType) -> io::Result<OwnedDescriptor> {
    let domain = match kind.family {
        AddressFamily::V4 => Domain::IPV4,
        AddressFamily::V6 => Domain::IPV6,
        AddressFamily::Unix => Domain::UNIX,
    };
    // Also for datagrams: a datagram socket of the system could send.
    let socket = Socket::new(domain, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}
