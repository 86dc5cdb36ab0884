//! The deputy's thread. Once a tick it observes a pool, decides what to do, and does it: see [`Audit`]. The
//! rules are in [`decide`](mod@decide).
//!
//! [`Deputy`], in `pool`, is the half of the deputy by which other threads call it and put it to sleep.

mod act;
mod audit;
mod decide;
mod observe;
mod relief;
mod report;

use crate::flight::Membership;
use crate::pool::{Deputy, LentPool};
use crate::waking;
use audit::Audit;

/// Runs the deputy's thread: looks once a tick, sleeps while nothing is to be watched, and rests while all is
/// known. Returns when the pool is gone. A look that panics does not end the thread.
pub(crate) fn serve(deputy: &Deputy) {
    let mut audit = Audit::default();
    let mut membership = Membership::new();
    loop {
        let Some(help) = deputy.duty.rise() else { return };
        let Some(pool) = deputy.pool() else { return };
        membership.refresh(&pool.recording);
        // A look that panics is a defect of paceline. The deputy continues with a fresh state.
        let look = waking::catch(|| audit.look(&pool, help));
        let quiet = look.unwrap_or_else(|| {
            audit = Audit::default();
            false
        });
        let has_slept = if quiet { doze(deputy, pool) } else { rest(deputy, pool, &audit) };
        match (has_slept, quiet) {
            (true, true) => audit.forget(),
            (true, false) => audit.forget_last_look(),
            (false, _) => deputy.switch.sleep(Some(deputy.tick), || deputy.duty.is_rung()),
        }
    }
}

/// Drops the pool and sleeps until the deputy is called, if all is quiet. Polls count as short from then on.
/// Returns false if the deputy did not sleep.
fn doze(deputy: &Deputy, pool: LentPool) -> bool {
    // No look takes it back.
    pool.leadership.set_long_polls(false);
    deputy.duty.doze(false, move || pool.is_quiet(), |called| deputy.switch.sleep(None, called))
}

/// Sleeps for some ticks, or until the deputy is called, if the last looks found nothing new: see
/// [`audit`]. Returns false if the deputy did not sleep.
fn rest(deputy: &Deputy, pool: LentPool, audit: &Audit) -> bool {
    let Some(limit) = audit.rest(&pool) else { return false };
    let may_rest = move || audit.may_rest(&pool);
    // The switch is set, and stays so.
    deputy.duty.doze(true, may_rest, |called| deputy.switch.sleep(Some(limit), called))
}
