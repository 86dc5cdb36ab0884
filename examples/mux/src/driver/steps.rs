//! The repeated steps of a driver: it receives, sends, and checks the clock.

use super::*;
use crate::silence::Verdict;

impl<IO: AsyncRead + AsyncWrite + Unpin> Driver<IO> {
    pub(super) fn receive(&mut self, cx: &mut Context<'_>) -> Step {
        if self.eof {
            return Step::Waits;
        }
        let read = match Pin::new(&mut self.io).poll_read(cx, self.inbox.space()) {
            Poll::Ready(Ok(read)) => read,
            Poll::Ready(Err(error)) => return self.failed(error),
            Poll::Pending => return Step::Waits,
        };
        self.eof = read == 0;
        if self.parting.is_some() {
            return Step::Done;
        }
        if self.eof {
            return match self.shared.with(|session, _| session.has_heard_goodbye()) {
                true => self.part(Ok(())),
                false => Step::End(Err(Error::Cut)),
            };
        }
        self.silence.heard();
        self.inbox.filled(read);
        let received = self.with(|session, inbox, _, wakes| {
            while let Some((stream, frame)) = inbox.next()? {
                session.receive(stream, frame, wakes)?;
            }
            Ok(())
        });
        match received {
            Ok(()) => Step::Done,
            // The peer has ended the connection, and reads no answer.
            Err(told @ Error::Told { .. }) => Step::End(Err(told)),
            Err(error) => self.part(Err(error)),
        }
    }

    pub(super) fn send(&mut self, cx: &mut Context<'_>) -> Step {
        if self.outbox.is_empty() && self.parting.is_none() {
            let finished = self.with(|session, _, outbox, wakes| {
                session.emit(outbox, wakes, cx);
                session.is_finished()
            });
            if finished {
                return self.part(Ok(()));
            }
        }
        if !self.outbox.is_empty() {
            self.flushed = false;
            return match self.outbox.poll_write(&mut self.io, cx) {
                Poll::Ready(Ok(_)) => {
                    self.silence.sent();
                    if self.outbox.is_empty() {
                        self.silence.emptied();
                    }
                    Step::Done
                }
                Poll::Ready(Err(error)) => self.failed(error),
                Poll::Pending => Step::Waits,
            };
        }
        match &mut self.parting {
            None if self.flushed => Step::Waits,
            None => match Pin::new(&mut self.io).poll_flush(cx) {
                Poll::Ready(Ok(())) => {
                    self.flushed = true;
                    Step::Waits
                }
                Poll::Ready(Err(error)) => self.failed(error),
                Poll::Pending => Step::Waits,
            },
            Some(parting) if parting.closed && self.eof => Step::End(parting.result.clone()),
            Some(parting) if parting.closed => Step::Waits,
            Some(parting) => match Pin::new(&mut self.io).poll_close(cx) {
                Poll::Ready(Ok(())) => {
                    parting.closed = true;
                    Step::Done
                }
                Poll::Ready(Err(error)) => self.failed(error),
                Poll::Pending => Step::Waits,
            },
        }
    }

    pub(super) fn look_at_clock(&mut self, cx: &mut Context<'_>) -> Step {
        if !self.silence.poll_tick(cx) {
            return Step::Waits;
        }
        if let Some(Parting { result, .. }) = &self.parting {
            // The remaining bytes of streams are sent for as long as the peer reads; a peer that has broken a
            // rule gets no more time.
            return match self.silence.tick_parting() {
                _ if result.is_err() || self.outbox.is_empty() => Step::End(result.clone()),
                Ok(()) => Step::Done,
                deaf => Step::End(deaf),
            };
        }
        let (greeted, pinged) =
            self.shared.with(|session, _| (session.has_heard_hello(), session.has_pinged()));
        match self.silence.tick(greeted, !self.outbox.is_empty(), pinged) {
            Verdict::Lives => {}
            Verdict::Ask => self.shared.with(|session, _| session.ping()),
            Verdict::Dead(error) => return Step::End(Err(error)),
        }
        Step::Done
    }
}
