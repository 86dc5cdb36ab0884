//! Calls of the program: it opens and accepts streams, reads, writes and drops them.

use super::*;

impl Session {
    pub(crate) fn poll_open(
        &mut self,
        ticket: &mut u64,
        cx: &Context<'_>,
        wakes: &mut Wakes,
    ) -> Poll<Result<u32, Error>> {
        if let Some(error) = &self.ended {
            return Poll::Ready(Err(error.clone()));
        }
        if self.leaving.is_some() || self.goodbye_heard {
            return Poll::Ready(Err(Error::Goodbye));
        }
        let Ok(id) = u32::try_from(self.ours.next) else { return Poll::Ready(Err(Error::Spent)) };
        let (Some(credit), Some(left)) = (self.peer_window, self.ours.may_open.checked_sub(1)) else {
            return self.openers.wait(ticket, cx, wakes);
        };
        self.ours.may_open = left;
        self.ours.next += 2;
        self.lanes.insert(id, Lane::new(id, true, credit, self.config.window));
        self.owe(id, wakes);
        Poll::Ready(Ok(id))
    }

    /// Accepts a stream of the peer; returns none when there will be no more.
    pub(crate) fn poll_accept(
        &mut self,
        ticket: &mut u64,
        cx: &Context<'_>,
        wakes: &mut Wakes,
    ) -> Poll<Result<Option<u32>, Error>> {
        while let Some(id) = self.arrived.pop_front() {
            if !held(&mut self.lanes, id).is_lost() {
                return Poll::Ready(Ok(Some(id)));
            }
            self.let_go(id, DROPPED, wakes);
        }
        match &self.ended {
            None | Some(Error::Goodbye) if self.leaving.is_some() || self.goodbye_heard => {
                Poll::Ready(Ok(None))
            }
            Some(error) => Poll::Ready(Err(error.clone())),
            None => self.acceptors.wait(ticket, cx, wakes),
        }
    }

    pub(crate) fn poll_read(
        &mut self,
        id: u32,
        cx: &mut Context<'_>,
        buf: &mut [u8],
        wakes: &mut Wakes,
    ) -> Poll<Result<usize, Error>> {
        let lane = held(&mut self.lanes, id);
        let read = lane.poll_read(cx, buf, self.ended.as_ref(), wakes);
        if self.ended.is_none() && lane.owes_credit() {
            self.owe(id, wakes);
        }
        read
    }

    pub(crate) fn poll_write(
        &mut self,
        id: u32,
        cx: &mut Context<'_>,
        buf: &[u8],
        wakes: &mut Wakes,
    ) -> Poll<Result<usize, Error>> {
        let lane = held(&mut self.lanes, id);
        let written = lane.poll_write(cx, buf, &mut self.spare, self.ended.as_ref(), wakes);
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.owe(id, wakes);
        }
        written
    }

    pub(crate) fn poll_flush(
        &mut self,
        id: u32,
        cx: &mut Context<'_>,
        wakes: &mut Wakes,
    ) -> Poll<Result<(), Error>> {
        let lane = held(&mut self.lanes, id);
        lane.poll_flush(cx, self.ended.as_ref(), wakes)
    }

    pub(crate) fn poll_close(
        &mut self,
        id: u32,
        cx: &mut Context<'_>,
        wakes: &mut Wakes,
    ) -> Poll<Result<(), Error>> {
        let lane = held(&mut self.lanes, id);
        let closed = lane.poll_close(cx, self.ended.as_ref(), wakes);
        if closed.is_pending() {
            self.owe(id, wakes);
        }
        closed
    }

    /// Handles the drop of a stream's handle. If the stream has not ended, the peer gets this code.
    pub(crate) fn let_go(&mut self, id: u32, code: u32, wakes: &mut Wakes) {
        let lane = held(&mut self.lanes, id);
        lane.let_go(code, wakes);
        if self.ended.is_some() {
            self.lanes.remove(&id);
        } else if lane.is_over() {
            // There may be credit for another stream now.
            self.settle(id);
            self.driver.wake(wakes);
        } else {
            self.owe(id, wakes);
        }
    }

    /// Allows no new streams. The connection ends when the existing ones have ended.
    pub(crate) fn say_goodbye(&mut self, wakes: &mut Wakes) {
        if self.leaving.is_none() {
            self.leaving = Some(Leaving::Owed);
            self.driver.wake(wakes);
            self.openers.wake(wakes);
            self.acceptors.wake(wakes);
        }
    }

    /// Handles the drop of all handles that could open or accept streams.
    pub(crate) fn forsake(&mut self, wakes: &mut Wakes) {
        self.say_goodbye(wakes);
        for id in take(&mut self.arrived) {
            self.let_go(id, REFUSED, wakes);
        }
    }

    pub(crate) fn poll_done(
        &mut self,
        ticket: &mut u64,
        cx: &Context<'_>,
        wakes: &mut Wakes,
    ) -> Poll<Result<(), Error>> {
        match &self.done {
            Some(result) => Poll::Ready(result.clone()),
            None => self.closers.wait(ticket, cx, wakes),
        }
    }
}
