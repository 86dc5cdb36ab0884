//! [`Deeper`]: how far a thread may go in running tasks on top of others that wait.

use std::cell::Cell;

use crate::sync::thread_local;

/// Tasks on top of one another at most.
const DEEPEST: u32 = 64;

thread_local! {
    /// How many there are on this thread, and where on its stack the first one began.
    static HERE: Cell<(u32, usize)> = const { Cell::new((0, 0)) };
}

/// One task more on top; dropping the value, by a panic too, ends it.
#[derive(Debug)]
pub(crate) struct Deeper;

impl Deeper {
    /// Goes one deeper on a thread with a stack of this size, of which half is for the tasks themselves.
    ///
    /// # Panics
    ///
    /// If that is too deep. Whoever waits here fails, and nobody else.
    pub(crate) fn enter(stack_size: usize) -> Self {
        let marker = 0u8;
        let here = (&raw const marker).addr();
        let (depth, base) = match HERE.get() {
            (0, _) => (0, here),
            deep => deep,
        };
        assert!(
            depth < DEEPEST && base.abs_diff(here) < stack_size / 2,
            "`block_on` is nested {depth} tasks deep on one worker, because the runtime may have no more threads \
             (`Builder::max_threads`): let it have more, or await instead of blocking"
        );
        HERE.set((depth + 1, base));
        Self
    }
}

impl Drop for Deeper {
    fn drop(&mut self) {
        let (depth, base) = HERE.get();
        HERE.set((depth - 1, base));
    }
}
