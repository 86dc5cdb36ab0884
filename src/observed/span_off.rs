//! Builds without `tracing`: no future has a span. See `span_on.rs`, which has the same names.

use super::kind::TaskKind;
use super::meta::SpawnMeta;

#[derive(Debug)]
pub(super) enum TaskSpan {}

pub(super) enum EnteredSpan<'a> {
    #[expect(dead_code, reason = "for the lifetime")]
    Never(std::convert::Infallible, &'a ()),
}

#[derive(Debug)]
pub(super) enum SpanId {}

impl TaskSpan {
    pub(super) fn may_be_wanted() -> bool {
        false
    }

    pub(super) fn begin(_: &SpawnMeta<'_>, _: TaskKind, _: u64, _: usize) -> Option<Self> {
        None
    }

    pub(super) fn id(&self) -> Option<SpanId> {
        match *self {}
    }

    pub(super) fn enter(&self) -> Option<EnteredSpan<'_>> {
        match *self {}
    }
}

impl SpanId {
    pub(super) fn report(&self, _: &'static str) {
        match *self {}
    }
}
