//! [`Conductor`]: the thread that ends a runtime.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::blocking_threads::Threads;
use crate::executor::TaskPoll;
use crate::insight::{DrainReport, Grouping, StuckThread};
use crate::pool::{Crew, Pool, Station};
use crate::probe::{ThreadState, WITHOUT_A_CORE, Witness};
use crate::sync::thread::{self, ThreadId};
use crate::sync::{self, Instant};

/// Time between two checks of the threads that have not stopped.
const BETWEEN_CHECKS: Duration = Duration::from_millis(2);
/// How long a thread that was told to return may block, or compute, before it is stuck.
const GRACE: Duration = Duration::from_millis(25);
/// The same for a thread that is in no poll: it may be in a destructor or a hook, but if it sleeps there, it
/// most likely waits for a lock whose owner has no core.
const OUTSIDE_GRACE: Duration = Duration::from_millis(500);
/// How long the end waits for destructors altogether, while they return one after the other.
const ENOUGH: Duration = Duration::from_secs(10);

/// Conducts the end of a crew.
pub(super) struct Conductor<'a> {
    crew: &'a Arc<Crew>,
    pool: &'a Arc<Pool>,
    blocking: Arc<Threads>,
    /// What was seen of the threads that were told to return, each since it got so far.
    seen: HashMap<ThreadId, (u64, Witness)>,
    /// A number that changes whenever a task or a closure is dropped, and since when it is the same.
    dropped: (u64, Instant),
}

/// Starts the thread of the conductor.
pub(super) fn start_conductor(crew: &Arc<Crew>, pool: &Arc<Pool>) -> io::Result<()> {
    let (its_crew, pool) = (crew.clone(), pool.clone());
    let conducts = move || Conductor::new(&its_crew, &pool).conduct();
    thread::Builder::new().name(format!("{}-drain", crew.config.name)).spawn(conducts).map(drop)
}

impl<'a> Conductor<'a> {
    /// Makes a conductor on the calling thread. Begins nothing: [`conduct`](Self::conduct) does.
    pub(super) fn new(crew: &'a Arc<Crew>, pool: &'a Arc<Pool>) -> Self {
        Self { crew, pool, blocking: pool.blocking(), seen: HashMap::new(), dropped: (0, Instant::now()) }
    }

    /// Takes all steps on the calling thread, and publishes the report.
    pub(super) fn conduct(&mut self) {
        let crew = self.crew;
        self.wait();
        let mut cancelled_tasks = self.list();
        crew.halt();
        // After the workers were told: a task that waits for what is cancelled here is cancelled itself, and
        // not polled once more.
        let jobs_cancelled = self.blocking.close();
        if self.left() > 0 || self.blocking.doomed() > 0 {
            crew.clear_up_beside(self.pool);
        }
        let (stuck, jobs_lost) = self.wait_until_cleared();
        let (began, at_first, ended) = crew.parting.counts();
        let (all_ended, left) = crew.state.tasks.census();
        let (all, finished) = ((all_ended + left).saturating_sub(at_first), ended.saturating_sub(at_first));
        let places = stuck.iter().filter_map(|thread| thread.spawned_at);
        places.for_each(|spawned_at| cancelled_tasks.remove_one(spawned_at));
        crew.publish(DrainReport {
            finished,
            cancelled: all.saturating_sub(finished + tasks_in(&stuck)),
            cancelled_tasks: cancelled_tasks.into_groups(),
            undropped: left.saturating_sub(tasks_in(&stuck)),
            stuck,
            jobs_cancelled,
            jobs_lost,
            took: began.elapsed(),
        });
        crew.cancel_all(self.pool);
    }

    /// Waits until no task is left but those that wait for the report, and no closure waits or runs on the
    /// blocking threads; or until the deadline, or a shutdown.
    fn wait(&self) {
        let tasks = &self.crew.state.tasks;
        tasks.watch();
        loop {
            // After a wake-up: what its sender did before is visible to the count.
            sync::full_fence();
            let left = self.left();
            // After the tasks: a task, or other work behind them, has begun this work.
            let behind = self.blocking.left(&thread::current());
            let (callers, deadline) = self.crew.parting.standing();
            let is_due = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if is_due || left <= callers && behind == 0 {
                break;
            }
            sync::park_until(deadline);
        }
        tasks.unwatch();
    }

    /// Returns the tasks that are left, by spawn line.
    fn list(&self) -> Grouping {
        let (polls, mut left) = (tasks_of(self.crew, self.pool.stations().iter()), Grouping::default());
        let polled: Vec<_> = polls.iter().filter_map(|poll| Some((poll.task, poll.spawned_at?))).collect();
        self.crew.state.list_tasks(&polled, &mut left);
        left
    }

    /// Returns how many tasks are left.
    fn left(&self) -> usize {
        self.crew.state.tasks.count()
    }

    /// Waits until every thread that was told to stop is gone or stuck. Gives up after [`ENOUGH`]. Returns
    /// what is stuck: threads, and the names of closures on the blocking threads.
    fn wait_until_cleared(&mut self) -> (Vec<StuckThread>, Vec<String>) {
        let began = Instant::now();
        self.dropped.1 = began;
        loop {
            let (stuck, comes) = self.check_threads(began);
            let (lost, returns) = self.check_closures();
            if !comes && !returns || began.elapsed() >= ENOUGH {
                return (stuck, lost);
            }
            self.crew.wait_for_one(BETWEEN_CHECKS);
        }
    }

    /// Checks the threads of the crew, and others that poll its tasks. Returns what is stuck, and
    /// whether any other thread is on its way. One that only starts is, until [`WITHOUT_A_CORE`] after the
    /// wait `began`; and so is an unknown one that drops tasks, until none was dropped for [`OUTSIDE_GRACE`].
    fn check_threads(&mut self, began: Instant) -> (Vec<StuckThread>, bool) {
        let (now, stations) = (Instant::now(), self.pool.stations());
        let dropped = (self.crew.state.tasks.census().0 as u64).wrapping_sub(self.blocking.doomed() as u64);
        if dropped != self.dropped.0 {
            self.dropped = (dropped, now);
        }
        let (live, mut threads) = (self.crew.live(), self.crew.running());
        let hired = threads.len();
        for station in &stations {
            if threads.iter().all(|(thread, _)| thread.id() != station.thread.id()) {
                threads.push((station.thread.clone(), station.state));
            }
        }
        let mut stuck = Vec::new();
        let mut comes = live > hired && now.saturating_duration_since(began) < WITHOUT_A_CORE;
        for (number, (thread, state)) in threads.iter().enumerate() {
            let its_stations = || stations.iter().rev().filter(|station| station.thread.id() == thread.id());
            let tasks = tasks_of(self.crew, its_stations());
            let got_to = its_stations().map(|station| progress(station)).fold(0, u64::wrapping_add);
            let (got_to, grace) = match (tasks.is_empty(), number < hired) {
                (false, _) => (got_to, GRACE),
                (true, true) => (got_to.wrapping_add(dropped), OUTSIDE_GRACE),
                // A thread of the program, in a `block_on` of its own.
                (true, false) => continue,
            };
            if self.check_stuck((thread.id(), *state), got_to, grace) {
                stuck.extend(entries(thread, &tasks));
            } else {
                comes = true;
            }
        }
        let idles = now.saturating_duration_since(self.dropped.1);
        comes |= self.left() > tasks_in(&stuck) && idles < OUTSIDE_GRACE;
        (stuck, comes)
    }

    /// Checks the closures that run on the blocking threads. Returns the names of those that are stuck or
    /// given up, and whether any other one is to return.
    fn check_closures(&mut self) -> (Vec<String>, bool) {
        let (mut lost, mut returns) = (Vec::new(), false);
        for piece in self.blocking.at_work() {
            // The end does not wait for threads that go on with their queue.
            let goes_on = piece.is_lost || self.blocking.finishes_queue;
            if goes_on || self.check_stuck((piece.thread, piece.state), piece.number, GRACE) {
                lost.extend(piece.title.map(|title| title.to_string()));
            } else {
                returns = true;
            }
        }
        (lost, returns)
    }

    /// Observes the thread, and returns whether it is stuck, as far as is known now: it has slept or computed
    /// for `grace` since it got so far.
    fn check_stuck(&mut self, (id, state): (ThreadId, ThreadState), got_to: u64, grace: Duration) -> bool {
        let now = Instant::now();
        let begin = || (got_to, Witness::new(Some(state), now));
        let (before, witness) = self.seen.entry(id).or_insert_with(begin);
        if *before != got_to {
            (*before, *witness) = begin();
        }
        let _ = witness.look(state, now);
        witness.is_stuck(grace)
    }
}

/// Returns the crew's tasks that are polled at these stations: in a runtime of the current thread several, if
/// a task waits in a nested `block_on` on top of which others are polled. Foreign tasks are not counted, and
/// so not among them.
pub(super) fn tasks_of<'a>(crew: &Crew, stations: impl Iterator<Item = &'a Arc<Station>>) -> Vec<TaskPoll> {
    let mut tasks = Vec::new();
    for station in stations {
        let hosted = station.runners.lock();
        let own = hosted.iter().filter(|hosted| crew.runs(&hosted.state));
        let polls = own.filter_map(|hosted| hosted.runner.poll.task_poll());
        tasks.extend(polls.filter(|poll| poll.spawned_at.is_some()));
    }
    tasks
}

/// Returns what the report says of a thread that is stuck in these tasks: an entry for each task, or one
/// without a task.
pub(super) fn entries(thread: &thread::Thread, tasks: &[TaskPoll]) -> impl Iterator<Item = StuckThread> {
    let places = tasks.iter().map(|task| task.spawned_at).chain(tasks.is_empty().then_some(None));
    let (name, id) = (thread.name().map(String::from), thread.id());
    places.map(move |spawned_at| StuckThread { spawned_at, name: name.clone(), id })
}

/// Returns how many tasks keep these threads.
fn tasks_in(stuck: &[StuckThread]) -> usize {
    stuck.iter().filter(|thread| thread.spawned_at.is_some()).count()
}

/// Returns a number that changes whenever the thread gets any further in this `block_on`.
fn progress(station: &Station) -> u64 {
    let polls = station.runners.lock().iter().map(|hosted| hosted.runner.poll.stage().work()).sum::<u64>();
    polls.wrapping_add(station.stage.get().work())
}
