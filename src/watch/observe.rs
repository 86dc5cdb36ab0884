//! [`Observer`]: takes a [`Snapshot`] of a pool, by which the deputy decides, and a [`Scene`] of the objects
//! on which it acts.
//!
//! The observer reads, asks the system about threads, and compares with the last look. The pool stays as it
//! is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::progress::{self, Progress};
use crate::executor::{Account, Hosted, Queues, Runner, State, StateRef};
use crate::insight::STALL;
use crate::pool::{Culprit, Pool, Spot, Staff, Station};
use crate::probe::Doing;
use crate::stage::Stage;
use crate::sync::Instant;

/// A position in a list of the scene, and, but for runners, in the list of the snapshot that goes with it.
pub(super) type Id = usize;

/// The findings of one look, as plain data.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) now: Instant,
    /// The time between two looks.
    pub(super) tick: Duration,
    /// All threads sleep, and nothing waits: no thread was asked what it does.
    pub(super) is_quiet: bool,
    /// A source or timer is registered.
    pub(super) is_needed: bool,
    /// Leadership is vacant, a source or timer is waited for, and no thread has led since the last look.
    pub(super) is_abandoned: bool,
    /// A thread that is awake runs. Asked only where leadership is abandoned in a pool without workers.
    pub(super) is_busy: bool,
    /// Threads that only lead.
    pub(super) reliefs: usize,
    /// Reliefs that were started and have not entered the pool yet.
    pub(super) starting_reliefs: usize,
    /// `None` in a pool without workers.
    pub(super) crew: Option<Staff>,
    /// Tasks wait that any worker could take.
    pub(super) has_surplus: bool,
    pub(super) runners: Vec<RunnerSeen>,
    pub(super) stays: Vec<StuckSeen>,
    pub(super) queues: Vec<Queues>,
}

impl Snapshot {
    /// Returns whether a runner sleeps beside tasks that it could take.
    pub(super) fn is_open(&self) -> bool {
        self.queues.iter().any(|queues| queues.has_surplus && queues.is_any_idle)
    }
}

/// A runner, and the thread that hosts it.
#[derive(Clone, Debug)]
pub(super) struct RunnerSeen {
    pub(super) id: Id,
    /// The runner belongs to the executor of the pool's workers.
    pub(super) is_crew: bool,
    /// The runner made progress since the last look, and its thread is awake.
    pub(super) has_moved: bool,
    /// The activity of its thread, if the thread is awake and made no progress.
    pub(super) doing: Option<Doing>,
    /// Processor time that the thread has used since it made progress.
    pub(super) computed: Duration,
    /// Processor time that the thread used since the last look, and the number of polls of tasks meanwhile.
    /// Zero unless the thread made progress and was awake at both looks.
    pub(super) work: (Duration, u64),
    /// The worker is a standby.
    pub(super) is_standby: bool,
    /// The thread polls a task, or calls a waker.
    pub(super) is_at_work: bool,
    /// The thread sleeps in a `block_on` that is nested in the runner's poll.
    pub(super) waits_nested: bool,
    /// The thread was started beyond the usual number.
    pub(super) is_replacement: bool,
}

/// A thread that is in the same poll, or calls the same waker, as at the last look.
#[derive(Clone, Debug)]
pub(super) struct StuckSeen {
    pub(super) doing: Doing,
    /// How long the thread has blocked there.
    pub(super) blocked: Duration,
    /// The thread polls a task.
    pub(super) is_task: bool,
    /// The polled code is known.
    pub(super) is_known: bool,
}

/// The objects for which the entries of a snapshot stand.
#[derive(Default)]
pub(super) struct Scene {
    pub(super) stations: Vec<Arc<Station>>,
    pub(super) runners: Vec<(Arc<Station>, Arc<Runner>)>,
    pub(super) stays: Vec<StuckPlace>,
    /// With the runners that are stuck beside tasks of their own.
    pub(super) queues: Vec<(StateRef, Vec<Arc<Runner>>)>,
}

/// Where a thread is stuck.
pub(super) struct StuckPlace {
    pub(super) station: Arc<Station>,
    /// The runner that polls a task there, and how far it had got.
    pub(super) task: Option<(Arc<Runner>, Stage)>,
    pub(super) culprit: Option<Culprit>,
    /// `None` if the thread is between its tasks, and in no future of a `block_on` that a user called.
    pub(super) spot: Option<Spot>,
    pub(super) since: Instant,
    pub(super) seen: StuckSeen,
    /// The key of its entry in [`Progress`].
    pub(super) key: usize,
}

/// Takes snapshots, and remembers the last look.
#[derive(Debug, Default)]
pub(super) struct Observer {
    /// Leaderships taken up to then.
    taken: Option<u64>,
    pub(super) progress: Progress,
    executors: HashMap<*const State, Account>,
}

// SAFETY: the pointers are only compared.
unsafe impl Send for Observer {}

impl Observer {
    /// Forgets the last look and the progress of all threads, which are out of date after the deputy has
    /// slept.
    pub(super) fn forget(&mut self) {
        self.progress.forget();
        self.forget_last_look();
    }

    /// Forgets what is compared between two looks. Called after the deputy has rested.
    pub(super) fn forget_last_look(&mut self) {
        self.taken = None;
        self.executors.clear();
    }

    /// Returns whether there was a look since the deputy slept or rested, of a pool that was not quiet.
    pub(super) fn has_looked(&self) -> bool {
        self.taken.is_some()
    }

    /// Takes a snapshot, with the objects for it, and remembers it for the next look. In a pool that
    /// `is_quiet` no thread is asked, and what earlier looks found is forgotten.
    pub(super) fn look(&mut self, pool: &Arc<Pool>, is_quiet: bool, now: Instant) -> (Snapshot, Scene) {
        // Before the threads are listed: a relief that enters now is not one that starts.
        let reliefs = pool.reliefs.get();
        let mut scene = Scene { stations: pool.stations(), ..Scene::default() };
        let begun = scene.stations.iter().filter(|station| station.is_relief()).count();
        let mut seen = Snapshot {
            now,
            tick: pool.deputy.tick(),
            is_quiet,
            is_needed: pool.reactor.is_needed(),
            is_abandoned: false,
            is_busy: false,
            reliefs,
            starting_reliefs: reliefs.saturating_sub(begun),
            crew: None,
            has_surplus: false,
            runners: Vec::new(),
            stays: Vec::new(),
            queues: Vec::new(),
        };
        if is_quiet {
            self.forget();
        }
        self.progress.look_begins();
        for station in &scene.stations {
            let hosted = station.runners.lock().clone();
            if hosted.is_empty() && !is_quiet {
                // This only leads to a report, because a thread without a runner has made no promise.
                scene.stays.extend(self.look_at_stay(station, None, true, now));
            }
            for (at, hosted) in hosted.into_iter().enumerate() {
                let runner = &hosted.runner;
                let mut look = || self.look_at_stay(station, Some(runner), at == 0, now);
                let stay = if is_quiet { None } else { look() };
                let id = scene.runners.len();
                seen.runners.push(self.look_at_runner(pool, id, station, &hosted, stay.as_ref()));
                scene.stays.extend(stay);
                scene.runners.push((station.clone(), hosted.runner));
            }
        }
        self.progress.look_ends();
        seen.stays = scene.stays.iter().map(|place| place.seen.clone()).collect();
        if !is_quiet {
            self.look_at_leadership(pool, &mut seen);
            self.look_at_queues(&mut seen, &mut scene);
        }
        if let Some(crew) = pool.workforce() {
            seen.crew = Some(crew.staff(now, STALL));
            // Tasks that this look moves to the injector count as well.
            let own = scene.queues.iter().position(|(state, _)| crew.runs(state));
            seen.has_surplus =
                crew.state().has_surplus() || own.is_some_and(|own| seen.queues[own].has_surplus);
        }
        (seen, scene)
    }

    /// Returns where the thread is stuck with `runner`, or without one, and asks the system what the thread
    /// does. `None` if it made progress or sleeps; without a runner also if the thread hosts one by now.
    /// `is_first` is true for the thread's first runner, and without one: the root future is reported only
    /// then.
    fn look_at_stay(
        &mut self,
        station: &Arc<Station>,
        runner: Option<&Arc<Runner>>,
        is_first: bool,
        now: Instant,
    ) -> Option<StuckPlace> {
        let runner = runner.map(|it| (it, it.stage()));
        let spot = match runner {
            Some(_) => station.spot(runner),
            None => station.spot_of_guest()?,
        };
        let (key, known) = match runner {
            Some((it, _)) => (progress::key(it), self.progress.none_of(it, spot, station)),
            None => (progress::key(station), self.progress.none_of(station, spot, station)),
        };
        let (known, fires) = (known?, spot.0.is_at_work());
        let task = runner.filter(|(_, stage)| stage.is_at_work());
        if task.is_none() && !(fires && runner.is_some()) && station.is_quiet() {
            return None;
        }
        let doing = known.witness.look(station.state, now);
        let culprit = match task {
            Some((it, _)) => {
                Some(Culprit { place: it.task_poll().and_then(|poll| poll.spawned_at), is_root: false })
            }
            None => station.root().filter(|_| is_first && !fires),
        };
        // Without a task, it is where its `block_on` is.
        let spot = (spot.0, spot.1.filter(|_| task.is_some()));
        let spot = (fires || culprit.is_some()).then_some(spot);
        let task = task.map(|(it, stage)| (it.clone(), stage));
        let seen = StuckSeen {
            doing,
            blocked: known.witness.blocked,
            is_task: task.is_some(),
            is_known: culprit.is_some(),
        };
        Some(StuckPlace { station: station.clone(), task, culprit, spot, since: known.since, seen, key })
    }

    /// Returns the entry of a runner: `stay` is where its thread is stuck with it, if it is. Below a nested
    /// `block_on`, a stuck runner counts as blocked.
    fn look_at_runner(
        &self,
        pool: &Pool,
        id: Id,
        station: &Station,
        Hosted { state, runner }: &Hosted,
        stay: Option<&StuckPlace>,
    ) -> RunnerSeen {
        let is_awake = station.is_on_top() && !station.is_quiet();
        // A runner below a nested `block_on` is blocked until that returns, even if the thread computes
        // there.
        let doing = stay.map(|it| if station.is_on_top() { it.seen.doing } else { Doing::Blocks });
        RunnerSeen {
            id,
            // Another executor's runner that idles is no help to the crew's tasks.
            is_crew: pool.workforce().is_some_and(|crew| crew.runs(state)),
            has_moved: doing.is_none() && self.progress.has_moved(runner) && is_awake,
            doing,
            computed: self.progress.computed(runner),
            work: self.progress.work(runner),
            is_standby: runner.is_standby(),
            is_at_work: runner.stage().is_at_work() || station.stage.get().is_at_work(),
            waits_nested: !station.is_on_top() && stay.is_some_and(|it| it.seen.doing == Doing::Blocks),
            is_replacement: station.is_replacement(),
        }
    }

    /// Notes in `seen` whether leadership is abandoned: vacant, with an awaited source or timer, and not
    /// taken since the last look. So the first look never finds that. If it is, and the pool has no
    /// workers, also notes whether a thread is busy.
    fn look_at_leadership(&mut self, pool: &Pool, seen: &mut Snapshot) {
        let taken = pool.leadership.taken.get();
        let before = self.taken.replace(taken);
        // A second look is needed, even where no thread is in a `block_on`: a thread that begins one polls
        // its future before it joins, and the first timer or source in there is what calls the deputy.
        seen.is_abandoned = pool.leadership.is_vacant() && before == Some(taken) && pool.reactor.is_awaited();
        seen.is_busy = seen.is_abandoned && pool.workforce().is_none() && pool.is_busy();
    }

    /// Adds to `seen` and `scene` the queues of the executors that threads of this pool run. Forgets the
    /// executors that are gone.
    fn look_at_queues(&mut self, seen: &mut Snapshot, scene: &mut Scene) {
        let mut states: Vec<StateRef> = Vec::new();
        for station in &scene.stations {
            for hosted in &*station.runners.lock() {
                if !states.iter().any(|known| std::ptr::eq(&**known, &*hosted.state)) {
                    states.push(hosted.state.clone());
                }
            }
        }
        self.executors.retain(|known, _| states.iter().any(|state| std::ptr::eq(&**state, *known)));
        for state in states {
            let last = self.executors.entry(&raw const *state).or_default();
            let (queues, stuck) = state.queues(last);
            seen.queues.push(queues);
            scene.queues.push((state, stuck));
        }
    }
}
