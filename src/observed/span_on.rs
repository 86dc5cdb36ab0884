//! [`TaskSpan`]: the span of an observed future, and the events of its wakers.
//!
//! Names, targets and fields are those of tokio, so the tools for tokio show these tasks: tokio-console knows
//! a task by the name of the span, and the events by their target. An event of a waker goes to the subscriber
//! of the thread on which it happens, and has the number of the span: so the subscriber has to be the global
//! one to see them all.
//!
//! Spans of tasks have no parent. A `block_on` inside of a task polls other tasks while the span of the
//! outer one is entered. That one is not left meanwhile: the subscriber would count one more poll, and spans
//! that the program itself has entered in between cannot be left.

use std::cell::Cell;
use std::thread_local;

use tracing::level_filters::LevelFilter;
use tracing::span::Entered;
use tracing::subscriber::NoSubscriber;
use tracing::{Level, Span};

use super::kind::TaskKind;
use super::meta::SpawnMeta;

thread_local! {
    /// Whether this thread is in a call of a subscriber that this file makes.
    static REPORTS: Cell<bool> = const { Cell::new(false) };
}

/// The thread is in a call of a subscriber, until this is dropped.
struct SubscriberCall(());

impl SubscriberCall {
    /// Returns `None` if the thread is in such a call already, or ends.
    fn begin() -> Option<Self> {
        let is_inside = REPORTS.try_with(|reports| reports.replace(true)).unwrap_or(true);
        // Not `then_some`, whose unused value would be dropped.
        (!is_inside).then(|| Self(()))
    }
}

impl Drop for SubscriberCall {
    fn drop(&mut self) {
        let _ = REPORTS.try_with(|reports| reports.set(false));
    }
}

/// The span of a task, which a subscriber has seen.
#[derive(Debug)]
pub(super) struct TaskSpan(Span);

/// The number of a span, for the events of wakers, which may outlive the span.
#[derive(Debug)]
pub(super) struct SpanId(u64);

impl TaskSpan {
    /// Returns whether some subscriber may want the span of a task.
    #[inline]
    pub(super) fn may_be_wanted() -> bool {
        const IS_COMPILED_IN: bool = matches!(tracing::level_filters::STATIC_MAX_LEVEL, LevelFilter::TRACE);
        IS_COMPILED_IN && Level::TRACE <= LevelFilter::current()
    }

    /// Makes the span; `None` if no subscriber wants it, or if a subscriber spawns the task.
    pub(super) fn begin(meta: &SpawnMeta<'_>, kind: TaskKind, id: u64, size: usize) -> Option<Self> {
        let _call = SubscriberCall::begin()?;
        let at = meta.spawned_at;
        let span = tracing::trace_span!(
            target: "tokio::task",
            parent: None,
            "runtime.spawn",
            kind = %kind,
            task.name = %meta.name.unwrap_or_default(),
            task.id = id,
            original_size.bytes = meta.original_size.filter(|original| *original != size),
            size.bytes = size,
            loc.file = at.file(),
            loc.line = at.line(),
            loc.col = at.column(),
        );
        // A subscriber of another thread may have enabled the span for all threads, also for those without
        // one.
        let is_seen = span.with_subscriber(|(_, subscriber)| !subscriber.is::<NoSubscriber>());
        is_seen.unwrap_or(false).then(|| Self(span))
    }

    pub(super) fn id(&self) -> Option<SpanId> {
        self.0.id().map(|id| SpanId(id.into_u64()))
    }

    /// Enters the span; not if the thread is in a call of a subscriber.
    pub(super) fn enter(&self) -> Option<EnteredSpan<'_>> {
        let _call = SubscriberCall::begin()?;
        Some(EnteredSpan(Some(self.0.enter())))
    }
}

impl Drop for TaskSpan {
    fn drop(&mut self) {
        let _call = SubscriberCall::begin();
        self.0 = Span::none();
    }
}

/// The thread is inside of a span, until this is dropped.
pub(super) struct EnteredSpan<'a>(Option<Entered<'a>>);

impl Drop for EnteredSpan<'_> {
    fn drop(&mut self) {
        let _call = SubscriberCall::begin();
        drop(self.0.take());
    }
}

impl SpanId {
    /// Reports what happens to a waker of the span's task.
    pub(super) fn report(&self, op: &'static str) {
        if let Some(_call) = SubscriberCall::begin() {
            tracing::trace!(target: "runtime::waker", op, task.id = self.0);
        }
    }
}
