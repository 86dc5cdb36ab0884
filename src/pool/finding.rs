//! [`Findings`]: what the deputy knows of a thread that got no further, left where whoever asks for
//! [threads](super::ThreadInfo) can see it.
//!
//! Only the deputy writes, and only of who has not moved between two of its looks. So nothing is taken back, either: a finding
//! is of one [`Spot`], and a thread that has moved is at another one.

use std::sync::Arc;

use super::witness::Doing;
use crate::executor::{Beat, Runner};
use crate::sync::{self, Instant, Mutex};

/// How far a thread has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    /// The runner that polls a task, as an address; 0 where none does.
    runner: usize,
    /// The number of the poll, of that runner or of the `block_on`'s own future.
    poll: u64,
    /// That of the event.
    pulse: u64,
}

impl Spot {
    /// It polls a task, or comes from one.
    pub(super) fn in_task(runner: &Arc<Runner>, beat: Beat, pulse: u64) -> Self {
        Self { runner: Arc::as_ptr(runner).addr(), poll: beat.count(), pulse }
    }

    /// It polls the `block_on`'s own future.
    pub(super) fn in_future(poll: u64, pulse: u64) -> Self {
        Self { runner: 0, poll, pulse }
    }

    /// It fires an event.
    pub(super) fn at_event(pulse: u64) -> Self {
        Self { runner: 0, poll: 0, pulse }
    }
}

/// What a thread was at when the deputy looked last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finding {
    spot: Spot,
    /// When it was first seen there.
    pub(super) since: Instant,
    pub(super) doing: Doing,
}

/// The last one of one station.
#[derive(Debug, Default)]
pub(super) struct Findings(Mutex<Option<Finding>>);

impl Findings {
    pub(super) fn keep(&self, spot: Spot, since: Instant, doing: Doing) {
        *sync::lock(&self.0) = Some(Finding { spot, since, doing });
    }

    /// What was found, if the thread is there still.
    pub(super) fn at(&self, spot: Spot) -> Option<Finding> {
        sync::lock(&self.0).filter(|finding| finding.spot == spot)
    }
}
