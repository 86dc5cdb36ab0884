//! Whether it pays to wake a thread to share the work: learned from what those brought that were woken.
//!
//! Two ask that: a leader that is about to process an event, and a runner that has more tasks than the one it polls. A wake
//! costs two threads a system call and a switch. Where a core is idle it may double what is done; where none is, the thread
//! that was woken takes the time of others. Nobody can know which of the two it is, so it is tried, and who was woken is on
//! *trial* until it sleeps again:
//!
//! - The wake *paid* if it worked, beside somebody else who worked, for longer than it took to come and than its pieces of work
//!   took to be moved to it. Who comes late, because others have the cores, finds the work done.
//! - A wake *in vain* doubles the number of chances that are left out before the next one, up to [`MOST`]; one that paid halves it.
//!   So a full machine goes back to one thread by itself, and an idle one spreads within some dozens of events. Who was woken
//!   asks the same question while work is left: so it wakes the next one, if that pays.
//! - What a thread brings by being there at all, those two do not see. The deputy, which can measure that, may say that
//!   [no chance is left out](Gain::set_lavish).
//!
//! What nobody is woken for is not lost. It is the promise of who left the chance out, who comes back to it; and the deputy
//! sees it if that one does not.

use std::time::Duration;

use crate::sync::{self, AtomicU32, Flag, Instant, Mutex, Ordering::Relaxed};

/// Chances that are left out at most before the next try.
const MOST: u32 = 512;
/// Chances that are left out before the first one.
const FIRST: u32 = 8;
/// Pieces of work after which it is known whether they are worth moving: each is timed, which small ones would feel.
const ENOUGH: u32 = 64;

/// What is remembered of those that were woken. Where two threads write at once, one of them is forgotten, which is no harm.
#[derive(Debug)]
// What lies beside it is read by all the time, and this is written.
#[repr(align(128))]
pub(crate) struct Gain {
    /// What a piece of work costs beside itself when it is moved to another thread.
    moved: Duration,
    /// Chances to leave out after a try.
    pause: AtomicU32,
    /// Those of them that are left.
    left: AtomicU32,
    /// No chance is left out.
    lavish: Flag,
    /// When somebody was called who has not answered.
    called: Mutex<Option<Instant>>,
}

/// A thread that was woken to share work, until it is known whether that paid.
#[derive(Debug)]
pub(crate) struct Trial {
    moved: Duration,
    /// How long it has to work.
    needs: Duration,
    worked: Duration,
    since: Option<Instant>,
    pieces: u32,
}

impl Gain {
    pub(crate) fn new(moved: Duration) -> Self {
        let [pause, left] = [FIRST; 2].map(AtomicU32::new);
        Self { moved, pause, left, lavish: Flag::new(false), called: Mutex::new(None) }
    }

    /// There is work, and somebody who sleeps: is it worth waking him?
    #[inline]
    pub(crate) fn is_likely(&self) -> bool {
        if self.is_lavish() {
            return true;
        }
        let left = self.left.load(Relaxed);
        let next = if left > 0 { left - 1 } else { self.pause.load(Relaxed) };
        self.left.store(next, Relaxed);
        left == 0
    }

    /// Whether each chance is taken, whatever was learned. Who is woken then need not be on trial.
    #[inline]
    pub(crate) fn is_lavish(&self) -> bool {
        self.lavish.is_set()
    }

    /// From now on each chance is taken; or those only, as before, that are likely to pay.
    pub(crate) fn set_lavish(&self, lavish: bool) {
        self.lavish.set(lavish);
    }

    /// Somebody is about to be woken to share work.
    pub(crate) fn calls(&self) {
        *sync::lock(&self.called) = Some(Instant::now());
    }

    /// There was nobody to be woken.
    pub(crate) fn called_nobody(&self) {
        sync::lock(&self.called).take();
    }

    /// Who was woken is there, and on trial if it was for this.
    pub(crate) fn answers(&self) -> Option<Trial> {
        let called = sync::lock(&self.called).take()?;
        Some(Trial {
            moved: self.moved,
            needs: called.elapsed(),
            worked: Duration::ZERO,
            since: None,
            pieces: 0,
        })
    }

    /// A trial is over.
    pub(crate) fn learns(&self, paid: bool) {
        let pause = self.pause.load(Relaxed);
        let next = if paid { pause / 2 } else { (2 * pause).clamp(1, MOST) };
        self.pause.store(next, Relaxed);
        self.left.store(next, Relaxed);
    }
}

impl Trial {
    /// It begins with a piece of work.
    pub(crate) fn begins(&mut self) {
        self.since.get_or_insert_with(Instant::now);
        self.needs += self.moved;
        self.pieces += 1;
    }

    /// It has done it, and something else comes before the next one.
    pub(crate) fn ends(&mut self) {
        self.worked += self.since.take().map_or(Duration::ZERO, |since| since.elapsed());
    }

    /// It has slept since it began what turned out to be nothing.
    pub(crate) fn forgets(&mut self) {
        self.since = None;
    }

    /// Whether it has worked enough, if that is known before it sleeps.
    pub(crate) fn has_paid(&self) -> Option<bool> {
        let worked = self.worked + self.since.map_or(Duration::ZERO, |since| since.elapsed());
        let has_paid = worked >= self.needs;
        (has_paid || self.pieces >= ENOUGH).then_some(has_paid)
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    /// Chances left out before the next one that is taken.
    fn left_out(gain: &Gain) -> u32 {
        (0..10_000).take_while(|_| !gain.is_likely()).count() as u32
    }

    #[test]
    fn wakes_in_vain_become_rare_and_those_that_pay_frequent_again() {
        let gain = Gain::new(LONG);
        assert_eq!([(); 2].map(|()| left_out(&gain)), [FIRST; 2]);
        let rarer = [(); 7].map(|()| {
            gain.learns(false);
            left_out(&gain)
        });
        assert_eq!(rarer, [16, 32, 64, 128, 256, MOST, MOST]);
        let more = [(); 11].map(|()| {
            gain.learns(true);
            left_out(&gain)
        });
        assert_eq!(more, [256, 128, 64, 32, 16, 8, 4, 2, 1, 0, 0]);
        gain.learns(false);
        assert_eq!(left_out(&gain), 1);
    }

    #[test]
    fn what_was_learned_holds_from_the_next_chance_on() {
        let gain = Gain::new(LONG);
        (0..6).for_each(|_| gain.learns(false));
        assert!(!gain.is_likely());
        (0..10).for_each(|_| gain.learns(true));
        assert!(gain.is_likely());
    }

    #[test]
    fn only_who_was_called_to_share_is_on_trial_and_once() {
        let gain = Gain::new(LONG);
        assert!(gain.answers().is_none());
        gain.calls();
        assert!(gain.answers().is_some());
        assert!(gain.answers().is_none());
    }

    #[test]
    fn where_no_chance_is_left_out_what_was_learned_stays_for_later() {
        let gain = Gain::new(LONG);
        gain.learns(false);
        gain.set_lavish(true);
        assert_eq!(left_out(&gain), 0);
        gain.learns(false);
        assert_eq!(left_out(&gain), 0);
        gain.set_lavish(false);
        assert_eq!(left_out(&gain), 32);
    }

    /// A trial of somebody who took so long to come.
    fn trial(late: Duration, moved: Duration) -> Trial {
        Trial { moved, needs: late, worked: Duration::ZERO, since: None, pieces: 0 }
    }

    #[test]
    #[cfg_attr(miri, ignore = "its clock runs with its steps")]
    fn to_come_takes_as_long_as_it_took() {
        let gain = Gain::new(Duration::ZERO);
        gain.calls();
        let called = Instant::now();
        std::thread::sleep(Duration::from_millis(2));
        let needs = gain.answers().expect("it was called").needs;
        assert!(needs >= Duration::from_millis(2));
        assert!(needs <= called.elapsed() + Duration::from_millis(1));
    }

    #[test]
    #[cfg_attr(miri, ignore = "its clock runs with its steps")]
    fn who_works_for_longer_than_it_took_to_come_has_paid() {
        let mut trial = trial(Duration::from_millis(4), Duration::ZERO);
        assert_eq!(trial.has_paid(), None);
        for _ in 0..2 {
            trial.begins();
            std::thread::sleep(Duration::from_micros(1500));
            trial.ends();
        }
        let soon = trial.worked;
        assert!(soon >= Duration::from_millis(3), "both pieces count");
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(trial.worked, soon, "nothing counts in between");
        trial.begins();
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(trial.has_paid(), Some(true), "what goes on counts as well");
    }

    #[test]
    fn each_piece_of_work_pays_for_its_own_way_first() {
        let mut trial = trial(Duration::ZERO, LONG);
        (0..3).for_each(|_| trial.begins());
        assert_eq!(trial.needs, 3 * LONG);
        trial.ends();
        assert_eq!(trial.has_paid(), None);
        trial.worked = 3 * LONG;
        assert_eq!(trial.has_paid(), Some(true));
    }

    /// Fails if a thread that never sleeps, because there are always some small ones, times each of them for ever.
    #[test]
    fn many_small_pieces_are_in_vain() {
        let mut trial = trial(Duration::ZERO, LONG);
        (1..ENOUGH).for_each(|_| trial.begins());
        assert_eq!(trial.has_paid(), None);
        trial.begins();
        assert_eq!(trial.has_paid(), Some(false));
    }
}
