//! The graceful end of a crew: what may finish does, what may not is cancelled, and all that wait for it get one report.
//!
//! One thread of its own conducts it, however many ask and from whatever role. It runs no code of users', so nothing that blocks
//! keeps it; it parks until the last task ends, which unparks it (`executor/vigil.rs`), or the last piece of work that
//! [blocks on purpose](Backstage), or until the deadline: so it needs neither a worker nor the reactor.
//!
//! 1. *Closed*: what is spawned is cancelled at once.
//! 2. *The wait*: until no task is left but those that wait for this very report, and no work behind them; or until the deadline.
//! 3. *The cancel*: the workers stop after the polls they are in, and drop all other tasks that nobody polls. Work behind them that
//!    has not begun never does, and what runs is told. This is over when nothing is left but what is stuck ([`Patience`]). Where
//!    all that could clear up are stuck, in a poll or a destructor, somebody else is hired for that.
//! 4. *The report* is published, and all that wait for it are woken.
//! 5. *The last ones*: tasks that waited for the report have no worker any more. Threads that are hired for that poll them, once in any
//!    case, and again for [`LAST_ONES`]; then they are cancelled like the others.
//!
//! Where no thread is to be had for the conductor, whoever drains tries again, until one is; and conducts it himself when nothing is
//! left to wait for, or the deadline has passed. Then he waits in his poll, for as long as the third step takes.
//!
//! `parting.rs` has who waits for the report, and what is known of it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::parting::Standing;
use super::patience::{GRACE, OUTSIDE, Patience, WITHOUT_A_CORE};
use super::stuck::{StuckTasks, tasks_of};
use super::{Backstage, Crew, Drained, Pool, Station};
use crate::sync::{self, Instant, thread};

/// How long tasks that have waited for the report are polled, if they do not come to ask for it.
const LAST_ONES: Duration = Duration::from_millis(100);
/// How often is looked at those that have not stopped.
pub(super) const LOOK: Duration = Duration::from_millis(2);
/// How long destructors are waited for altogether, while one after the other is done.
pub(super) const ENOUGH: Duration = Duration::from_secs(10);
/// Threads that are hired to clear up, at most: each of them but one comes when all before it are stuck.
const HANDS: usize = 16;

impl Pool {
    /// Ends the crew, and what is behind it, and reports. The first poll begins it, and it goes on if this is dropped; where no thread
    /// is to be had for that, it goes on when somebody has made a `pause` in it.
    pub(crate) async fn drain<P: Future>(
        self: Arc<Self>,
        deadline: Option<Instant>,
        backstage: Arc<dyn Backstage>,
        pause: impl Fn() -> P,
    ) -> Drained {
        let Some(crew) = self.crew().filter(|_| !self.is_inherited()) else { return Drained::default() };
        let waiting = crew.takes_part(&backstage, deadline);
        loop {
            if !crew.is_conducted(&self, &backstage) {
                pause().await;
            } else if let Some(report) = waiting.is_told().await {
                return report;
            }
        }
    }
}

/// Who conducts the end of a crew.
struct Conductor<'a> {
    crew: &'a Arc<Crew>,
    pool: &'a Arc<Pool>,
    backstage: &'a dyn Backstage,
    /// The thread.
    here: thread::ThreadId,
    patience: Patience,
    /// The same with the threads of work behind the tasks, which may be in a task's destructor, too.
    patience_behind: Patience,
    hands: usize,
}

/// What a look at those that have not stopped has found.
struct Look {
    stuck: StuckTasks,
    /// Work behind the tasks that is stuck.
    lost: Vec<String>,
    /// Somebody is on the way.
    comes: bool,
}

impl Crew {
    /// Whether somebody conducts the end, from now on at least.
    fn is_conducted(self: &Arc<Self>, pool: &Arc<Pool>, backstage: &Arc<dyn Backstage>) -> bool {
        if !self.parting.claims_conduct() {
            return true;
        }
        let conduct = {
            let (crew, pool, backstage) = (self.clone(), pool.clone(), backstage.clone());
            move || Conductor::new(&crew, &pool, &*backstage).conduct()
        };
        if thread::Builder::new().name(format!("{}-drain", self.name())).spawn(conduct).is_ok() {
            return true;
        }
        let mut here = Conductor::new(self, pool, &**backstage);
        let is_time = here.has_waited().is_some();
        if is_time {
            here.conduct();
            // It has parked: a token that it took may be for whoever waits below.
            thread::current().unpark();
        } else {
            self.parting.gives_conduct_up();
        }
        is_time
    }

    /// The calling thread does what there is to do for a crew that was stopped.
    pub(super) fn clear_up(&self, pool: &Arc<Pool>) {
        self.cancel_all(pool);
        let (backstage, is_told) = self.parting.backstage();
        pool.visit(|| {
            backstage.iter().for_each(|backstage| backstage.clear());
            if is_told {
                self.state().see_off(|task| self.parting.gets_a_poll(task));
            }
        });
    }
}

impl<'a> Conductor<'a> {
    fn new(crew: &'a Arc<Crew>, pool: &'a Arc<Pool>, backstage: &'a dyn Backstage) -> Self {
        let here = thread::current().id();
        let [patience, patience_behind] = [(); 2].map(|()| Patience::default());
        Self { crew, pool, backstage, here, patience, patience_behind, hands: 0 }
    }

    /// From the wait to the last ones.
    fn conduct(&mut self) {
        let (crew, state) = (self.crew, self.crew.state());
        let ended = self.waits();
        crew.halt();
        let jobs_cancelled = self.backstage.close();
        if self.left(0) > 0 {
            // All that are there may be stuck, which takes some time to find out.
            self.gets_a_hand();
        }
        let look = self.has_cleared_up(|this, stuck| this.left(stuck) > 0 || this.backstage.laden() > 0);
        let Standing { insiders, began, ended: at_first, .. } = crew.parting.standing();
        let (all_ended, left) = state.census();
        let all = (all_ended + left).saturating_sub(at_first + insiders);
        let finished = ended.saturating_sub(at_first);
        let report = Drained {
            finished,
            cancelled: all.saturating_sub(finished + look.stuck.tasks),
            undropped: left.saturating_sub(insiders + look.stuck.tasks),
            stuck: look.stuck.threads,
            jobs_cancelled,
            jobs_lost: look.lost,
            took: began.map_or(Duration::ZERO, |began| began.elapsed()),
        };
        let limit = Instant::now() + LAST_ONES;
        crew.parting.publish(report, limit);
        self.hands = 0;
        while crew.parting.keeps_any() == Some(true) {
            let is_late = Instant::now() >= limit;
            let waits = |this: &Self, _| this.crew.state().has_aside() || this.crew.state().has_surplus();
            self.has_cleared_up(waits);
            if is_late {
                break;
            }
            // One that has it is done soon; one that does something else first is woken by that.
            sync::park_until(Some(Instant::now() + LOOK));
        }
        if crew.parting.keeps_any() == Some(true) {
            // Those that had no poll, because all before them block.
            crew.clear_up(self.pool);
        }
        crew.parting.is_over();
        crew.cancel_all(self.pool);
        state.ignore_drops();
    }

    /// Waits until nothing is left to wait for. Returns how many tasks have ended by then.
    fn waits(&self) -> usize {
        let state = self.crew.state();
        state.watch_ends();
        let ended = loop {
            // What was announced by the token that ended the last wait is seen.
            sync::full_fence();
            if let Some(ended) = self.has_waited() {
                break ended;
            }
            sync::park_until(self.crew.parting.standing().deadline);
        };
        state.look_away();
        ended
    }

    /// How many tasks have ended, if there is nothing to wait for any more.
    fn has_waited(&self) -> Option<usize> {
        let (ended, left) = self.crew.state().census();
        // After the tasks: what is done behind them was begun by one of them, or there.
        let behind = self.backstage.left(&thread::current());
        let standing = self.crew.parting.standing();
        let ended = if left <= standing.insiders && behind == 0 {
            ended
        } else if standing.is_due() {
            // Who has ended since the first look was in time, too.
            self.crew.state().census().0
        } else {
            return standing.cut_short;
        };
        // Last: whoever cuts it short says how many had ended before he cancels any.
        Some(self.crew.parting.standing().cut_short.unwrap_or(ended))
    }

    /// Tasks that are left, but those that wait for the report, and so many that are stuck.
    fn left(&self, stuck: usize) -> usize {
        let insiders = self.crew.parting.standing().insiders;
        self.crew.state().census().1.saturating_sub(insiders + stuck)
    }

    /// Waits until nobody is on the way who was told to stop, and nothing `waits` to be cleared up, beside so many stuck tasks. If it
    /// does, and nobody is free to do it, somebody is hired.
    fn has_cleared_up(&mut self, waits: impl Fn(&Self, usize) -> bool) -> Look {
        let began = Instant::now();
        loop {
            let look = self.look(began);
            let waits = waits(self, look.stuck.tasks);
            let is_done = !look.comes && (!waits || !self.gets_a_hand());
            if is_done || began.elapsed() >= ENOUGH {
                return look;
            }
            self.crew.wait_for_one(LOOK);
        }
    }

    /// Somebody clears up. False if there are to be no more.
    fn gets_a_hand(&mut self) -> bool {
        self.hands += 1;
        if self.hands > HANDS {
            return false;
        }
        if !self.crew.hire_for_the_end(self.pool) {
            // There is nobody else: what blocks this thread now is noticed by nobody.
            self.hands = HANDS;
            self.crew.clear_up(self.pool);
        }
        true
    }

    fn look(&mut self, began: Instant) -> Look {
        let now = Instant::now();
        let stations = self.pool.stations();
        let (threads, starting) = self.crew.not_gone();
        let mut stuck = StuckTasks::default();
        let mut comes = starting > 0 && now.saturating_duration_since(began) < WITHOUT_A_CORE;
        for who in threads.iter().filter(|who| who.id() != self.here) {
            let its_stations = || stations.iter().filter(|station| station.thread.id() == who.id());
            let tasks = tasks_of(self.crew, its_stations().rev());
            let polls: Vec<_> = tasks.iter().map(|task| (task.id, task.poll)).collect();
            if self.crew.parting.excuses(who.id(), &polls) {
                continue;
            }
            let (drops, dropped) = self.crew.state().drops_of(who.id());
            let got_to = its_stations().map(|station| progress(station)).fold(drops, u64::wrapping_add);
            let grace = if tasks.is_empty() && dropped.is_empty() { OUTSIDE } else { GRACE };
            if self.patience.is_over(who, got_to, grace, now) {
                stuck.add(&who.thread, tasks, dropped, |task| self.crew.parting.awaits(task));
            } else {
                comes = true;
            }
        }
        let mut lost = Vec::new();
        for work in self.backstage.at_work() {
            if work.is_lost || self.patience_behind.is_over(&work.who, work.number, GRACE, now) {
                lost.push(work.name);
            } else {
                comes = true;
            }
        }
        Look { stuck, lost, comes }
    }
}

/// Another number whenever the thread has got any further in its `block_on`.
fn progress(station: &Station) -> u64 {
    let polls = station.runners.lock().iter().map(|hosted| hosted.runner.beat().count()).sum::<u64>();
    polls.wrapping_add(station.pulse())
}
