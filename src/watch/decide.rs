//! [`decide`]: the deputy's rules. The result depends only on the [`Snapshot`] of this look and on the
//! [`Memory`] of earlier looks. `act.rs` carries it out.
//!
//! # Rules
//!
//! Leadership is *abandoned* if a source or timer is awaited, and since the last look leadership is vacant
//! and no thread has led or taken an event, or a share is stuck: events are left in it, and none was taken.
//! While leadership is vacant, the share of a thread that makes progress, or only lacks a core, is not
//! stuck: the threads that lead next look at it. The deputy then interrupts a leader that sleeps, which
//! steals; opens vacant leadership to any rank and wakes a follower. If no follower sleeps, the first row
//! that fits applies:
//!
//! | leadership is abandoned, and | the deputy |
//! |---|---|
//! | a runner makes progress | waits: its round ends with the poll that this look has met |
//! | the pool has no workers | starts a relief |
//! | too few takers are able to run | starts a taker; if that fails, a relief |
//! | workers wait for a core, none computes | waits: the first that gets a core leads |
//! | takers compute, a standby is free or starts | waits: the standby leads |
//! | takers compute, no standby is free | starts a standby, up to two; if that fails, a relief |
//!
//! In the last three rows the deputy also starts a relief if a worker starts, because its hook may block, or is
//! in a park or unpark hook that blocks. No relief is started while another one is starting.
//!
//! | tasks | the deputy |
//! |---|---|
//! | are in the slot or ring of a stuck runner | moves them to the injector |
//! | wait, none was taken since the last look, and a runner sleeps | wakes that runner |
//! | wait, and all takers are stuck: | |
//! | ... too few takers are able to run | starts a taker; at `max_threads` a free standby becomes one |
//! | ... and tasks in the injector were not touched | wakes a free standby, or starts one if all compute |
//! | wait, none was taken for long, and all takers are stuck | counts one more taker as *extra*, if the crew may have one more worker or a standby is free |
//!
//! | also | the deputy |
//! |---|---|
//! | a thread is in the same poll as at the last look | marks the task as slow; counts and reports a stall |
//! | there are too many workers for a second | releases a replacement; all of them in a quiet pool |
//! | polls take long | has a follower woken for each event (`decide/long_polls.rs`) |
//! | no source and no timer is registered | wakes the reliefs, which end |
//!
//! # How many threads there may be
//!
//! Let T be the number of workers that the runtime was built with. A worker is a *taker*, which takes tasks
//! from all queues, or a *standby*, which leads, and polls what its own events wake and quick tasks of the
//! injector; to takers it leaves the tasks that are known to compute, or are not known at all.
//!
//! - *Workers that block* do not count. If no thread leads, or if tasks wait and all takers are stuck, takers
//!   are added until T of them are *able*: they run, or would run if they had a core and a task.
//! - *Workers that wait for a core* are able. Another thread would only compete for the same core.
//! - *Workers in a hook that blocks* are able. A replacement would call the same hook, and be replaced as well.
//! - *Workers that compute* are able, too. But while all T takers compute no thread would lead, so a standby
//!   does. A task that was quick so far may occupy it with a long poll; then a second standby leads.
//! - *Workers that compute, or are in a hook, for long* keep others waiting. If all T are stuck, and for a tenth
//!   of a second no task was taken from a queue in which some wait, or leadership was abandoned, there may be
//!   one *extra* taker, and one more standby. Each extra one doubles the time that counts as long: the number
//!   of threads grows with the logarithm of that time, and not with the number of long tasks. If the takers
//!   have not all computed for a second, one extra taker is given up.
//!
//! # How long events wait
//!
//! | leadership is vacant because | until a thread leads |
//! |---|---|
//! | its leader polls a task that blocks, or computes for the first time | two looks, the start of a thread |
//! | ... and a standby sleeps or is awake | two looks; none if the task is known to be slow |
//! | a waker, or a task that was quick, occupies the standby too | two more looks, the start of a thread |
//! | ... and the second standby too | until one of the polls ends, or this was so for long |
//!
//! # A worked table
//!
//! Two workers in six scenes, while tasks and events wait. *Live* are all workers, *able* those that do not
//! block, *takers* and *standbys* the able ones of each kind.
//!
//! | scene | live | able | takers | standbys | decided |
//! |---|---|---|---|---|---|
//! | one blocks, one sleeps | 2 | 1 | 1 | 0 | wake the other; if it is gone, a taker |
//! | both block | 2 | 0 | 0 | 0 | a taker |
//! | both compute | 2 | 2 | 2 | 0 | a standby |
//! | both compute beside a standby that sleeps | 3 | 3 | 2 | 1 | wake the standby |
//! | both compute, and the standby too | 3 | 3 | 2 | 1 | a second standby |
//! | one blocks and one computes beside a standby | 3 | 2 | 1 | 1 | a taker: the standby, at `max_threads` |
//!
//! `the_worked_table` in `decide/tests.rs` has the same rows.

mod long_polls;

use std::time::Duration;

use super::observe::{Id, MemberSeen, Snapshot};
use crate::blocking_threads::LINGER;
use crate::executor::{Caught, Waiting};
use crate::probe::Doing;
use crate::sync::Instant;

/// How long tasks or events may wait for stuck threads before one more thread may serve them.
const LONG: Duration = Duration::from_millis(100);
/// How long a task may sleep beside a worker that has no core before the task is reported. Until then the
/// task may be waiting for a lock that this worker holds.
const INNOCENT: Duration = Duration::from_millis(100);
/// How long a surplus worker, or the right to an extra one, stays when it is not needed.
const SURPLUS_STAYS: Duration = LINGER;
/// How long the relief beside workers that compute may be busy, or without a core, before another one leads.
const BUSY_BEFORE_RELIEF: Duration = Duration::from_millis(10);
/// The most standbys that do not block, beside one for each extra taker. Each may be occupied by a task that
/// was quick before; with a bound, many such tasks at once do not take a thread each.
const STANDBYS: usize = 2;
/// The most reliefs. There are several only if wakers block them.
const MAX_RELIEFS: usize = 256;

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
    /// Since when all takers are stuck beside tasks, of which none was taken, or events.
    waiting: Option<Instant>,
    /// The start of the current second in which standbys stay: set when all takers compute, when events or
    /// tasks have waited for long, and when an extra taker is given up. `None` after a second without any of
    /// these.
    busy_since: Option<Instant>,
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
    /// Interrupts a leader that sleeps, so that it steals; opens vacant leadership to any rank and wakes a
    /// follower. Fails if leadership is vacant and no follower sleeps.
    Rescue,
    /// Starts a worker that takes tasks. Fails if there are as many workers as there may be, or the system
    /// has no thread.
    AddTaker,
    /// Starts a worker that leads, and polls quick tasks only. Fails in the same cases.
    AddStandby,
    /// Wakes a standby, to look at the injector.
    WakeStandby(Id),
    /// Makes a standby a taker.
    EndStandby(Id),
    /// Starts a thread that only leads.
    AddRelief,
    /// Moves the tasks of stuck runners to the injector.
    HandOver(Id),
    /// Wakes a runner that sleeps, even if another one was woken before.
    WakeRunner(Id),
}

/// The result of one look.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Actions {
    /// Alternatives for events that wait: the first that succeeds is the last one tried.
    pub(super) lead: Vec<Step>,
    /// Steps for tasks in queues, and for reliefs that are not needed. All of them are taken.
    pub(super) queues: Vec<Step>,
    /// Tasks to be marked as slow.
    pub(super) marks: Vec<(Id, Caught)>,
    /// Stays that may have to be reported.
    pub(super) stalls: Vec<Id>,
    /// Runners on replacement threads that are to end.
    pub(super) released: Vec<Id>,
    /// Whether polls are long, so that waking a follower pays for each event. `None` leaves the last answer.
    pub(super) has_long_polls: Option<bool>,
}

impl Actions {
    /// Calls `act` for each step that is due; `act` returns whether the step succeeded. Each look starts at
    /// most one worker.
    pub(super) fn perform(&self, mut act: impl FnMut(&Step) -> bool) {
        let done = self.lead.iter().find(|step| act(step));
        let has_started = done.is_some_and(Step::starts_worker);
        let due = self.queues.iter().filter(|step| !(has_started && step.starts_worker()));
        due.for_each(|step| _ = act(step));
    }
}

impl Step {
    fn starts_worker(&self) -> bool {
        matches!(self, Self::AddTaker | Self::AddStandby)
    }
}

/// Returns what to do about `seen`, by the table of rules, and updates the memory. In a quiet pool, only
/// surplus workers, reliefs and the length of polls are looked at.
pub(super) fn decide(seen: &Snapshot, memory: &mut Memory) -> Actions {
    let mut actions = Actions::default();
    actions.queues.extend((!seen.is_needed).then_some(Step::DismissReliefs));
    let mut workforce = Workforce::of(seen);
    memory.update_extra(seen, &mut workforce);
    if seen.is_quiet {
        memory.forget();
    } else {
        memory.look_at_stays(seen, &mut actions);
        (memory.starves, memory.blocked) = (workforce.waits, workforce.blocked);
        actions.lead = memory.find_leader(seen, &workforce);
        actions.queues.extend(move_tasks(seen));
        actions.queues.extend(memory.find_taker(seen, &workforce));
    }
    let keeps_standby = !seen.is_quiet && memory.have_all_computed(seen.now);
    actions.released = memory.let_go(seen, &workforce, keeps_standby);
    actions.has_long_polls = long_polls::judge(seen, &mut memory.unknown);
    actions
}

/// Returns the steps for tasks in queues that no thread takes: tasks of stuck runners are handed over, and
/// for tasks that none was taken of since the last look a runner is woken.
fn move_tasks(seen: &Snapshot) -> Vec<Step> {
    let mut steps = Vec::new();
    for (id, queues) in seen.queues.iter().enumerate() {
        steps.extend(queues.has_stuck.then_some(Step::HandOver(id)));
        steps.extend((queues.is_untouched() && queues.is_any_idle).then_some(Step::WakeRunner(id)));
    }
    steps
}

impl Memory {
    /// Forgets everything that is out of date after the deputy has slept or rested.
    pub(super) fn forget(&mut self) {
        (self.blocked, self.starves, self.blind, self.waiting) = (0, false, None, None);
    }

    /// Returns whether no later look is needed, in a pool that is quiet.
    pub(super) fn may_sleep(&self) -> bool {
        self.overstaffed.is_none() && self.busy_since.is_none()
    }

    /// Counts a leader that is about to run a task that is known to block, while no follower can lead.
    /// Returns whether to start a worker now: the next look would start one, but later.
    pub(super) fn count_blocked(&mut self, live: usize, threads: usize) -> bool {
        self.blocked += 1;
        live < threads + self.blocked
    }

    /// Has tasks marked as slow that block, or have computed for a tick in one poll, and lists the threads in
    /// known code for reports of stalls. A thread that has blocked for less than [`INNOCENT`] is not listed if a
    /// worker had no core at the last look.
    fn look_at_stays(&self, seen: &Snapshot, actions: &mut Actions) {
        for (id, member) in seen.members.iter().enumerate() {
            let Some(doing) = member.doing else { continue };
            let caught = match doing {
                Doing::Blocks => Some(Caught::Blocking),
                Doing::Computes if member.computed >= seen.tick => Some(Caught::Computing),
                Doing::Computes | Doing::Waits | Doing::Dozes => None,
            };
            actions.marks.extend(caught.filter(|_| member.is_task).map(|caught| (id, caught)));
            // A thread that sleeps while a worker waits for a core may wait for a lock that the worker holds.
            let is_innocent = doing == Doing::Blocks && self.starves && member.blocked < INNOCENT;
            actions.stalls.extend((!is_innocent).then_some(id));
        }
    }

    /// Returns whether, within the last second, all takers computed, events or tasks waited for long, or an
    /// extra taker was given up.
    fn have_all_computed(&self, now: Instant) -> bool {
        self.busy_since.is_some_and(|last| now - last < SURPLUS_STAYS)
    }

    /// Sets in `workforce` how many extra takers are allowed: one more when tasks or events have waited for
    /// stuck threads for long, one fewer after each second in which the takers did not all compute.
    fn update_extra(&mut self, seen: &Snapshot, workforce: &mut Workforce) {
        workforce.extra = self.extra;
        if workforce.do_all_compute() {
            self.busy_since = Some(seen.now);
        } else if !self.have_all_computed(seen.now) {
            self.busy_since = (self.extra > 0).then_some(seen.now);
            workforce.extra = self.extra.saturating_sub(1);
        }
        let waits = workforce.live > 0 && (seen.tasks.is_untouched() || seen.is_abandoned);
        if !waits || !workforce.are_all_stuck() {
            self.waiting = None;
        } else if seen.now - *self.waiting.get_or_insert(seen.now) >= LONG * (1 << self.extra.min(16)) {
            (self.waiting, self.busy_since) = (Some(seen.now), Some(seen.now));
            workforce.extra += usize::from(workforce.may_grow || workforce.is_standby_free());
        }
        self.extra = workforce.extra;
    }

    /// Returns the alternatives for events that wait, if leadership is abandoned: a rescue first, and then
    /// what the table says.
    fn find_leader(&mut self, seen: &Snapshot, workforce: &Workforce) -> Vec<Step> {
        if !seen.is_abandoned {
            self.blind = None;
            return Vec::new();
        }
        let blind = seen.now - *self.blind.get_or_insert(seen.now);
        let moves = seen.members.iter().any(|member| member.has_moved);
        // If no more workers are allowed, or one starts, a relief leads. A single relief is enough as long as
        // leadership has not been abandoned for `BUSY_BEFORE_RELIEF`.
        let is_led = seen.reliefs > 0 && blind < BUSY_BEFORE_RELIEF;
        let (step, wants_relief) = if moves {
            (None, false)
        } else if seen.crew.is_none() {
            (None, true)
        } else if workforce.is_short() {
            (Some(Step::AddTaker), true)
        } else if !workforce.computes {
            // Workers that wait for a core: the first that gets one leads. But the hook of a worker that
            // starts may block, and a worker in a hook leads only after it.
            (None, !is_led && workforce.starting + workforce.hooked > 0)
        } else {
            self.busy_since = Some(seen.now);
            let step = workforce.needs_standby().then_some(Step::AddStandby);
            let is_wanted = step.is_some() || workforce.starting + workforce.hooked > 0;
            (step, !is_led && is_wanted)
        };
        let mut plan = vec![Step::Rescue];
        plan.extend(step);
        // A relief that is starting calls no hook, so it leads as soon as it has a core. No other one is
        // needed.
        if wants_relief && seen.starting_reliefs == 0 && seen.reliefs < MAX_RELIEFS {
            if plan.len() == 1 || !workforce.may_grow {
                // Counts from zero, so that the relief has time to start.
                self.blind = Some(seen.now);
            }
            plan.push(Step::AddRelief);
        }
        plan
    }

    /// Returns how tasks that wait get one more thread, by the table, if all takers are stuck.
    fn find_taker(&self, seen: &Snapshot, workforce: &Workforce) -> Option<Step> {
        // A worker that starts counts as free; one that is in a park hook, as stuck.
        if !seen.tasks.has_tasks() || !workforce.are_all_stuck() {
            return None;
        }
        if workforce.is_short() {
            return Some(match workforce.standby {
                Some((true, id)) if !workforce.may_grow => Step::EndStandby(id),
                _ => Step::AddTaker,
            });
        }
        if seen.tasks.injected != Waiting::Untouched {
            return None;
        }
        match workforce.standby {
            Some((true, id)) => Some(Step::WakeStandby(id)),
            _ => (workforce.do_all_compute() && workforce.needs_standby()).then_some(Step::AddStandby),
        }
    }

    /// Returns the replacements to release. If there have been more workers than are needed for a second,
    /// because workers that blocked are back, one replacement goes each second, even if all workers find
    /// tasks, and all of them if the pool is quiet. Standbys go last.
    fn let_go(&mut self, seen: &Snapshot, workforce: &Workforce, keeps_standby: bool) -> Vec<Id> {
        if workforce.live <= workforce.usual + workforce.excused(keeps_standby) {
            self.overstaffed = None;
            return Vec::new();
        }
        let since = *self.overstaffed.get_or_insert(seen.now);
        if seen.now - since < SURPLUS_STAYS {
            return Vec::new();
        }
        self.overstaffed = Some(seen.now);
        let goes = |id: &Id| {
            let member = &seen.members[*id];
            member.is_crew && member.is_replacement && !member.blocks()
        };
        let (standbys, mut surplus): (Vec<Id>, Vec<Id>) =
            (0..seen.members.len()).filter(goes).partition(|id| seen.members[*id].is_standby);
        surplus.truncate(workforce.takers().saturating_sub(workforce.wanted()));
        surplus.extend(standbys);
        surplus.truncate(if seen.is_quiet { usize::MAX } else { 1 });
        surplus
    }
}

/// Counts the workers, and other threads that host a runner of the workers' executor, by what they do.
#[derive(Debug, Default)]
struct Workforce {
    /// Threads that take no task from a queue at the moment: they are stuck in a task or a hook, or standbys.
    stuck: usize,
    /// Takers that are stuck in a task or a hook, and do not count as blocked.
    busy: usize,
    /// A runner computes.
    computes: bool,
    /// Threads that block in a task or a waker.
    blocked: usize,
    /// Standbys that do not block; and one of them, if there is any: a free one, if one is free.
    standbys: usize,
    standby: Option<(bool, Id)>,
    /// A worker is runnable but has no core. The worker will take the waiting tasks when it gets one; the
    /// other workers may be asleep on a lock that it holds (the allocator's, say). So no thread is added before
    /// work has waited for long.
    waits: bool,
    /// Workers that start.
    starting: usize,
    /// Workers that are in a park or unpark hook that blocks.
    hooked: usize,
    /// All workers.
    live: usize,
    /// How many workers the crew has usually.
    usual: usize,
    /// How many more may take tasks, because all have computed for long.
    extra: usize,
    /// The crew may have one more worker.
    may_grow: bool,
}

impl Workforce {
    /// Counts the threads in `seen` that run the workers' executor. All zero in a pool without workers.
    fn of(seen: &Snapshot) -> Self {
        let Some(crew) = &seen.crew else { return Self::default() };
        let members = seen.members.iter().enumerate().filter(|(_, member)| member.is_crew);
        let starting = crew.live.saturating_sub(members.clone().count());
        let mut workforce = Self { live: crew.live, usual: crew.threads, starting, ..Self::default() };
        members.for_each(|(id, member)| workforce.count(id, member));
        workforce.may_grow = crew.live < crew.max_threads;
        workforce
    }

    /// Adds a thread that runs the workers' executor, by its kind and by what it does.
    fn count(&mut self, id: Id, member: &MemberSeen) {
        let doing = member.effect();
        let (computes, blocks) = (doing == Some(Doing::Computes), member.blocks());
        self.computes |= computes;
        self.hooked += usize::from(member.is_hooked());
        self.blocked += usize::from(blocks);
        let is_stuck = member.is_at_work && doing.is_some();
        self.waits |= is_stuck && doing == Some(Doing::Waits);
        self.stuck += usize::from(is_stuck || member.is_standby);
        if !member.is_standby {
            self.busy += usize::from(is_stuck && !blocks);
        } else if !blocks {
            self.standbys += 1;
            self.standby = self.standby.max(Some((!computes && !member.is_hooked(), id)));
        }
    }

    /// Returns how many takers that do not block there should be.
    fn wanted(&self) -> usize {
        self.usual + self.extra
    }

    /// Returns whether no worker will take a task from a queue before its poll ends.
    fn are_all_stuck(&self) -> bool {
        self.stuck >= self.live
    }

    /// Returns whether a thread computes, and as many takers as there should be compute, doze or wait for a
    /// core.
    fn do_all_compute(&self) -> bool {
        self.computes && self.busy >= self.wanted()
    }

    /// Returns how many workers take tasks, and run, or would run if they had a core and a task. A worker
    /// that has just been started counts.
    fn takers(&self) -> usize {
        self.live.saturating_sub(self.blocked + self.standbys)
    }

    /// Returns whether too few takers are able to run. A worker that waits for a core makes up for those that
    /// are missing, unless work has waited for long.
    fn is_short(&self) -> bool {
        self.takers() < self.wanted() && (self.extra > 0 || !self.waits)
    }

    /// Returns whether one more standby is needed: none is free or starts, and there are not too many.
    fn needs_standby(&self) -> bool {
        !self.is_standby_free() && self.starting == 0 && self.standbys < STANDBYS + self.extra
    }

    fn is_standby_free(&self) -> bool {
        self.standby.is_some_and(|(is_free, _)| is_free)
    }

    /// Returns how many workers there may be beyond the usual number: replacements for threads that block,
    /// extra takers, and a standby, which is needed if a worker computes, or if the caller says so by
    /// `keeps_standby`.
    fn excused(&self, keeps_standby: bool) -> usize {
        self.blocked + self.extra + usize::from(keeps_standby || self.computes)
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests;
