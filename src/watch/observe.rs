//! [`Observer`]: takes a [`Snapshot`] of a pool, by which the deputy decides, and a [`Scene`] of the objects
//! on which it acts.
//!
//! The observer reads, asks the system about threads, and compares with the last look. The pool stays as it
//! is.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::executor::{Account, Hosted, Queues, Runner, State, StateRef};
use crate::insight::Reports;
use crate::pool::{Culprit, Pool, Spot, Staff, Station};
use crate::probe::{Doing, Witness};
use crate::stage::Stage;
use crate::sync::{Instant, Ordering};

/// A position in a list of the snapshot, and in the list of the scene that goes with it.
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
    /// A source or timer is waited for, and since the last look leadership is vacant and no thread has led or
    /// taken an event, or a share is stuck.
    pub(super) is_abandoned: bool,
    /// Threads that only lead.
    pub(super) reliefs: usize,
    /// Reliefs that were started and have not entered the pool yet.
    pub(super) starting_reliefs: usize,
    /// `None` in a pool without workers.
    pub(super) crew: Option<Staff>,
    /// The tasks that wait for the workers.
    pub(super) tasks: Queues,
    pub(super) members: Vec<MemberSeen>,
    /// The tasks of each executor that threads of this pool run.
    pub(super) queues: Vec<Queues>,
}

impl Snapshot {
    /// Returns whether a runner sleeps beside tasks that it could take.
    pub(super) fn is_open(&self) -> bool {
        self.queues.iter().any(|queues| queues.has_tasks() && queues.is_any_idle)
    }
}

/// A thread in a `block_on`, with one of the runners that it hosts, or with none.
#[derive(Clone, Debug, Default)]
pub(super) struct MemberSeen {
    /// The runner belongs to the executor of the pool's workers.
    pub(super) is_crew: bool,
    /// The worker is a standby.
    pub(super) is_standby: bool,
    /// The thread was started beyond the usual number.
    pub(super) is_replacement: bool,
    /// The runner made progress since the last look, and its thread is awake.
    pub(super) has_moved: bool,
    /// The activity of the thread, if it is awake and in the same poll or waker as at the last look.
    pub(super) doing: Option<Doing>,
    /// Another `block_on` is nested in this one.
    pub(super) is_below: bool,
    /// The thread polls a task, or calls a waker or a hook.
    pub(super) is_at_work: bool,
    /// The thread is in a park or unpark hook.
    pub(super) is_in_hook: bool,
    /// The thread polls a task, in which it is stuck.
    pub(super) is_task: bool,
    /// How long the thread has blocked there.
    pub(super) blocked: Duration,
    /// Processor time that the thread has used since it made progress.
    pub(super) computed: Duration,
    /// Processor time that the thread used since the last look, and the number of polls of tasks meanwhile.
    /// Zero unless the thread made progress and was awake at both looks.
    pub(super) work: (Duration, u64),
}

impl MemberSeen {
    /// Returns what the thread does as far as its other work is concerned: below a nested `block_on` it is
    /// blocked until that returns, even if it computes there.
    pub(super) fn effect(&self) -> Option<Doing> {
        self.doing.map(|doing| if self.is_below { Doing::Blocks } else { doing })
    }

    /// Returns whether the thread blocks in a park or unpark hook.
    pub(super) fn is_hooked(&self) -> bool {
        self.is_in_hook && self.effect() == Some(Doing::Blocks)
    }

    /// Returns whether the thread blocks, and not in a hook: then a replacement may be needed.
    pub(super) fn blocks(&self) -> bool {
        !self.is_in_hook && self.effect() == Some(Doing::Blocks)
    }

    /// Returns whether the thread will take the next event that it holds without help: it makes progress, or
    /// would if it had a core.
    pub(super) fn goes_on(&self) -> bool {
        !self.is_below && matches!(self.doing, None | Some(Doing::Waits))
    }
}

/// The objects for which the entries of a snapshot stand.
#[derive(Default)]
pub(super) struct Scene {
    pub(super) members: Vec<Place>,
    /// With the runners that are stuck beside tasks of their own.
    pub(super) queues: Vec<(StateRef, Vec<Arc<Runner>>)>,
}

/// A thread, with one of its runners, and where it is.
pub(super) struct Place {
    pub(super) station: Arc<Station>,
    /// With how far it had got.
    pub(super) runner: Option<(Arc<Runner>, Stage)>,
    /// The activity of the thread, if it is stuck.
    pub(super) doing: Option<Doing>,
    /// The known code in which it is stuck.
    pub(super) culprit: Option<Culprit>,
    /// Where it is stuck; `None` also if it is between its tasks, and in no future of a `block_on` that a
    /// user called.
    pub(super) spot: Option<Spot>,
    pub(super) since: Instant,
    /// The key of its [`Known`].
    pub(super) key: usize,
}

impl Place {
    /// Returns a function that says whether the thread is still in the spot in which it is stuck.
    pub(super) fn stays(&self) -> impl Fn() -> bool + Send + Clone + use<> {
        let (station, spot) = (self.station.clone(), self.spot);
        let runner = self.runner.as_ref().map(|(runner, _)| runner.clone());
        move || {
            let runner = runner.as_ref().filter(|_| spot.is_some_and(|(_, runner)| runner.is_some()));
            spot == Some(station.spot(runner.map(|runner| (runner, runner.poll.stage()))))
        }
    }
}

/// What the observer remembers of a runner, or of a thread that hosts none, from look to look.
#[derive(Debug)]
pub(super) struct Known {
    /// Keeps the address from being used again by another object. (The next `block_on` of a thread may have
    /// the same station: then its stage differs.)
    _object: Weak<dyn Any + Send + Sync>,
    /// How far it had got.
    spot: Spot,
    /// A time at which it was there already, soon after it was first seen there.
    since: Instant,
    /// The activity of its thread since then.
    pub(super) witness: Witness,
    /// Processor time that the thread used between the last two looks, and polls of tasks meanwhile, if it
    /// was awake at both.
    work: (Duration, u64),
    pub(super) reports: Reports,
    /// The number of the last look that found it.
    seen: u64,
    /// The number of the last look that found that it had made progress.
    moved: u64,
}

/// Takes snapshots, and remembers the last look.
#[derive(Debug, Default)]
pub(super) struct Observer {
    looks: u64,
    /// Leaderships taken up to the last look, and the words of the shares that had events.
    pub(super) taken: Option<(u64, Vec<(usize, u64)>)>,
    /// By the addresses of the objects.
    pub(super) records: HashMap<usize, Known>,
    executors: HashMap<*const State, Account>,
}

// SAFETY: the pointers are only compared.
unsafe impl Send for Observer {}

impl Observer {
    /// Forgets the last look and the progress of all threads, which are out of date after the deputy has
    /// slept.
    pub(super) fn forget(&mut self) {
        self.records.clear();
        self.forget_last_look();
    }

    /// Forgets what is compared between two looks. Called after the deputy has rested.
    pub(super) fn forget_last_look(&mut self) {
        self.taken = None;
        self.executors.clear();
    }

    /// Takes a snapshot, with the objects for it, and remembers it for the next look. In a pool that
    /// `is_quiet` no thread is asked, and what earlier looks found is forgotten.
    pub(super) fn look(&mut self, pool: &Arc<Pool>, is_quiet: bool, now: Instant) -> (Snapshot, Scene) {
        // Before the threads are listed: a relief that enters now is not one that starts.
        let reliefs = pool.reliefs.load(Ordering::Relaxed);
        let stations = pool.stations();
        let begun = stations.iter().filter(|station| station.is_relief()).count();
        let mut scene = Scene::default();
        let mut seen = Snapshot {
            now,
            tick: pool.deputy.tick,
            is_quiet,
            is_needed: pool.reactor.is_needed(),
            is_abandoned: false,
            reliefs,
            starting_reliefs: reliefs.saturating_sub(begun),
            crew: None,
            tasks: Queues::default(),
            members: Vec::new(),
            queues: Vec::new(),
        };
        if is_quiet {
            self.forget();
        }
        self.looks += 1;
        let mut states: Vec<StateRef> = Vec::new();
        for station in stations {
            let hosted = station.runners.lock().clone();
            // A thread without a runner has made no promise: this only leads to a report.
            let runners = hosted.iter().map(Some).chain(hosted.is_empty().then_some(None));
            for (at, hosted) in runners.enumerate() {
                let (mut member, mut place) = describe(&station, hosted, now);
                if !is_quiet {
                    self.look_at_progress(&mut member, &mut place, at == 0);
                }
                if let Some(Hosted { state, .. }) = hosted {
                    // Another executor's runner that idles is no help to the crew's tasks.
                    member.is_crew = pool.workforce().is_some_and(|crew| crew.runs(state));
                    if !states.iter().any(|known| std::ptr::eq(&**known, &**state)) {
                        states.push(state.clone());
                    }
                }
                seen.members.push(member);
                scene.members.push(place);
            }
        }
        let looks = self.looks;
        self.records.retain(|_, record| record.seen == looks);
        if !is_quiet {
            self.look_at_leadership(pool, &mut seen, &scene);
            self.look_at_queues(states, &mut seen, &mut scene);
        }
        if let Some(crew) = pool.workforce() {
            seen.crew = Some(crew.staff());
            let own = scene.queues.iter().position(|(state, _)| crew.runs(state));
            // No worker may be there yet.
            seen.tasks = own.map_or_else(|| crew.state.unwatched_queues(), |own| seen.queues[own].clone());
        }
        (seen, scene)
    }

    /// Compares a member with the last look. If it made no progress, asks the system what its thread does,
    /// unless that sleeps, and notes where it is stuck. Only the first runner of a thread is stuck in the
    /// root future.
    fn look_at_progress(&mut self, member: &mut MemberSeen, place: &mut Place, is_first: bool) {
        let (looks, now) = (self.looks, place.since);
        let station = &place.station;
        let spot = station.spot(place.runner.as_ref().map(|(runner, stage)| (runner, *stage)));
        let record = self.record(place, spot);
        if record.moved == looks {
            member.has_moved = place.runner.is_some() && !member.is_below && !station.is_quiet();
            member.work = record.work;
            return;
        }
        let task = place.runner.as_ref().filter(|(_, stage)| stage.is_at_work());
        let fires = spot.0.is_at_work();
        if task.is_none() && !(fires && place.runner.is_some()) && station.is_quiet() {
            return;
        }
        member.doing = Some(record.witness.look(station.state, now));
        place.doing = member.doing;
        (member.blocked, member.computed) = (record.witness.blocked, record.witness.computed);
        place.since = record.since;
        place.culprit = match task {
            Some((runner, _)) => {
                let place = runner.poll.task_poll().and_then(|poll| poll.spawned_at);
                Some(Culprit { place, is_root: false })
            }
            None => station.root().filter(|_| is_first && !fires),
        };
        member.is_task = task.is_some();
        // Without a task, it is where its `block_on` is.
        let spot = (spot.0, spot.1.filter(|_| member.is_task));
        place.spot = (fires || place.culprit.is_some()).then_some(spot);
    }

    /// Returns the record of a member that is at `spot`. If the last look did not find it there, that is a
    /// new one. It begins now, after the caller has read the spot, and the clock of each later look is read
    /// before the spot: so no time is counted in which the member was elsewhere.
    fn record(&mut self, place: &Place, spot: Spot) -> &mut Known {
        let looks = self.looks;
        let known = self.records.get(&place.key);
        if known.is_none_or(|known| known.spot != spot) {
            let (now, station) = (Instant::now(), &place.station);
            let witness = Witness::new((!station.is_quiet()).then_some(station.state), now);
            let work = known.and_then(|known| {
                // A poll counts when it begins and when it ends.
                let polls = polls(spot).saturating_sub(polls(known.spot)) / 2;
                Some((witness.used_since(&known.witness)?, polls))
            });
            let _object: Weak<dyn Any + Send + Sync> = match &place.runner {
                Some((runner, _)) => Arc::<Runner>::downgrade(runner),
                None => Arc::<Station>::downgrade(station),
            };
            let (work, reports) = (work.unwrap_or_default(), Reports::new());
            let fresh =
                Known { _object, spot, since: now, witness, work, reports, seen: looks, moved: looks };
            self.records.insert(place.key, fresh);
        }
        let record = self.records.get_mut(&place.key).expect("it is there by now");
        record.seen = looks;
        record
    }

    /// Returns whether the station's thread is in the poll, or in the waker, in which the last look found it
    /// blocking or computing, with no task left in its runners.
    pub(super) fn is_stuck(&self, station: &Arc<Station>) -> bool {
        let is_there = |key: usize, spot| {
            self.records.get(&key).is_some_and(|known| known.spot == spot && known.witness.is_settled())
        };
        let hosted = station.runners.lock();
        if hosted.is_empty() {
            return is_there(Arc::as_ptr(station).addr(), station.spot(None));
        }
        hosted.iter().all(|Hosted { runner, .. }| {
            let spot = station.spot(Some((runner, runner.poll.stage())));
            !runner.has_tasks() && is_there(Arc::as_ptr(runner).addr(), spot)
        })
    }

    /// Notes in `seen` whether leadership is abandoned: a source or timer is awaited, and since the last look
    /// no thread has led or taken an event; or a share is stuck. So the first look never finds that. While no
    /// thread leads, a share whose owner only lacks a core is left to the threads that lead next.
    fn look_at_leadership(&mut self, pool: &Pool, seen: &mut Snapshot, scene: &Scene) {
        let now = (pool.leadership.taken.get(), pool.reactor.shares.words());
        let before = self.taken.replace(now.clone());
        // A second look is needed, even where no thread is in a `block_on`: a thread that begins one polls
        // its future before it joins, and the first timer or source in there is what calls the deputy.
        let has_stopped = before.as_ref() == Some(&now);
        let is_vacant = pool.leadership.is_vacant();
        let before = before.map(|(_, words)| words).unwrap_or_default();
        let is_stuck = now.1.iter().any(|word @ (share, _)| {
            let has_share = |(_, place): &(_, &Place)| place.station.share.load(Ordering::Relaxed) == *share;
            let mut owners = seen.members.iter().zip(&scene.members).filter(has_share);
            before.contains(word) && !(is_vacant && owners.any(|(owner, _)| owner.goes_on()))
        });
        seen.is_abandoned = (is_vacant && has_stopped || is_stuck) && pool.reactor.is_awaited();
    }

    /// Adds to `seen` and `scene` the queues of the executors that threads of this pool run. Forgets the
    /// executors that are gone.
    fn look_at_queues(&mut self, states: Vec<StateRef>, seen: &mut Snapshot, scene: &mut Scene) {
        self.executors.retain(|known, _| states.iter().any(|state| std::ptr::eq(&**state, *known)));
        for state in states {
            let last = self.executors.entry(&raw const *state).or_default();
            let (queues, stuck) = state.queues(last);
            seen.queues.push(queues);
            scene.queues.push((state, stuck));
        }
    }
}

/// Returns the entries of a thread with one of its runners, or with none, as far as they say nothing of its
/// progress.
fn describe(station: &Arc<Station>, hosted: Option<&Hosted>, now: Instant) -> (MemberSeen, Place) {
    let runner = hosted.map(|hosted| (hosted.runner.clone(), hosted.runner.poll.stage()));
    let key = runner.as_ref().map_or(Arc::as_ptr(station).addr(), |(runner, _)| Arc::as_ptr(runner).addr());
    let is_polling = runner.as_ref().is_some_and(|(_, stage)| stage.is_at_work());
    let member = MemberSeen {
        is_standby: runner.as_ref().is_some_and(|(runner, _)| runner.is_standby()),
        is_replacement: station.is_replacement(),
        is_below: !station.is_on_top(),
        is_at_work: is_polling || station.stage.get().is_at_work(),
        is_in_hook: station.in_hook.is_set(),
        ..MemberSeen::default()
    };
    let station = station.clone();
    (member, Place { station, runner, doing: None, culprit: None, spot: None, since: now, key })
}

/// Returns how often the runner of a spot has begun or ended a poll.
fn polls(spot: Spot) -> u64 {
    spot.1.map_or(0, |(_, stage)| stage.work())
}
