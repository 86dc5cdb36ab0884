//! Builds in which no subscriber sees a `Sleep`: see `resource_on.rs`, which has the same names.

use std::task::Poll;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Resource;

impl Resource {
    #[inline]
    pub(super) fn new() -> Self {
        Self
    }

    #[inline]
    pub(super) fn enter(&self) -> Self {
        Self
    }

    #[inline]
    pub(super) fn report<T>(poll: Poll<T>) -> Poll<T> {
        poll
    }

    #[inline]
    pub(super) fn report_duration(&self, _: impl FnOnce() -> Duration) {}

    #[inline]
    pub(super) fn reset(&mut self) {}
}
