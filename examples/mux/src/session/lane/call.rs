//! Calls of the program on a stream.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use crate::error::Error;
use crate::frame::{HEADER, MAX_PAYLOAD};
use crate::outbox::Spare;
use crate::waiting::Wakes;

use super::{Fin, Lane, Reset};

/// How much memory an empty buffer may keep.
const KEPT: usize = MAX_PAYLOAD;

impl Lane {
    /// Reads, after which credit may be due.
    pub(in crate::session) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
        ended: Option<&Error>,
        wakes: &mut Wakes,
    ) -> Poll<Result<usize, Error>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        if !self.unread.is_empty() {
            let (front, back) = self.unread.as_slices();
            let first = front.len().min(buf.len());
            let second = back.len().min(buf.len() - first);
            buf[..first].copy_from_slice(&front[..first]);
            buf[first..first + second].copy_from_slice(&back[..second]);
            self.unread.drain(..first + second);
            self.taken += (first + second) as u32;
            if self.unread.is_empty() && self.unread.capacity() > KEPT {
                self.unread = VecDeque::new();
            }
            return Poll::Ready(Ok(first + second));
        }
        match (self.reset, ended) {
            _ if self.fin_heard => Poll::Ready(Ok(0)),
            (Reset::Heard(code), _) => Poll::Ready(Err(Error::Reset(code))),
            (_, Some(error)) => Poll::Ready(Err(error.clone())),
            _ => self.reader.wait(cx, wakes),
        }
    }

    /// Puts as much as credit and room allow into the frame that is sent next.
    pub(in crate::session) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        buf: &[u8],
        spare: &mut Spare,
        ended: Option<&Error>,
        wakes: &mut Wakes,
    ) -> Poll<Result<usize, Error>> {
        match (self.reset, self.fin, ended) {
            (Reset::Heard(code), ..) => return Poll::Ready(Err(Error::Reset(code))),
            (_, Fin::No, None) => {}
            (_, Fin::No, Some(error)) => return Poll::Ready(Err(error.clone())),
            _ => return Poll::Ready(Err(Error::Closed)),
        }
        let room = HEADER + MAX_PAYLOAD - self.frame.len().max(HEADER);
        let len = buf.len().min(room).min(self.credit as usize);
        if len == 0 && !buf.is_empty() {
            return self.writer.wait(cx, wakes);
        }
        if len > 0 && self.frame.is_empty() {
            self.frame = spare.take();
            self.frame.extend([0; HEADER]);
        }
        self.frame.extend(&buf[..len]);
        self.credit -= len as u32;
        Poll::Ready(Ok(len))
    }

    /// Waits until all written bytes are on their way.
    pub(in crate::session) fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        ended: Option<&Error>,
        wakes: &mut Wakes,
    ) -> Poll<Result<(), Error>> {
        match (self.reset, ended) {
            (Reset::Heard(code), _) => Poll::Ready(Err(Error::Reset(code))),
            _ if self.fin == Fin::Sent => Poll::Ready(Ok(())),
            (_, Some(error)) => Poll::Ready(Err(error.clone())),
            _ if self.frame.is_empty() && self.fin == Fin::No => Poll::Ready(Ok(())),
            _ => self.writer.wait(cx, wakes),
        }
    }

    /// Ends the write side, and waits as a flush does.
    pub(in crate::session) fn poll_close(
        &mut self,
        cx: &mut Context<'_>,
        ended: Option<&Error>,
        wakes: &mut Wakes,
    ) -> Poll<Result<(), Error>> {
        if self.fin == Fin::No {
            self.fin = Fin::Owed;
        }
        match self.reset {
            // A peer that has sent everything, and does not want more.
            Reset::Heard(_) if self.fin_heard => Poll::Ready(Ok(())),
            _ => self.poll_flush(cx, ended, wakes),
        }
    }
}
