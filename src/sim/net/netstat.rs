//! A list of the sockets of a host.

use std::fmt;

use super::Kernel;
use super::ids::{Family, HostId};
use super::sockets::{SocketKind, SocketState};
use super::tcp::{Tcp, TcpState};

/// A socket in the list of [`Kernel::netstat`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// `tcp`, `tcp6`, `udp`, `udp6` or `unix`.
    pub(crate) protocol: &'static str,
    /// Bytes that the program has not read. For a listener, the connections that it has not accepted.
    pub(crate) received: usize,
    /// Bytes that the peer has not acknowledged.
    pub(crate) unsent: usize,
    /// The local address or path.
    pub(crate) local: String,
    /// The address of the peer, or `*`.
    pub(crate) remote: String,
    /// The state of a TCP socket as netstat names it, else nothing.
    pub(crate) state: &'static str,
}

/// The list of [`Kernel::netstat`]. It is displayed as netstat does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Netstat(pub(crate) Vec<Row>);

impl Kernel {
    /// Returns the sockets of a host, also those that the program has closed and whose connection has not
    /// ended. Fresh sockets are left out.
    pub(crate) fn netstat(&self, host: HostId) -> Netstat {
        let sockets = self.sockets.iter().map(|(_, socket)| socket);
        let mut rows: Vec<Row> =
            sockets.filter(|socket| socket.host == host).filter_map(SocketState::netstat_row).collect();
        rows.sort_by(|a, b| (a.protocol, &a.local, &a.remote).cmp(&(b.protocol, &b.local, &b.remote)));
        Netstat(rows)
    }
}

impl SocketState {
    fn netstat_row(&self) -> Option<Row> {
        let is_v6 = self.family == Family::V6;
        let (protocol, received, unsent, state) = match &self.kind {
            SocketKind::Tcp(tcp) => {
                let state = state_name(tcp)?;
                let waiting = tcp.listener.as_ref().map(|listener| listener.ready.len());
                let (received, unsent) = tcp.connection.queue_lengths();
                (if is_v6 { "tcp6" } else { "tcp" }, waiting.unwrap_or(received), unsent, state)
            }
            SocketKind::Udp(_) if self.local.port() == 0 => return None,
            SocketKind::Udp(udp) => (if is_v6 { "udp6" } else { "udp" }, udp.queued(), 0, ""),
            SocketKind::Unix(unix) => {
                let (local, remote) = unix.names();
                return Some(Row {
                    protocol: "unix",
                    received: unix.queued(),
                    unsent: 0,
                    local,
                    remote,
                    state: "",
                });
            }
        };
        let remote = self.remote.map_or("*".to_owned(), |remote| remote.to_string());
        Some(Row { protocol, received, unsent, local: self.local.to_string(), remote, state })
    }
}

fn state_name(tcp: &Tcp) -> Option<&'static str> {
    Some(match tcp.connection.state {
        TcpState::Closed if tcp.listener.is_some() => "LISTEN",
        TcpState::Closed => return None,
        TcpState::SynSent => "SYN_SENT",
        TcpState::SynReceived => "SYN_RECV",
        TcpState::Established => "ESTABLISHED",
        TcpState::FinWait1 => "FIN_WAIT1",
        TcpState::FinWait2 => "FIN_WAIT2",
        TcpState::CloseWait => "CLOSE_WAIT",
        TcpState::Closing => "CLOSING",
        TcpState::LastAck => "LAST_ACK",
        TcpState::TimeWait => "TIME_WAIT",
    })
}

impl fmt::Display for Netstat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Proto Recv-Q Send-Q {:23} {:23} State", "Local Address", "Foreign Address")?;
        for Row { protocol, received, unsent, local, remote, state } in &self.0 {
            let line = format!("{protocol:5} {received:6} {unsent:6} {local:23} {remote:23} {state}");
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
