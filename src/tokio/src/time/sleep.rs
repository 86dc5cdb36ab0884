//! [`Sleep`]: a future that is ready at a point in time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use real::task::coop;

use super::clock::Wait;
use super::resource::Resource;
use super::{Duration, Instant, LONGEST};
use crate::context;
use crate::runtime::Handle;

#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    Sleep::after(duration.min(LONGEST)).expect("thirty years from now there is a clock")
}

#[track_caller]
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep::at(deadline)
}

pin_project! {
    /// Ready at a point in time on the clock of the runtime in which it was made. Panics if polled after the
    /// shutdown of that runtime.
    #[project(!Unpin)]
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Sleep {
        deadline: Instant,
        wait: Wait,
        runtime: Handle,
        resource: Resource,
    }
}

impl Sleep {
    #[track_caller]
    pub(super) fn at(deadline: Instant) -> Sleep {
        let wait = Wait::at(deadline, Instant::now());
        Self { deadline, wait, runtime: runtime(), resource: Resource::new() }
    }

    /// Returns `None` if the deadline is beyond the clock.
    #[track_caller]
    pub(super) fn after(duration: Duration) -> Option<Sleep> {
        let runtime = runtime();
        let (wait, deadline) = Wait::after(duration)?;
        Some(Self { deadline, wait, runtime, resource: Resource::new() })
    }

    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    pub fn is_elapsed(&self) -> bool {
        self.wait.is_elapsed(self.runtime.clock(), self.deadline)
    }

    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        let this = self.project();
        *this.deadline = deadline;
        this.wait.set(deadline);
        this.resource.reset();
    }

    /// Resets it as if it were made now.
    pub(super) fn renew(self: Pin<&mut Self>, deadline: Instant, now: Instant) {
        let this = self.project();
        *this.deadline = deadline;
        *this.wait = Wait::at(deadline, now);
        this.resource.reset();
    }
}

/// Returns the runtime whose clock applies.
#[track_caller]
fn runtime() -> Handle {
    let runtime = context::expect();
    assert!(
        runtime.has_time(),
        "A Tokio 1.x context was found, but timers are disabled. Call `enable_time` on the runtime builder to enable timers."
    );
    runtime
}

const ENDED: &str = "A Tokio 1.x context was found, but it is being shutdown.";

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        let _inside = this.resource.enter();
        let share = ready!(Resource::report(coop::poll_proceed(cx)));
        this.resource.report_duration(|| this.deadline.saturating_duration_since(Instant::now()));
        let clock = this.runtime.clock();
        assert!(!clock.is_shut_down(), "{ENDED}");
        let result = Resource::report(this.wait.poll(clock, *this.deadline, cx));
        if result.is_ready() {
            share.made_progress();
        } else {
            // The end may have come before the wait began, and then nothing wakes this task.
            assert!(!clock.is_shut_down(), "{ENDED}");
        }
        result
    }
}
