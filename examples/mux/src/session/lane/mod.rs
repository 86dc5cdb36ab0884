//! One stream, as its connection sees it.
//!
//! ```text
//!                    close              emit
//!   we send:   No ---------> Fin::Owed ------> Fin::Sent
//!                    fin
//!   it sends:  ... ---------> fin_heard
//!                    let_go             emit                         reset
//!   both:      No ---------> Reset::Owed ----> Reset::Sent     No ---------> Reset::Heard
//! ```
//!
//! A lane is over when both directions are and it has nothing to send. The lane stays in the table as long as
//! there is a handle, which may have unread bytes; until then it counts as one of its opener's streams.
//!
//! The bytes that the peer may still send, the unread bytes, and those that were read since the last credit
//! always add up to the window that this side grants.

mod call;
mod receive;

use std::collections::VecDeque;

use crate::frame::{Frame, HEADER, data_header};
use crate::outbox::Outbox;
use crate::waiting::{Place, Wakes};

pub(super) use receive::add;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fin {
    No,
    Owed,
    Sent,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Reset {
    No,
    Owed(u32),
    Sent,
    Heard(u32),
}

#[derive(Debug)]
pub(super) struct Lane {
    id: u32,
    /// OPEN has to be sent.
    opening: bool,
    /// How many bytes may still be written.
    credit: u32,
    /// The DATA frame that is being filled, with room for its header. An empty one has no memory.
    frame: Vec<u8>,
    fin: Fin,

    granted: u32,
    /// How many bytes of the granted window may still come.
    window: u32,
    unread: VecDeque<u8>,
    /// How many bytes were read without new credit.
    taken: u32,
    fin_heard: bool,

    reset: Reset,
    /// There is a handle, or will be when the stream is accepted.
    pub(super) held: bool,
    /// The lane is in the queue of lanes with something to send.
    pub(super) queued: bool,
    reader: Place,
    writer: Place,
}

impl Lane {
    pub(super) fn new(id: u32, opening: bool, credit: u32, granted: u32) -> Self {
        Self {
            id,
            opening,
            credit,
            frame: Vec::new(),
            fin: Fin::No,
            granted,
            window: granted,
            unread: VecDeque::new(),
            taken: 0,
            fin_heard: false,
            reset: Reset::No,
            held: true,
            queued: false,
            reader: Place::default(),
            writer: Place::default(),
        }
    }

    /// The peer knows the stream.
    pub(super) fn is_announced(&self) -> bool {
        !self.opening
    }

    /// Nothing more has to happen between the two sides.
    pub(super) fn is_over(&self) -> bool {
        match self.reset {
            Reset::No => self.fin == Fin::Sent && self.fin_heard,
            Reset::Owed(_) => false,
            Reset::Sent | Reset::Heard(_) => true,
        }
    }

    /// The stream was reset before all of it had arrived.
    pub(super) fn is_lost(&self) -> bool {
        self.reset != Reset::No && !self.fin_heard
    }

    /// The memory for its bytes.
    pub(super) fn memory(&self) -> usize {
        self.unread.capacity() + self.frame.capacity()
    }

    fn wake(&mut self, wakes: &mut Wakes) {
        self.reader.wake(wakes);
        self.writer.wake(wakes);
    }

    /// Returns whether to send credit. Less than half a window is not announced: the peer has the rest, or
    /// that is unread here.
    pub(super) fn owes_credit(&self) -> bool {
        self.taken >= (self.granted / 2).max(1) && !self.fin_heard && self.reset == Reset::No
    }

    /// Handles the drop of the handle. A closed direction is sent to its end; an open one is given up with
    /// this code.
    pub(super) fn let_go(&mut self, code: u32, wakes: &mut Wakes) {
        self.held = false;
        self.unread = VecDeque::new();
        self.reader.clear(wakes);
        self.writer.clear(wakes);
        let complete = self.fin != Fin::No && self.fin_heard;
        if !complete && self.reset == Reset::No {
            self.reset = Reset::Owed(code);
            if self.fin == Fin::No {
                self.frame = Vec::new();
            }
        }
    }

    /// Puts all pending frames into the outbox, at most one of them with data.
    pub(super) fn emit(&mut self, outbox: &mut Outbox, wakes: &mut Wakes) {
        if self.opening {
            self.opening = false;
            outbox.push(self.id, Frame::Open);
        }
        if self.owes_credit() {
            outbox.push(self.id, Frame::Credit(self.taken));
            self.window += self.taken;
            self.taken = 0;
        }
        if !self.frame.is_empty() {
            let mut frame = std::mem::take(&mut self.frame);
            let header = data_header(frame.len() - HEADER, self.id);
            frame[..HEADER].copy_from_slice(&header);
            outbox.push_encoded(frame);
            self.writer.wake(wakes);
        }
        if self.fin == Fin::Owed && !matches!(self.reset, Reset::Heard(_)) {
            self.fin = Fin::Sent;
            outbox.push(self.id, Frame::Fin);
            self.writer.wake(wakes);
        }
        if let Reset::Owed(code) = self.reset {
            self.reset = Reset::Sent;
            outbox.push(self.id, Frame::Reset(code));
        }
    }

    /// The connection has ended: nothing will be sent.
    pub(super) fn end(&mut self, wakes: &mut Wakes) {
        self.frame = Vec::new();
        self.wake(wakes);
    }
}
