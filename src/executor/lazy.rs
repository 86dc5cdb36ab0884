//! An executor's state, made on first use, so that executors can be constants.

use std::ptr;
use std::sync::Arc;
// Std's in all modes: an executor is made in constants, where loom's atomics cannot be; and there is one change to it.
use std::sync::atomic::{AtomicPtr, Ordering};

use super::state::State;

/// The state of an executor that may not have been used yet.
#[derive(Debug)]
pub(super) struct LazyState {
    /// From `Arc::into_raw`, or null.
    pointer: AtomicPtr<State>,
    /// Whether the executor can be dropped, and so must know its tasks.
    tracks_tasks: bool,
}

impl LazyState {
    pub(super) const fn new(tracks_tasks: bool) -> Self {
        Self { pointer: AtomicPtr::new(ptr::null_mut()), tracks_tasks }
    }

    #[inline]
    fn pointer(&self) -> *const State {
        let state = self.pointer.load(Ordering::Acquire);
        if state.is_null() { self.make() } else { state }
    }

    #[cold]
    fn make(&self) -> *const State {
        let fresh = Arc::into_raw(State::new(self.tracks_tasks, false)).cast_mut();
        match self.pointer.compare_exchange(ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => fresh,
            Err(state) => {
                // SAFETY: `fresh` comes from `Arc::into_raw` and was not published.
                drop(unsafe { Arc::from_raw(fresh) });
                state
            }
        }
    }

    /// A counted reference to the state.
    #[inline]
    pub(super) fn shared(&self) -> Arc<State> {
        let state = self.pointer();
        // SAFETY: the pointer comes from `Arc::into_raw`, and `self` keeps one count of it.
        unsafe { Arc::increment_strong_count(state) };
        // SAFETY: the count just added is this one's.
        unsafe { Arc::from_raw(state) }
    }

    /// The state, borrowed.
    #[inline]
    pub(super) fn get(&self) -> &State {
        // SAFETY: `self` keeps the state alive.
        unsafe { &*self.pointer() }
    }

    /// The state if there is one: for those who only look.
    pub(super) fn peek(&self) -> Option<&State> {
        // SAFETY: `self` keeps the state alive.
        unsafe { self.pointer.load(Ordering::Acquire).as_ref() }
    }

    /// The executor will never be dropped: from now on its tasks need not be known.
    pub(super) fn stop_tracking(&mut self) {
        self.tracks_tasks = false;
        if let Some(state) = self.peek() {
            state.stop_tracking();
        }
    }
}

impl Drop for LazyState {
    fn drop(&mut self) {
        let state = *self.pointer.get_mut();
        if !state.is_null() {
            // SAFETY: this is the count that `make` left with `self`.
            drop(unsafe { Arc::from_raw(state) });
        }
    }
}
