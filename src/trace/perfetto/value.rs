//! The values that the writer uses of Perfetto's enumerations.

// The kinds of a `TrackEvent`.
pub(super) const BEGIN: u64 = 1;
pub(super) const END: u64 = 2;
pub(super) const INSTANT: u64 = 3;
pub(super) const COUNTER: u64 = 4;

// The flags of a sequence: its numbers for names begin here, or the packet needs them.
pub(super) const NAMES_CLEARED: u64 = 1;
pub(super) const NAMES_NEEDED: u64 = 2;

pub(super) const CLOCK_REALTIME: u64 = 1;
/// The clock of all packets, if they do not name another one.
pub(super) const CLOCK_BOOTTIME: u64 = 6;

pub(super) const ORDERING_EXPLICIT: u64 = 3;
pub(super) const UNIT_COUNT: u64 = 2;
