//! After which time [`Patience`] finds a thread stuck. Here a thread asks about itself, and says what it does
//! ([`SceneActivity`]), so the times are exact however fast the clock is.

use std::mem;
use std::time::Duration;

use super::{explore, sleep, ticks};
use crate::probe::SceneActivity::{self, Blocks, Computes, WaitsForCore};
use crate::probe::{GRACE, KnownThread, OUTSIDE_GRACE, Patience, WITHOUT_A_CORE};
use crate::sync::Instant;

/// Asserts that a thread that does only this is stuck after `limit`, and not a tick earlier. The scenario's
/// clock is not needed: the thread uses no processor time.
fn assert_stuck_after(limit: Duration, does: SceneActivity, grace: Duration) {
    let (known, mut patience, start) = (KnownThread::here(), Patience::default(), Instant::now());
    mem::forget(does.begin());
    let is_stuck = |tick: &u32| patience.check_stuck(&known, 0, grace, start + ticks(*tick));
    let first = (0..6_000).find(is_stuck);
    assert_eq!(first.map(ticks), Some(limit), "{does:?} with a grace of {grace:?}");
}

/// Fails if the time without a core counts as sleep, or is not limited.
#[test]
fn a_thread_is_stuck_after_it_has_slept_for_the_grace_or_had_no_core_for_long() {
    explore(10, || {
        for grace in [GRACE, OUTSIDE_GRACE] {
            assert_stuck_after(grace, Blocks, grace);
            assert_stuck_after(WITHOUT_A_CORE, WaitsForCore, grace);
        }
    });
}

/// The thread has the core all the time, or for a tenth of the time. Fails if time without a core counts, or
/// processor time does not.
#[test]
fn a_thread_is_stuck_after_it_has_computed_for_the_grace() {
    for waits in [0, 9] {
        explore(1_000, move || {
            let (known, mut patience) = (KnownThread::here(), Patience::default());
            let (mut computed, mut looked) = (Duration::ZERO, Instant::now());
            mem::forget(Computes.begin());
            assert!(!patience.check_stuck(&known, 0, GRACE, looked));
            for turn in 0.. {
                let does = if turn % (1 + waits) == 0 { Computes } else { WaitsForCore };
                mem::forget(does.begin());
                sleep(1);
                let now = Instant::now();
                computed += if does == Computes { now - looked } else { Duration::ZERO };
                looked = now;
                let is_stuck = patience.check_stuck(&known, 0, GRACE, now);
                assert_eq!(is_stuck, computed >= GRACE, "tick {turn}, {computed:?} of them computing");
                if is_stuck {
                    break;
                }
            }
        });
    }
}
