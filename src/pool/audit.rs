//! [`Audit`]: what the deputy looks at, remembers from one look to the next, and does about it.
//!
//! | what it finds at two looks in a row | what it does |
//! |---|---|
//! | leadership vacant, not taken in between, and somebody waits | opens it to anybody and wakes a follower; else has those that run look up; else, where none does, gets a thread; else starts a [`relief`] |
//! | a runner in the same poll | asks its [`Witness`] whether it blocks, computes, or waits for a core. Marks the task slow, unless it waits; reports it when that has lasted ten milliseconds |
//! | a future of a `block_on` in the same poll | asks the same, and reports it, too |
//! | a runner that got no further, with tasks in its slot or ring | moves them to where others find them |
//! | tasks that wait, none taken in between, and a runner that sleeps | wakes it, whoever else was told |
//! | tasks that wait, and every worker stuck | gets a thread for one that blocks; where none may be added, has one that waits in a nested `block_on` run them |
//! | the same, and each that does not block has computed for long | gets one more thread: they may compute until such a task has run |
//! | more workers than usual, for a second | lets one go |
//! | a pool that is busy all the time | has it tried to spare no thread, and keeps to what gets more [done](ways) |

mod progress;
mod ways;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::finding::Spot;
use super::hands::{self, Hands};
use super::stall::{Culprit, STALL};
use super::witness::{Doing, Witness};
use super::{Crew, Pool, Promotion, Station, relief};
use crate::executor::{Account, Caught, Hosted, Runner, State, StateRef};
use crate::sync::Instant;
use progress::Progress;
use ways::{Done, Ways};

/// How long a thread beyond the usual number stays when nobody needs it.
const SURPLUS_STAYS: Duration = Duration::from_secs(1);
/// How long the threads of a pool without workers may be busy, and not blocked, before somebody else leads for them.
const BUSY: Duration = Duration::from_millis(10);
/// How long all workers must have been stuck before one of them is asked to run tasks where it waits, on top of its own.
const LAST_RESORT: Duration = STALL;

/// What the deputy remembers.
#[derive(Debug, Default)]
pub(super) struct Audit {
    looked: Option<Instant>,
    /// Leaderships taken up to the last look.
    taken: Option<u64>,
    /// Since when nobody has led who should.
    blind: Option<Instant>,
    progress: Progress,
    executors: HashMap<*const State, Account>,
    /// Threads of the crew that blocked then; and those that have begun to since, by their own word.
    blocked: usize,
    /// Since when there are more workers than are needed.
    overstaffed: Option<Instant>,
    /// Since when no worker is left to run the tasks that wait.
    short_of_hands: Option<Instant>,
    /// Nothing more can be done about the tasks that wait.
    helpless: bool,
    /// What wakes bring by which events are shared.
    ways: Ways,
}

// SAFETY: the pointers are only compared.
unsafe impl Send for Audit {}

impl Audit {
    /// The deputy has slept: what it knows is out of date.
    pub(super) fn forget(&mut self) {
        (self.taken, self.blocked, self.progress.starves) = (None, 0, false);
        self.progress.forget();
        self.executors.clear();
    }

    /// One look. True if there was nothing to watch. `help` says that a thread is wanted at once.
    pub(super) fn look(&mut self, pool: &Arc<Pool>, help: bool) -> bool {
        let now = Instant::now();
        if !pool.reactor.is_needed() {
            pool.relieve_reliefs();
        }
        if help && pool.leadership.is_vacant() && !pool.leadership.rescue() {
            self.cover(pool);
        }
        let (excused, open) = if self.is_quiet(pool) {
            self.forget();
            self.ways.look_at_sleepers(&pool.leadership.gain, now);
            (0, false)
        } else {
            // Rung between two ticks: nobody had the time to keep a promise since the last look.
            let soon = self.looked.is_some_and(|last| now - last < pool.deputy.tick() / 2);
            if soon && self.taken.is_some() {
                return false;
            }
            self.looked = Some(now);
            self.progress.look_begins();
            let stations = pool.stations();
            let mut hands = self.look_at_runners(pool, &stations, now);
            (self.progress.starves, self.blocked) = (hands.waits, hands.blocked);
            self.look_at_leadership(pool, &stations, &mut hands, now);
            let open = self.look_at_executors(pool, &stations);
            self.look_at_crew(pool, &stations, &mut hands, now);
            self.look_at_gain(pool, now);
            (hands.excused(), open)
        };
        let quiet = !open && self.is_quiet(pool);
        self.let_some_go(pool, excused, quiet, now);
        quiet && self.overstaffed.is_none()
    }

    /// Whether nothing needs to be watched right now.
    pub(super) fn is_quiet(&self, pool: &Arc<Pool>) -> bool {
        // Whoever can be asked to help is seen now; whoever comes later calls.
        let hopeless = || self.helpless && pool.helpers().is_empty();
        let crew_waits = || pool.workforce().is_some_and(|crew| crew.has_surplus()) && !hopeless();
        let vacant = || pool.leadership.is_vacant() && pool.reactor.is_awaited();
        pool.is_asleep() && !vacant() && !crew_waits() && !pool.overseen().iter().any(|state| state.is_open())
    }

    /// Who led is about to run a task that is known to block, and nobody else is there to lead: the next look would find that.
    fn cover(&mut self, pool: &Arc<Pool>) {
        self.blocked += 1;
        if pool.workforce().is_some_and(|crew| crew.live() < crew.threads() + self.blocked) {
            hands::add_thread(pool, false);
        }
    }

    fn look_at_runners(&mut self, pool: &Arc<Pool>, stations: &[Arc<Station>], now: Instant) -> Hands {
        let mut hands = pool.workforce().map_or_else(Hands::default, |crew| Hands::of(crew, now));
        let mut found_reserve = false;
        for station in stations {
            self.look_at_guest(pool, station, now);
            let hosted = station.runners.lock().clone();
            for Hosted { state, runner } in &hosted {
                let stuck = self.look_at_runner(pool, station, runner, now);
                hands.any_moves |= stuck.is_none() && self.progress.has_moved(runner) && !station.is_quiet();
                // Another executor's runner that idles is no help to the crew's tasks.
                if pool.workforce().is_some_and(|crew| crew.runs(state)) {
                    // What a reserve has that blocks is for others, and another one is for what events wake. One that was late to
                    // start may find another one.
                    let is_vain = stuck == Some(Doing::Blocks) || found_reserve;
                    if runner.is_reserve() && is_vain {
                        hands::draft(station, runner);
                        hands.reserve = hands.reserve.filter(|_| found_reserve);
                    }
                    found_reserve |= runner.is_reserve();
                    hands.count(station, runner, stuck.map(|doing| (doing, self.progress.computed(runner))));
                }
            }
        }
        self.progress.look_ends();
        if hands.is_reserve_lost() {
            // It may compute for ever: then it is one of those beside which there is to be one.
            hands.draft(pool, stations);
            if pool.reactor.is_needed() {
                hands.get_one_more(pool, true);
            }
        }
        hands
    }

    /// What its thread is at, if it is awake and got no further since the last look.
    fn look_at_runner(
        &mut self,
        pool: &Arc<Pool>,
        station: &Station,
        runner: &Arc<Runner>,
        now: Instant,
    ) -> Option<Doing> {
        let (beat, pulse, starves) = (runner.beat(), station.pulse(), self.progress.starves);
        let known = self.progress.none_of(runner, (beat.count(), pulse), station, now)?;
        if !beat.is_in_task() && pulse % 2 == 0 && station.is_quiet() {
            return None;
        }
        let doing = known.witness.look(station.state, now);
        if beat.is_in_task() {
            match doing {
                Doing::Blocks => runner.catch(beat, Caught::Blocking),
                Doing::Computes => runner.catch(beat, Caught::Computing),
                Doing::Waits | Doing::Dozes => {}
            }
            station.findings.keep(Spot::in_task(runner, beat, pulse), known.since, doing);
            let culprit = Culprit { place: runner.spawned_at(), is_root: false };
            known.report(pool, station, culprit, doing, starves);
        } else if pulse % 2 == 1 {
            station.findings.keep(Spot::at_event(pulse), known.since, doing);
        }
        // What it waits for in a nested `block_on` is not over sooner because its thread serves others there meanwhile.
        Some(if station.is_on_top() { doing } else { Doing::Blocks })
    }

    /// A thread that hosts nobody, and is awake, is in the future of its `block_on`. That is told of, and else nobody's
    /// business: it has promised nothing.
    fn look_at_guest(&mut self, pool: &Arc<Pool>, station: &Arc<Station>, now: Instant) {
        let Some((called_at, progress)) = station.guest() else { return };
        let starves = self.progress.starves;
        let Some(known) = self.progress.none_of(station, progress, station, now) else { return };
        if station.is_quiet() || progress.1 % 2 == 1 {
            return;
        }
        let doing = known.witness.look(station.state, now);
        station.findings.keep(Spot::in_future(progress.0, progress.1), known.since, doing);
        known.report(pool, station, Culprit { place: Some(called_at), is_root: true }, doing, starves);
    }

    fn look_at_leadership(
        &mut self,
        pool: &Arc<Pool>,
        stations: &[Arc<Station>],
        hands: &mut Hands,
        now: Instant,
    ) {
        let taken = pool.leadership.taken.get();
        let before = self.taken.replace(taken);
        let abandoned = pool.leadership.is_vacant() && pool.reactor.is_awaited();
        // Where nobody is, nobody has promised anything: no need for a second look.
        if !abandoned || before != Some(taken) && !stations.is_empty() {
            self.blind = None;
            return;
        }
        let since = *self.blind.get_or_insert(now);
        pool.deputy.rescues.add_shared(1);
        if pool.leadership.rescue() {
            return;
        }
        if hands.any_moves {
            // They go from task to task, and come to look.
            return self.ask_to_look_up(stations);
        }
        if pool.workforce().is_some() {
            if self.get_a_leader(pool, stations, hands, now - since) {
                return;
            }
        } else if now - since < BUSY && pool.is_busy() {
            // A thread that runs, in a pool that lives off those that come by, is back soon more often than not, and another one
            // that leads for it meanwhile would be in its way.
            return;
        }
        // It is given some time to come.
        self.blind = Some(now);
        relief::start(pool);
    }

    fn ask_to_look_up(&self, stations: &[Arc<Station>]) {
        for station in stations {
            for Hosted { runner, .. } in &*station.runners.lock() {
                if self.progress.has_moved(runner) {
                    runner.ask_to_look_up();
                }
            }
        }
    }

    /// Nobody of the crew comes to lead, for all of them are stuck. False if only a relief can help.
    fn get_a_leader(
        &mut self,
        pool: &Arc<Pool>,
        stations: &[Arc<Station>],
        hands: &mut Hands,
        blind: Duration,
    ) -> bool {
        if hands.is_short() {
            return hands.get_one_more(pool, false);
        }
        if !hands.computes {
            // They wait for their cores; who has one first leads.
            return true;
        }
        // Where there may be no more workers, or the next one is late to start, one thread that does nothing but lead has to do.
        let is_led = || pool.has_relief() && blind < BUSY;
        if !hands.is_one_too_many() {
            // The reserve that there is, if any, stands in for one that blocks.
            hands.draft(pool, stations);
            return hands.get_one_more(pool, true) || is_led();
        }
        if hands.has_reserve() {
            // It comes after the task that it polls.
            return true;
        }
        // Who stood in for one that blocked, and is left over, comes to it after its task.
        let mut runners = hands::crew_runners(pool, stations);
        let left_over = runners.find(|(station, runner)| self.is_left_over(station, runner, hands));
        left_over.iter().for_each(|(_, runner)| runner.set_reserve(true));
        left_over.is_some() || !hands.is_late() && hands.get_one_more(pool, true) || is_led()
    }

    fn is_left_over(&self, station: &Station, runner: &Arc<Runner>, hands: &Hands) -> bool {
        let witness = self.progress.of(runner).map(|known| known.witness);
        let is_free = |witness: Witness| !witness.blocks() && !hands.is_long(witness.computed);
        station.is_replacement() && station.is_on_top() && witness.is_none_or(is_free)
    }

    /// True if somebody sleeps beside tasks that wait.
    fn look_at_executors(&mut self, pool: &Pool, stations: &[Arc<Station>]) -> bool {
        let states = executors(pool, stations);
        let mut open = false;
        for state in &states {
            let account = self.executors.entry(&raw const **state).or_default();
            open |= state.audit(account);
        }
        self.executors.retain(|known, _| states.iter().any(|state| std::ptr::eq(&**state, *known)));
        open
    }

    fn look_at_crew(&mut self, pool: &Arc<Pool>, stations: &[Arc<Station>], hands: &mut Hands, now: Instant) {
        let Some(crew) = pool.workforce() else { return };
        self.helpless = false;
        if !crew.has_surplus() || !hands.are_all_stuck() {
            self.short_of_hands = None;
            return;
        }
        let since = *self.short_of_hands.get_or_insert(now);
        let helped = if hands.is_short_of_workers() {
            // Where somebody blocks the reserve is one too few, and nobody else is missing.
            hands.draft(pool, stations) || hands.get_one_more(pool, false)
        } else if hands.are_workers_lost() || hands.is_long((now - since) / 10) {
            // By the clock on the wall, too, later: who naps, or has no core, may be taken for one that comes back for ever.
            hands.get_one_more(pool, false) || hands.draft(pool, stations)
        } else {
            // A guest leads, perhaps, and leaves here what events wake: a host that is free would lead instead.
            let is_wanted = hands.computes && !hands.has_reserve() && !hands.is_one_too_many();
            if is_wanted && pool.reactor.is_needed() {
                hands.get_one_more(pool, true);
            }
            true
        };
        if !helped && now - since >= LAST_RESORT {
            self.helpless = !ask_for_help(pool);
        }
    }

    /// Whether wakes bring more than those see who are woken. Not where somebody was hired beside the usual number, who would be kept.
    fn look_at_gain(&mut self, pool: &Pool, now: Instant) {
        let gain = &pool.leadership.gain;
        let may_try = |crew: &Arc<Crew>| crew.live() > 1 && !crew.is_overstaffed(0);
        if pool.policy.promotion == Promotion::Eager || !pool.workforce().is_some_and(may_try) {
            self.ways = Ways::default();
            return gain.set_lavish(false);
        }
        let counters = &pool.reactor.counters;
        // A leader that is rung for takes that for an event.
        let events = counters.events.get().saturating_sub(counters.interrupts.get());
        let spun = Duration::from_nanos(counters.spun_nanos.get());
        self.ways.look(gain, Done { at: now, events, sleeps: counters.sleeps.get(), spun });
    }

    /// Threads that others stood in for are back: after a while one at a time goes, even where all of them find work; and
    /// all that are too many, where none does.
    fn let_some_go(&mut self, pool: &Pool, excused: usize, quiet: bool, now: Instant) {
        if !pool.workforce().is_some_and(|crew| crew.is_overstaffed(excused)) {
            self.overstaffed = None;
        } else if now - *self.overstaffed.get_or_insert(now) >= SURPLUS_STAYS {
            self.overstaffed = Some(now);
            let stations = pool.stations();
            let surplus = hands::crew_runners(pool, &stations)
                .filter(|(station, runner)| station.is_replacement() && (quiet || !runner.is_reserve()));
            surplus.take(if quiet { usize::MAX } else { 1 }).for_each(|(station, _)| station.release());
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

/// Has a thread that waits in a nested `block_on` run tasks meanwhile. False if there is none. One that is awake just now,
/// or was asked already, may be asked at the next look.
fn ask_for_help(pool: &Pool) -> bool {
    let helpers = pool.helpers();
    let _asked = helpers.iter().any(|station| station.ask_for_help());
    !helpers.is_empty()
}

// Not for miri: nobody tells there what a thread is at.
#[cfg(all(test, not(any(paceline_loom, paceline_shuttle, miri))))]
mod tests;
