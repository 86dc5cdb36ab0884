//! The values that the writer uses of Perfetto's enumerations.

// The kinds of a `TrackEvent`.
pub(crate) const BEGIN: u64 = 1;
pub(crate) const END: u64 = 2;
pub(crate) const INSTANT: u64 = 3;
pub(crate) const COUNTER: u64 = 4;

// The flags of a sequence: its numbers for names begin here, or the packet needs them.
pub(crate) const NAMES_CLEARED: u64 = 1;
pub(crate) const NAMES_NEEDED: u64 = 2;

pub(crate) const CLOCK_REALTIME: u64 = 1;
/// The clock of all packets, if they do not name another one.
pub(crate) const CLOCK_BOOTTIME: u64 = 6;

pub(crate) const ORDERING_EXPLICIT: u64 = 3;
pub(crate) const UNIT_COUNT: u64 = 2;
