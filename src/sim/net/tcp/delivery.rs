//! The socket for a segment, and what follows from the change of a connection.

use std::net::SocketAddr;
use std::time::Duration;

use super::super::Kernel;
use super::super::errno::Errno;
use super::super::events::NetEvent;
use super::super::ids::{HostId, SocketId};
use super::super::packet::{Packet, PacketBody, Segment, Unreachable};
use super::super::sockets::SocketKind;
use super::connection::{Connection, Context, TcpState};
use super::{ConnectProgress, Tcp};

impl Kernel {
    /// Performs an operation on the connection of a socket, and what follows from it.
    pub(super) fn with_connection<R>(
        &mut self,
        id: SocketId,
        operation: impl FnOnce(&mut Connection, &mut Context<'_>) -> R,
    ) -> Result<R, Errno> {
        let mut outbox = std::mem::take(&mut self.outbox);
        let tcp = self.sockets.get_mut(id).and_then(|socket| socket.tcp());
        let result = tcp.map(|tcp| {
            let mut context = Context { now: self.now, settings: &self.settings, outbox: &mut outbox };
            operation(&mut tcp.connection, &mut context)
        });
        if result.is_ok() {
            self.send_segments(id, &mut outbox);
            self.follow(id);
        }
        self.outbox = outbox;
        result
    }

    fn send_segments(&mut self, id: SocketId, outbox: &mut Vec<Segment>) {
        for segment in outbox.drain(..) {
            let Ok(socket) = self.sockets.get_mut(id) else { return };
            let (host, from) = (socket.host, socket.local);
            let (Some(to), Ok(tcp)) = (socket.remote, socket.tcp()) else { continue };
            let earliest = tcp.last_arrival;
            let packet = Packet { from, to, body: PacketBody::Tcp(segment) };
            if let Some(arrival) = self.transmit(host, packet, earliest) {
                self.sockets.get_mut(id).and_then(|socket| socket.tcp()).expect("it is there").last_arrival =
                    arrival.max(earliest);
            }
        }
    }

    /// Reports the readiness of a connection that has changed, arms its timer, and removes what has ended.
    pub(super) fn follow(&mut self, id: SocketId) {
        let Ok(socket) = self.sockets.get_mut(id) else { return };
        let SocketKind::Tcp(tcp) = &mut socket.kind else { return };
        let connection = &mut tcp.connection;
        let has_event = std::mem::take(&mut connection.has_event);
        let (state, is_orphan, parent) = (connection.state, connection.is_orphan, tcp.parent);
        if let Some(deadline) = connection.deadline {
            if socket.timer.is_none_or(|timer| timer > deadline) {
                socket.timer = Some(deadline);
                self.events.schedule(self.now, deadline, NetEvent::Timer(id));
            }
        }
        if !has_event {
            if state == TcpState::Closed && is_orphan {
                self.forget(id);
            }
            return;
        }
        match (state, parent) {
            (TcpState::Closed, _) if is_orphan => return self.forget(id),
            (TcpState::Closed, Some(parent)) if self.is_pending(parent, id) => return self.forget(id),
            (TcpState::Closed, _) => self.disconnect(id),
            (_, Some(parent)) => self.complete(parent, id),
            _ => {}
        }
        self.push_edge(id);
    }

    /// Removes a connection that has ended from the table of the host, and gives up its port if the program
    /// has not chosen it. The socket stays.
    pub(in super::super) fn disconnect(&mut self, id: SocketId) {
        let Ok(socket) = self.sockets.get_mut(id) else { return };
        let host = self.hosts.get_mut(socket.host);
        if let Some(remote) = socket.remote {
            let pair = (socket.local, remote);
            if host.connections.get(&pair) == Some(&id) {
                host.connections.remove(&pair);
            }
        }
        if socket.is_tcp() && !socket.keeps_port {
            socket.is_bound = false;
            host.tcp_ports.remove(socket.local.port(), id);
        }
    }

    /// Reports a socket whose readiness may have changed, for [`next_edge`](Self::next_edge). Several reports
    /// of a socket before that call are one, and a socket that the program does not have is not reported.
    pub(crate) fn push_edge(&mut self, id: SocketId) {
        let Ok(socket) = self.sockets.get_mut(id) else { return };
        if !socket.is_hidden && !socket.has_edge {
            socket.has_edge = true;
            self.edges.push(id);
        }
    }

    /// Returns when the timer of a connection is due, if the event at `at` is the one for it.
    pub(in super::super) fn timer_deadline(&self, id: SocketId, at: Duration) -> Option<Duration> {
        let socket = self.sockets.get(id).ok().filter(|socket| socket.timer == Some(at))?;
        match &socket.kind {
            SocketKind::Tcp(tcp) => tcp.connection.deadline,
            _ => None,
        }
    }

    /// Processes the timer event of a connection. If the deadline has moved, a later event follows.
    pub(in super::super) fn run_timer(&mut self, id: SocketId, at: Duration) {
        let Ok(socket) = self.sockets.get_mut(id) else { return };
        if socket.timer != Some(at) {
            return;
        }
        socket.timer = None;
        let is_due = |connection: &Connection| connection.deadline.is_some_and(|deadline| deadline <= at);
        let result = self.with_connection(id, |connection, cx| {
            if is_due(connection) {
                connection.time_out(cx);
            }
        });
        debug_assert!(result.is_ok(), "only connections have timers");
    }

    /// Finds the socket for a segment that has arrived at a host.
    pub(in super::super) fn segment_arrives(
        &mut self,
        host: HostId,
        local: SocketAddr,
        remote: SocketAddr,
        segment: Segment,
    ) {
        if let Some(&id) = self.hosts.get(host).connections.get(&(local, remote)) {
            match self.reception(id, &segment) {
                Reception::Ignored => return,
                Reception::Accepted => {
                    let result =
                        self.with_connection(id, |connection, cx| connection.accept_segment(segment, cx));
                    debug_assert!(result.is_ok(), "the table has no closed sockets");
                    return;
                }
                Reception::New => self.end_wait(id),
            }
        }
        if segment.syn && segment.ack.is_none() && !segment.rst {
            if let Some(listener) = self.find_listener(host, local) {
                return self.syn_arrives(listener, local, remote, &segment);
            }
        }
        if !segment.rst {
            let packet = Packet { from: local, to: remote, body: PacketBody::Tcp(segment.refusal()) };
            self.transmit(host, packet, Duration::ZERO);
        }
    }

    fn reception(&mut self, id: SocketId, segment: &Segment) -> Reception {
        let Ok(socket) = self.sockets.get(id) else { return Reception::Ignored };
        let SocketKind::Tcp(tcp) = &socket.kind else { return Reception::Ignored };
        let connection = &tcp.connection;
        match connection.state {
            // Sequence numbers of later connections are higher.
            TcpState::TimeWait if segment.syn && segment.seq > connection.receive_next => Reception::New,
            // As Linux does, the last step of the handshake waits for room in the backlog.
            TcpState::SynReceived
                if !segment.rst && tcp.parent.is_some_and(|parent| self.is_full(parent)) =>
            {
                Reception::Ignored
            }
            _ => Reception::Accepted,
        }
    }

    /// Ends the `TimeWait` of a connection whose addresses a new one takes.
    fn end_wait(&mut self, id: SocketId) {
        let result = self.with_connection(id, |connection, _| connection.end());
        debug_assert!(result.is_ok(), "the table has no closed sockets");
    }

    /// An ICMP error has arrived: a packet from `local` to `remote` did not reach a socket.
    pub(in super::super) fn error_arrives(
        &mut self,
        host: HostId,
        local: SocketAddr,
        remote: SocketAddr,
        reason: Unreachable,
    ) {
        let errno = match reason {
            Unreachable::Port => Errno::ConnectionRefused,
            Unreachable::TcpHost | Unreachable::UdpHost => Errno::HostUnreachable,
        };
        if reason != Unreachable::TcpHost {
            return self.datagram_error_arrives(host, local, remote, errno);
        }
        let Some(&id) = self.hosts.get(host).connections.get(&(local, remote)) else { return };
        let result = self.with_connection(id, |connection, _| {
            if connection.state == TcpState::SynSent {
                connection.fail(errno);
            }
        });
        debug_assert!(result.is_ok(), "the table has no closed sockets");
    }

    /// Returns a number for the first segment of a connection, which is above all numbers of earlier
    /// connections that have sent less than a tebibyte.
    pub(super) fn first_number(&mut self) -> u64 {
        self.made += 1;
        self.made << 40
    }
}

/// What becomes of a segment for a connection.
enum Reception {
    Accepted,
    Ignored,
    /// The segment opens a new connection between the addresses of one that has ended.
    New,
}

impl Tcp {
    /// Notes for [`ConnectProgress`] that `shutdown` was called while the program waited for the result of
    /// `connect`.
    pub(super) fn note_shutdown(&mut self) {
        if self.progress == ConnectProgress::Connecting {
            self.progress = match self.connection.state {
                TcpState::SynSent | TcpState::SynReceived | TcpState::Closed | TcpState::TimeWait => {
                    ConnectProgress::Disconnecting
                }
                _ => ConnectProgress::Connected,
            };
        }
    }
}
