//! The frames that this side has to send.

use super::*;

impl Session {
    fn may_send_credit(&self) -> bool {
        self.leaving.is_none() && !self.goodbye_heard
    }

    /// Puts pending frames into an empty outbox: each lane in its turn, while there is room. If there are
    /// none, registers this task.
    pub(crate) fn emit(&mut self, outbox: &mut Outbox, wakes: &mut Wakes, cx: &Context<'_>) {
        outbox.recycle(&mut self.spare);
        if let Some(value) = self.pong.take() {
            outbox.push(0, Frame::Pong(value));
        }
        if take(&mut self.ping) {
            self.pings += 1;
            self.pinged = Some(self.pings);
            outbox.push(0, Frame::Ping(self.pings));
        }
        if self.gone > 0 && self.may_send_credit() {
            self.theirs.may_open += self.gone;
            outbox.push(0, Frame::Credit(take(&mut self.gone)));
        }
        for id in self.refused.drain(..) {
            outbox.push(id, Frame::Reset(REFUSED));
        }
        while !outbox.is_full() {
            let Some(id) = self.queue.pop_front() else { break };
            let lane = self.lanes.get_mut(&id).expect("a lane stays for as long as its turn is to come");
            lane.queued = false;
            lane.emit(outbox, wakes);
            self.settle(id);
        }
        if self.leaving == Some(Leaving::Owed) && self.peer_window.is_some() {
            self.leaving = Some(Leaving::Said);
            outbox.push(0, Frame::Goodbye { code: 0, reason: "" });
        }
        if outbox.is_empty() {
            let _: Poll<()> = self.driver.wait(cx, wakes);
        }
    }

    /// Returns whether everything is done before the transport is closed.
    pub(crate) fn is_finished(&self) -> bool {
        let leaving = self.leaving == Some(Leaving::Said) || self.goodbye_heard;
        leaving && self.refused.is_empty() && self.lanes.values().all(Lane::is_over)
    }

    /// Queues a PING, unless one is on its way.
    pub(crate) fn ping(&mut self) {
        self.ping = self.pinged.is_none();
    }

    /// Returns whether a PING is unanswered.
    pub(crate) fn has_pinged(&self) -> bool {
        self.pinged.is_some()
    }

    pub(crate) fn has_heard_hello(&self) -> bool {
        self.peer_window.is_some()
    }

    pub(crate) fn has_heard_goodbye(&self) -> bool {
        self.goodbye_heard
    }

    pub(crate) fn has_said_goodbye(&self) -> bool {
        self.leaving == Some(Leaving::Said)
    }
}
