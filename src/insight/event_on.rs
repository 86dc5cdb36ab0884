//! The event of `tracing` for a stall.

use tracing::level_filters::LevelFilter;
use tracing::{Level, warn};

use super::stall::{Stall, StallKind};

/// Returns whether some subscriber may want the event. Calls none, because the deputy asks.
pub(crate) fn is_wanted() -> bool {
    Level::WARN <= LevelFilter::current()
}

/// Emits the event. Calls the subscriber.
pub(crate) fn emit(stall: &Stall) {
    let syscall = match stall.kind {
        StallKind::Blocked(syscall) => syscall,
        _ => None,
    };
    let at = stall.spawned_at;
    warn!(
        target: "runtime::stall",
        kind = match stall.kind {
            StallKind::Blocked(_) => "blocked",
            StallKind::Computing => "computing",
            StallKind::Unknown => "unknown",
        },
        syscall = syscall.map(tracing::field::display),
        blocked_for.us = u64::try_from(stall.blocked_for.as_micros()).unwrap_or(u64::MAX),
        thread.name = stall.thread.as_deref(),
        is_first = stall.is_first(),
        in_block_on = stall.in_block_on,
        loc.file = at.file(),
        loc.line = at.line(),
        loc.col = at.column(),
        "{stall}"
    );
}
