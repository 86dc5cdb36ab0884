//! [`Rank`]: who has the better claim to lead.

use super::{BY_GUEST, BY_RELIEF, LED};

/// What a thread brings along; the better claim to lead is the greater one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// It is here only to lead, because nobody else did. It does so where nobody else can.
    Relief,
    /// It only awaits a future. It leads only where no host can.
    Guest,
    /// It hosts a runner: tasks that its events wake are polled by it directly. It leads whenever it can.
    Host,
}

impl Rank {
    /// What the state says while a thread of this rank leads.
    #[inline]
    pub(super) fn leads(self) -> u8 {
        match self {
            Rank::Host => LED,
            Rank::Guest => LED | BY_GUEST,
            Rank::Relief => LED | BY_RELIEF,
        }
    }

    /// Whether a leader with this `state` should make way for it.
    pub(super) fn displaces(self, state: u8) -> bool {
        state & BY_GUEST != 0 && self > Rank::Guest || state & BY_RELIEF != 0 && self > Rank::Relief
    }
}
