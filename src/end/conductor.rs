//! [`Conductor`]: the thread that ends a runtime. A drain has one of its own; a shutdown conducts the third
//! step itself.

use std::sync::Arc;
use std::time::Duration;

use super::stuck::{StuckTasks, tasks_of};
use crate::blocking_threads::Threads;
use crate::insight::{Drained, TaskGroup};
use crate::pool::parting::Standing;
use crate::pool::{Crew, Pool, Station};
use crate::probe::{GRACE, KnownThread, OUTSIDE_GRACE, Patience, WITHOUT_A_CORE};
use crate::sync::{self, Instant, thread};

/// How often the end looks at the threads that have not stopped; or, without a conductor, tries to start
/// one.
pub(super) const LOOK: Duration = Duration::from_millis(2);
/// How long the end waits for destructors altogether, while they return one after the other.
const ENOUGH: Duration = Duration::from_secs(10);
/// Limit of the threads that are hired to clear up. Each of them but the first is hired when all before it
/// are stuck.
const HANDS: usize = 16;

/// The claim to conduct the end of a crew. Dropping it before the report is out gives the claim back: the
/// conductor has failed, or was never started.
struct Conduct(Arc<Crew>);

impl Drop for Conduct {
    /// Gives the claim back if the report is not out: another thread may conduct the end then.
    fn drop(&mut self) {
        if !self.0.is_drained() {
            self.0.parting.give_conduct_up();
        }
    }
}

/// Conducts the end of a crew on the thread `here`.
pub(super) struct Conductor<'a> {
    crew: &'a Arc<Crew>,
    pool: &'a Arc<Pool>,
    blocking: Arc<Threads>,
    here: thread::ThreadId,
    patience: Patience,
    /// The same for the blocking threads. Such a thread may also be in a task's destructor, which `patience`
    /// measures.
    patience_behind: Patience,
    hands: usize,
}

/// Starts the conductor unless there is one. If no thread can be started for it, the calling thread conducts
/// the end itself, which blocks it, once nothing is left to wait for or the deadline has passed. Returns
/// false if that is not so yet: the caller tries again later.
pub(super) fn ensure_conductor(crew: &Arc<Crew>, pool: &Arc<Pool>) -> bool {
    if !crew.parting.claim_conduct() {
        return true;
    }
    let conduct = {
        let (conduct, pool) = (Conduct(crew.clone()), pool.clone());
        move || Conductor::new(&conduct.0, &pool).conduct()
    };
    if thread::Builder::new().name(format!("{}-drain", crew.config.name)).spawn(conduct).is_ok() {
        return true;
    }
    // Dropping the closure has given the claim back.
    let mut here = Conductor::new(crew, pool);
    let is_time = here.end_of_wait().is_some() && crew.parting.claim_conduct();
    if is_time {
        let _conduct = Conduct(crew.clone());
        here.conduct();
        // The conductor has parked, and may have consumed a token for a `block_on` below on this stack.
        thread::current().unpark();
    }
    is_time
}

impl<'a> Conductor<'a> {
    /// Makes a conductor on the calling thread. Begins nothing: [`conduct`](Self::conduct) does.
    pub(super) fn new(crew: &'a Arc<Crew>, pool: &'a Arc<Pool>) -> Self {
        let here = thread::current().id();
        let [patience, patience_behind] = [(); 2].map(|()| Patience::default());
        Self { crew, pool, blocking: pool.blocking(), here, patience, patience_behind, hands: 0 }
    }

    /// Takes all steps on the calling thread, and publishes the report.
    fn conduct(&mut self) {
        let (crew, state) = (self.crew, self.crew.state());
        let ended = self.wait();
        state.record_drops();
        let jobs_cancelled = self.halt();
        if self.left(0) > 0 {
            // All workers may be stuck, which takes some time to find out.
            self.hire_hand();
        }
        let (stuck, lost) =
            self.wait_until_cleared(|this, stuck| this.left(stuck) > 0 || this.blocking.doomed() > 0);
        let Standing { began, ended: at_first, .. } = crew.parting.standing();
        let (all_ended, left) = state.census();
        let all = (all_ended + left).saturating_sub(at_first);
        let finished = ended.saturating_sub(at_first);
        let undropped = left.saturating_sub(stuck.tasks);
        let report = Drained {
            finished,
            cancelled: all.saturating_sub(finished + stuck.tasks),
            cancelled_tasks: self.cancelled_tasks(&stuck, undropped > 0),
            undropped,
            stuck: stuck.threads,
            jobs_cancelled,
            jobs_lost: lost,
            took: began.map_or(Duration::ZERO, |began| began.elapsed()),
        };
        crew.parting.publish(report);
        crew.cancel_all(self.pool);
        state.ignore_drops();
    }

    /// Returns the tasks that were dropped since the wait ended and, if `are_any_undropped`, those that are
    /// still to be dropped, without the `stuck` ones. Stops the recording of drops.
    fn cancelled_tasks(&self, stuck: &StuckTasks, are_any_undropped: bool) -> Vec<TaskGroup> {
        let state = self.crew.state();
        let mut cancelled = state.recorded_drops();
        if are_any_undropped {
            state.list_undropped(&mut cancelled);
            // The stuck tasks are on the list, too, but are not counted as cancelled.
            let places = stuck.threads.iter().filter_map(|thread| thread.spawned_at);
            places.for_each(|spawned_at| cancelled.remove_one(spawned_at));
        }
        cancelled.into_groups()
    }

    /// Waits until no task is left but those that wait for the report, and no closure waits or runs on the
    /// blocking threads; or until the deadline, or a shutdown. Returns how many tasks have ended by then.
    fn wait(&self) -> usize {
        let state = self.crew.state();
        state.watch_ends();
        let ended = loop {
            // After a wake-up: what its sender did before is visible to the count.
            sync::full_fence();
            if let Some(ended) = self.end_of_wait() {
                break ended;
            }
            sync::park_until(self.crew.parting.standing().deadline);
        };
        state.unwatch_ends();
        ended
    }

    /// Returns how many tasks have ended, if the wait is over: see [`wait`](Self::wait). Also has the
    /// blocking threads unpark the calling thread when they run out of work.
    fn end_of_wait(&self) -> Option<usize> {
        let (ended, left) = self.crew.state().census();
        // After the tasks: a task, or other work behind them, has begun this work.
        let behind = self.blocking.left(&thread::current());
        let standing = self.crew.parting.standing();
        let ended = if left <= standing.insiders && behind == 0 {
            ended
        } else if standing.is_due() {
            // A task that has ended since the first count was in time, too.
            self.crew.state().census().0
        } else {
            return standing.cut_short;
        };
        // Last: a shutdown says how many tasks had ended before it cancels any.
        Some(self.crew.parting.standing().cut_short.unwrap_or(ended))
    }

    /// Returns how many tasks are left beside so many that are stuck.
    fn left(&self, stuck: usize) -> usize {
        self.crew.state().census().1.saturating_sub(stuck)
    }

    /// Stops the workers after the polls that they are in, and closes the blocking threads: what waits for
    /// them never begins. Returns how many pieces with a result were cancelled so far by such calls. Does not
    /// wait.
    pub(super) fn halt(&self) -> usize {
        self.crew.halt();
        // After the workers were told: a task that waits for what is cancelled here is cancelled itself, and
        // not polled once more.
        self.blocking.close()
    }

    /// Waits until every thread that was told to stop is gone or stuck, and `waits`, called with the number
    /// of stuck tasks, is false. While it is true and all threads are stuck, hires a hand. Gives up after
    /// [`ENOUGH`], or when no more hands may be hired. Returns what is stuck: tasks, and the names of
    /// closures on the blocking threads.
    fn wait_until_cleared(&mut self, waits: impl Fn(&Self, usize) -> bool) -> (StuckTasks, Vec<String>) {
        let began = Instant::now();
        loop {
            let (stuck, comes) = self.look_at(self.crew.not_gone(), OUTSIDE_GRACE, began);
            let (lost, returns) = self.look_behind();
            let waits = waits(self, stuck.tasks);
            let is_done = !comes && !returns && (!waits || !self.hire_hand());
            if is_done || began.elapsed() >= ENOUGH {
                return (stuck, lost);
            }
            self.crew.wait_for_one(LOOK);
        }
    }

    /// Waits until the hands have dropped what is left, or are stuck in a destructor; for [`ENOUGH`] at most.
    pub(super) fn wait_for_hands(&mut self) {
        let began = Instant::now();
        while self.look_at(self.crew.hands(), GRACE, began).1 && began.elapsed() < ENOUGH {
            self.crew.wait_for_one(LOOK);
        }
    }

    /// Has one more thread clear up; if none can be started, the calling thread does, which may block it.
    /// Returns false if [`HANDS`] were hired before: there are to be no more.
    pub(super) fn hire_hand(&mut self) -> bool {
        self.hands += 1;
        if self.hands > HANDS {
            return false;
        }
        if !self.crew.hire_hand(self.pool) {
            // No thread is left that would notice what blocks this one.
            self.hands = HANDS;
            self.crew.clear_up(self.pool);
        }
        true
    }

    /// Looks at these threads, except the calling one, beside so many that only start. Returns what is
    /// stuck, and whether any other thread is on its way; one that only starts is, until [`WITHOUT_A_CORE`]
    /// after the wait `began`. A thread that sleeps in no task and no destructor that is known is stuck
    /// after the time `outside`.
    fn look_at(
        &mut self,
        (threads, starting): (Vec<KnownThread>, usize),
        outside: Duration,
        began: Instant,
    ) -> (StuckTasks, bool) {
        let now = Instant::now();
        let stations = self.pool.stations();
        let mut stuck = StuckTasks::default();
        let mut comes = starting > 0 && now.saturating_duration_since(began) < WITHOUT_A_CORE;
        for known in threads.iter().filter(|known| known.id() != self.here) {
            let its_stations = || stations.iter().filter(|station| station.thread.id() == known.id());
            let tasks = tasks_of(self.crew, its_stations().rev());
            let (drops, dropped) = self.crew.state().drops_of(known.id());
            let mut got_to = its_stations().map(|station| progress(station)).fold(drops, u64::wrapping_add);
            if tasks.is_empty() {
                // A hand may be dropping closures that never began: their number falls as it makes progress.
                got_to = got_to.wrapping_sub(self.blocking.doomed() as u64);
            }
            let grace = if tasks.is_empty() && dropped.is_empty() { outside } else { GRACE };
            if self.patience.check_stuck(known, got_to, grace, now) {
                stuck.add(&known.thread, tasks, dropped);
            } else {
                comes = true;
            }
        }
        (stuck, comes)
    }

    /// Looks at the closures that run on the blocking threads. Returns the names of those that are stuck or
    /// given up, and whether any other one is to return.
    fn look_behind(&mut self) -> (Vec<String>, bool) {
        let now = Instant::now();
        let (mut lost, mut returns) = (Vec::new(), false);
        for work in self.blocking.at_work() {
            // The end does not wait for threads that go on with their queue.
            let goes_on = work.is_lost || self.blocking.finishes_queue;
            if goes_on || self.patience_behind.check_stuck(&work.known, work.number, GRACE, now) {
                lost.push(work.name);
            } else {
                returns = true;
            }
        }
        (lost, returns)
    }
}

/// Returns a number that changes whenever the thread gets any further in this `block_on`.
fn progress(station: &Station) -> u64 {
    let polls = station.runners.lock().iter().map(|hosted| hosted.runner.stage().work()).sum::<u64>();
    polls.wrapping_add(station.stage.get().work())
}
