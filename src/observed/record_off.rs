//! Builds without `trace`: no task has a record. See `record_on.rs`, which has the same names.

use super::kind::TaskKind;
use super::meta::SpawnMeta;

#[derive(Debug)]
pub(super) enum TaskRecord {}

pub(super) enum PollRecord<'a> {
    #[expect(dead_code, reason = "for the lifetime")]
    Never(std::convert::Infallible, &'a ()),
}

#[derive(Debug)]
pub(super) enum SharedRecord {}

impl TaskRecord {
    pub(super) fn is_wanted() -> bool {
        false
    }

    pub(super) fn begin(_: &SpawnMeta<'_>, _: TaskKind, _: u64, _: usize) -> Option<Self> {
        None
    }

    pub(super) fn share(&self) -> SharedRecord {
        match *self {}
    }

    pub(super) fn begin_poll(&self, _: usize) -> PollRecord<'_> {
        match *self {}
    }
}

impl SharedRecord {
    pub(super) fn note_clone(&self) {
        match *self {}
    }

    pub(super) fn note_drop(&self) {
        match *self {}
    }

    pub(super) fn note_wake(&self) {
        match *self {}
    }
}
