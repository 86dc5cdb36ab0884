//! Whether a thread stays awake for a moment before it sleeps.
//!
//! Two ask that: the leader before it sleeps in the poller, and a follower before it parks. To be put to sleep and to be
//! woken takes a system call of each side and a switch, and where the core goes idle in between tens of microseconds
//! more. To stay awake pays where each event would pay for a sleep of its own, and comes soon:
//!
//! - Events come one by one if a *busy period*, from one real sleep to the next moment without work, has few of them. Many
//!   would pay for their sleep together. That is averaged. Staying awake hides the sleeps from it, so after every
//!   [`PROBE`] events one sleep is real. What a follower waits for is no event: its busy periods have none.
//! - Whether they come soon, it tries. A try in vain makes it leave out the next moments, up to [`MOST`]; one that was
//!   not halves that number. What comes after the limit, because somebody else had the core, came late. Only moments
//!   count that were short, so a thread whose waits are long stays awake for none.
//!
//! Nobody else has to know. The leader looks for itself; and a follower has announced already that it sleeps, so whoever
//! wants it leaves a token, and finds nobody to unpark. What it does not do in this time is to take leadership that
//! fell vacant: whoever left it is on its way back, with the caches warm (R1).
//!
//! The memory has one owner, the leader or the thread, hence plain variables. A clock is read only at moments without
//! work.

use std::cell::Cell;
use std::time::Duration;

use crate::sync::{Instant, thread, thread_local};

/// Busy periods shorter than this make a thread stay awake; see [`LONG`].
const SHORT: u32 = 8;
/// Busy periods longer than this, or as long, end it. The distance to `SHORT` keeps it from going back and forth.
const LONG: u32 = 12;
/// Events that are seen awake, at least, before a real sleep.
const PROBE: u32 = 64;
/// The average moves by one part in this many.
const WEIGHT: u32 = 8;
/// The average is kept in fractions this fine.
const FINE: u32 = 16;
/// Short moments before the first try.
const FIRST: u32 = 8;
/// Short moments that are left out at most, before the next try.
const MOST: u32 = 64;
/// A try in vain has this many times as many moments left out as the last one had: it costs more than one that succeeds
/// saves, so three of four have to.
const DEARER: u32 = 8;

/// The memory of how events come, and of what staying awake led to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spin {
    /// Events since the last real sleep.
    events: u32,
    /// There was no moment without work since then.
    busy: bool,
    /// Average events of a busy period, in fractions.
    average_busy: u32,
    events_come_singly: bool,
    /// Short moments to leave out after a try.
    pause: u32,
    /// Those of them that are left.
    left: u32,
    slept_lately: u64,
}

/// A moment without work.
#[derive(Debug)]
pub(crate) struct Moment {
    since: Instant,
    limit: Duration,
    spins: bool,
    /// For how long it was awake when it looked last.
    awake: Duration,
}

impl Spin {
    pub(crate) const fn new() -> Self {
        Self {
            events: 0,
            busy: false,
            average_busy: LONG * FINE,
            events_come_singly: false,
            pause: 0,
            left: FIRST,
            slept_lately: 0,
        }
    }

    /// For how many nanoseconds the thread slept when it had nothing to do: each time since counts for half as much. Zero if
    /// nobody ever asks whether to stay awake, because then no clock is read.
    pub(crate) fn slept_lately(&self) -> u64 {
        self.slept_lately
    }

    /// Events were found.
    #[inline]
    pub(crate) fn saw(&mut self, events: usize) {
        self.events = self.events.saturating_add(events as u32);
    }

    /// There is nothing to do: is it worth staying awake, for `limit` at most? If that is zero, the question is not asked.
    pub(crate) fn idle(&mut self, limit: Duration) -> Option<Moment> {
        if limit.is_zero() {
            return None;
        }
        if std::mem::take(&mut self.busy) {
            let events = self.events.min(4 * LONG) * FINE;
            self.average_busy = self.average_busy - self.average_busy / WEIGHT + events / WEIGHT;
            let bound = if self.events_come_singly { LONG } else { SHORT };
            self.events_come_singly = self.average_busy < bound * FINE;
        }
        let spins = self.events_come_singly && self.left == 0 && self.events < PROBE;
        Some(Moment { since: Instant::now(), limit, spins, awake: Duration::ZERO })
    }

    /// The moment is over; `slept` if the thread really slept at its end. Returns for how long it stayed awake.
    pub(crate) fn over(&mut self, moment: &Moment, slept: bool) -> Duration {
        self.slept_lately /= 2;
        if moment.spins {
            // Whoever yields a busy core gets it back late: there, too, to be woken is better.
            let in_vain = slept || moment.awake >= moment.limit;
            self.pause = if in_vain { (self.pause * DEARER).clamp(1, MOST) } else { self.pause / 2 };
            self.left = self.pause;
        } else if slept {
            let slept = moment.since.elapsed();
            self.slept_lately = self.slept_lately.max(slept.as_nanos() as u64);
            // Being woken takes about as long again as what is to be caught.
            if slept < 2 * moment.limit {
                self.left = self.left.saturating_sub(1);
            }
        }
        if slept {
            (self.events, self.busy) = (0, true);
        }
        moment.awake
    }
}

impl Moment {
    /// Not to stay awake, whatever it would have been worth.
    pub(crate) fn sleeps(&mut self) {
        self.spins = false;
    }

    /// Whether to stay awake for now. If so, others ran meanwhile: look again.
    pub(crate) fn stays_awake(&mut self) -> bool {
        let stays = self.spins && self.awake < self.limit;
        if stays {
            thread::yield_now();
            self.awake = self.since.elapsed();
        }
        stays
    }
}

thread_local! {
    /// Of the thread and not of its seat, of which every `block_on` has a new one.
    static FOLLOWER: Cell<Spin> = const { Cell::new(Spin::new()) };
}

/// A follower waits until it is `called`: awake for `limit` at most, if that pays; `sleep` does the rest, and takes the
/// call. Says for how long it stayed awake, too.
pub(crate) fn wait<T>(
    limit: Duration,
    called: impl Fn() -> bool,
    sleep: impl FnOnce() -> T,
) -> (T, Duration) {
    let mut spin = FOLLOWER.get();
    let moment = if called() { None } else { spin.idle(limit) };
    let Some(mut moment) = moment else { return (sleep(), Duration::ZERO) };
    while moment.stays_awake() && !called() {}
    let sleeps = !called();
    let result = sleep();
    let awake = spin.over(&moment, sleeps);
    FOLLOWER.set(spin);
    (result, awake)
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    /// A leader's moment that is `gap` long, after so many events. True if it would stay awake, which then catches the next.
    fn moment(spin: &mut Spin, events: usize, gap: Duration) -> bool {
        spin.saw(events);
        let moment = spin.idle(LIMIT).unwrap();
        let began = Moment { since: moment.since.checked_sub(gap).unwrap(), ..moment };
        spin.over(&began, !began.spins);
        began.spins
    }

    fn at_once(spin: &mut Spin, events: usize) -> bool {
        moment(spin, events, Duration::ZERO)
    }

    fn in_vain(spin: &mut Spin) {
        let moment = spin.idle(LIMIT).unwrap();
        assert!(moment.spins);
        spin.over(&moment, true);
    }

    /// Moments asleep before the next try, as far as it is worth waiting for.
    fn left_out(spin: &mut Spin) -> u32 {
        (0..1000).take_while(|_| !at_once(spin, 0)).count() as u32
    }

    fn ready() -> Spin {
        let mut spin = Spin::new();
        left_out(&mut spin);
        spin
    }

    #[test]
    fn a_long_sleep_is_remembered_for_as_many_moments_as_it_is_twice_as_long() {
        let mut spin = Spin::new();
        assert_eq!(spin.slept_lately(), 0);
        moment(&mut spin, 1, 8 * LIMIT);
        let slept = [0; 3].map(|_| {
            at_once(&mut spin, 1);
            spin.slept_lately() / LIMIT.as_nanos() as u64
        });
        assert_eq!(slept, [4, 2, 1]);
        // The longer one counts.
        moment(&mut spin, 1, 8 * LIMIT);
        moment(&mut spin, 1, LIMIT);
        assert_eq!(spin.slept_lately() / LIMIT.as_nanos() as u64, 4);
    }

    #[test]
    fn it_sleeps_before_it_knows() {
        assert_eq!(left_out(&mut Spin::new()), FIRST);
    }

    #[test]
    fn events_that_come_singly_keep_it_awake_and_crowds_do_not() {
        let mut spin = ready();
        assert!((0..100).filter(|_| at_once(&mut spin, 1)).count() > 90);
        assert!((0..1000).filter(|_| at_once(&mut spin, 60)).count() < 50);
        assert!((0..100).filter(|_| at_once(&mut spin, 1)).count() > 80);
    }

    #[test]
    fn crowds_are_left_later_than_they_are_entered() {
        let between = (SHORT + LONG) as usize / 2;
        let (mut alone, mut crowded) = (ready(), Spin::new());
        assert!((0..1000).filter(|_| at_once(&mut alone, between)).count() > 500);
        assert_eq!((0..1000).filter(|_| at_once(&mut crowded, between)).count(), 0);
    }

    /// A busy period with so many events. True if they come singly, on average.
    fn busy_period(spin: &mut Spin, events: usize) -> bool {
        (spin.events, spin.busy) = (0, true);
        spin.saw(events);
        spin.idle(LIMIT);
        spin.events_come_singly
    }

    #[test]
    fn one_crowd_however_large_does_not_make_it_sleep_and_two_do() {
        let mut spin = Spin { average_busy: FINE, ..ready() };
        assert!([10_000, 10_000].map(|events| busy_period(&mut spin, events)) == [true, false]);
    }

    #[test]
    fn only_busy_periods_shorter_than_that_make_it_stay_awake() {
        let average = |events| Spin { average_busy: events * FINE, events_come_singly: false, ..Spin::new() };
        assert!(!busy_period(&mut average(SHORT), SHORT as usize));
        assert!(busy_period(&mut average(SHORT), SHORT as usize - 1));
    }

    #[test]
    fn after_so_many_events_it_sleeps_for_real() {
        let mut spin = ready();
        spin.events = 0;
        let slept: Vec<_> = (1..=3 * PROBE).filter(|_| !at_once(&mut spin, 1)).collect();
        assert_eq!(slept, [PROBE, 2 * PROBE, 3 * PROBE]);
    }

    #[test]
    fn in_vain_it_leaves_out_more_and_more_and_recovers() {
        let mut spin = ready();
        for pause in [1, DEARER, MOST, MOST] {
            in_vain(&mut spin);
            assert_eq!(left_out(&mut spin), pause);
            // The try that ended the count was not in vain: undo what it taught.
            (spin.pause, spin.left) = (pause, 0);
        }
        let pauses: Vec<_> = (0..8).map(|_| left_out(&mut spin)).collect();
        assert_eq!(pauses, [0, 32, 16, 8, 4, 2, 1, 0]);
    }

    #[test]
    fn what_is_caught_after_the_limit_was_waited_for_in_vain() {
        let mut spin = ready();
        let moment = spin.idle(LIMIT).unwrap();
        spin.over(&Moment { awake: LIMIT, ..moment }, false);
        assert_eq!(left_out(&mut spin), 1);
    }

    #[test]
    fn long_moments_never_keep_it_awake() {
        let mut spin = Spin::new();
        assert!(!(0..1000).any(|_| moment(&mut spin, 1, 2 * LIMIT)));
        assert!((0..1000).any(|_| moment(&mut spin, 1, LIMIT)), "this is what tells long from short");
    }

    #[test]
    fn a_moment_awake_is_no_longer_than_its_limit() {
        let limit = Duration::from_millis(1);
        let mut spin = ready();
        let mut moment = spin.idle(limit).unwrap();
        let mut before_the_last_look = Duration::ZERO;
        while moment.awake < limit {
            before_the_last_look = moment.awake;
            assert!(moment.stays_awake());
        }
        assert!(!moment.stays_awake() && before_the_last_look < limit);
        assert!(!Moment { awake: limit, ..spin.idle(limit).unwrap() }.stays_awake());
        let awake = spin.over(&moment, true);
        assert!(awake >= limit && awake <= moment.since.elapsed());
    }

    /// A follower's wait that is over at the sixth look, or the first after a sleep.
    fn short_wait(limit: Duration) -> Duration {
        let looks = Cell::new(0);
        wait(limit, || looks.replace(looks.get() + 1) > 4, || ()).1
    }

    #[test]
    fn a_follower_whose_waits_are_short_stays_awake_for_them() {
        let asleep = |_: &u32| short_wait(LIMIT).is_zero();
        assert_eq!((0..FIRST).filter(asleep).count() as u32, FIRST);
        assert_eq!((0..1000).filter(asleep).count(), 0, "it knows, and needs no probe");
    }

    #[test]
    fn nothing_is_learned_where_nothing_is_waited_for() {
        (0..1000).for_each(|_| assert!(short_wait(Duration::ZERO).is_zero()));
        assert_eq!((FOLLOWER.get().left, FOLLOWER.get().busy), (FIRST, false));
        // It would stay awake, and a try would change this.
        FOLLOWER.set(Spin { pause: MOST, ..ready() });
        assert_eq!(wait(LIMIT, || true, || 7), (7, Duration::ZERO));
        assert_eq!(FOLLOWER.get().pause, MOST);
    }
}
