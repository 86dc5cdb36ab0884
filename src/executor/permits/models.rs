//! Loom models of permits beside the line of idle runners. A task that no worker comes for shows as a
//! deadlock.
//!
//! The steps are those of `State::notify`, `State::set_limit`, `State::rest` and of a worker's loop. The
//! tasks are a relaxed counter, so that only the fences make them visible.

use super::*;
use crate::line::{Called, Line, Order, Rank};
use crate::sync::models::{Thread, current, model, park};
use crate::sync::{Arc, full_fence};
use loom::thread;

struct Scene {
    line: Line<Thread>,
    permits: Permits,
    waiting: AtomicUsize,
    /// Polls in progress, and polls that are over.
    now: AtomicUsize,
    over: AtomicUsize,
    /// Number of polls after which the model ends.
    polls: usize,
}

impl Scene {
    fn new(limit: usize, polls: usize) -> Arc<Self> {
        let number = || AtomicUsize::new(0);
        let (line, permits) = (Line::new(Order::default()), Permits::new());
        permits.set_limit(limit);
        Arc::new(Self { line, permits, waiting: number(), now: number(), over: number(), polls })
    }

    fn call(&self) {
        if let Called::Wake(worker) = self.line.call(Rank::Host) {
            worker.unpark();
        }
    }

    /// Adds a task, as a thread without a runner does.
    fn push(&self) {
        self.waiting.fetch_add(1, Relaxed);
        full_fence();
        if self.permits.is_free() {
            self.call();
        }
    }

    /// Raises the limit, as the deputy does.
    fn raise(&self, limit: usize) {
        assert!(self.permits.set_limit(limit));
        full_fence();
        if self.waiting.load(Relaxed) > 0 {
            self.call();
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Relaxed) == self.polls
    }

    fn has_task(&self) -> bool {
        self.permits.is_free() && self.waiting.load(Relaxed) > 0
    }

    /// Takes a permit and a task. Checks that at most `most` tasks are polled at the same time. Returns
    /// whether there was a task.
    fn poll_one(&self, holds: &Flag, most: usize) -> bool {
        let Some(permit) = self.permits.acquire(holds) else { return false };
        let less = |waiting: usize| waiting.checked_sub(1);
        let taken = self.waiting.fetch_update(Relaxed, Relaxed, less).is_ok();
        if taken {
            assert!(self.now.fetch_add(1, Relaxed) < most && holds.is_set());
            self.now.fetch_sub(1, Relaxed);
        }
        drop(permit);
        assert!(!holds.is_set());
        taken
    }

    /// Runs a worker's loop until all tasks are polled.
    fn work(&self, most: usize) {
        let (me, holds) = (Arc::new(current()), Flag::new(false));
        while !self.is_over() {
            if self.poll_one(&holds, most) {
                if self.over.fetch_add(1, Relaxed) + 1 == self.polls {
                    self.call();
                } else if self.has_task() {
                    // As `share_all`: this worker may have been called, and leaves tasks.
                    self.call();
                }
                continue;
            }
            self.line.enter(&me, Rank::Host);
            if !self.has_task() && !self.is_over() {
                park();
            }
            let _ = self.line.leave(&me);
        }
    }
}

/// Runs `body` on a new thread.
fn spawn(scene: &Arc<Scene>, body: impl FnOnce(&Scene) + 'static) -> thread::JoinHandle<()> {
    let scene = scene.clone();
    thread::spawn(move || body(&scene))
}

/// A task comes and the limit is raised before, while or after the only worker goes to sleep.
#[test]
fn a_raised_limit_beside_a_task_that_comes_is_not_lost() {
    model(|| {
        let scene = Scene::new(0, 1);
        let pusher = spawn(&scene, Scene::push);
        let deputy = spawn(&scene, |scene| scene.raise(1));
        scene.work(1);
        [pusher, deputy].into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// Two workers and one permit: a task that comes while a worker holds the permit is polled by either worker
/// after the permit was returned.
#[test]
fn a_permit_that_is_returned_beside_a_task_that_comes_is_not_lost() {
    model(|| {
        let scene = Scene::new(1, 2);
        scene.push();
        let pusher = spawn(&scene, Scene::push);
        let other = spawn(&scene, |scene| scene.work(1));
        scene.work(1);
        [pusher, other].into_iter().for_each(|thread| thread.join().unwrap());
        assert!(scene.permits.is_free());
    });
}

/// The limit falls below the number of permits in use, and is raised again.
#[test]
fn a_limit_that_falls_and_rises_is_kept_to() {
    model(|| {
        let scene = Scene::new(2, 2);
        (0..2).for_each(|_| scene.push());
        let deputy = spawn(&scene, |scene| {
            assert!(!scene.permits.set_limit(0));
            scene.raise(1);
        });
        let other = spawn(&scene, |scene| scene.work(2));
        scene.work(2);
        [deputy, other].into_iter().for_each(|thread| thread.join().unwrap());
        assert!(scene.permits.is_free());
    });
}
