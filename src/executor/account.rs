//! [`Account`]: what a deputy remembers of one executor from one look to the next.
//!
//! Two promises are kept here. Tasks in a runner's slot or ring are polled next by its own thread, which comes by soon; and
//! a sleeper that was notified of tasks looks for them. Either thread may be kept by something else instead. So what did not
//! move between two looks is given to others: tasks from the slot and the ring to the injector, and what is in the
//! injector to another sleeper, or to the reserve, which sifts it.

use super::runner::{Beat, Runner};
use super::state::State;

/// Looks from one time at most that the reserve sifts the surplus in vain to the next.
const MOST_PAUSED: u32 = 8;

/// An executor as it was at the last look.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// Tasks taken from the injector, if others waited there.
    taken: Option<u64>,
    /// How often the reserve was asked in a row to sift what waits, and found nothing; and looks to leave out before the next time.
    sifts: u32,
    pause: u32,
    /// Runners with tasks of their own, and how far they had got.
    laden: Vec<(*const Runner, Beat)>,
}

impl State {
    /// Compares the executor with the last look. True if somebody sleeps beside tasks that wait.
    pub(crate) fn audit(&self, last: &mut Account) -> bool {
        let (mut laden, mut stuck, mut reserve) = (Vec::new(), Vec::new(), None);
        self.find_in_runners(|runner| -> Option<()> {
            let now = (std::ptr::from_ref(&**runner), runner.beat());
            // A reserve would not find them elsewhere, nor would others soon, which compute: it is on its way to them, unless it is
            // in another task.
            let comes = runner.is_reserve() && !now.1.is_in_task();
            if comes {
                reserve = Some(runner.clone());
            }
            if runner.has_tasks() && !comes {
                if last.laden.contains(&now) {
                    stuck.push(runner.clone());
                } else {
                    laden.push(now);
                }
            }
            None
        });
        // Wakes others, so not under the lock of the list (LF3).
        stuck.iter().for_each(|runner| self.hand_over_from_afar(runner));
        let taken = self.has_surplus().then(|| self.taken());
        let waits = taken.is_some() && self.any_idle();
        if taken.is_some() && last.taken == taken {
            if waits {
                self.notify_another();
            }
            last.pause = last.pause.saturating_sub(1);
            if let (Some(reserve), 0) = (reserve, last.pause) {
                reserve.ask_to_sift();
                last.sifts = (last.sifts + 1).min(MOST_PAUSED);
                last.pause = last.sifts;
            }
        } else {
            (last.sifts, last.pause) = (0, 0);
        }
        (last.taken, last.laden) = (taken, laden);
        waits
    }

    /// Whether there is anything that another look could find and mend.
    pub(crate) fn is_open(&self) -> bool {
        let laden = || self.find_in_runners(|runner| runner.has_tasks().then_some(())).is_some();
        self.has_surplus() && self.any_idle() || self.is_overseen() && laden()
    }
}
