//! [`TaskSpan`]: the span of an observed future, and the events of its wakers.
//!
//! Spans have the name, target and fields of tokio's, and events the target that tokio-console knows, so the
//! tools for tokio show these tasks. (The target of tokio's own events is `tokio::task::waker`.) An event of
//! a waker goes to the subscriber of the thread on which it happens, and has the number of the span: so the
//! subscriber has to be the global one to see them all.
//!
//! Spans of tasks have no parent. A `block_on` inside of a task polls other tasks while the span of the
//! outer one is entered. That one is not left meanwhile: the subscriber would count one more poll, and spans
//! that the program itself has entered in between cannot be left.

use std::cell::Cell;
use std::mem;
use std::thread_local;

use tracing::level_filters::LevelFilter;
use tracing::span::Entered;
use tracing::subscriber::NoSubscriber;
use tracing::{Level, Span};

use super::kind::TaskKind;
use super::meta::SpawnMeta;
use crate::waking;

thread_local! {
    /// Whether this thread is in a call of a subscriber that this file makes.
    static REPORTS: Cell<bool> = const { Cell::new(false) };
}

/// Calls code that calls a subscriber. Returns `None`, and does not call the code, if the thread is in such a
/// call already, or ends. Also returns `None` if the subscriber panics: the panic hook has reported that, and
/// the task must be polled, woken and dropped all the same.
fn call_subscriber<R>(code: impl FnOnce() -> R) -> Option<R> {
    if REPORTS.try_with(|reports| reports.replace(true)).unwrap_or(true) {
        return None;
    }
    let result = waking::catch(code);
    let _ = REPORTS.try_with(|reports| reports.set(false));
    result
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
        call_subscriber(|| Self::begin_in_call(meta, kind, id, size)).flatten()
    }

    fn begin_in_call(meta: &SpawnMeta<'_>, kind: TaskKind, id: u64, size: usize) -> Option<Self> {
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
        call_subscriber(|| EnteredSpan(Some(self.0.enter())))
    }
}

impl Drop for TaskSpan {
    fn drop(&mut self) {
        let span = mem::replace(&mut self.0, Span::none());
        call_subscriber(|| drop(span));
    }
}

/// The thread is inside of a span, until this is dropped.
pub(super) struct EnteredSpan<'a>(Option<Entered<'a>>);

impl Drop for EnteredSpan<'_> {
    fn drop(&mut self) {
        let entered = self.0.take();
        call_subscriber(|| drop(entered));
    }
}

impl SpanId {
    /// Reports what happens to a waker of the span's task.
    pub(super) fn report(&self, op: &'static str) {
        call_subscriber(|| tracing::trace!(target: "runtime::waker", op, task.id = self.0));
    }
}
