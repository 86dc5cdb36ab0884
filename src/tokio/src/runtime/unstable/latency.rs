//! [`Stamped`]: a future that stamps its wakes with the time, so that its polls know how long it waited.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// The moment when the task last became ready.
#[derive(Debug)]
pub(super) struct Stamp {
    spawned: Instant,
    /// Nanoseconds after the spawn; [`POLLED`] if the task was polled since.
    woken: AtomicU64,
    /// The waker of the task, known since its first poll.
    task: OnceLock<Waker>,
}

/// The task was polled, and not woken since.
const POLLED: u64 = u64::MAX;

impl Stamp {
    /// Makes a stamp for a task that is ready now.
    pub(super) fn new() -> Self {
        Self { spawned: Instant::now(), woken: AtomicU64::new(0), task: OnceLock::new() }
    }

    fn now(&self) -> u64 {
        self.spawned.elapsed().as_nanos() as u64
    }

    /// Returns how long the task has been ready. Zero for a poll after a wake that came just as the
    /// previous poll began. Called once for each poll, before it.
    pub(super) fn elapsed(&self) -> Duration {
        // ORDER: Relaxed, because only the number matters: the task's own waker orders wake and poll.
        match self.woken.swap(POLLED, Ordering::Relaxed) {
            POLLED => Duration::ZERO,
            woken => Duration::from_nanos(self.now().saturating_sub(woken)),
        }
    }
}

impl Wake for Stamp {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // The first wake after a poll counts.
        let _ = self.woken.compare_exchange(POLLED, self.now(), Ordering::Relaxed, Ordering::Relaxed);
        if let Some(task) = self.task.get() {
            task.wake_by_ref();
        }
    }
}

pin_project_lite::pin_project! {
    /// A future that is polled with a waker of its own, which stamps.
    pub(super) struct Stamped<F> {
        #[pin]
        future: F,
        stamp: Arc<Stamp>,
        waker: Waker,
    }
}

impl<F> Stamped<F> {
    pub(super) fn new(future: F, stamp: Arc<Stamp>) -> Self {
        Self { future, waker: Waker::from(stamp.clone()), stamp }
    }
}

impl<F: Future> Future for Stamped<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        // A task has the same waker all its life.
        this.stamp.task.get_or_init(|| cx.waker().clone());
        this.future.poll(&mut Context::from_waker(this.waker))
    }
}
