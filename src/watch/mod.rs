//! The deputy's thread. Once a tick it observes a pool, decides what to do, and does it: see [`Audit`]. The
//! rules are in [`decide`](mod@decide).
//!
//! [`Deputy`], in `pool`, is the half of the deputy by which other threads call it and put it to sleep.

mod act;
mod audit;
mod decide;
mod observe;
mod progress;
mod relief;
mod report;

use crate::blocking_threads::LINGER;
use crate::flight::Membership;
use crate::pool::{Deputy, LentPool};
use crate::sync::Instant;
use crate::waking;
use audit::Audit;

/// Runs the deputy's thread: looks once a tick, sleeps while nothing is to be watched, and rests while all is
/// known. Returns when the pool is gone, or when the deputy resigns after a second in which the pool did not
/// need it; then all runners are open again. A look that panics does not end the thread.
pub(crate) fn serve(deputy: &Deputy) {
    deputy.duty.note_started();
    let mut audit = Audit::default();
    let mut unneeded_since = None;
    let mut membership = Membership::new();
    loop {
        let orders = deputy.duty.rise();
        let Some(pool) = deputy.pool() else { return };
        if orders.ended {
            return;
        }
        membership.refresh(&pool.recording);
        // A look that panics is a defect of paceline. The deputy continues with a fresh state.
        let look = waking::catch(|| audit.look(&pool, orders.help));
        let quiet = look.unwrap_or_else(|| {
            audit = Audit::default();
            false
        });
        let needed = pool.needs_deputy();
        let since = *unneeded_since.get_or_insert_with(Instant::now);
        if needed {
            unneeded_since = None;
        } else if since.elapsed() >= LINGER && deputy.duty.resign(|| pool.still_needs_deputy()) {
            // No deputy would open a runner that stays closed, or raise the limit of permits.
            act::open_runners(&pool);
            return;
        }
        let has_slept = if quiet { doze(deputy, pool, needed) } else { rest(deputy, pool, &audit) };
        match (has_slept, quiet) {
            (true, true) => audit.forget(),
            (true, false) => audit.forget_last_look(),
            (false, _) => deputy.switch.sleep(Some(deputy.tick()), || deputy.duty.is_rung()),
        }
    }
}

/// Drops the pool and sleeps until the deputy is called, if all is quiet. Polls count as short from then on.
/// Returns false if the deputy did not sleep.
///
/// A deputy that is not `needed` sleeps for a second at most. If `needed` has changed meanwhile, the deputy
/// does not sleep: the thread that changed it may have called before the deputy dozed.
fn doze(deputy: &Deputy, pool: LentPool, needed: bool) -> bool {
    // No look takes it back.
    pool.leadership.set_long_polls(false);
    let reactor = pool.reactor.clone();
    // The thread that removes the last source or timer while the deputy sleeps calls it.
    reactor.tell_when_empty(needed);
    let still_quiet = move || pool.is_quiet() && pool.needs_deputy() == needed;
    let limit = (!needed).then_some(LINGER);
    let dozed = deputy.duty.doze(!needed, still_quiet, |called| deputy.switch.sleep(limit, called));
    reactor.tell_when_empty(false);
    dozed
}

/// Sleeps for as long as the last look allows, or until the deputy is called, if every thread that is awake
/// has been in one poll for long: see `audit/rest.rs`. Returns false if the deputy did not sleep.
fn rest(deputy: &Deputy, pool: LentPool, audit: &Audit) -> bool {
    let Some(limit) = audit.rest() else { return false };
    let may_rest = move || audit.may_rest(&pool);
    // As where nothing needs it: the switch is set, and stays so.
    deputy.duty.doze(true, may_rest, |called| deputy.switch.sleep(Some(limit), called))
}
