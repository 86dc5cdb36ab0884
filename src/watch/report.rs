//! [`report`]: tells the program of a stall, on a thread of its own.
//!
//! That thread also says how long the stall was, if it prints the stall: the deputy would find the end only
//! after a rest, and the thread that stalled pays nothing for it. A second thread looks for the end until it
//! comes, each time after a 64th of the time so far, so the length is right to two percent.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use super::observe::Place;
use crate::insight::{Part, Stall, StallKind, StallNow, event};
use crate::notice::{self, InTurn, ReportName, Untold};
use crate::pool::{Culprit, Pool};
use crate::stack::Stack;
use crate::sync::{self, Instant, thread};
use crate::waking;

static EVENTS: InTurn<Stall> = InTurn::new(|stall| waking::call(|| event::emit(stall)));
static PRINTS: InTurn<Stall> = InTurn::new(|stall| notice::print(stall));

/// Makes a report of the thread at `place` if the place of `culprit` is known, and the runtime has hooks for
/// stalls, a subscriber of `tracing` may want an event, or `PACELINE_REPORT` asks for reports; otherwise does
/// nothing, and returns true. A thread of its own does that, because the deputy runs no user code and does
/// not wait for standard error. There is one report at a time: returns false if the last one is still in
/// progress, or if no thread can be started. Then the caller has to try again.
pub(super) fn report(pool: &Arc<Pool>, place: &Place, culprit: Culprit, due: &StallNow) -> bool {
    let hooks = pool.crew().map_or(Vec::new(), |crew| sync::lock(&crew.config.on_stall).clone());
    let (is_printed, is_traced) = (ReportName::Stalls.is_made(), event::is_wanted());
    let Some(spawned_at) = culprit.place.filter(|_| is_printed || is_traced || !hooks.is_empty()) else {
        return true;
    };
    if pool.deputy.stalls.reporting.raise() {
        return false;
    }
    // Dropped on the new thread; or here, if there is none.
    let reporting = Reporting(pool.clone());
    let station = &place.station;
    let mut stall = Stall {
        spawned_at,
        in_block_on: culprit.is_root,
        kind: due.kind,
        blocked_for: due.lasted,
        thread: station.thread.name().map(Into::into),
        thread_id: station.thread.id(),
        thread_os_id: station.state.number(),
        part: if due.is_first { Part::First } else { Part::Later },
        stack: None,
    };
    let (stays, since) = (place.stays(), place.since);
    let started = named().spawn(move || {
        if matches!(stall.kind, StallKind::Blocked(_)) {
            stall.stack = Stack::of_blocked(stall.thread_os_id, &stays);
        }
        let watched = (is_printed && stall.is_first()).then(|| {
            // Std's in all modes, as in `length`. Without a thread, the sender is dropped.
            let (tell, told) = mpsc::channel();
            _ = named().spawn(move || _ = tell.send(length(since, stays)));
            told
        });
        for hook in hooks {
            // A hook that panics has said so by its panic message.
            waking::call(|| reporting.0.visit(|| hook(&stall)));
            waking::call(|| drop(hook));
        }
        let untold = [(is_traced, &EVENTS), (is_printed, &PRINTS)]
            .map(|(is_wanted, reports)| is_wanted.then(|| reports.add(stall.clone())));
        drop(reporting);
        // This loads the symbols of the program, which takes seconds in a large debug build, and standard
        // error may block. By now `reporting` is dropped, so this delays no hook.
        untold.into_iter().flatten().for_each(Untold::tell);
        if let Some(length) = watched.and_then(|told| told.recv().ok()) {
            (stall.blocked_for, stall.part) = (length, Part::Last);
            PRINTS.add(stall).tell();
        }
    });
    started.is_ok()
}

/// Waits while a thread `stays` where it has been `since` then, and returns for how long that was.
fn length(since: Instant, stays: impl Fn() -> bool) -> Duration {
    loop {
        let lasted = since.elapsed();
        if !stays() {
            return lasted;
        }
        // No model prints reports.
        std::thread::sleep(lasted / 64);
    }
}

fn named() -> thread::Builder {
    thread::Builder::new().name("paceline-report".into())
}

/// A report is being made, until this is dropped.
struct Reporting(Arc<Pool>);

impl Drop for Reporting {
    fn drop(&mut self) {
        self.0.deputy.stalls.reporting.set(false);
    }
}
