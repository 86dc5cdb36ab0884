//! Loom models of a [`Run`] that a foreign executor polls. A task that no runner comes for shows as a
//! deadlock.
//!
//! All threads of a model share the thread-locals of one thread, so only the thread that polls may use
//! that of `host`. The other threads schedule their tasks as a thread does that hosts no runner.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::*;
use crate::sync::models::{model, park, waker};
use loom::thread;

/// An executor, and the number of its tasks that were run.
#[derive(Clone)]
struct Scene {
    state: Arc<State>,
    ran: Arc<AtomicUsize>,
}

impl Scene {
    fn new() -> Self {
        Self { state: State::new(false, false), ran: Arc::default() }
    }

    /// Schedules a task, as a thread that hosts no runner does.
    fn push(&self) {
        let ran = self.ran.clone();
        let never_again = |_| unreachable!("the task does not wake itself");
        let (task, handle) = async_task::spawn(async move { ran.fetch_add(1, Relaxed) }, never_again);
        handle.detach();
        self.state.schedule_elsewhere(task);
    }

    /// Polls a `run` as a foreign `block_on` does, until `tasks` of its tasks were run.
    fn run(&self, tasks: usize) {
        let waker = waker();
        let mut cx = Context::from_waker(&waker);
        let mut run = pin!(Run::new(self.state.clone().into(), pending::<()>()));
        loop {
            assert!(run.as_mut().poll(&mut cx).is_pending());
            if self.ran.load(Relaxed) == tasks {
                return;
            }
            park();
        }
    }
}

/// A task comes while the `run` is about to sleep, so the `run` stays awake, and another task comes
/// later. Fails if the `run` then still counts as asking to be polled: `set_requested(false)` in
/// `out_of_tasks`.
#[test]
fn a_run_that_almost_slept_can_still_be_woken() {
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
