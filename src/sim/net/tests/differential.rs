//! The same operations on sockets of Linux and on sockets of the kernel, with the results compared.
//!
//! The operations are random. Addresses are compared by what they are for, not by their numbers. Amounts are
//! small, so that sizes of buffers do not matter.
#![cfg(target_os = "linux")]

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, SockAddr, Socket, Type};

use super::super::{Family, Kernel, SocketId, SocketReadiness};
use super::support::{A, net, random};

/// How many sockets a script has.
const SOCKETS: usize = 5;

/// An operation. The numbers are those of sockets in the script.
#[derive(Clone, Copy, Debug)]
enum Call {
    Tcp(usize),
    Udp(usize),
    Reuse(usize),
    Bind(usize),
    /// Binds a socket to the address of another.
    BindAs(usize, usize),
    Listen(usize, usize),
    Accept(usize, usize),
    Connect(usize, usize),
    ConnectNowhere(usize),
    Send(usize, usize),
    SendTo(usize, usize),
    Receive(usize, usize),
    Peek(usize),
    Shutdown(usize, Shutdown),
    Abortive(usize),
    TakeError(usize),
    Peer(usize),
    Close(usize),
}

/// The result of an operation: a count, or the number of an error.
type Outcome = Result<usize, i32>;

/// Sockets on which a script can run.
trait World {
    fn run(&mut self, call: Call) -> Outcome;
    fn readiness(&mut self) -> Vec<Option<u8>>;
}

fn outcome<T>(result: io::Result<T>, count: impl FnOnce(T) -> usize) -> Outcome {
    result.map(count).map_err(|error| error.raw_os_error().unwrap_or(-1))
}

fn localhost(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

/// Returns the address to bind for one that a script found. If the other socket has no port, a free one is
/// bound.
fn own(address: SocketAddr) -> SocketAddr {
    localhost(if address.port() == 1 { 0 } else { address.port() })
}

#[derive(Default)]
struct Real([Option<Socket>; SOCKETS]);

impl Real {
    fn address(&self, index: usize) -> SocketAddr {
        let socket = self.0[index].as_ref();
        let address = socket.and_then(|socket| socket.local_addr().ok()?.as_socket());
        localhost(address.map_or(1, |address| address.port().max(1)))
    }

    fn open(&mut self, index: usize, kind: Type) -> Outcome {
        let socket = Socket::new(Domain::IPV4, kind, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        if kind == Type::STREAM {
            socket.set_tcp_nodelay(true).unwrap();
        }
        self.0[index] = Some(socket);
        Ok(0)
    }

    fn run_on(&mut self, call: Call, socket: &Socket) -> Outcome {
        let mut space = [MaybeUninit::new(0_u8); 64];
        let target = |address| SockAddr::from(address);
        match call {
            Call::Reuse(_) => outcome(socket.set_reuse_address(true), |()| 0),
            Call::Bind(_) => outcome(socket.bind(&target(localhost(0))), |()| 0),
            Call::BindAs(_, other) => outcome(socket.bind(&target(own(self.address(other)))), |()| 0),
            Call::Listen(_, backlog) => outcome(socket.listen(backlog as i32), |()| 0),
            Call::Accept(_, index) => outcome(socket.accept(), |(child, _)| {
                child.set_nonblocking(true).unwrap();
                child.set_tcp_nodelay(true).unwrap();
                self.0[index] = Some(child);
                0
            }),
            Call::Connect(_, other) => outcome(socket.connect(&target(self.address(other))), |()| 0),
            Call::ConnectNowhere(_) => outcome(socket.connect(&target(localhost(1))), |()| 0),
            Call::Send(_, count) => outcome(socket.send(&vec![5; count]), |count| count),
            Call::SendTo(_, other) => {
                outcome(socket.send_to(b"datagram", &target(self.address(other))), |n| n)
            }
            Call::Receive(_, count) => outcome((&mut &*socket).read(&mut vec![0; count]), |count| count),
            Call::Peek(_) => outcome(socket.peek(&mut space), |count| count),
            Call::Shutdown(_, how) => outcome(socket.shutdown(how), |()| 0),
            Call::Abortive(_) => outcome(socket.set_linger(Some(Duration::ZERO)), |()| 0),
            Call::TakeError(_) => outcome(socket.take_error(), |error| {
                error.and_then(|error| error.raw_os_error()).unwrap_or(0) as usize
            }),
            Call::Peer(_) => outcome(socket.peer_addr(), |_| 0),
            Call::Tcp(_) | Call::Udp(_) | Call::Close(_) => unreachable!("not a call on an open socket"),
        }
    }
}

impl Call {
    fn index(self) -> usize {
        match self {
            Call::Tcp(index) | Call::Udp(index) | Call::Reuse(index) | Call::Bind(index) => index,
            Call::BindAs(index, _) | Call::Listen(index, _) | Call::Accept(index, _) => index,
            Call::Connect(index, _) | Call::ConnectNowhere(index) | Call::Send(index, _) => index,
            Call::SendTo(index, _) | Call::Receive(index, _) | Call::Peek(index) => index,
            Call::Shutdown(index, _) | Call::Abortive(index) | Call::TakeError(index) => index,
            Call::Peer(index) | Call::Close(index) => index,
        }
    }
}

impl World for Real {
    fn run(&mut self, call: Call) -> Outcome {
        match call {
            Call::Tcp(index) => return self.open(index, Type::STREAM),
            Call::Udp(index) => return self.open(index, Type::DGRAM),
            Call::Close(index) => {
                self.0[index] = None;
                return Ok(0);
            }
            _ => {}
        }
        // The socket is put back, unless it was replaced by one that was accepted.
        let index = call.index();
        let Some(socket) = self.0[index].take() else { return Err(0) };
        let copy = socket.try_clone().unwrap();
        self.0[index] = Some(socket);
        self.run_on(call, &copy)
    }

    fn readiness(&mut self) -> Vec<Option<u8>> {
        let level = |socket: &Socket| {
            let flags = PollFlags::IN | PollFlags::OUT | PollFlags::RDHUP;
            let mut fds = [PollFd::new(socket, flags)];
            poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
            let is = |flag, bit| if fds[0].revents().contains(flag) { bit } else { 0 };
            is(PollFlags::IN, 1)
                | is(PollFlags::OUT, 2)
                | is(PollFlags::RDHUP, 4)
                | is(PollFlags::HUP, 8)
                | is(PollFlags::ERR, 16)
        };
        self.0.iter().map(|socket| socket.as_ref().map(level)).collect()
    }
}

struct Simulated {
    kernel: Kernel,
    sockets: [Option<SocketId>; SOCKETS],
}

impl Simulated {
    fn address(&self, index: usize) -> SocketAddr {
        let address = self.sockets[index].and_then(|id| self.kernel.local_addr(id).ok());
        localhost(address.map_or(1, |address| address.port().max(1)))
    }

    fn put(&mut self, index: usize, id: Option<SocketId>) {
        if let Some(id) = std::mem::replace(&mut self.sockets[index], id) {
            self.kernel.close(id).unwrap();
        }
    }

    fn run_on(&mut self, call: Call, id: SocketId) -> Outcome {
        let kernel = &mut self.kernel;
        match call {
            Call::Reuse(_) => outcome(kernel.set_reuse_address(id, true), |()| 0),
            Call::Bind(_) => outcome(kernel.bind(id, localhost(0)), |()| 0),
            Call::BindAs(_, other) => {
                let address = own(self.address(other));
                outcome(self.kernel.bind(id, address), |()| 0)
            }
            Call::Listen(_, backlog) => outcome(kernel.listen(id, backlog), |()| 0),
            Call::Accept(_, index) => outcome(kernel.accept(id), |(child, _)| {
                self.put(index, Some(child));
                0
            }),
            Call::Connect(_, other) => {
                let address = self.address(other);
                outcome(self.kernel.connect(id, address), |()| 0)
            }
            Call::ConnectNowhere(_) => outcome(kernel.connect(id, localhost(1)), |()| 0),
            Call::Send(_, count) => outcome(kernel.send(id, &vec![5; count]), |count| count),
            Call::SendTo(_, other) => {
                let address = self.address(other);
                // `send_to` exists for datagrams only. On Linux, a stream ignores the address.
                match self.kernel.send_to(id, b"datagram", address) {
                    Err(error) if error.raw_os_error() == Some(95) => {
                        outcome(self.kernel.send(id, b"datagram"), |count| count)
                    }
                    result => outcome(result, |count| count),
                }
            }
            Call::Receive(_, count) => outcome(kernel.recv(id, &mut vec![0; count]), |count| count),
            Call::Peek(_) => outcome(kernel.peek(id, &mut [0; 64]), |count| count),
            Call::Shutdown(_, how) => outcome(kernel.shutdown(id, how), |()| 0),
            // On Linux, the option can be set on each socket.
            Call::Abortive(_) => outcome(kernel.set_abortive(id, true).or(Ok(())), |()| 0),
            Call::TakeError(_) => outcome(kernel.take_error(id), |error| {
                error.and_then(|error| error.raw_os_error()).unwrap_or(0) as usize
            }),
            Call::Peer(_) => outcome(kernel.peer_addr(id), |_| 0),
            Call::Tcp(_) | Call::Udp(_) | Call::Close(_) => unreachable!("not a call on an open socket"),
        }
    }
}

impl World for Simulated {
    fn run(&mut self, call: Call) -> Outcome {
        let id = match call {
            Call::Tcp(_) => Some(self.kernel.tcp_socket(A, Family::V4).unwrap()),
            Call::Udp(_) => Some(self.kernel.udp_socket(A, Family::V4).unwrap()),
            Call::Close(_) => None,
            _ => match self.sockets[call.index()] {
                Some(id) => return self.run_on(call, id),
                None => return Err(0),
            },
        };
        self.put(call.index(), id);
        Ok(0)
    }

    fn readiness(&mut self) -> Vec<Option<u8>> {
        let level = |id: &SocketId| {
            let readiness = self.kernel.readiness(*id).unwrap();
            let flags = [
                SocketReadiness::READABLE,
                SocketReadiness::WRITABLE,
                SocketReadiness::READ_HANGUP,
                SocketReadiness::HANGUP,
                SocketReadiness::ERROR,
            ];
            let bits = flags.iter().enumerate().map(|(bit, flag)| u8::from(readiness.contains(*flag)) << bit);
            bits.sum()
        };
        self.sockets.iter().map(|id| id.as_ref().map(level)).collect()
    }
}

/// Returns a network whose ephemeral ports for datagrams are others than those for streams, so that a script
/// does not meet a port by chance.
fn simulated() -> Simulated {
    let mut kernel = net().kernel;
    for _ in 0..100 {
        let id = kernel.udp_socket(A, Family::V4).unwrap();
        kernel.bind(id, localhost(0)).unwrap();
        kernel.close(id).unwrap();
    }
    Simulated { kernel, sockets: [None; SOCKETS] }
}

fn script(seed: u64) -> Vec<Call> {
    let mut random = random(seed);
    let mut below = move |limit: usize| (random() % limit as u64) as usize;
    let mut script = vec![Call::Tcp(0), Call::Bind(0), Call::Listen(0, 4), Call::Tcp(1), Call::Connect(1, 0)];
    if seed % 4 == 0 {
        script = vec![Call::Udp(0), Call::Udp(1), Call::Bind(1), Call::Tcp(2)];
    } else if seed % 4 < 3 {
        script.push(Call::Accept(0, 2));
    }
    for _ in 0..12 + below(20) {
        let (a, b) = (below(SOCKETS), below(SOCKETS));
        let how = [Shutdown::Read, Shutdown::Write, Shutdown::Both][below(3)];
        script.push(match below(34) {
            0 => Call::Tcp(a),
            1 => Call::Udp(a),
            2 => Call::Reuse(a),
            3 => Call::Bind(a),
            4 => Call::BindAs(a, b),
            5 => Call::Listen(a, below(3)),
            6..9 => Call::Accept(a, b),
            9..12 => Call::Connect(a, b),
            12 => Call::ConnectNowhere(a),
            13..17 => Call::Send(a, below(100)),
            17 => Call::SendTo(a, b),
            18..22 => Call::Receive(a, below(100)),
            22 => Call::Peek(a),
            23..26 => Call::Shutdown(a, how),
            26 => Call::Abortive(a),
            27..29 => Call::TakeError(a),
            29..31 => Call::Peer(a),
            _ => Call::Close(a),
        });
    }
    script
}

/// Returns whether a call uses a socket again whose connection has ended, which only Linux supports.
fn is_reuse(call: Call, levels: &[Option<u8>]) -> bool {
    let uses = matches!(
        call,
        Call::Bind(_) | Call::BindAs(..) | Call::Listen(..) | Call::Connect(..) | Call::ConnectNowhere(_)
    );
    // A connection of a socket with itself after `shutdown` ends at once on Linux, too.
    let with_itself = matches!(call, Call::Connect(a, b) if a == b);
    let is_ended = |level: u8| level & 4 != 0 || with_itself;
    uses && levels[call.index()].is_some_and(is_ended)
}

/// Returns the first difference of a script.
fn compare(seed: u64) -> Option<String> {
    let mut real = Real::default();
    let mut simulated = simulated();
    let mut done = Vec::new();
    for call in script(seed) {
        if is_reuse(call, &simulated.readiness()) {
            continue;
        }
        let (expected, got) = (real.run(call), simulated.run(call));
        let levels = simulated.readiness();
        // The loopback device of Linux may need a moment.
        let mut patience = 20;
        while real.readiness() != levels && patience > 0 {
            patience -= 1;
            std::thread::sleep(Duration::from_millis(1));
        }
        let expected_levels = real.readiness();
        done.push(call);
        if expected != got || expected_levels != levels {
            return Some(format!(
                "seed {seed}: {done:?}\n  Linux {expected:?} {expected_levels:?}\n  here  {got:?} {levels:?}"
            ));
        }
    }
    None
}

#[test]
#[ignore = "needs ports of the machine"]
fn results_are_those_of_linux() {
    let count = std::env::var("SCRIPTS").map_or(20_000, |count| count.parse().unwrap());
    let differs = |seed: &u64| compare(*seed).is_some();
    // A difference that does not repeat is a matter of the machine's load.
    let differences: Vec<_> = (0..count).filter(differs).filter_map(compare).take(10).collect();
    for difference in &differences {
        println!("{difference}\n");
    }
    assert!(differences.is_empty());
}
