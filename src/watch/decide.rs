//! [`decide`]: the deputy's rules. The result depends only on the [`Snapshot`] of this look and on the
//! [`Memory`] of earlier looks. `act.rs` carries it out.
//!
//! # Rules
//!
//! Leadership is *abandoned* if it is vacant, no thread has led since the last look, and a source or timer is
//! awaited. The deputy then opens leadership to any rank and wakes a follower. If no follower sleeps, the
//! first row that fits applies:
//!
//! | leadership is abandoned, and | the deputy |
//! |---|---|
//! | a runner makes progress | asks that runner to look at the reactor between two tasks |
//! | the pool has no workers | starts a relief; while a thread of the pool runs, only after 10 ms |
//! | too few workers are able to run | starts a worker; if that fails, a relief |
//! | workers wait for a core, none computes | waits: the first that gets a core leads |
//! | a worker computes, there is no spare worker | starts the spare worker; if that fails, a relief |
//! | a worker computes, the spare one is busy, too | waits: the spare worker leads after its task |
//! | ... and all compute for long, the spare one too | counts one more as *extra*, and starts it likewise |
//!
//! In the last four rows the deputy also starts a relief if a worker is late to start. No relief is started
//! while another one is starting.
//!
//! | tasks | the deputy |
//! |---|---|
//! | are in the slot or ring of a stuck runner | moves them to the injector |
//! | wait, none was taken since the last look, and a runner sleeps | wakes that runner |
//! | wait, and all workers that may take them are stuck: | |
//! | ... too few workers are able to run | starts a worker |
//! | ... all compute for long, or this lasts for long | counts one more as extra; starts a worker if needed |
//! | ... all compute, none is spare, a source or timer is registered | starts the spare worker |
//!
//! | also | the deputy |
//! |---|---|
//! | a thread is in the same poll as at the last look | marks the task as slow; counts and reports a stall |
//! | a worker is spare, and all computed within a second | limits permits; otherwise none is needed |
//! | there are too many workers for a second | releases a replacement; all of them in a quiet pool |
//! | polls take long | has a follower woken for each event (`decide/long_polls.rs`) |
//! | no source and no timer is registered | wakes the reliefs, which end |
//!
//! # How many threads there may be
//!
//! Let T be the number of workers that the runtime was built with.
//!
//! - *Workers that block* do not count. Each one is replaced, so that T other workers are *able*: they run,
//!   or would run if they had a core and a task.
//! - *Workers that wait for a core* are able. Another thread would only compete for the same core.
//! - *Workers that compute* are able, too. But while all T compute no thread would lead, so there may be one
//!   worker more, the *spare* one. The role is not bound to a thread: any worker that is free at the moment
//!   leads, and polls what events wake. So that the queues do not occupy all T + 1 of them, at most T workers
//!   may take tasks from the injector or from each other: this is what permits are for. The rule is in
//!   `executor/permits.rs`; the limit is set here.
//! - *Workers that compute for long* keep other tasks waiting. If each of the T computes in one poll for a
//!   tenth of a second of processor time, one *extra* worker may take tasks, so T + 1 may compute. Each extra
//!   worker doubles the time that counts as long: the number of threads grows with the logarithm of that
//!   time, and not with the number of long tasks. If the workers have not all computed for a second, one
//!   extra worker is given up.

mod long_polls;

use std::time::Duration;

use super::observe::{Id, RunnerSeen, Snapshot};
use crate::blocking_threads::LINGER;
use crate::executor::Caught;
use crate::probe::Doing;
use crate::sync::Instant;

/// Processor time that one poll may use before another thread may run the tasks that wait.
const LONG_POLL: Duration = Duration::from_millis(100);
/// How long a task may sleep beside a worker that has no core before the task is reported. Until then the
/// task may be waiting for a lock that this worker holds.
const INNOCENT: Duration = Duration::from_millis(100);
/// How long a surplus worker, or the right to an extra one, stays when it is not needed.
const SURPLUS_STAYS: Duration = LINGER;
/// The most workers that `max_threads` does not count, because each sleeps in a nested `block_on`. Without a
/// bound, a recursion through `block_on(spawn(..))` would take all threads that the system has.
const MAX_NESTED: usize = 512;
/// How long the threads of a pool without workers may be busy, and not blocked, before a relief leads for
/// them.
const BUSY_BEFORE_RELIEF: Duration = Duration::from_millis(10);
/// Looks that wake no worker to sift the injector, after one that did.
const PAUSED: u32 = 7;

/// State of the rules that the deputy keeps from one look to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// Since when leadership is abandoned.
    blind: Option<Instant>,
    /// Workers that blocked at the last look, and leaders that have announced since then that they will
    /// block.
    blocked: usize,
    /// A worker had no core at the last look.
    starves: bool,
    /// Since when there are more workers than are needed.
    overstaffed: Option<Instant>,
    /// Since when tasks wait and no worker is left to run them.
    short_of_hands: Option<Instant>,
    /// Looks to leave out before a worker is woken again to sift the injector.
    pause: u32,
    /// The start of the current second of scarcity: set when all workers compute, when events or tasks have
    /// waited for long, and when an extra worker is given up. `None` after a second without any of these,
    /// once no spare worker is left.
    scarce_since: Option<Instant>,
    /// How many workers may take tasks beyond the number that the crew has usually.
    extra: usize,
    /// Looks in a row at which it was not known whether polls are long.
    unknown: u32,
}

/// One action. Some fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Wakes the reliefs.
    DismissReliefs,
    /// Opens leadership to any rank and wakes a follower. Fails if no follower sleeps.
    Rescue,
    /// Asks these runners to look at the reactor between two tasks.
    LookUp(Vec<Id>),
    /// Starts a worker. Fails if there are as many as there may be, or the system has no thread.
    AddWorker,
    /// Starts a thread that only leads.
    AddRelief,
    /// Moves the tasks of stuck runners to the injector.
    HandOver(Id),
    /// Wakes a runner that sleeps, even if another one was woken before. The runner takes a task, or sifts
    /// the injector if it gets no permit.
    WakeRunner(Id),
}

/// The result of one look.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Actions {
    /// Steps that are all taken, before the others.
    pub(super) first: Vec<Step>,
    /// Alternatives for events that wait: the first that succeeds is the last one tried.
    pub(super) lead: Vec<Step>,
    /// Steps for tasks in queues. All of them are taken.
    pub(super) queues: Vec<Step>,
    /// Tasks wait for one more worker, unless one was started for events.
    pub(super) is_worker_wanted: bool,
    /// Tasks to be marked as slow.
    pub(super) marks: Vec<(Id, Caught)>,
    /// Stays that may have to be reported.
    pub(super) stalls: Vec<Id>,
    /// How many of the workers that are there `max_threads` does not count.
    pub(super) exempt: usize,
    /// Runners on replacement threads that are to end.
    pub(super) released: Vec<Id>,
    /// Whether polls are long, so that waking a follower pays for each event. `None` leaves the last answer.
    pub(super) has_long_polls: Option<bool>,
    /// The new limit of permits, if it changes. If a worker is to be added, the limit is set right before
    /// that, and taken back if no worker can be added.
    pub(super) limit: Option<usize>,
}

impl Actions {
    pub(super) fn adds_worker(&self) -> bool {
        self.is_worker_wanted || self.lead.contains(&Step::AddWorker)
    }

    /// Calls `act` for each step that is due; `act` returns whether the step succeeded. Each look starts at
    /// most one worker.
    pub(super) fn perform(&self, mut act: impl FnMut(&Step) -> bool) {
        self.first.iter().for_each(|step| _ = act(step));
        let done = self.lead.iter().find(|step| act(step));
        self.queues.iter().for_each(|step| _ = act(step));
        if self.is_worker_wanted && done != Some(&Step::AddWorker) {
            act(&Step::AddWorker);
        }
    }
}

/// Returns what to do about `seen`, by the table of rules, and updates the memory. In a quiet pool, only the
/// limit of permits, surplus workers, reliefs and the length of polls are looked at.
pub(super) fn decide(seen: &Snapshot, memory: &mut Memory) -> Actions {
    let (mut actions, mut workforce) = (Actions::default(), Workforce::of(seen));
    if !seen.is_needed {
        actions.first.push(Step::DismissReliefs);
    }
    memory.update_extra(seen, &mut workforce);
    if seen.is_quiet {
        memory.forget();
    } else {
        memory.look_at_stays(seen, &mut actions);
        (memory.starves, memory.blocked) = (workforce.waits, workforce.blocked);
        actions.lead = memory.find_leader(seen, &mut workforce);
        actions.queues = memory.move_tasks(seen);
        actions.is_worker_wanted = memory.decide_on_worker(seen, &mut workforce);
    }
    memory.extra = workforce.extra;
    actions.limit = memory.limit(seen, &workforce, usize::from(workforce.may_grow && actions.adds_worker()));
    let keeps_spare = !seen.is_quiet && memory.have_all_computed(seen.now);
    actions.exempt = workforce.exempt;
    actions.released = memory.let_go(seen, workforce.excused(keeps_spare));
    actions.has_long_polls = long_polls::judge(seen, &mut memory.unknown);
    actions
}

impl Memory {
    /// Forgets everything that is out of date after the deputy has slept.
    pub(super) fn forget(&mut self) {
        (self.blocked, self.starves) = (0, false);
        self.forget_last_look();
    }

    /// Forgets what is compared between two looks. Called after the deputy has rested, when too much time has
    /// passed since the last look.
    pub(super) fn forget_last_look(&mut self) {
        (self.blind, self.pause) = (None, 0);
    }

    /// Returns whether no later look is needed, in a pool that is quiet.
    pub(super) fn may_sleep(&self) -> bool {
        self.overstaffed.is_none() && self.scarce_since.is_none()
    }

    /// Counts a leader that is about to run a task that is known to block, while no follower can lead.
    /// Returns whether to start a worker now: the next look would start one, but later.
    pub(super) fn count_blocked(&mut self, live: usize, threads: usize) -> bool {
        self.blocked += 1;
        live < threads + self.blocked
    }

    /// Has tasks that block or compute marked as slow, and lists the threads in known code for reports of
    /// stalls. A thread that has blocked for less than [`INNOCENT`] is not listed if a worker had no core
    /// at the last look.
    fn look_at_stays(&self, seen: &Snapshot, actions: &mut Actions) {
        for (id, stay) in seen.stays.iter().enumerate() {
            let caught = match stay.doing {
                Doing::Blocks => Some(Caught::Blocking),
                Doing::Computes => Some(Caught::Computing),
                Doing::Waits | Doing::Dozes => None,
            };
            actions.marks.extend(caught.filter(|_| stay.is_task).map(|caught| (id, caught)));
            // A thread that sleeps while a worker waits for a core may wait for a lock that the worker holds.
            let is_innocent = stay.doing == Doing::Blocks && self.starves && stay.blocked < INNOCENT;
            if stay.is_known && !is_innocent {
                actions.stalls.push(id);
            }
        }
    }

    /// Returns whether, within the last second, all workers computed, events or tasks waited for long, or
    /// an extra worker was given up.
    fn have_all_computed(&self, now: Instant) -> bool {
        self.scarce_since.is_some_and(|last| now - last < SURPLUS_STAYS)
    }

    /// Sets in `workforce` how many extra workers are allowed: as many as before, but one fewer after each
    /// second in which the workers did not all compute. After the last one, permits stay scarce until the
    /// spare worker is gone. Otherwise the spare worker would take one of the next tasks that compute, and
    /// no thread would lead.
    fn update_extra(&mut self, seen: &Snapshot, workforce: &mut Workforce) {
        workforce.extra = self.extra;
        if workforce.do_all_compute() {
            self.scarce_since = Some(seen.now);
        } else if !self.have_all_computed(seen.now) {
            if workforce.extra > 0 {
                self.scarce_since = Some(seen.now);
                workforce.extra -= 1;
            } else if !workforce.has_spare() {
                self.scarce_since = None;
            }
        }
    }

    /// Returns the limit of permits once `started` more workers are there; `None` if that is the present
    /// one, or in a pool without workers. Returns `usize::MAX` if no permit is needed: permits are not
    /// scarce, the crew was stopped, or there is no spare worker, without which a limit would leave cores
    /// idle. A spare worker that is late to start counts, as it does for starting another one: without a
    /// limit it would take a task that computes as soon as it runs, and no thread would be spare.
    fn limit(&self, seen: &Snapshot, workforce: &Workforce, started: usize) -> Option<usize> {
        let crew = seen.crew.as_ref()?;
        let is_spare_there = workforce.expected() + started > workforce.takers();
        let is_scarce = self.scarce_since.is_some() && is_spare_there && crew.max_threads > 0;
        let limit = (workforce.takers() + workforce.lent).saturating_sub(workforce.unpermitted);
        Some(if is_scarce { limit } else { usize::MAX }).filter(|limit| *limit != crew.limit)
    }

    /// Returns the alternatives for events that wait, if leadership is abandoned: a rescue first, and then
    /// what the table says. If all workers compute for long, also allows one more as extra.
    fn find_leader(&mut self, seen: &Snapshot, workforce: &mut Workforce) -> Vec<Step> {
        if !seen.is_abandoned {
            self.blind = None;
            return Vec::new();
        }
        let blind = seen.now - *self.blind.get_or_insert(seen.now);
        let moving: Vec<_> = seen.runners.iter().filter(|runner| runner.has_moved).map(|it| it.id).collect();
        // If no more workers are allowed, or the next one is late to start, a relief leads. A single relief
        // is enough as long as leadership has not been abandoned for `BUSY_BEFORE_RELIEF`.
        let is_led = seen.reliefs > 0 && blind < BUSY_BEFORE_RELIEF;
        let (step, wants_relief) = if !moving.is_empty() {
            (Some(Step::LookUp(moving)), false)
        } else if seen.crew.is_none() {
            // In a pool without workers, a thread that runs usually returns to its `block_on` soon and leads.
            // A relief would only compete with it.
            (None, blind >= BUSY_BEFORE_RELIEF || !seen.is_busy)
        } else if workforce.is_short() {
            (Some(Step::AddWorker), true)
        } else if !workforce.computes {
            // Workers that wait for a core: the first that gets one leads. But a worker may be late to start
            // because its hook blocks it.
            (None, workforce.late > 0)
        } else {
            self.scarce_since = Some(seen.now);
            if workforce.has_spare() && workforce.is_long(workforce.able()) {
                workforce.add_extra();
            }
            // A spare worker that computes leads after its task. If a worker is late to start, the next one
            // may get stuck in the same hook, so a relief starts as well.
            let is_wanted = !workforce.has_spare();
            (is_wanted.then_some(Step::AddWorker), !is_led && (is_wanted || workforce.late > 0))
        };
        let mut plan = vec![Step::Rescue];
        plan.extend(step);
        // A relief that is starting calls no hook, so it leads as soon as it has a core. No other one is
        // needed.
        if wants_relief && seen.starting_reliefs == 0 {
            if plan.len() == 1 || !workforce.may_grow {
                // Counts from zero, so that the relief has time to start.
                self.blind = Some(seen.now);
            }
            plan.push(Step::AddRelief);
        }
        plan
    }

    /// Returns the steps for tasks in queues that no thread takes: tasks of stuck runners are handed over,
    /// and for tasks that none was taken of since the last look a runner is woken. While no permit is free,
    /// that is done at one of several looks only. Only the executor of the workers can run out of permits, so
    /// one `pause` is enough.
    fn move_tasks(&mut self, seen: &Snapshot) -> Vec<Step> {
        let mut steps = Vec::new();
        for (id, queues) in seen.queues.iter().enumerate() {
            steps.extend(queues.has_stuck.then_some(Step::HandOver(id)));
            let mut wakes = queues.is_untouched && (queues.is_any_idle || !queues.is_permit_free);
            if !queues.is_permit_free {
                // The woken worker may find nothing that it may take. So not at each look, until a task is
                // taken.
                wakes &= self.pause == 0;
                let left = if wakes { PAUSED } else { self.pause.saturating_sub(1) };
                self.pause = if queues.is_untouched { left } else { 0 };
            }
            steps.extend(wakes.then_some(Step::WakeRunner(id)));
        }
        steps
    }

    /// Returns whether tasks wait for one more worker, by the table, because all workers that may take them
    /// are stuck. If they have computed for long, or this lasts for long, also allows one more worker as
    /// extra.
    fn decide_on_worker(&mut self, seen: &Snapshot, workforce: &mut Workforce) -> bool {
        if !seen.has_surplus || !workforce.are_all_stuck() {
            self.short_of_hands = None;
            return false;
        }
        let lasted = seen.now - *self.short_of_hands.get_or_insert(seen.now);
        let is_short = workforce.is_short();
        // Processor time alone is not enough: a task that naps again and again, or a thread without a core,
        // uses little of it. So ten times as much wall-clock time counts as long, too.
        let is_lost = !is_short && (workforce.is_long(workforce.takers()) || lasted / 10 >= workforce.long());
        if is_lost {
            self.scarce_since = Some(seen.now);
            workforce.add_extra();
        }
        // Perhaps a guest leads, and leaves the tasks that it wakes to the workers. A spare worker takes
        // leadership from the guest.
        let is_spare_wanted = seen.is_needed && workforce.do_all_compute() && !workforce.has_spare();
        is_short || is_lost && workforce.able() < workforce.takers() || is_spare_wanted
    }

    /// Returns the replacements to release. Besides the usual number, `excused` more workers are needed. If
    /// there have been more than that for a second, because workers that blocked are back, one replacement
    /// goes each second, even if all workers find tasks; as many as there are beyond `max_threads`, if that
    /// is more; and all of them if the pool is quiet.
    fn let_go(&mut self, seen: &Snapshot, excused: usize) -> Vec<Id> {
        let crew = seen.crew.as_ref().filter(|crew| crew.live > crew.threads.saturating_add(excused));
        let Some(crew) = crew else {
            self.overstaffed = None;
            return Vec::new();
        };
        let since = *self.overstaffed.get_or_insert(seen.now);
        if seen.now - since < SURPLUS_STAYS {
            return Vec::new();
        }
        self.overstaffed = Some(seen.now);
        let is_free = |runner: &RunnerSeen| runner.doing != Some(Doing::Blocks);
        let goes = |runner: &&RunnerSeen| runner.is_crew && runner.is_replacement && is_free(runner);
        let mut surplus: Vec<_> = seen.runners.iter().filter(goes).map(|runner| runner.id).collect();
        surplus.sort_unstable();
        let beyond = crew.live.saturating_sub(crew.max_threads);
        surplus.truncate(if seen.is_quiet { usize::MAX } else { beyond.max(1) });
        surplus
    }
}

/// Counts the workers, and other threads that host a runner of the workers' executor, by what they do.
#[derive(Debug, Default)]
struct Workforce {
    /// Runners that are stuck in a task.
    stuck: usize,
    /// Processor time that each stuck runner that does not block has used in its present poll, longest first.
    computed: Vec<Duration>,
    /// A runner computes.
    computes: bool,
    /// Threads that compute, doze or wait for a core in a poll without a permit.
    unpermitted: usize,
    /// Permits that threads hold which block.
    lent: usize,
    /// Threads that block in a task, a waker or a park hook.
    blocked: usize,
    /// A worker is runnable but has no core. The worker will take the waiting tasks when it gets one; the
    /// other workers may be asleep on a lock that it holds (the allocator's, say). So no thread is added.
    waits: bool,
    /// Workers that take longer to start than they should.
    late: usize,
    /// All workers.
    live: usize,
    /// How many workers the crew has usually.
    usual: usize,
    /// How many more may take tasks, because all have computed for long.
    extra: usize,
    /// A worker needs a permit to take a task.
    is_scarce: bool,
    /// Workers that sleep in a nested `block_on`, perhaps for a task that only another worker can poll. At
    /// most [`MAX_NESTED`]; `max_threads` does not count them.
    exempt: usize,
    /// The crew may have one more worker.
    may_grow: bool,
}

impl Workforce {
    /// Counts the runners of the workers' executor in `seen`. All zero in a pool without workers.
    fn of(seen: &Snapshot) -> Self {
        let Some(crew) = &seen.crew else { return Self::default() };
        let mut workforce = Self {
            late: crew.late,
            live: crew.live,
            usual: crew.threads,
            is_scarce: crew.limit != usize::MAX,
            ..Self::default()
        };
        seen.runners.iter().filter(|runner| runner.is_crew).for_each(|runner| workforce.count(runner));
        workforce.exempt = workforce.exempt.min(MAX_NESTED);
        // A crew that was stopped has no `max_threads`, and may not grow.
        workforce.may_grow =
            crew.max_threads > 0 && crew.live < crew.max_threads.saturating_add(workforce.exempt);
        workforce.computed.sort_unstable_by(|a, b| b.cmp(a));
        workforce
    }

    /// Adds a runner of the workers' executor, by what its thread does. Adds none whose thread sleeps or made
    /// progress.
    fn count(&mut self, runner: &RunnerSeen) {
        let Some(doing) = runner.doing else { return };
        let (computes, blocks) = (doing == Doing::Computes, doing == Doing::Blocks);
        self.exempt += usize::from(runner.waits_nested);
        self.computes |= computes;
        self.blocked += usize::from(blocks);
        if runner.is_at_work {
            self.stuck += 1;
            self.waits |= doing == Doing::Waits;
            self.computed.extend((!blocks).then_some(runner.computed));
            self.unpermitted += usize::from(!blocks && !runner.holds_permit);
            self.lent += usize::from(blocks && runner.holds_permit);
        }
    }

    /// Returns how many workers may take tasks from the queues while permits are scarce.
    fn takers(&self) -> usize {
        self.usual + self.extra
    }

    /// Lets one more worker take tasks, if there is a spare one or one more may be started.
    fn add_extra(&mut self) {
        self.extra += usize::from(self.may_grow || self.has_spare());
    }

    /// Returns the processor time from which on a poll is long.
    fn long(&self) -> Duration {
        LONG_POLL * (1 << self.extra.min(16))
    }

    /// Returns whether at least `threads` threads have each computed for long in their present poll.
    fn is_long(&self, threads: usize) -> bool {
        let least = threads.checked_sub(1).and_then(|at| self.computed.get(at));
        least.is_some_and(|computed| *computed >= self.long())
    }

    /// Returns whether a thread computes, and as many as may take tasks compute, doze or wait for a core.
    fn do_all_compute(&self) -> bool {
        self.computes && self.computed.len() >= self.takers()
    }

    /// Returns how many threads run, or would run if they had a core and a task.
    fn able(&self) -> usize {
        self.live.saturating_sub(self.blocked + self.replaced_late())
    }

    /// Returns how many workers that are late to start are replaced. At most the usual number of workers:
    /// every thread calls the same hook at its start, and if that blocks, each replacement would need the
    /// next one.
    fn replaced_late(&self) -> usize {
        self.late.min(self.usual)
    }

    /// Returns whether too few threads are able to run, and no worker waits for a core.
    fn is_short(&self) -> bool {
        self.able() < self.takers() && !self.waits
    }

    /// Returns whether all workers that may take tasks are stuck. A worker that has just been started counts
    /// as free: only after some time does it count as late.
    fn are_all_stuck(&self) -> bool {
        let spare = if self.is_scarce { self.able().saturating_sub(self.takers()) } else { 0 };
        self.stuck + self.late + spare >= self.live
    }

    /// Returns how many threads are able to run or late to start: a late one may only be waiting for a core.
    fn expected(&self) -> usize {
        self.able() + self.late
    }

    /// Returns whether more workers are expected to run than may take tasks.
    fn has_spare(&self) -> bool {
        self.expected() > self.takers()
    }

    /// Returns how many workers there may be beyond the usual number: replacements for threads that block,
    /// extra ones, and the spare one, which is needed if a worker computes, or if the caller says so by
    /// `has_spare`.
    fn excused(&self, has_spare: bool) -> usize {
        self.blocked + self.replaced_late() + self.extra + usize::from(has_spare || self.computes)
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests;
