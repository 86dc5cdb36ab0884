//! [`Simulated`]: a simulation as its runtime and the free functions see it.
//!
//! All of its state is under one lock. Its own thread uses it at each event; another thread only takes it to
//! say that it has woken a task, which is an error. No waker is called while the lock is held.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use super::events::{CheckRun, Difference, FirstRun, SimEvent, SimEventKind, SimEvents, name};
use super::files::SimulatedFiles;
use super::journal::{Incident, Journal, JournalEntry};
use super::net::HostId;
use super::network::{NetworkState, SimulatedNetwork, TEST};
use super::nodes::Nodes;
use super::order::{Choices, Order};
use super::plan::{Faults, Plan};
use super::report::Report;
use super::rng::Rng;
use super::system::{SystemValues, WallOffset};
use super::tasks::{SimTasks, TaskId};
use crate::reactor::Reactor;
use crate::runtime::Handle;

/// How far the clock goes, in years of 365 days: as many as are a number of nanoseconds in 64 bits.
const YEARS: u64 = 584;
pub(super) const END_OF_TIME: Duration = Duration::from_secs(YEARS * 365 * 24 * 60 * 60);

/// Upper bound of the polls at one time: more are tasks that wake each other for ever. Takes some seconds.
pub(super) const MOST_POLLS_AT_ONCE: u64 = 10_000_000;

/// Upper bound of the leaps of the clock to events of the network without a poll. Takes about a second.
const MOST_LEAPS: u64 = 1_000_000;

/// Upper bound of the tasks that an error lists.
const MOST_LISTED: usize = 20;

/// A simulation, between its [`Sim`](super::Sim), its runtime, and the free functions.
#[derive(Debug)]
pub(super) struct Simulated {
    pub(super) seed: u64,
    pub(super) thread: ThreadId,
    /// Set when the runtime exists.
    place: OnceLock<(Handle, Arc<Reactor>, Instant)>,
    state: Mutex<SimState>,
    /// Values of other crates.
    locals: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
    pub(super) system: SystemValues,
    pub(super) network: SimulatedNetwork,
    pub(super) nodes: Nodes,
    faults: Arc<Mutex<Faults>>,
    pub(super) files: SimulatedFiles,
}

/// How a simulation runs, beside its seed.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    pub(super) check: CheckRun,
    /// `None`: all faults happen.
    pub(super) plan: Option<Arc<Plan>>,
    /// The file for the trace, if it is wanted.
    pub(super) trace: Option<PathBuf>,
}

#[derive(Debug)]
pub(super) struct SimState {
    pub(super) choices: Choices,
    /// For the durations of closures.
    pub(super) durations: Rng,
    /// For the program.
    pub(super) rng: Rng,
    /// For the faults that it injects.
    injected: Rng,
    pub(super) tasks: SimTasks,
    pub(super) events: SimEvents,
    pub(super) journal: Journal,
    pub(super) polls: u64,
    /// The time of the last poll, and how many polls there were at that time.
    pub(super) at_once: (Duration, u64),
    /// The number of the task that was spawned or woken last.
    pub(super) last: u64,
    /// The number of the task that is polled now, and those below it on the stack.
    pub(super) polled: Vec<u64>,
    /// The task that was polled last, if nothing has happened since the end of that poll.
    pub(super) rested: Option<u64>,
    pub(super) failure: Option<String>,
    /// Whether a panic on the simulation's own thread has said so, or is about to.
    pub(super) is_reported: bool,
    /// The waker of the future that drives the simulation.
    pub(super) driver: Option<Waker>,
    pub(super) is_over: bool,
    /// Whether a task of a crashed node is being dropped.
    pub(super) cancels: bool,
    /// The host of the tasks that are spawned now, instead of that of the task that spawns them.
    pub(super) host: Option<HostId>,
    /// Leaps of the clock since the last poll.
    pub(super) leaps: u64,
    /// Hosts that have crashed.
    pub(super) down: Vec<HostId>,
    /// The offsets of the wall clocks that were set.
    pub(super) wall_offsets: BTreeMap<HostId, WallOffset>,
}

impl Simulated {
    pub(super) fn new(seed: u64, conditions: &Conditions) -> Self {
        let Conditions { check, plan, trace } = conditions;
        let mut seeds = Rng::new(seed);
        let is_check = !matches!(check, CheckRun::No);
        let picks = plan.as_ref().map(|plan| plan.picks.clone()).unwrap_or_default();
        let faults = Arc::new(Mutex::new(Faults::new(plan.as_deref())));
        let state = SimState {
            choices: Choices::new(seeds.next_u64(), picks),
            durations: Rng::new(seeds.next_u64()),
            rng: Rng::new(seeds.next_u64()),
            injected: Rng::new(seeds.next_u64()),
            host: None,
            down: Vec::new(),
            wall_offsets: BTreeMap::new(),
            leaps: 0,
            tasks: SimTasks::default(),
            events: SimEvents::new(check.clone()),
            journal: Journal::new(trace.is_some()),
            polls: 0,
            at_once: (Duration::ZERO, 0),
            last: 0,
            polled: Vec::new(),
            rested: None,
            failure: None,
            is_reported: false,
            driver: None,
            is_over: false,
            cancels: false,
        };
        Self {
            seed,
            thread: thread::current().id(),
            place: OnceLock::new(),
            state: Mutex::new(state),
            locals: Mutex::default(),
            nodes: Nodes::default(),
            network: SimulatedNetwork::new(
                Rng::new(seeds.next_u64()),
                is_check,
                trace.is_some(),
                faults.clone(),
            ),
            system: SystemValues::new(seeds.next_u64()),
            faults,
            files: SimulatedFiles::new(Rng::new(seeds.next_u64())),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, SimState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the runtime. Its clock stands at the start of the simulation.
    pub(super) fn settle(&self, handle: Handle, reactor: Arc<Reactor>) {
        let begin = reactor.clock.now();
        assert!(self.place.set((handle, reactor, begin)).is_ok(), "a simulation has one runtime");
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.place.get().expect("the runtime exists").0
    }

    /// Returns the time that corresponds to a duration since the start.
    pub(super) fn time(&self, since: Duration) -> Option<Instant> {
        self.place.get().and_then(|(_, _, begin)| begin.checked_add(since))
    }

    /// Returns the virtual time since the start.
    #[inline]
    pub(super) fn elapsed(&self) -> Duration {
        let elapsed = |(_, reactor, begin): &(_, Arc<Reactor>, Instant)| reactor.clock.now() - *begin;
        self.place.get().map_or(Duration::ZERO, elapsed)
    }

    /// Updates the clocks that the program sees: the virtual time, and the wall clock of the present task's
    /// host.
    pub(super) fn show_time(&self) {
        let elapsed = self.elapsed();
        self.system.set(elapsed, self.state().wall_offset());
    }

    pub(super) fn set_order(&self, order: Order) {
        self.state().choices.set_order(order);
    }

    /// Returns a generator for the program. Each call returns another one.
    pub(super) fn rng(&self) -> Rng {
        Rng::new(self.state().rng.next_u64())
    }

    /// Returns for how long a closure that blocks waits, or runs: 2^k microseconds, where each k from 0 to 17
    /// is equally likely. So most closures are quick, and some take a tenth of a second.
    pub(super) fn duration(&self) -> Duration {
        const DURATION_MAGNITUDES: u64 = 18;
        Duration::from_micros(1 << self.state().durations.below(DURATION_MAGNITUDES))
    }

    /// Returns the value of that type. The first call makes it.
    pub(super) fn local<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let find = || {
            let locals = self.locals.lock().unwrap_or_else(PoisonError::into_inner);
            locals.iter().find_map(|local| local.clone().downcast::<T>().ok())
        };
        find().unwrap_or_else(|| {
            let made = Arc::new(make());
            self.locals.lock().unwrap_or_else(PoisonError::into_inner).push(made.clone());
            made
        })
    }

    /// Counts a leap of the clock to an event of the network. Returns false after very many without a poll.
    pub(super) fn count_leap(&self) -> bool {
        let mut state = self.state();
        state.leaps += 1;
        state.leaps <= MOST_LEAPS
    }

    /// Returns the host on which the present task runs.
    pub(super) fn host(&self) -> HostId {
        self.state().host()
    }

    /// Returns the name of the host on which the present task runs.
    pub(super) fn node(&self) -> String {
        let host = self.host();
        self.nodes.names().get(&host).map_or(TEST, |name| name).to_owned()
    }

    /// Calls `call`. The tasks that it spawns run on this host.
    pub(super) fn on_host<R>(&self, host: HostId, call: impl FnOnce() -> R) -> R {
        let before = self.state().host.replace(host);
        self.show_time();
        // `call` is code of the program.
        let result = catch_unwind(AssertUnwindSafe(call));
        self.state().host = before;
        self.show_time();
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Cancels the tasks of a host, and those that they spawn meanwhile.
    pub(super) fn crash_tasks(&self, host: HostId) {
        let wakers = {
            let mut state = self.state();
            state.down.push(host);
            state.tasks.cancel(host)
        };
        // Each of them is dropped before another task is polled: not in its wake, which may hold a lock.
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Lets the tasks that are spawned on a host from now on run.
    pub(super) fn restart_tasks(&self, host: HostId) {
        self.state().down.retain(|down| *down != host);
    }

    /// Calls `call` with the network, at the present time. What it does to packets is added to the events.
    pub(super) fn network<R>(&self, call: impl FnOnce(&mut NetworkState) -> R) -> R {
        self.network.at(self.elapsed(), call, |packet| {
            let mut state = self.state();
            if let Some(text) = packet.text {
                state.events.keep_text(packet.detail, text);
            }
            if let Some(entry) = packet.entry.filter(|_| !state.is_over) {
                state.journal.add(entry);
            }
            let task = state.polled_id();
            self.add(state, SimEventKind::Packet, task, packet.detail);
        })
    }

    pub(super) fn note(&self, text: &str) {
        let mut state = self.state();
        let host = state.host();
        self.record(&mut state, host, Incident::Noted(text.into()));
        self.add_text(state, text);
    }

    fn add_text(&self, mut state: MutexGuard<'_, SimState>, text: &str) {
        let (detail, task) = (state.events.hash_text(text), state.polled_id());
        self.add(state, SimEventKind::Noted, task, detail);
    }

    /// Adds an entry to the journal.
    pub(super) fn record(&self, state: &mut SimState, host: HostId, what: Incident) {
        if !state.is_over {
            let at = self.elapsed();
            state.journal.add(JournalEntry { at, host, what });
        }
    }

    /// Returns the faults of this run.
    pub(super) fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the program injects a fault in this place now. The seed makes a quarter of the places
    /// faulty.
    pub(super) fn injects_fault(&self, at: &'static Location<'static>, probability: f64) -> bool {
        const FAULTY_PLACES: f64 = 0.25;
        // Not the folder, which differs from machine to machine.
        let file = at.file().rsplit(['/', '\\']).next().unwrap_or_default();
        let fault = format!("a fault at {file}:{}:{}", at.line(), at.column());
        let mut state = self.state();
        if !Rng::new(self.seed ^ state.events.hash_text(&fault)).chance(FAULTY_PLACES) {
            return false;
        }
        let place = format!("buggify {file}:{}:{}", at.line(), at.column());
        let injects = state.injected.chance(probability) && self.faults().happens(place);
        if injects {
            let host = state.host();
            self.record(&mut state, host, Incident::Fault(format!("has {fault}")));
            self.add_text(state, &fault);
        }
        injects
    }

    /// Adds an event. The simulation fails if that differs from the first run.
    #[inline]
    pub(super) fn add(
        &self,
        mut state: MutexGuard<'_, SimState>,
        kind: SimEventKind,
        task: TaskId,
        detail: u64,
    ) {
        if state.is_over || state.failure.is_some() {
            return;
        }
        let at = u64::try_from(self.elapsed().as_nanos()).unwrap_or(u64::MAX);
        if let Err(difference) = state.events.add(SimEvent { at, task, kind, detail }) {
            let text = self.describe(&state, difference);
            Self::fail(state, text);
        }
    }

    /// Returns the message about a difference.
    fn describe(&self, state: &SimState, difference: Difference) -> String {
        let what = state.events.describe(difference, state.tasks.lines());
        format!(
            "the program is not deterministic: with seed {} twice, {what}\n\
             Something decides there that is not the simulation's: the order of a `HashMap`, the system's clock or \
             its random numbers (for these, see `sim_libc!`), a thread, a file, or a `static` that the first run has \
             left changed",
            self.seed
        )
    }

    /// Makes the simulation fail, unless it has failed. Wakes the driver, which reports that.
    #[cold]
    pub(super) fn fail(mut state: MutexGuard<'_, SimState>, text: String) {
        state.failure.get_or_insert(text);
        let driver = state.driver.take();
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// Returns why the simulation has failed, if it has. Otherwise has a failure wake the driver.
    pub(super) fn failure(&self, driver: &Waker) -> Option<String> {
        let mut state = self.state();
        if state.failure.is_none() && !state.driver.as_ref().is_some_and(|known| known.will_wake(driver)) {
            let before = state.driver.replace(driver.clone());
            drop(state);
            drop(before);
            return None;
        }
        state.is_reported |= state.failure.is_some();
        state.failure.clone()
    }

    /// Returns why the simulation has failed, if no panic has said so yet.
    pub(super) fn unreported(&self) -> Option<String> {
        let state = self.state();
        state.failure.clone().filter(|_| !state.is_reported)
    }

    /// Returns the message for a simulation in which nothing will happen any more. First waits for a moment
    /// of real time: a thread outside of the simulation may be about to wake a task, which is the error then.
    pub(super) fn deadlock(&self) -> String {
        // Counts sleeps, because `Instant::now` may be the virtual time, which does not advance.
        for _ in 0..10 {
            if self.state().failure.is_some() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let mut state = self.state();
        if let Some(failure) = state.failure.clone() {
            state.is_reported = true;
            return failure;
        }
        let waiting = state.tasks.unfinished();
        let (seed, at) = (self.seed, state.events.last());
        let timers = match self.timers_for_never() {
            0 => "no timer is armed".to_owned(),
            number => format!(
                "no timer can fire (armed for no time, or for one after the end of the clock, {YEARS} years after the start: \
                 {number})"
            ),
        };
        let mut text = format!(
            "deadlock in the simulation with seed {seed}, {at:?} after its start: no task is ready, {timers}, and the \
             future of a `block_on` waits. Tasks that wait: {}",
            waiting.len()
        );
        for task in waiting.iter().take(MOST_LISTED) {
            text += &format!("\n  {}", name(*task, state.tasks.lines()).trim_end_matches(','));
        }
        if let Some(more @ 1..) = waiting.len().checked_sub(MOST_LISTED) {
            text += &format!("\n  and {more} more");
        }
        text
    }

    /// Returns how many timers are awaited to which the clock never comes.
    fn timers_for_never(&self) -> usize {
        let Some((_, reactor, _)) = self.place.get() else { return 0 };
        let never = |due: Option<Instant>| due.is_none_or(|due| !reactor.clock.reaches(due));
        reactor.armed_timers().into_iter().filter(|(due, _)| never(*due)).count()
    }

    pub(super) fn report(&self) -> Report {
        let (elapsed, panics) = (self.elapsed(), self.handle().metrics().tasks_panicked);
        let state = self.state();
        Report {
            seed: self.seed,
            hash: state.events.hash(),
            events: state.events.number(),
            polls: state.polls,
            panics,
            elapsed,
        }
    }

    /// [`end`](Self::end), for a caller that reports the failure.
    pub(super) fn end_reported(&self) -> (Option<FirstRun>, Option<String>) {
        let end = self.end();
        self.state().is_reported = true;
        end
    }

    /// Ends the simulation. That is the last event, so two runs of a check that end at different times
    /// differ. Returns the recording of the first run of a check, and why the simulation has failed, if it
    /// has.
    pub(super) fn end(&self) -> (Option<FirstRun>, Option<String>) {
        self.add(self.state(), SimEventKind::Ended, 0, 0);
        let mut state = self.state();
        state.is_over = true;
        let SimState { events, tasks, failure, .. } = &mut *state;
        (events.take_recording(tasks.lines()), failure.clone())
    }
}

impl SimState {
    /// Returns the task that is polled; 0 if none is.
    pub(super) fn polled_id(&self) -> TaskId {
        self.polled.last().map_or(0, |number| self.tasks.id(*number))
    }

    /// Returns the offset of the wall clock of the present task's host.
    pub(super) fn wall_offset(&mut self) -> WallOffset {
        if self.wall_offsets.is_empty() {
            return 0;
        }
        let host = self.host();
        self.wall_offset_of(host)
    }

    /// Returns the offset of the wall clock of a host.
    pub(super) fn wall_offset_of(&self, host: HostId) -> WallOffset {
        self.wall_offsets.get(&host).copied().unwrap_or(0)
    }

    /// Returns the host on which the task runs that is polled.
    pub(super) fn host(&mut self) -> HostId {
        let polled = self.polled.last().copied();
        let of_polled = || polled.and_then(|number| self.tasks.get(number)).map(|task| task.host);
        self.host.or_else(of_polled).unwrap_or(HostId::FIRST)
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;
    use crate::simulated::Simulation;

    /// Fails if polls are not counted, or if a leap of the clock does not begin the count anew.
    #[test]
    fn tasks_that_wake_each_other_for_ever_are_an_error() {
        let simulation = Simulated::new(7, &Conditions::default());
        let (here, failure) = (Location::caller(), || simulation.failure(Waker::noop()));
        simulation.spawns(1, here);
        for (polls_so_far, since, fails) in [
            (MOST_POLLS_AT_ONCE - 1, Duration::ZERO, false),
            (MOST_POLLS_AT_ONCE, Duration::from_secs(1), false),
            (MOST_POLLS_AT_ONCE, Duration::ZERO, true),
        ] {
            simulation.state().at_once = (since, polls_so_far);
            simulation.begins_poll(1);
            simulation.ends_poll();
            assert_eq!(failure().is_some(), fails, "{polls_so_far} {since:?}");
        }
        let text = failure().unwrap();
        let of_task = format!("task 1, spawned at {here}, which is polled now");
        assert!(text.contains("seed 7 stands 0ns after its start") && text.ends_with(&of_task), "{text}");
    }
}
