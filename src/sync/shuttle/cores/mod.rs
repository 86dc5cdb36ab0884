//! Virtual cores: runs the threads of a run as a machine with so many cores would, and charges each step its
//! cost. This is the engine of the simulation in `model/simulation`; in other runs every function here does
//! nothing.
//!
//! Shuttle asks its scheduler before each step (an operation on an atomic, a lock, or a condition variable)
//! which thread takes it. [`EarliestFirst`] keeps a clock for each thread. Of the threads that have a core it
//! chooses the one with the earliest clock, so steps happen in the order of their virtual times. A step moves
//! the clock of its thread by what the step is [charged](charge). So the code of the pool runs unchanged, and
//! only the door knows what an operation costs.
//!
//! - A thread that blocks leaves its core. A thread that is woken is ready at the time of the step that woke
//!   it, and takes a free core. If there is none, it waits until a thread blocks, offers its core, or has run
//!   for a [`SLICE`](machine::SLICE) and has run more than the thread that waits. This is roughly what Linux
//!   does.
//! - The first thread of the run is the *world*: clients and alarms. The world has no core, its steps are
//!   free, and its clock is the time of its next [event](wake_world_at).
//! - A step on a line that another core has written last, or that this core writes and others have read, is
//!   charged a [transfer](Costs::transfer). Transfers of one line wait for each other ([`Line`]).

mod machine;

use std::cell::RefCell;
use std::cmp::Reverse;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

pub(crate) use machine::{Costs, Totals};
use machine::{Holders, Machine, Place, WORLD};

std::thread_local! {
    /// The machine of the simulation in progress. Not one of shuttle's statics, because the scheduler, which
    /// reads it, cannot reach those.
    static MACHINE: RefCell<Option<Machine>> = const { RefCell::new(None) };
}

/// Calls `f` with the machine if a simulation is in progress.
fn with<R>(f: impl FnOnce(&mut Machine) -> R) -> Option<R> {
    MACHINE.with_borrow_mut(|machine| machine.as_mut().map(f))
}

/// Returns whether a simulation is in progress.
pub(crate) fn are_simulated() -> bool {
    MACHINE.with_borrow(Option::is_some)
}

/// Returns the time of the running thread in nanoseconds, if a simulation is in progress.
pub(crate) fn now() -> Option<u64> {
    with(|machine| machine.threads[machine.running].clock)
}

/// Returns what happened so far.
pub(crate) fn totals() -> Totals {
    with(|machine| machine.totals).unwrap_or_default()
}

/// Moves the clock of the running thread.
pub(crate) fn charge(cost: impl FnOnce(&Costs) -> u64) {
    with(|machine| {
        let nanos = cost(&machine.costs);
        machine.charge(nanos);
    });
}

/// Announces that the running thread sleeps in the kernel where it blocks next.
pub(crate) fn fall_asleep() {
    with(|machine| {
        machine.charge(machine.costs.sleep);
        machine.threads[machine.running].sleeps = true;
    });
}

/// Has the running thread offer its core at its next step.
pub(crate) fn offer_core() {
    with(|machine| {
        machine.charge(machine.costs.offer);
        machine.offers = true;
    });
}

/// Has the world, which calls this, wait until the time of its next event. Returns that time, which is
/// unchanged if there is no event and all threads block.
pub(crate) fn wait_for_event() -> u64 {
    with(|machine| machine.threads[WORLD].place = Place::Blocked);
    shuttle::thread::yield_now();
    now().unwrap_or_default()
}

/// Has the world run at this time.
pub(crate) fn wake_world_at(nanos: u64) {
    with(|machine| machine.events.push(Reverse(nanos)));
}

/// Names the running thread, for [`usage`].
pub(crate) fn name_thread(id: usize) {
    with(|machine| machine.threads[machine.running].id = Some(id));
}

/// Returns the processor time of a thread, and whether it runs or waits for a core, if a simulation is in
/// progress.
pub(crate) fn usage(id: usize) -> Option<(Duration, bool)> {
    with(|machine| {
        let thread = machine.threads.iter().find(|thread| thread.id == Some(id))?;
        Some((Duration::from_nanos(thread.used), thread.place != Place::Blocked))
    })?
}

/// A cache line: which cores have it. Each atomic and each lock has a line of its own.
#[derive(Debug, Default)]
pub(super) struct Line(Mutex<Holders>);

impl Line {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Holders::NONE))
    }

    /// Charges a load.
    pub(super) fn read(&self) {
        self.access(false, |costs| costs.access);
    }

    /// Charges a plain store.
    pub(super) fn write(&self) {
        self.access(true, |costs| costs.access);
    }

    /// Charges a locked instruction.
    pub(super) fn lock(&self) {
        self.access(true, |costs| costs.locked);
    }

    fn access(&self, writes: bool, cost: impl FnOnce(&Costs) -> u64) {
        with(|machine| {
            let mut holders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            machine.access(&mut holders, writes);
            let nanos = cost(&machine.costs);
            machine.charge(nanos);
        });
    }
}

/// A scheduler of one run, on a machine of its own.
#[derive(Debug)]
pub(crate) struct EarliestFirst {
    is_done: bool,
    random: u64,
}

impl EarliestFirst {
    /// Makes a machine with so many cores, and its scheduler. The clock of the world begins at `start`.
    pub(crate) fn new(cores: usize, costs: Costs, start: u64) -> Self {
        MACHINE.set(Some(Machine::new(cores, costs, start)));
        Self { is_done: false, random: 1 }
    }
}

impl Drop for EarliestFirst {
    fn drop(&mut self) {
        MACHINE.take();
    }
}

impl Scheduler for EarliestFirst {
    fn new_execution(&mut self) -> Option<Schedule> {
        (!std::mem::replace(&mut self.is_done, true)).then(|| Schedule::new(0))
    }

    fn next_task(&mut self, runnable: &[&Task], _: Option<TaskId>, _: bool) -> Option<TaskId> {
        with(|machine| machine.choose(runnable)).map(TaskId::from)
    }

    fn next_u64(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.random >> 11
    }
}
