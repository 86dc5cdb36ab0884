//! [`Reports`]: when a stall is counted and reported, and on which thread.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use crate::flight;
use crate::insight::{Stall, StallKind, event, requests};
use crate::notice;
use crate::pool::{Culprit, Pool, Station};
use crate::probe::{Doing, Witness};
use crate::sync::thread;
use crate::waking;

/// How long a task must have blocked its thread, or computed, before it is reported.
pub(super) const STALL: Duration = Duration::from_millis(10);

/// The reports about one poll that does not return: which were made, and when the next one is due.
#[derive(Debug)]
pub(super) struct Reports {
    /// When it is reported next.
    next: Duration,
    is_counted: bool,
    is_reported: bool,
    is_starved: bool,
}

impl Reports {
    pub(super) fn new() -> Self {
        Self { next: STALL, is_counted: false, is_reported: false, is_starved: false }
    }

    /// Counts and reports a stall when it has lasted long enough, and reports it again each time it has
    /// become ten times as long. A report that cannot be made is tried again at the next look. A task that
    /// has waited for a core for as long is counted as starved, once; a thread that waits for a core or
    /// dozes at this look is not reported.
    pub(super) fn look(
        &mut self,
        pool: &Arc<Pool>,
        station: &Station,
        culprit: Culprit,
        doing: Doing,
        witness: &Witness,
    ) {
        let stalls = &pool.deputy.stalls;
        if witness.waited >= STALL && !mem::replace(&mut self.is_starved, true) {
            stalls.starved.add_shared(1);
        }
        let (lasted, count) = match doing {
            Doing::Waits | Doing::Dozes => return,
            Doing::Blocks => (witness.blocked, &stalls.blocked),
            Doing::Computes => (witness.computed, &stalls.computing),
        };
        if lasted < self.next {
            return;
        }
        if !mem::replace(&mut self.is_counted, true) {
            stalls.all.add_shared(1);
            count.add_shared(u64::from(witness.tells()));
        }
        let kind = match doing {
            _ if !witness.tells() => StallKind::Unknown,
            Doing::Computes => StallKind::Computing,
            _ => StallKind::Blocked(station.state.syscall()),
        };
        let is_first = !self.is_reported;
        if report(pool, station, culprit, StallNow { kind, lasted, is_first }) {
            if let Some(place) = culprit.place {
                flight::stalls(station.seat.number, place, || kind.code(), lasted);
            }
            self.is_reported = true;
            self.next = lasted.saturating_mul(10);
        }
    }
}

/// The state of a stall when it is reported.
struct StallNow {
    kind: StallKind,
    lasted: Duration,
    is_first: bool,
}

/// Makes a report if the place of `culprit` is known, and the runtime has a hook for stalls, a subscriber of
/// `tracing` may want an event, or `PACELINE_REPORT` asks for reports; otherwise does nothing, and returns
/// true. A thread of its own does that, because the deputy runs no user code and does not wait for standard
/// error. There is one report at a time: returns false if the last one is still in progress, or if no thread
/// can be started. Then the caller has to try again.
fn report(pool: &Arc<Pool>, station: &Station, culprit: Culprit, stage: StallNow) -> bool {
    let hook = pool.crew().and_then(|crew| crew.stall_hook());
    let (is_printed, is_traced) = (requests::are_stalls_requested(), event::is_wanted());
    let Some(spawned_at) = culprit.place.filter(|_| is_printed || is_traced || hook.is_some()) else {
        return true;
    };
    if pool.deputy.stalls.reporting.raise() {
        return false;
    }
    // Dropped on the new thread; or here, if there is none.
    let reporting = Reporting(pool.clone());
    let stall = Stall {
        spawned_at,
        in_block_on: culprit.is_root,
        kind: stage.kind,
        blocked_for: stage.lasted,
        thread: station.thread.name().map(Into::into),
        thread_id: station.thread.id(),
        is_first: stage.is_first,
    };
    let started = thread::Builder::new().name("paceline-report".into()).spawn(move || {
        if let Some(hook) = hook {
            // A hook that panics has said so by its panic message.
            waking::call(|| reporting.0.visit(|| hook(&stall)));
            waking::call(|| drop(hook));
        }
        if is_traced {
            waking::call(|| event::emit(&stall));
        }
        drop(reporting);
        // Standard error may block. By now `reporting` is dropped, so this delays no other report.
        if is_printed {
            notice::print(&stall);
        }
    });
    started.is_ok()
}

/// A report is being made, until this is dropped.
struct Reporting(Arc<Pool>);

impl Drop for Reporting {
    fn drop(&mut self) {
        self.0.deputy.stalls.reporting.set(false);
    }
}
