//! [`Presence`]: which simulations this thread is in.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::Arc;

use super::aborts;
use super::simulation::Simulated;
use crate::simulated::{self, Simulation};

thread_local! {
    /// The simulations that this thread is in, the innermost last, each with a number.
    static INSIDE: RefCell<Vec<(u64, Arc<Simulated>)>> = const { RefCell::new(Vec::new()) };
    static NEXT_NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// This thread is in a simulation until this is dropped. The thread may leave simulations in any order.
#[derive(Debug)]
pub(super) struct Presence {
    number: u64,
    /// Whether the thread saw the clocks of the system before.
    saw_system: bool,
    /// Makes the value `!Send`.
    stays: PhantomData<*const ()>,
}

impl Presence {
    pub(super) fn begin(simulation: &Arc<Simulated>) -> Self {
        let number = NEXT_NUMBER.replace(NEXT_NUMBER.get() + 1);
        INSIDE.with_borrow_mut(|inside| inside.push((number, simulation.clone())));
        aborts::set_seed(Some(simulation.seed));
        drop(simulated::set_current(Some(simulation.clone())));
        Self { number, saw_system: simulated::set_sees_system(false), stays: PhantomData }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        simulated::set_sees_system(self.saw_system);
        // The value is dropped after the borrow, because that may drop values of the program. At the end of
        // a thread the list may be gone.
        let leave = |inside: &RefCell<Vec<(u64, _)>>| {
            let mut inside = inside.borrow_mut();
            let at = inside.iter().position(|(number, _)| *number == self.number)?;
            Some(inside.remove(at))
        };
        drop(INSIDE.try_with(leave));
        let outer = current();
        aborts::set_seed(outer.as_ref().map(|simulation| simulation.seed));
        drop(simulated::set_current(outer.map(|simulation| simulation as Arc<dyn Simulation>)));
    }
}

/// Returns the simulation that this thread is in.
pub(super) fn current() -> Option<Arc<Simulated>> {
    let last =
        |inside: &RefCell<Vec<(_, Arc<Simulated>)>>| inside.borrow().last().map(|(_, last)| last.clone());
    INSIDE.try_with(last).ok().flatten()
}
