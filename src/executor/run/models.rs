//! Loom models of a [`Run`] that somebody else's executor polls. A task that nobody comes for shows as a deadlock.
//!
//! All threads of a model share one thread's locals, so only the thread that polls may touch what `frame` keeps there:
//! the others schedule theirs as a thread does that hosts nothing.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::*;
use crate::sync::models::{model, park, waker};
use loom::thread;

/// An executor and how many of its tasks were run.
#[derive(Clone)]
struct Scene {
    state: Arc<State>,
    ran: Arc<AtomicUsize>,
}

impl Scene {
    fn new() -> Self {
        Self { state: State::new(false, false), ran: Arc::default() }
    }

    /// A task comes from a thread that hosts no runner.
    fn push(&self) {
        let ran = self.ran.clone();
        let never_again = |_| unreachable!("the task does not wake itself");
        let (task, handle) = async_task::spawn(async move { ran.fetch_add(1, Relaxed) }, never_again);
        handle.detach();
        self.state.schedule_elsewhere(task);
    }

    /// What somebody else's `block_on` does with a `run`, until `tasks` of its tasks were run.
    fn run(&self, tasks: usize) {
        let waker = waker();
        let mut cx = Context::from_waker(&waker);
        let mut run = pin!(Run::new(StateRef::Shared(self.state.clone()), pending::<()>()));
        loop {
            assert!(run.as_mut().poll(&mut cx).is_pending());
            if self.ran.load(Relaxed) == tasks {
                return;
            }
            park();
        }
    }
}

/// L3: a task comes while the `run` goes to sleep, which it does not then; and the next one when it sleeps.
/// Fails if a `run` that found tasks so counts as one that nobody polls: `asked` in `out_of_tasks`.
#[test]
fn l3_a_run_that_almost_slept_can_still_be_woken() {
    model(|| {
        let scene = Scene::new();
        let pusher = {
            let scene = scene.clone();
            thread::spawn(move || (0..2).for_each(|_| scene.push()))
        };
        scene.run(2);
        pusher.join().unwrap();
    });
}
