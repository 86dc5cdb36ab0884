//! The state of a connection, and what a program sees of it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::super::errno::Errno;
use super::super::packet::Segment;
use super::super::readiness::SocketReadiness;
use super::super::settings::Settings;

/// The states of RFC 9293. A listener is [`Closed`](TcpState::Closed) here; [`Tcp`](super::Tcp) has its
/// queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum TcpState {
    Closed,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

impl TcpState {
    /// Returns whether bytes or a FIN may wait for an acknowledgement in this state.
    pub(super) fn can_send(self) -> bool {
        matches!(
            self,
            TcpState::Established
                | TcpState::CloseWait
                | TcpState::FinWait1
                | TcpState::Closing
                | TcpState::LastAck
        )
    }
}

/// What an operation on a connection needs, and the segments that it sends.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) now: Duration,
    pub(super) settings: &'a Settings,
    pub(super) outbox: &'a mut Vec<Segment>,
}

/// One connection, without its addresses.
///
/// Invariants, which `tests::random` checks from outside:
/// - `una <= next`, and `outgoing` starts at `una` once the handshake is complete.
/// - `incoming.len() + (advertised - receive_next)` is at most the receive buffer, so a window never shrinks.
/// - `deadline` is set while something is in flight, while data waits for a window, and in `TimeWait`.
#[derive(Debug)]
pub(in super::super) struct Connection {
    pub(in super::super) state: TcpState,
    /// `SO_ERROR`.
    pub(in super::super) error: Option<Errno>,
    /// The program or the peer has ended the reading side.
    pub(super) is_read_closed: bool,
    /// The program has ended the writing side.
    pub(super) is_write_closed: bool,
    /// The FIN of the peer has arrived, after all its data.
    pub(super) has_fin: bool,
    /// The program has no socket for the connection any more.
    pub(super) is_orphan: bool,
    /// The readiness may have changed. The caller of an operation takes the flag.
    pub(super) has_event: bool,

    pub(super) segment_size: usize,
    pub(super) send_buffer: usize,
    pub(super) receive_buffer: usize,

    /// The bytes that are not acknowledged, from `una`.
    pub(super) outgoing: VecDeque<u8>,
    pub(super) una: u64,
    pub(super) next: u64,
    /// The end of the peer's window.
    pub(super) window_end: u64,
    /// A FIN follows after the bytes of `outgoing`.
    pub(super) is_ending: bool,
    /// While a loss is repaired: what had been sent when it was noticed.
    pub(super) recovery: Option<u64>,
    pub(super) duplicates: u32,
    /// The byte at `una` was sent into a closed window, to learn of its opening.
    pub(super) is_probing: bool,

    /// The bytes for the program.
    pub(super) incoming: VecDeque<u8>,
    pub(super) receive_next: u64,
    /// The end of the window that has been advertised.
    pub(super) advertised: u64,
    /// What arrived before the bytes that precede it.
    pub(super) early: BTreeMap<u64, Vec<u8>>,
    /// The number of the peer's FIN, if it has been seen.
    pub(super) fin_at: Option<u64>,

    /// When the timer fires: retransmission, probe of a window, or the end of a state that waits.
    pub(in super::super) deadline: Option<Duration>,
    pub(super) retries: u32,
    pub(super) doublings: u32,
    pub(super) timeout: Duration,
    /// Smoothed round trip and its variation, as in RFC 6298.
    pub(super) round_trip: Option<(Duration, Duration)>,
    /// A segment whose round trip is measured: the number after it, and when it was sent.
    pub(super) measured: Option<(u64, Duration)>,
}

impl Connection {
    /// Makes the connection of a fresh socket.
    pub(in super::super) fn new(settings: &Settings) -> Self {
        Self {
            state: TcpState::Closed,
            error: None,
            is_read_closed: false,
            is_write_closed: false,
            has_fin: false,
            is_orphan: false,
            has_event: false,
            segment_size: settings.segment,
            send_buffer: settings.send_buffer,
            receive_buffer: settings.receive_buffer,
            outgoing: VecDeque::new(),
            una: 0,
            next: 0,
            window_end: 0,
            is_ending: false,
            recovery: None,
            duplicates: 0,
            is_probing: false,
            incoming: VecDeque::new(),
            receive_next: 0,
            advertised: 0,
            early: BTreeMap::new(),
            fin_at: None,
            deadline: None,
            retries: 0,
            doublings: 0,
            timeout: settings.first_timeout,
            round_trip: None,
            measured: None,
        }
    }

    /// Starts the handshake.
    pub(super) fn open(&mut self, first: u64, cx: &mut Context<'_>) {
        (self.una, self.next) = (first, first + 1);
        self.state = TcpState::SynSent;
        self.measured = Some((self.next, cx.now));
        self.restart_timer(cx);
        self.send_syn(cx);
    }

    /// Answers a SYN.
    pub(super) fn answer(&mut self, first: u64, syn: &Segment, cx: &mut Context<'_>) {
        (self.una, self.next) = (first, first + 1);
        self.state = TcpState::SynReceived;
        self.receive_next = syn.seq + 1;
        self.advertised = self.receive_next;
        self.window_end = self.next + syn.window;
        self.measured = Some((self.next, cx.now));
        self.restart_timer(cx);
        self.send_syn(cx);
    }

    /// Returns whether the program sees no connection. After both FINs, Linux shows the socket as closed,
    /// too.
    pub(in super::super) fn is_closed(&self) -> bool {
        matches!(self.state, TcpState::Closed | TcpState::TimeWait)
    }

    pub(in super::super) fn readiness(&self) -> SocketReadiness {
        let is_open = !matches!(self.state, TcpState::SynSent | TcpState::SynReceived);
        let has_room = self.is_write_closed || self.is_writable();
        let has_hung_up = self.is_closed() || self.is_read_closed && self.is_write_closed;
        SocketReadiness::READABLE.when(self.is_read_closed || is_open && !self.incoming.is_empty())
            | SocketReadiness::WRITABLE.when(is_open && has_room)
            | SocketReadiness::READ_HANGUP.when(self.is_read_closed)
            | SocketReadiness::HANGUP.when(has_hung_up)
            | SocketReadiness::ERROR.when(self.error.is_some())
    }

    /// Returns whether a third of the send buffer is free, which is when Linux reports a stream as writable.
    pub(super) fn is_writable(&self) -> bool {
        let free = self.send_buffer.saturating_sub(self.outgoing.len());
        free > 0 && free >= self.send_buffer / 3
    }

    /// Returns how many bytes the program has not read, and how many the peer has not acknowledged.
    pub(in super::super) fn queue_lengths(&self) -> (usize, usize) {
        (self.incoming.len(), self.outgoing.len())
    }

    /// Appends bytes of the program to the stream. Returns how many fit.
    pub(super) fn send(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> Result<usize, Errno> {
        match self.state {
            TcpState::Established | TcpState::CloseWait => {}
            _ => {
                self.take_error()?;
                let is_connecting = matches!(self.state, TcpState::SynSent | TcpState::SynReceived);
                return Err(if is_connecting { Errno::WouldBlock } else { Errno::BrokenPipe });
            }
        }
        self.take_error()?;
        if self.is_write_closed {
            return Err(Errno::BrokenPipe);
        }
        let count = bytes.len().min(self.send_buffer - self.outgoing.len());
        if count == 0 && !bytes.is_empty() {
            return Err(Errno::WouldBlock);
        }
        self.outgoing.extend(&bytes[..count]);
        self.send_data(cx);
        Ok(count)
    }

    /// Copies bytes of the stream to the program, and removes them unless `is_peek`.
    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
        is_peek: bool,
        cx: &mut Context<'_>,
    ) -> Result<usize, Errno> {
        if self.incoming.is_empty() {
            if self.has_fin {
                return Ok(0);
            }
            self.take_error()?;
            return match self.state {
                _ if self.is_read_closed => Ok(0),
                TcpState::Closed | TcpState::TimeWait => Err(Errno::NotConnected),
                _ => Err(Errno::WouldBlock),
            };
        }
        let count = buffer.len().min(self.incoming.len());
        copy(&self.incoming, 0, &mut buffer[..count]);
        if !is_peek {
            self.incoming.drain(..count);
            self.update_window(cx);
        }
        Ok(count)
    }

    /// Removes the pending error, and returns it as the error of a call.
    pub(super) fn take_error(&mut self) -> Result<(), Errno> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Sends a FIN after the bytes that wait.
    pub(super) fn end_writing(&mut self, cx: &mut Context<'_>) {
        self.state = match self.state {
            TcpState::Established => TcpState::FinWait1,
            TcpState::CloseWait => TcpState::LastAck,
            _ => return,
        };
        self.is_ending = true;
        self.send_data(cx);
    }

    /// Ends the connection for a program that closes its socket. If there is something to do without the
    /// program, the state is not [`TcpState::Closed`] afterwards.
    pub(super) fn close(&mut self, is_abortive: bool, cx: &mut Context<'_>) {
        self.is_orphan = true;
        let was_read = self.incoming.is_empty();
        self.is_read_closed = true;
        self.is_write_closed = true;
        match self.state {
            TcpState::SynSent => self.end(),
            TcpState::Closed | TcpState::TimeWait => {}
            _ if !was_read || is_abortive && !matches!(self.state, TcpState::Closing | TcpState::LastAck) => {
                self.send_reset(cx);
                self.end();
            }
            TcpState::FinWait2 => self.deadline = Some(cx.now + cx.settings.fin_timeout),
            _ => self.end_writing(cx),
        }
        self.incoming = VecDeque::new();
    }

    /// Ends the connection with an error for the program.
    pub(super) fn fail(&mut self, errno: Errno) {
        self.error = Some(errno);
        self.end();
    }

    /// Ends the connection. What has arrived stays readable.
    pub(super) fn end(&mut self) {
        self.state = TcpState::Closed;
        self.is_read_closed = true;
        self.is_write_closed = true;
        self.outgoing = VecDeque::new();
        self.early.clear();
        self.deadline = None;
        self.has_event = true;
    }
}

/// Copies bytes of a ring from an offset on.
pub(super) fn copy(ring: &VecDeque<u8>, offset: usize, target: &mut [u8]) {
    let (first, second) = ring.as_slices();
    let first = first.get(offset..).unwrap_or(&[]);
    let count = first.len().min(target.len());
    target[..count].copy_from_slice(&first[..count]);
    let rest = target.len() - count;
    let start = (offset + count).saturating_sub(ring.as_slices().0.len());
    target[count..].copy_from_slice(&second[start..start + rest]);
}
