//! [`Finding`]: what the deputy knows of a thread that made no progress. The thread's
//! [`Station`](super::Station) keeps the last finding, for callers that ask for
//! [threads](crate::Handle::threads).
//!
//! Only the deputy writes findings, and only of a thread that has not moved between two looks. The deputy
//! takes no finding back: a finding belongs to one [`Spot`], and a thread that has moved is at another
//! spot.

use crate::probe::Doing;
use crate::stage::Stage;
use crate::sync::Instant;

/// How far a thread has got: in its `block_on`, and with one of its runners, which is known by its address.
pub(crate) type Spot = (Stage, Option<(usize, Stage)>);

/// The state of a thread when the deputy looked last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finding {
    pub(crate) spot: Spot,
    /// When the deputy first saw the thread there.
    pub(crate) since: Instant,
    pub(crate) doing: Doing,
}
