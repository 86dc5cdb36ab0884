//! Who waits for something of a session, and how they are told.

use std::task::{Context, Poll, Waker};

/// Wakers that have left a session, for the moment when its lock is free. To call one may run anybody's code, and so may to drop one: with
/// the last waker of a task the task goes, and with it perhaps a stream of the same connection.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    called: Vec<Waker>,
    dropped: Vec<Waker>,
}

impl Wakes {
    /// Now.
    pub(crate) fn release(&mut self) {
        self.dropped.clear();
        self.called.drain(..).for_each(Waker::wake);
    }
}

/// Where one task waits, in place of whichever waited there before.
#[derive(Debug, Default)]
pub(crate) struct Place(Option<Waker>);

impl Place {
    pub(crate) fn wait<T>(&mut self, cx: &Context<'_>, wakes: &mut Wakes) -> Poll<T> {
        if !self.0.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            wakes.dropped.extend(self.0.replace(cx.waker().clone()));
        }
        Poll::Pending
    }

    pub(crate) fn wake(&mut self, wakes: &mut Wakes) {
        wakes.called.extend(self.0.take());
    }

    /// There is nothing to wait for any more.
    pub(crate) fn clear(&mut self, wakes: &mut Wakes) {
        wakes.dropped.extend(self.0.take());
    }
}

/// Where as many wait as there are, each with a ticket; 0 is none.
#[derive(Debug, Default)]
pub(crate) struct Line {
    last: u64,
    waiting: Vec<(u64, Waker)>,
}

impl Line {
    pub(crate) fn wait<T>(&mut self, ticket: &mut u64, cx: &Context<'_>, wakes: &mut Wakes) -> Poll<T> {
        match self.waiting.iter_mut().find(|(of, _)| of == ticket) {
            Some((_, waker)) if waker.will_wake(cx.waker()) => {}
            Some((_, waker)) => wakes.dropped.push(std::mem::replace(waker, cx.waker().clone())),
            None => {
                self.last += 1;
                *ticket = self.last;
                self.waiting.push((*ticket, cx.waker().clone()));
            }
        }
        Poll::Pending
    }

    pub(crate) fn leave(&mut self, ticket: u64, wakes: &mut Wakes) {
        if let Some(at) = self.waiting.iter().position(|(of, _)| *of == ticket) {
            wakes.dropped.push(self.waiting.swap_remove(at).1);
        }
    }

    /// All of them: each finds out for itself whether there is something for it.
    pub(crate) fn wake(&mut self, wakes: &mut Wakes) {
        wakes.called.extend(self.waiting.drain(..).map(|(_, waker)| waker));
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}
