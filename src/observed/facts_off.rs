//! Builds without `trace`: no facts of a task are kept. See `facts_on.rs`, which has the same names.

use super::kind::TaskKind;
use super::meta::SpawnMeta;

#[derive(Debug)]
pub(super) enum OwnedFacts {}

pub(super) enum PollFacts<'a> {
    #[expect(dead_code, reason = "for the lifetime")]
    Never(std::convert::Infallible, &'a ()),
}

#[derive(Debug)]
pub(super) enum SharedFacts {}

impl OwnedFacts {
    pub(super) fn is_wanted() -> bool {
        false
    }

    pub(super) fn begin(_: &SpawnMeta<'_>, _: TaskKind, _: u64, _: usize) -> Option<Self> {
        None
    }

    pub(super) fn share(&self) -> SharedFacts {
        match *self {}
    }

    pub(super) fn begin_poll(&self, _: usize, _: usize) -> PollFacts<'_> {
        match *self {}
    }
}

impl SharedFacts {
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
