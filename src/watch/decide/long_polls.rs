//! [`judge`]: whether polls take so long that waking a follower pays for each event.
//!
//! Usually a follower is woken if two events are left
//! ([`Line::is_wake_worth`](crate::line::Line::is_wake_worth)). If a poll takes several times as long as a
//! wake, that rule wakes too few: with two connections two events are never left, so one thread polls one
//! task after the other, and the other threads sleep.
//!
//! The deputy measures polls without a clock on the way of an event: at each look it reads the processor time
//! of the threads that are awake, and their counts of polls. The time for which a leader spins counts as
//! well.

use std::time::Duration;

use crate::watch::observe::Snapshot;

/// Processor time of a poll that is worth a wake by itself: some four times what a wake costs.
const POLL_WORTH_A_WAKE: Duration = Duration::from_micros(16);

/// Looks in a row without an answer after which the last answer is out of date.
const UNKNOWN: u32 = 100;

/// Returns whether polls are long: the threads that were awake at the last two looks used a quarter of a
/// tick altogether between them, and [`POLL_WORTH_A_WAKE`] or more for each poll. If threads are idle for
/// longer than that, a woken thread would find no event left. In a quiet pool, polls count as short.
///
/// `None`, which keeps the last answer, if no thread that was awake at both looks made progress: threads
/// that wake each other for each event are often asleep at one of them. `unknown` counts such looks in a
/// row. After [`UNKNOWN`] of them the load is gone, and polls count as short.
pub(super) fn judge(seen: &Snapshot, unknown: &mut u32) -> Option<bool> {
    if seen.is_quiet {
        return Some(false);
    }
    let used: Duration = seen.members.iter().map(|member| member.work.0).sum();
    let polls: u64 = seen.members.iter().map(|member| member.work.1).sum();
    let are_long =
        used >= seen.tick / 4 && used.as_nanos() >= u128::from(polls) * POLL_WORTH_A_WAKE.as_nanos();
    *unknown = if used.is_zero() { *unknown + 1 } else { 0 };
    match *unknown {
        0 => Some(are_long),
        UNKNOWN.. => Some(false),
        _ => None,
    }
}
