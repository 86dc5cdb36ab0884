//! What a connection sends, and its timer.

use std::time::Duration;

use super::super::errno::Errno;
use super::super::packet::Segment;
use super::connection::{Connection, Context, TcpState, copy};

impl Connection {
    fn segment(&mut self, seq: u64) -> Segment {
        let window = self.renew_window() - self.receive_next;
        Segment { seq, ack: Some(self.receive_next), window, ..Segment::default() }
    }

    /// Moves the end of the advertised window, unless the gain is so small that it would lead to small
    /// segments, and returns it.
    fn renew_window(&mut self) -> u64 {
        let end = self.receive_next + (self.receive_buffer - self.incoming.len()) as u64;
        if end >= self.advertised + self.least_gain() {
            self.advertised = end;
        }
        self.advertised
    }

    /// Returns the least number of bytes by which the window is opened: RFC 9293, section 3.8.6.2.2.
    fn least_gain(&self) -> u64 {
        self.segment_size.min(self.receive_buffer / 2).max(1) as u64
    }

    /// Tells the peer that the program has read, if the peer may wait for it.
    pub(super) fn update_window(&mut self, cx: &mut Context<'_>) {
        let is_open = matches!(self.state, TcpState::Established | TcpState::FinWait1 | TcpState::FinWait2);
        let known = self.advertised - self.receive_next.min(self.advertised);
        if is_open && known <= (self.receive_buffer / 2) as u64 {
            let before = self.advertised;
            if self.renew_window() > before {
                self.send_ack(cx);
            }
        }
    }

    pub(super) fn send_ack(&mut self, cx: &mut Context<'_>) {
        let segment = self.segment(self.next);
        cx.outbox.push(segment);
    }

    /// Sends the SYN, with an acknowledgement if the peer's SYN has arrived.
    pub(super) fn send_syn(&mut self, cx: &mut Context<'_>) {
        let mut segment = self.segment(self.una);
        segment.syn = true;
        if self.state == TcpState::SynSent {
            segment.ack = None;
            segment.window = self.receive_buffer as u64;
        }
        cx.outbox.push(segment);
    }

    pub(super) fn send_reset(&mut self, cx: &mut Context<'_>) {
        let segment = Segment { rst: true, ..self.segment(self.next) };
        cx.outbox.push(segment);
    }

    /// Makes a segment of `count` bytes from `seq`, with the FIN if it follows and is wanted.
    fn data_segment(&mut self, seq: u64, count: usize, fin: bool) -> Segment {
        let mut data = vec![0; count];
        copy(&self.outgoing, (seq - self.una) as usize, &mut data);
        Segment { data, fin, ..self.segment(seq) }
    }

    /// Sends what the window permits. Returns whether a segment was sent.
    pub(super) fn send_data(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.state.can_send() {
            return false;
        }
        let before = self.next;
        loop {
            let in_flight = (self.next - self.una) as usize;
            let Some(unsent) = self.outgoing.len().checked_sub(in_flight) else { break };
            let room = self.window_end.saturating_sub(self.next) as usize;
            let count = unsent.min(room).min(self.segment_size);
            let fin = self.is_ending && count == unsent;
            if count == 0 && !fin {
                break;
            }
            let segment = self.data_segment(self.next, count, fin);
            self.next = segment.end();
            self.measured = self.measured.or(Some((self.next, cx.now)));
            cx.outbox.push(segment);
        }
        self.keep_timer(cx);
        self.next > before
    }

    /// Sends the first segment that is not acknowledged again.
    pub(super) fn send_first_again(&mut self, cx: &mut Context<'_>) {
        self.measured = None;
        let in_flight = (self.next - self.una) as usize;
        let count = in_flight.min(self.outgoing.len()).min(self.segment_size);
        let fin = self.is_ending && count == self.outgoing.len() && in_flight > count;
        let segment = self.data_segment(self.una, count, fin);
        cx.outbox.push(segment);
    }

    /// Sends one byte into a closed window. Its acknowledgement tells of the window.
    fn send_probe(&mut self, cx: &mut Context<'_>) {
        let segment = self.data_segment(self.una, 1, false);
        self.next = self.una + 1;
        self.is_probing = true;
        self.measured = None;
        cx.outbox.push(segment);
    }

    /// Sets or removes the timer, according to what waits for an acknowledgement or a window.
    fn keep_timer(&mut self, cx: &mut Context<'_>) {
        let waits = self.next > self.una || !self.outgoing.is_empty();
        if !waits {
            self.deadline = None;
        } else if self.deadline.is_none() {
            self.restart_timer(cx);
        }
    }

    pub(super) fn restart_timer(&mut self, cx: &mut Context<'_>) {
        // 2^16 times the shortest timeout is above every sensible bound, and the shift must not overflow.
        let doubled = self.timeout.saturating_mul(1 << self.doublings.min(16));
        self.deadline = Some(cx.now + doubled.min(cx.settings.max_timeout));
    }

    /// Adds a measured round trip, by RFC 6298 with the minimum of Linux.
    pub(super) fn add_round_trip(&mut self, sample: Duration, cx: &mut Context<'_>) {
        let (smoothed, variation) = match self.round_trip {
            None => (sample, sample / 2),
            Some((smoothed, variation)) => {
                (smoothed * 7 / 8 + sample / 8, variation * 3 / 4 + smoothed.abs_diff(sample) / 4)
            }
        };
        self.round_trip = Some((smoothed, variation));
        self.timeout = smoothed + (variation * 4).max(cx.settings.min_timeout);
    }

    /// The timer has fired.
    pub(super) fn time_out(&mut self, cx: &mut Context<'_>) {
        self.deadline = None;
        let limit = match self.state {
            TcpState::Closed => return,
            TcpState::TimeWait | TcpState::FinWait2 => return self.end(),
            TcpState::SynSent => cx.settings.syn_retries,
            TcpState::SynReceived => cx.settings.syn_ack_retries,
            _ => cx.settings.retries,
        };
        if self.retries >= limit {
            return self.fail(Errno::TimedOut);
        }
        self.retries += 1;
        self.doublings += 1;
        self.measured = None;
        if matches!(self.state, TcpState::SynSent | TcpState::SynReceived) {
            self.send_syn(cx);
        } else if self.next > self.una {
            self.recovery = Some(self.next);
            self.send_first_again(cx);
        } else {
            self.send_probe(cx);
        }
        self.restart_timer(cx);
    }
}
