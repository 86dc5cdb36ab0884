//! Loom models of the end of an executor.

use std::future::poll_fn;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Poll, Waker};

use std::panic::Location;

use super::*;
use crate::executor::task;
use crate::sync::models::model;
use loom::thread;

/// A reference to a state that yields when it is used. A task's schedule function begins with it, so another
/// thread can run between the moment when the task is marked as scheduled and the moment when it is queued.
#[derive(Clone)]
struct Stepwise(Arc<State>);

impl Deref for Stepwise {
    type Target = State;

    fn deref(&self) -> &State {
        thread::yield_now();
        &self.0
    }
}

/// Counts when it is dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A task is woken before, while, or after the executor is dropped. In any case its future is dropped
/// once, before the executor's drop returns. Fails if `cancel_to_the_last` does not wait for the wake.
#[test]
fn a_wake_beside_the_end_leaves_no_task_behind() {
    model(|| {
        let state = State::new(true, false);
        let dropped = Arc::new(AtomicUsize::new(0));
        let waker = Arc::new(Mutex::new(None::<Waker>));
        let (guard, place) = (Dropped(dropped.clone()), waker.clone());
        let future = poll_fn(move |cx| {
            let _future = &guard;
            *place.lock().unwrap() = Some(cx.waker().clone());
            Poll::<()>::Pending
        });
        // SAFETY: the future is `Send` and borrows nothing.
        unsafe {
            task::spawn(
                Stepwise(state.clone()),
                future,
                crate::observed::SpawnMeta::unobserved(Location::caller()),
            )
        }
        .detach();
        assert!(!state.any_task().expect("it was scheduled").run());
        let waker = waker.lock().unwrap().take().expect("it was polled");
        let waking = thread::spawn(move || waker.wake());
        state.cancel_to_the_last();
        assert_eq!(dropped.load(Relaxed), 1);
        waking.join().unwrap();
        assert_eq!(state.unfinished(), Some(0));
        assert!(state.any_task().is_none());
    });
}
