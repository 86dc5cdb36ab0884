//! [`Resource`]: the spans and events of a `Sleep`, by the names that tokio-console knows.

use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use tracing::Span;
use tracing::span::Entered;

/// A `Sleep`, as subscribers of `tracing` see it. The fields are dropped in this order, as in the real tokio.
#[derive(Debug)]
pub(super) struct Resource {
    operation: Span,
    poll: Span,
    resource: Span,
    /// Whether the duration was reported.
    is_reported: AtomicBool,
}

impl Resource {
    #[track_caller]
    pub(super) fn new() -> Self {
        let at = Location::caller();
        let resource = tracing::trace_span!(
            target: "tokio::time::sleep",
            parent: None,
            "runtime.resource",
            concrete_type = "Sleep",
            kind = "timer",
            loc.file = at.file(),
            loc.line = at.line(),
            loc.col = at.column(),
        );
        let operation = tracing::trace_span!(
            target: "tokio::time::sleep",
            parent: &resource,
            "runtime.resource.async_op",
            source = "Sleep::new_timeout",
        );
        let poll = tracing::trace_span!(
            target: "tokio::time::sleep",
            parent: &operation,
            "runtime.resource.async_op.poll",
        );
        Self { operation, poll, resource, is_reported: AtomicBool::new(false) }
    }

    /// Enters the spans for a poll. The drop leaves them in the opposite order.
    pub(super) fn enter(&self) -> EnteredSpans<'_> {
        let (resource, operation) = (self.resource.enter(), self.operation.enter());
        EnteredSpans(self.poll.enter(), operation, resource)
    }

    /// Reports the outcome of a step of the poll, and returns it.
    pub(super) fn report<T>(poll: Poll<T>) -> Poll<T> {
        tracing::trace!(
            target: "runtime::resource::poll_op",
            op_name = "poll_elapsed",
            is_ready = poll.is_ready(),
        );
        poll
    }

    /// Reports how long the sleep takes, unless that was reported before.
    pub(super) fn report_duration(&self, left: impl FnOnce() -> Duration) {
        // ORDER: Relaxed. Only polls and resets, which exclude each other, use the flag.
        if !self.is_reported.swap(true, Ordering::Relaxed) {
            tracing::trace!(
                target: "runtime::resource::state_update",
                duration = u64::try_from(left().as_millis()).unwrap_or(u64::MAX),
                duration.unit = "ms",
                duration.op = "override",
            );
        }
    }

    /// The sleep gets another end, which is not reported yet.
    pub(super) fn reset(&mut self) {
        *self.is_reported.get_mut() = false;
    }
}

/// The spans are entered, until this is dropped.
pub(super) struct EnteredSpans<'a>(
    #[expect(dead_code, reason = "for its drop")] Entered<'a>,
    #[expect(dead_code, reason = "for its drop")] Entered<'a>,
    #[expect(dead_code, reason = "for its drop")] Entered<'a>,
);
