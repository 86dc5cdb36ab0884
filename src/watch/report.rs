//! [`report`]: tells the program of a stall, on a thread of its own.

use std::sync::Arc;

use crate::insight::{Stall, StallNow, event, requests};
use crate::notice;
use crate::pool::{Culprit, Pool, Station};
use crate::sync::thread;
use crate::waking;

/// Makes a report if the place of `culprit` is known, and the runtime has a hook for stalls, a subscriber of
/// `tracing` may want an event, or `PACELINE_REPORT` asks for reports; otherwise does nothing, and returns
/// true. A thread of its own does that, because the deputy runs no user code and does not wait for standard
/// error. There is one report at a time: returns false if the last one is still in progress, or if no thread
/// can be started. Then the caller has to try again.
pub(super) fn report(pool: &Arc<Pool>, station: &Station, culprit: Culprit, due: &StallNow) -> bool {
    let hook = pool.crew().and_then(|crew| crew.config.on_stall.clone());
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
        kind: due.kind,
        blocked_for: due.lasted,
        thread: station.thread.name().map(Into::into),
        thread_id: station.thread.id(),
        is_first: due.is_first,
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
