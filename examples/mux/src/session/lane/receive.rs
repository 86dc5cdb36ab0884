//! Effects of the peer's frames on a stream.

use std::collections::VecDeque;

use crate::error::{Code, Violation};
use crate::frame::{Frame, MAX_CREDIT};
use crate::waiting::Wakes;

use super::{Lane, Reset};

impl Lane {
    /// Handles a frame of the peer.
    pub(in crate::session) fn receive(
        &mut self,
        frame: Frame<'_>,
        wakes: &mut Wakes,
    ) -> Result<(), Violation> {
        if self.reset != Reset::No {
            // The peer may not know yet.
            return Ok(());
        }
        match frame {
            Frame::Data(bytes) => return self.data(bytes, wakes),
            Frame::Fin if self.fin_heard => return Err(self.wrong(Code::Protocol, "was ended twice")),
            Frame::Fin => {
                self.fin_heard = true;
                self.reader.wake(wakes);
            }
            Frame::Credit(more) => {
                self.credit = add(self.credit, more).ok_or_else(|| {
                    self.wrong(
                        Code::Window,
                        &format!("is given {more} bytes of credit on top of {}", self.credit),
                    )
                })?;
                self.writer.wake(wakes);
            }
            Frame::Reset(code) => {
                self.reset = Reset::Heard(code);
                self.frame = Vec::new();
                if !self.fin_heard {
                    self.unread = VecDeque::new();
                }
                self.wake(wakes);
            }
            _ => unreachable!("{frame:?} is for no stream"),
        }
        Ok(())
    }

    fn data(&mut self, bytes: &[u8], wakes: &mut Wakes) -> Result<(), Violation> {
        if self.fin_heard {
            return Err(self.wrong(Code::Protocol, "has data after its end"));
        }
        let len = bytes.len() as u32;
        let Some(window) = self.window.checked_sub(len) else {
            let what = format!("has {len} bytes of data, and room for {}", self.window);
            return Err(self.wrong(Code::Window, &what));
        };
        self.window = window;
        let needed = self.unread.len() + bytes.len();
        if needed > self.unread.capacity() {
            // Twice as much, but never more than may come.
            let room = needed.max((2 * self.unread.capacity()).min(self.granted as usize));
            self.unread.reserve_exact(room - self.unread.len());
        }
        self.unread.extend(bytes);
        self.reader.wake(wakes);
        Ok(())
    }

    fn wrong(&self, code: Code, what: &str) -> Violation {
        Violation::new(code, format!("stream {} {what}", self.id))
    }
}

/// Returns the sum, if it is allowed.
pub(in crate::session) fn add(credit: u32, more: u32) -> Option<u32> {
    credit.checked_add(more).filter(|sum| more > 0 && *sum <= MAX_CREDIT)
}
