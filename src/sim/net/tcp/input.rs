//! A segment arrives at a connection: RFC 9293, section 3.10.7.

use super::super::errno::Errno;
use super::super::packet::Segment;
use super::connection::{Connection, Context, TcpState};

impl Connection {
    /// Processes a segment for this connection.
    pub(super) fn accept_segment(&mut self, segment: Segment, cx: &mut Context<'_>) {
        match self.state {
            TcpState::Closed => {}
            TcpState::SynSent => self.input_syn_sent(&segment, cx),
            _ => self.input_synchronized(segment, cx),
        }
    }

    fn input_syn_sent(&mut self, segment: &Segment, cx: &mut Context<'_>) {
        if segment.ack.is_some_and(|ack| ack != self.next) {
            if !segment.rst {
                cx.outbox.push(segment.refusal());
            }
            return;
        }
        if segment.rst {
            if segment.ack.is_some() {
                self.fail(Errno::ConnectionRefused);
            }
            return;
        }
        if !segment.syn {
            return;
        }
        self.receive_next = segment.seq + 1;
        self.advertised = self.receive_next;
        self.window_end = self.next + segment.window;
        match segment.ack {
            Some(ack) => {
                self.establish(ack, cx);
                self.send_ack(cx);
            }
            // Both sides have sent a SYN at the same time.
            None => {
                self.state = TcpState::SynReceived;
                self.send_syn(cx);
            }
        }
    }

    fn establish(&mut self, ack: u64, cx: &mut Context<'_>) {
        self.state = TcpState::Established;
        self.has_event = true;
        self.take_acknowledged(ack, cx);
        self.deadline = None;
    }

    fn input_synchronized(&mut self, segment: Segment, cx: &mut Context<'_>) {
        let is_in_window = segment.seq <= self.advertised && segment.end() >= self.receive_next;
        if segment.rst {
            if segment.seq == self.receive_next {
                self.reset();
            } else if is_in_window {
                self.send_ack(cx);
            }
            return;
        }
        if !is_in_window || segment.syn {
            self.answer_stray(&segment, cx);
            return;
        }
        let Some(ack) = segment.ack else { return };
        if self.state == TcpState::SynReceived {
            if ack <= self.una || ack > self.next {
                cx.outbox.push(segment.refusal());
                return;
            }
            self.establish(ack, cx);
        }
        if ack > self.next {
            self.send_ack(cx);
            return;
        }
        self.input_ack(ack, &segment, cx);
        if self.state == TcpState::Closed {
            return;
        }
        let must_ack = segment.len() > 0;
        let rejects = matches!(self.state, TcpState::FinWait1 | TcpState::FinWait2) && self.is_read_closed;
        let end_of_data = segment.seq + segment.data.len() as u64;
        if rejects && !segment.data.is_empty() && end_of_data > self.receive_next {
            // As Linux does: the peer must learn that nothing reads its data.
            cx.outbox.push(Segment { seq: ack, rst: true, ..Segment::default() });
            self.fail(Errno::ConnectionReset);
            return;
        }
        if must_ack {
            self.input_data(segment, cx);
        }
        if !self.send_data(cx) && must_ack && self.state != TcpState::Closed {
            self.send_ack(cx);
        }
    }

    /// Answers a segment that carries nothing new, such as one that was sent again because an acknowledgement
    /// was lost. A segment without content has no answer, since two such answers could follow each other for
    /// ever.
    fn answer_stray(&mut self, segment: &Segment, cx: &mut Context<'_>) {
        if self.state == TcpState::SynReceived && segment.syn && segment.ack.is_none() {
            self.send_syn(cx);
        } else if segment.len() > 0 {
            if self.state == TcpState::TimeWait {
                self.deadline = Some(cx.now + cx.settings.time_wait);
            }
            self.send_ack(cx);
        }
    }

    fn reset(&mut self) {
        match self.state {
            TcpState::TimeWait => self.end(),
            TcpState::CloseWait => self.fail(Errno::BrokenPipe),
            _ => self.fail(Errno::ConnectionReset),
        }
    }

    /// Takes the acknowledgement and the window of a segment.
    fn input_ack(&mut self, ack: u64, segment: &Segment, cx: &mut Context<'_>) {
        let old_end = self.window_end;
        let was_writable = self.is_writable();
        self.window_end = old_end.max(ack + segment.window);
        if ack > self.una {
            self.take_acknowledged(ack, cx);
            if !was_writable && self.is_writable() && !self.is_write_closed {
                self.has_event = true;
            }
            self.repair(cx);
        } else if ack == self.una && self.next > self.una {
            self.input_duplicate(segment.len() == 0 && self.window_end == old_end, cx);
        }
    }

    /// Removes the bytes, the SYN or the FIN that the peer has acknowledged.
    fn take_acknowledged(&mut self, ack: u64, cx: &mut Context<'_>) {
        if let Some((end, sent_at)) = self.measured {
            if ack >= end {
                self.measured = None;
                self.add_round_trip(cx.now - sent_at, cx);
            }
        }
        let count = ((ack - self.una) as usize).min(self.outgoing.len());
        self.outgoing.drain(..count);
        self.una = ack;
        self.retries = 0;
        self.doublings = 0;
        self.duplicates = 0;
        self.is_probing = false;
        self.deadline = None;
        if self.is_ending && self.outgoing.is_empty() && self.una == self.next {
            self.fin_is_acknowledged(cx);
        }
    }

    fn fin_is_acknowledged(&mut self, cx: &mut Context<'_>) {
        match self.state {
            TcpState::FinWait1 => {
                self.state = TcpState::FinWait2;
                self.deadline = self.is_orphan.then(|| cx.now + cx.settings.fin_timeout);
            }
            TcpState::Closing => self.wait(cx),
            TcpState::LastAck => self.end(),
            _ => {}
        }
    }

    /// Enters `TimeWait`, which the program sees as the end.
    fn wait(&mut self, cx: &mut Context<'_>) {
        self.end();
        self.state = TcpState::TimeWait;
        self.deadline = Some(cx.now + cx.settings.time_wait);
    }

    /// After an acknowledgement of a part of what was in flight when a loss was noticed, the next segment is
    /// lost, too: RFC 6582.
    fn repair(&mut self, cx: &mut Context<'_>) {
        match self.recovery {
            Some(end) if self.una < end => self.send_first_again(cx),
            _ => self.recovery = None,
        }
    }

    /// Counts an acknowledgement that acknowledges nothing new.
    fn input_duplicate(&mut self, is_duplicate: bool, cx: &mut Context<'_>) {
        let is_window_closed = self.window_end <= self.una;
        if self.is_probing && !is_window_closed {
            // The probed byte was not accepted. It is sent again with what follows.
            self.next = self.una;
            self.is_probing = false;
            (self.retries, self.doublings) = (0, 0);
            self.deadline = None;
        } else if is_window_closed {
            // The peer lives, so its closed window never fails the connection.
            self.retries = 0;
        } else if is_duplicate {
            self.duplicates += 1;
            if self.duplicates == 3 && self.recovery.is_none() {
                self.recovery = Some(self.next);
                self.send_first_again(cx);
            }
        }
    }

    /// Takes the data and the FIN of a segment, as far as they are in the window.
    fn input_data(&mut self, segment: Segment, cx: &mut Context<'_>) {
        if !matches!(self.state, TcpState::Established | TcpState::FinWait1 | TcpState::FinWait2) {
            return;
        }
        let mut data = segment.data;
        let data_end = segment.seq + data.len() as u64;
        if segment.fin {
            self.fin_at = Some(data_end);
        }
        let excess = data_end.saturating_sub(self.advertised) as usize;
        data.truncate(data.len().saturating_sub(excess));
        if segment.seq <= self.receive_next {
            self.append(segment.seq, &data);
            while let Some(entry) = self.early.first_entry() {
                if *entry.key() > self.receive_next {
                    break;
                }
                let (seq, data) = entry.remove_entry();
                self.append(seq, &data);
            }
        } else if self.early.get(&segment.seq).is_none_or(|other| other.len() < data.len()) {
            self.early.insert(segment.seq, data);
        }
        if self.fin_at == Some(self.receive_next) {
            self.take_fin(cx);
        }
    }

    fn append(&mut self, seq: u64, data: &[u8]) {
        let known = (self.receive_next - seq) as usize;
        let Some(data) = data.get(known..).filter(|data| !data.is_empty()) else { return };
        self.incoming.extend(data);
        self.receive_next += data.len() as u64;
        self.has_event = true;
    }

    fn take_fin(&mut self, cx: &mut Context<'_>) {
        self.receive_next += 1;
        self.advertised = self.advertised.max(self.receive_next);
        self.is_read_closed = true;
        self.has_fin = true;
        self.has_event = true;
        self.early.clear();
        match self.state {
            TcpState::Established => self.state = TcpState::CloseWait,
            TcpState::FinWait1 => self.state = TcpState::Closing,
            _ => self.wait(cx),
        }
    }
}
