//! [`Simulated`]: a simulation as its runtime and the free functions see it.
//!
//! All of its state is under one lock. Its own thread uses it at each event; another thread only takes it to
//! say that it has woken a task, which is an error. No waker is called while the lock is held.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use async_task::Runnable;

use super::closures;
use super::events::{CheckRun, Difference, FirstRun, SimEvent, SimEventKind, SimEvents, name, place};
use super::order::{Choices, Order};
use super::report::Report;
use super::rng::Rng;
use super::tasks::{SimTasks, TaskId};
use crate::reactor::Reactor;
use crate::runtime::Handle;
use crate::simulated::{BlockingPiece, ReadyTask, Simulation};

/// Upper bound of the polls at one time: more are tasks that wake each other for ever. Takes some seconds.
const MOST_POLLS_AT_ONCE: u64 = 10_000_000;

/// Upper bound of the tasks that an error lists.
const MOST_LISTED: usize = 20;

/// A simulation, between its [`Sim`](super::Sim), its runtime, and the free functions.
#[derive(Debug)]
pub(super) struct Simulated {
    pub(super) seed: u64,
    thread: ThreadId,
    /// Set when the runtime exists.
    place: OnceLock<(Handle, Arc<Reactor>, Instant)>,
    state: Mutex<SimState>,
    /// Values of other crates.
    locals: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

#[derive(Debug)]
struct SimState {
    choices: Choices,
    /// For the durations of closures.
    durations: Rng,
    /// For the program.
    rng: Rng,
    /// For the faults that it injects.
    faults: Rng,
    tasks: SimTasks,
    events: SimEvents,
    polls: u64,
    /// The time of the last poll, and how many polls there were at that time.
    at_once: (Duration, u64),
    /// The number of the task that was spawned or woken last.
    last: u64,
    /// The number of the task that is polled now, and those below it on the stack.
    polled: Vec<u64>,
    /// The task that was polled last, if nothing has happened since the end of that poll.
    rested: Option<u64>,
    failure: Option<String>,
    /// Whether a panic on the simulation's own thread has said so, or is about to.
    is_reported: bool,
    /// The waker of the future that drives the simulation.
    driver: Option<Waker>,
    is_over: bool,
}

impl Simulated {
    pub(super) fn new(seed: u64, run: CheckRun) -> Self {
        let mut seeds = Rng::new(seed);
        let state = SimState {
            choices: Choices::new(seeds.next_u64()),
            durations: Rng::new(seeds.next_u64()),
            rng: Rng::new(seeds.next_u64()),
            faults: Rng::new(seeds.next_u64()),
            tasks: SimTasks::default(),
            events: SimEvents::new(run),
            polls: 0,
            at_once: (Duration::ZERO, 0),
            last: 0,
            polled: Vec::new(),
            rested: None,
            failure: None,
            is_reported: false,
            driver: None,
            is_over: false,
        };
        Self {
            seed,
            thread: thread::current().id(),
            place: OnceLock::new(),
            state: Mutex::new(state),
            locals: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, SimState> {
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

    pub(super) fn set_order(&self, order: Order) {
        self.state().choices.set_order(order);
    }

    /// Returns a generator for the program. Each call returns another one.
    pub(super) fn rng(&self) -> Rng {
        Rng::new(self.state().rng.next_u64())
    }

    /// Returns for how long a closure that blocks waits, or runs: 2^k microseconds, where each k from 0 to 17
    /// is equally likely. So most closures are quick, and some take a tenth of a second.
    fn duration(&self) -> Duration {
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

    pub(super) fn note(&self, text: &str) {
        let mut state = self.state();
        let (detail, task) = (state.events.hash_text(text), state.polled_id());
        self.add(state, SimEventKind::Noted, task, detail);
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
        let injects = state.faults.chance(probability);
        drop(state);
        if injects {
            self.note(&fault);
        }
        injects
    }

    /// Adds an event. The simulation fails if that differs from the first run.
    #[inline]
    fn add(&self, mut state: MutexGuard<'_, SimState>, kind: SimEventKind, task: TaskId, detail: u64) {
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
             its random numbers, a thread, a file, or a `static` that the first run has left changed",
            self.seed
        )
    }

    /// Makes the simulation fail, unless it has failed. Wakes the driver, which reports that.
    #[cold]
    fn fail(mut state: MutexGuard<'_, SimState>, text: String) {
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
    fn deadlock(&self) -> String {
        let patience = Instant::now() + Duration::from_millis(100);
        while self.state().failure.is_none() && Instant::now() < patience {
            thread::sleep(Duration::from_millis(1));
        }
        let mut state = self.state();
        if let Some(failure) = state.failure.clone() {
            state.is_reported = true;
            return failure;
        }
        let waiting = state.tasks.unfinished();
        let (seed, at) = (self.seed, state.events.last());
        let mut text = format!(
            "deadlock in the simulation with seed {seed}, {at:?} after its start: no task is ready, no timer is armed, \
             and the future of a `block_on` waits. Tasks that wait: {}",
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

    /// Ends the simulation: what happens from now on is no event. Returns the recording of the first run of a
    /// check, and the message if this is the second one and the first run went on.
    pub(super) fn end(&self) -> (Option<FirstRun>, Option<String>) {
        let mut state = self.state();
        let missing = state.events.missing().filter(|_| state.failure.is_none() && !state.is_over);
        let failure = state.failure.clone().or(missing.map(|missing| self.describe(&state, missing)));
        state.is_over = true;
        let SimState { events, tasks, .. } = &mut *state;
        (events.take_recording(tasks.lines()), failure)
    }
}

impl SimState {
    /// Returns the task that is polled; 0 if none is.
    fn polled_id(&self) -> TaskId {
        self.polled.last().map_or(0, |number| self.tasks.id(*number))
    }
}

impl Simulation for Simulated {
    fn spawns(&self, number: u64, at: &'static Location<'static>) {
        let mut state = self.state();
        let priority = state.choices.first_priority();
        let task = state.tasks.add(number, at, priority);
        (state.last, state.rested) = (number, None);
        self.add(state, SimEventKind::Spawned, task, place(at));
    }

    fn wakes(&self, number: u64) {
        let mut state = self.state();
        state.last = number;
        if state.rested.take() == Some(number) {
            let priority = state.choices.next_lowest();
            if let Some(task) = state.tasks.get(number) {
                task.priority = priority;
            }
        }
        let (task, by) = (state.tasks.id(number), state.polled_id());
        if task != 0 {
            self.add(state, SimEventKind::Woken, task, by.into());
        }
    }

    fn begins_poll(&self, number: u64) {
        let now = self.elapsed();
        let mut state = self.state();
        state.polls += 1;
        state.polled.push(number);
        state.rested = None;
        state.at_once = if state.at_once.0 == now { (now, state.at_once.1 + 1) } else { (now, 1) };
        let task = state.tasks.id(number);
        if state.at_once.1 > MOST_POLLS_AT_ONCE {
            let text = format!(
                "the clock of the simulation with seed {} stands {now:?} after its start: tasks wake each other for \
                 ever, among them {} which is polled now",
                self.seed,
                name(task, state.tasks.lines())
            );
            return Self::fail(state, text);
        }
        self.add(state, SimEventKind::Polled, task, 0);
    }

    fn ends_poll(&self) {
        let mut state = self.state();
        state.rested = state.polled.pop();
    }

    fn ends(&self, number: u64) {
        let mut state = self.state();
        if let Some(task) = state.tasks.remove(number) {
            state.rested = None;
            self.add(state, SimEventKind::Ended, task, 0);
        }
    }

    fn queues(&self, task: &Runnable) -> u64 {
        let mut state = self.state();
        let number = state.last;
        if let Some(known) = state.tasks.get(number).filter(|known| known.address == 0) {
            known.address = task.waker().data().addr();
        }
        number
    }

    fn picks(&self, ready: &VecDeque<ReadyTask>) -> usize {
        let SimState { choices, tasks, is_over, .. } = &mut *self.state();
        if *is_over { 0 } else { choices.pick(ready, tasks) }
    }

    fn note_outsider(&self, task: &Runnable) -> u64 {
        let found = self.state().tasks.find(task.waker().data().addr());
        let state = self.state();
        let here = thread::current();
        if here.id() == self.thread || state.is_over {
            let Some((number, id)) = found else { return 0 };
            self.add(state, SimEventKind::Woken, id, 0);
            return number;
        }
        let thread = match here.name() {
            Some(name) => format!("the thread {name:?} ({:?})", here.id()),
            None => format!("a thread without a name ({:?})", here.id()),
        };
        let what = match found {
            Some((_, id)) => format!("{thread} has woken {}", name(id, state.tasks.lines())),
            None => format!("{thread} has spawned a task"),
        };
        let text = format!(
            "{what} from outside of the simulation with seed {}, {:?} after its start: when that happens is not decided \
             by the seed",
            self.seed,
            state.events.last()
        );
        Self::fail(state, text);
        found.map_or(0, |(number, _)| number)
    }

    fn would_sleep(&self) -> String {
        self.deadlock()
    }

    fn takes(&self, piece: Box<dyn BlockingPiece>) {
        closures::spawn(self.handle(), piece, [(); 2].map(|()| self.duration()));
    }

    fn elapsed(&self) -> Duration {
        Simulated::elapsed(self)
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    /// Fails if polls are not counted, or if a leap of the clock does not begin the count anew.
    #[test]
    fn tasks_that_wake_each_other_for_ever_are_an_error() {
        let simulation = Simulated::new(7, CheckRun::No);
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
