//! The tasks that wait for a session, and how they are woken.

use std::task::{Context, Poll, Waker};

/// Wakers that were taken out of a session, to be called when its lock is free. Calling or dropping a waker
/// may run any code: the last waker of a task drops the task, and with it perhaps a stream of the same
/// connection.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    called: Vec<Waker>,
    dropped: Vec<Waker>,
}

impl Wakes {
    /// Calls the wakers.
    pub(crate) fn release(&mut self) {
        self.dropped.clear();
        self.called.drain(..).for_each(Waker::wake);
    }
}

/// A place for one waiting task, which replaces the previous one.
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

    /// The wait is over.
    pub(crate) fn clear(&mut self, wakes: &mut Wakes) {
        wakes.dropped.extend(self.0.take());
    }
}

/// A line for any number of waiting tasks, each with a ticket; 0 means none.
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

    /// Wakes all of them: each checks for itself.
    pub(crate) fn wake(&mut self, wakes: &mut Wakes) {
        wakes.called.extend(self.waiting.drain(..).map(|(_, waker)| waker));
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}
