//! Decides whether a thread stays awake for a moment before it sleeps.
//!
//! There are two such threads: the leader before it sleeps in the poller, and a follower before it parks.
//! Falling asleep and being woken takes a system call on each side and a switch, and tens of microseconds
//! more if the core goes idle in between. Staying awake pays if each event would pay for a sleep of its own,
//! and comes soon:
//!
//! - Events come singly if a *busy period*, from one real sleep to the next moment without work, has few of
//!   them. Many would pay for their sleep together. The code averages the events of a busy period. While a
//!   thread stays awake no sleep ends a period, so after every [`PROBE`] events the thread sleeps for real. A
//!   follower waits for no events: its busy periods have none.
//! - Whether they come soon, the thread finds out by trying. After a try in vain it skips the next moments,
//!   up to [`MAX_PAUSE`]; a successful try halves that number. An event after the limit, because another
//!   thread had the core, came late. Only short moments count, so a thread whose waits are long stays awake
//!   for none.
//!
//! No other thread has to know. The leader looks for events itself. A follower has announced already that it
//! sleeps, so a caller sets its token, and finds no thread to unpark. In this time a follower does not take
//! leadership that fell vacant: the thread that left it is on its way back, with warm caches.
//!
//! The statistics have one owner, the leader or the thread, so they are plain variables. A clock is read only
//! at moments without work.

use std::cell::Cell;
use std::time::Duration;

use crate::sync::{Instant, thread, thread_local};

/// Busy periods shorter than this make a thread stay awake; see [`LONG_BUSY`].
const SHORT_BUSY: u32 = 8;
/// Busy periods at least this long end it. The distance to `SHORT_BUSY` keeps a thread from going back and
/// forth.
const LONG_BUSY: u32 = 12;
/// Number of events seen awake after which a thread sleeps for real.
const PROBE: u32 = 64;
/// The average moves by one part in this many.
const WEIGHT: u32 = 8;
/// The average is kept in fractions of this size.
const FINE: u32 = 16;
/// Short moments before the first try.
const FIRST: u32 = 8;
/// Upper bound of the short moments to skip before the next try.
const MAX_PAUSE: u32 = 64;
/// A try in vain skips this many times as many moments as the last one: it costs more than a successful try
/// saves, so three of four have to succeed.
const DEARER: u32 = 8;

/// Statistics of how events come, and of the success of staying awake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spin {
    /// Events since the last real sleep.
    events: u32,
    /// Whether there was no moment without work since then.
    busy: bool,
    /// Average number of events of a busy period, in fractions.
    average_busy: u32,
    events_come_singly: bool,
    /// Short moments to skip after a try.
    pause: u32,
    /// Short moments that are still to be skipped.
    left: u32,
    /// For how many nanoseconds the thread slept lately when it had nothing to do: the longest such
    /// sleep, halved by each moment since. Zero if `idle` is never called with a limit, because then no clock
    /// is read.
    pub(crate) slept_lately: u64,
}

/// A moment without work.
#[derive(Debug)]
pub(crate) struct Moment {
    since: Instant,
    limit: Duration,
    spins: bool,
    /// For how long the thread had been awake when it looked last.
    awake: Duration,
}

impl Spin {
    /// Creates the statistics of a thread that has not waited yet. The thread stays awake for no moment
    /// until it has seen [`FIRST`] short ones, and few enough events.
    pub(crate) const fn new() -> Self {
        Self {
            events: 0,
            busy: false,
            average_busy: LONG_BUSY * FINE,
            events_come_singly: false,
            pause: 0,
            left: FIRST,
            slept_lately: 0,
        }
    }

    /// Records events that were found.
    #[inline]
    pub(crate) fn record_events(&mut self, events: usize) {
        self.events = self.events.saturating_add(events as u32);
    }

    /// Begins a moment without work, and decides whether to stay awake, for at most `limit`: the caller asks
    /// [`Moment::stays_awake`], and ends the moment with [`over`](Self::over). Returns `None` if `limit` is
    /// zero, and reads no clock then.
    pub(crate) fn idle(&mut self, limit: Duration) -> Option<Moment> {
        if limit.is_zero() {
            return None;
        }
        if std::mem::take(&mut self.busy) {
            let events = self.events.min(4 * LONG_BUSY) * FINE;
            self.average_busy = self.average_busy - self.average_busy / WEIGHT + events / WEIGHT;
            let bound = if self.events_come_singly { LONG_BUSY } else { SHORT_BUSY };
            self.events_come_singly = self.average_busy < bound * FINE;
        }
        let spins = self.events_come_singly && self.left == 0 && self.events < PROBE;
        Some(Moment { since: Instant::now(), limit, spins, awake: Duration::ZERO })
    }

    /// Ends the moment, and learns from it; `slept` if the thread really slept at its end. Returns for how
    /// long the thread stayed awake.
    pub(crate) fn over(&mut self, moment: &Moment, slept: bool) -> Duration {
        self.slept_lately /= 2;
        if moment.spins {
            // A thread that yields a busy core gets it back late: then, too, being woken is better.
            let in_vain = slept || moment.awake >= moment.limit;
            self.pause = if in_vain { (self.pause * DEARER).clamp(1, MAX_PAUSE) } else { self.pause / 2 };
            self.left = self.pause;
        } else if slept {
            let slept = moment.since.elapsed();
            self.slept_lately = self.slept_lately.max(slept.as_nanos() as u64);
            // A sleep lasts about twice as long as the moment to be caught, because of the wake.
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
    /// Decides not to stay awake, whatever the statistics say.
    pub(crate) fn cancel(&mut self) {
        self.spins = false;
    }

    /// Returns whether to stay awake for now. If so, this has yielded to other threads: look again.
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
    /// The statistics of the thread and not of its seat, because every `block_on` has a new seat.
    static FOLLOWER: Cell<Spin> = const { Cell::new(Spin::new()) };
}

/// Waits as a follower: stays awake until it is `called`, for at most `limit`, if that pays. Then calls
/// `sleep` in any case, which sleeps if there was no call, and takes the call. Returns the result of `sleep`,
/// and for how long the thread stayed awake.
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

    /// So long that no test exceeds it on a busy machine, under miri either.
    const LIMIT: Duration = Duration::from_secs(60);

    /// A leader's moment that is `gap` long, after this many events. Returns whether the leader would stay
    /// awake, which then catches the next event.
    fn moment(spin: &mut Spin, events: usize, gap: Duration) -> bool {
        spin.record_events(events);
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

    /// Returns the number of moments asleep before the next try.
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
        assert_eq!(spin.slept_lately, 0);
        moment(&mut spin, 1, 8 * LIMIT);
        let slept = [0; 3].map(|_| {
            at_once(&mut spin, 1);
            spin.slept_lately / LIMIT.as_nanos() as u64
        });
        assert_eq!(slept, [4, 2, 1]);
        // The longer sleep counts.
        moment(&mut spin, 1, 8 * LIMIT);
        moment(&mut spin, 1, LIMIT);
        assert_eq!(spin.slept_lately / LIMIT.as_nanos() as u64, 4);
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
        let between = (SHORT_BUSY + LONG_BUSY) as usize / 2;
        let (mut alone, mut crowded) = (ready(), Spin::new());
        assert!((0..1000).filter(|_| at_once(&mut alone, between)).count() > 500);
        assert_eq!((0..1000).filter(|_| at_once(&mut crowded, between)).count(), 0);
    }

    /// Runs a busy period with this many events. Returns whether events come singly, on average.
    fn busy_period(spin: &mut Spin, events: usize) -> bool {
        (spin.events, spin.busy) = (0, true);
        spin.record_events(events);
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
        assert!(!busy_period(&mut average(SHORT_BUSY), SHORT_BUSY as usize));
        assert!(busy_period(&mut average(SHORT_BUSY), SHORT_BUSY as usize - 1));
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
        for pause in [1, DEARER, MAX_PAUSE, MAX_PAUSE] {
            in_vain(&mut spin);
            assert_eq!(left_out(&mut spin), pause);
            // The try that ended the count was not in vain: undo its effect.
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

    /// A follower's wait that is over at the sixth look, or at the first after a sleep.
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
        // The follower would stay awake, and a try would change `pause`.
        FOLLOWER.set(Spin { pause: MAX_PAUSE, ..ready() });
        assert_eq!(wait(LIMIT, || true, || 7), (7, Duration::ZERO));
        assert_eq!(FOLLOWER.get().pause, MAX_PAUSE);
    }
}
