//! [`Audit`]: what the deputy looks at, remembers from one look to the next, and does about it.
//!
//! | what it finds at two looks in a row | what it does |
//! |---|---|
//! | leadership vacant, not taken in between, and somebody waits | opens it to anybody and wakes a follower; else adds a worker; else starts a [`relief`] |
//! | a runner in the same poll | marks the task slow; reports it when that has lasted ten milliseconds |
//! | a runner that got no further, with tasks in its slot or ring | moves them to where others find them |
//! | tasks that wait, none taken in between, and a runner that sleeps | wakes it, whoever else was told |
//! | tasks that wait, and every worker stuck | adds a worker; where none may be added, has one that waits in a nested `block_on` run them |
//! | more workers than usual, for a second | lets one go |

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::stall::{self, STALL};
use super::{Pool, Station, relief};
use crate::executor::{Account, Beat, Hosted, Runner, State, StateRef};
use crate::sync::Instant;

/// How long a thread beyond the usual number stays when nobody needs it.
const SURPLUS_STAYS: Duration = Duration::from_secs(1);
/// How long the threads of a pool without workers may be busy, and not blocked, before somebody else leads for them.
const BUSY: Duration = Duration::from_millis(10);
/// How long all workers must have been stuck before one of them is asked to run tasks where it waits, on top of its own.
const LAST_RESORT: Duration = STALL;

/// What the deputy remembers.
#[derive(Debug, Default)]
pub(super) struct Audit {
    looks: u64,
    looked: Option<Instant>,
    /// Leaderships taken up to the last look.
    taken: Option<u64>,
    /// Since when nobody has led who should.
    blind: Option<Instant>,
    runners: HashMap<*const Runner, Entry>,
    executors: HashMap<*const State, Account>,
    /// Since when there are more workers than are needed.
    overstaffed: Option<Instant>,
    /// Since when no worker is left to run the tasks that wait.
    short_of_hands: Option<Instant>,
    /// Nothing more can be done about the tasks that wait.
    helpless: bool,
}

// SAFETY: the pointers are only compared.
unsafe impl Send for Audit {}

#[derive(Debug)]
struct Entry {
    /// How far the runner has got in its tasks, and its thread with events.
    progress: (Beat, u64),
    since: Instant,
    /// When it is reported next.
    report_at: Duration,
    /// The number of the last look that found the runner.
    seen: u64,
}

/// What a look found among the workers.
#[derive(Debug, Default)]
struct Hands {
    /// Runners of the crew that are stuck in a task.
    stuck: usize,
    /// Somebody of another executor sleeps beside tasks that wait.
    open: bool,
}

impl Audit {
    /// The deputy has slept: what it knows is out of date.
    pub(super) fn forget(&mut self) {
        self.taken = None;
        self.runners.clear();
        self.executors.clear();
    }

    /// One look. True if there was nothing to watch. `help` says that a thread is wanted at once.
    pub(super) fn look(&mut self, pool: &Arc<Pool>, help: bool) -> bool {
        let now = Instant::now();
        if !pool.reactor.is_needed() {
            pool.relieve_reliefs();
        }
        if help && pool.leadership.is_vacant() && !pool.leadership.rescue() {
            add_thread(pool);
        }
        let hands = if self.is_quiet(pool) {
            self.forget();
            Hands::default()
        } else {
            // Rung between two ticks: nobody had the time to keep a promise since the last look.
            let soon = self.looked.is_some_and(|last| now - last < pool.deputy.tick() / 2);
            if soon && self.taken.is_some() {
                return false;
            }
            self.looked = Some(now);
            self.looks += 1;
            self.look_at_leadership(pool, now);
            let hands = self.look_at_executors(pool, now);
            self.look_at_crew(pool, &hands, now);
            hands
        };
        let quiet = !hands.open && self.is_quiet(pool);
        self.let_some_go(pool, hands.stuck, quiet, now);
        quiet && self.overstaffed.is_none()
    }

    /// Whether nothing needs to be watched right now.
    pub(super) fn is_quiet(&self, pool: &Arc<Pool>) -> bool {
        // Whoever can be asked to help is seen now; whoever comes later calls.
        let hopeless = || self.helpless && pool.helpers().is_empty();
        let crew_waits = || pool.crew().is_some_and(|crew| crew.has_surplus()) && !hopeless();
        let vacant = || pool.leadership.is_vacant() && pool.reactor.is_awaited();
        pool.is_asleep() && !vacant() && !crew_waits() && !pool.overseen().iter().any(|state| state.is_open())
    }

    fn look_at_leadership(&mut self, pool: &Arc<Pool>, now: Instant) {
        let taken = pool.leadership.taken.get();
        let before = self.taken.replace(taken);
        let abandoned = pool.leadership.is_vacant() && pool.reactor.is_awaited();
        // Where nobody is, nobody has promised anything: no need for a second look.
        if !abandoned || before != Some(taken) && !pool.stations().is_empty() {
            self.blind = None;
            return;
        }
        let since = *self.blind.get_or_insert(now);
        pool.deputy.rescues.add_shared(1);
        if pool.leadership.rescue() || add_thread(pool) {
            return;
        }
        // A thread that runs, in a pool that lives off those that come by, is back soon more often than not, and another one
        // that leads for it meanwhile would be in its way.
        let excused = pool.crew().is_none() && now - since < BUSY && pool.is_busy();
        if !excused {
            relief::start(pool);
        }
    }

    fn look_at_executors(&mut self, pool: &Arc<Pool>, now: Instant) -> Hands {
        let stations = pool.stations();
        let mut hands = Hands::default();
        for station in &stations {
            let hosted = station.runners.lock().clone();
            for Hosted { state, runner } in &hosted {
                let stuck = self.look_at_runner(pool, station, runner, now);
                // Another executor's runner that idles is no help to the crew's tasks.
                let is_of_crew = pool.crew().is_some_and(|crew| std::ptr::eq(&**crew.state(), &**state));
                hands.stuck += usize::from(stuck && is_of_crew);
            }
        }
        let states = executors(pool, &stations);
        for state in &states {
            let account = self.executors.entry(&raw const **state).or_default();
            hands.open |= state.audit(account);
        }
        let looks = self.looks;
        self.runners.retain(|_, entry| entry.seen == looks);
        self.executors.retain(|known, _| states.iter().any(|state| std::ptr::eq(&**state, *known)));
        hands
    }

    /// True if its thread is in the same poll, or calls the same waker, as at the last look.
    fn look_at_runner(
        &mut self,
        pool: &Arc<Pool>,
        station: &Station,
        runner: &Arc<Runner>,
        now: Instant,
    ) -> bool {
        let progress = (runner.beat(), station.pulse());
        let fresh = || Entry { progress, since: now, report_at: STALL, seen: 0 };
        let entry = self.runners.entry(Arc::as_ptr(runner)).or_insert_with(fresh);
        let first = mem::replace(&mut entry.seen, self.looks) == 0;
        if entry.progress != progress {
            *entry = Entry { seen: self.looks, ..fresh() };
            return false;
        }
        let (beat, pulse) = progress;
        if first || !beat.is_in_task() {
            return !first && pulse % 2 == 1;
        }
        runner.catch(beat);
        entry.report(pool, station, runner, now);
        true
    }

    fn look_at_crew(&mut self, pool: &Arc<Pool>, hands: &Hands, now: Instant) {
        let Some(crew) = pool.crew() else { return };
        // Threads that are only starting are no help yet, but no reason for more of them either: not at once.
        let (live, late) = crew.staff(now, STALL);
        let stuck = hands.stuck + late;
        self.helpless = false;
        if crew.has_surplus() && stuck >= live {
            let since = *self.short_of_hands.get_or_insert(now);
            if !add_thread(pool) && now - since >= LAST_RESORT {
                self.helpless = !ask_for_help(pool);
            }
        } else {
            self.short_of_hands = None;
        }
    }

    /// Threads that others stood in for are back: after a while one at a time goes, even where all of them find work; and
    /// all that are too many, where none does.
    fn let_some_go(&mut self, pool: &Pool, stuck: usize, quiet: bool, now: Instant) {
        if !pool.crew().is_some_and(|crew| crew.is_overstaffed(stuck)) {
            self.overstaffed = None;
        } else if now - *self.overstaffed.get_or_insert(now) >= SURPLUS_STAYS {
            self.overstaffed = Some(now);
            let stations = pool.stations();
            let surplus = stations.iter().filter(|station| station.is_replacement());
            surplus.take(if quiet { usize::MAX } else { 1 }).for_each(|station| station.release());
        }
    }
}

impl Entry {
    /// Reports a stall when it has lasted long enough, and again whenever it has become ten times as long.
    fn report(&mut self, pool: &Arc<Pool>, station: &Station, runner: &Runner, now: Instant) {
        let blocked_for = (now - self.since).saturating_add(pool.deputy.tick());
        if blocked_for < self.report_at {
            return;
        }
        if self.report_at == STALL {
            pool.deputy.stalls.add_shared(1);
        }
        if stall::report(pool, station, runner, blocked_for) {
            self.report_at = blocked_for.saturating_mul(10);
        }
    }
}

/// The executors that threads of this pool run, and those of which nobody else knows.
fn executors(pool: &Pool, stations: &[Arc<Station>]) -> Vec<StateRef> {
    let mut states = pool.overseen();
    for station in stations {
        for hosted in &*station.runners.lock() {
            if !states.iter().any(|known| std::ptr::eq(&**known, &*hosted.state)) {
                states.push(hosted.state.clone());
            }
        }
    }
    states
}

fn add_thread(pool: &Arc<Pool>) -> bool {
    pool.crew().is_some_and(|crew| crew.add_thread(pool))
}

/// Has a thread that waits in a nested `block_on` run tasks meanwhile. False if there is none. One that is awake just now,
/// or was asked already, may be asked at the next look.
fn ask_for_help(pool: &Pool) -> bool {
    let helpers = pool.helpers();
    let _asked = helpers.iter().any(|station| station.ask_for_help());
    !helpers.is_empty()
}
