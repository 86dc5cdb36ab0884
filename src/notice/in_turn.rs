//! [`InTurn`]: tells reports in the order in which they were made, on the threads that have made them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Tells items one after the other, in the order of [`add`](Self::add).
///
/// A plain lock does not do: the first report takes long to display, because it loads the symbols of the
/// program, and a thread that waits for a lock has no place in a queue. So the item is in the queue, and each
/// thread tells the first one: as many as it has added.
// Std's locks in all modes: no model tells reports.
pub(crate) struct InTurn<T: 'static> {
    tell: fn(&T),
    items: Mutex<VecDeque<T>>,
    telling: Mutex<()>,
}

/// The item that was added, or another one in its place, is still to be told.
#[must_use]
pub(crate) struct Untold<T: 'static>(&'static InTurn<T>);

impl<T> InTurn<T> {
    pub(crate) const fn new(tell: fn(&T)) -> Self {
        Self { tell, items: Mutex::new(VecDeque::new()), telling: Mutex::new(()) }
    }

    pub(crate) fn add(&'static self, item: T) -> Untold<T> {
        lock(&self.items).push_back(item);
        Untold(self)
    }
}

impl<T> Untold<T> {
    /// Waits until no other thread tells an item, and tells the first one that is left.
    pub(crate) fn tell(self) {
        let _telling = lock(&self.0.telling);
        let item = lock(&self.0.items).pop_front();
        item.iter().for_each(self.0.tell);
    }
}

/// A panic while an item is told is one of user code.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn items_are_told_in_the_order_in_which_they_were_added() {
        static TOLD: Mutex<Vec<u32>> = Mutex::new(Vec::new());
        static NUMBERS: InTurn<u32> = InTurn::new(|number| TOLD.lock().unwrap().push(*number));
        let (first, second) = (NUMBERS.add(1), NUMBERS.add(2));
        second.tell();
        assert_eq!(*TOLD.lock().unwrap(), [1]);
        first.tell();
        assert_eq!(*TOLD.lock().unwrap(), [1, 2]);
    }
}
