//! [`Work`] as a simulation runs it: on its own thread, in steps at different times.

use std::panic::Location;
use std::sync::Arc;

use crate::blocking_threads::{Errand, Title, Work};
use crate::simulated::BlockingPiece;

impl BlockingPiece for Work {
    fn made_at(&self) -> Option<&'static Location<'static>> {
        self.title().map(|Title(_, made_at)| made_at)
    }

    fn step(self: Box<Self>) -> Option<Box<dyn BlockingPiece>> {
        match *self {
            Work::Errand(errand, _) => {
                errand.clone().begin().then(|| Box::new(Ran(errand)) as Box<dyn BlockingPiece>)
            }
            task => {
                task.run();
                None
            }
        }
    }

    fn give_up(self: Box<Self>) {
        self.cancel();
    }

    fn release_clock(&mut self) {
        let (Work::Task(_, _, held) | Work::Errand(_, held)) = self;
        drop(held.take());
    }
}

/// A job whose closure has run, and whose result is not delivered yet.
struct Ran(Arc<dyn Errand>);

impl BlockingPiece for Ran {
    fn made_at(&self) -> Option<&'static Location<'static>> {
        Some(self.0.title().1)
    }

    fn step(self: Box<Self>) -> Option<Box<dyn BlockingPiece>> {
        self.0.deliver();
        None
    }

    fn give_up(self: Box<Self>) {
        self.0.deliver();
    }

    fn release_clock(&mut self) {}
}
