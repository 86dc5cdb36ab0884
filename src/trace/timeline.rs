//! [`Timeline`]: the events of all threads in the order of time, without loose ends. Both writers draw it.
//!
//! A trace is a window: it begins in the middle of polls and turns, and it ends there. The timeline closes
//! what is open, and leaves out what has no beginning, so that these rules hold:
//!
//! - Marks are in the order of time. The marks of one thread are in the order in which they happened.
//! - The first mark of each thread is its role.
//! - Each [`Action::PollBegins`] has its [`Action::PollEnds`], on the same thread. Polls may nest, as a task
//!   may call `block_on`.
//! - Each [`Action::Sleeps`] has its [`Action::Events`], before the next role of the thread. (But there may
//!   be [`Action::Events`] without a sleep.)

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::iter;
use std::time::{Duration, SystemTime};

use super::events::{Action, ThreadTrace, Trace, TraceEvent};
use crate::runtime::Role;

/// What the threads of a [`Trace`] did, in the order of time.
#[derive(Debug)]
pub(super) struct Timeline {
    pub(super) marks: Vec<Mark>,
    /// When the timeline ends: no mark is later.
    pub(super) end: Duration,
}

/// One event, with what follows from the events before it.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) at: Duration,
    /// The index of the thread in [`Trace::threads`].
    pub(super) thread: usize,
    pub(super) action: Action,
    /// The marks that have led to this one, by their index: the wakes of the task whose poll begins, or the
    /// promotions of the thread that begins to lead.
    pub(super) causes: Vec<usize>,
    /// Whether the thread is awake from now on: it processes, or it leads and does not sleep.
    pub(super) is_awake: bool,
    /// Counts of the runtime from now on.
    pub(super) counts: Counts,
}

/// What is counted over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Tasks that were woken or spawned, and not polled since.
    pub(super) ready: usize,
    /// Threads that are awake.
    pub(super) awake: usize,
    /// Threads that lead. More than one is a defect of the runtime.
    pub(super) leaders: usize,
}

impl Timeline {
    pub(super) fn new(trace: &Trace) -> Self {
        let mut builder = TimelineBuilder::new(trace);
        for (thread, event) in in_order(trace) {
            builder.add(thread, event.at, event.action);
        }
        (0..trace.threads.len()).for_each(|thread| builder.close(thread));
        Self { marks: builder.marks, end: trace.taken_at }
    }
}

/// Returns a time in nanoseconds, as both formats count it.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the time of day at which the trace begins.
pub(super) fn nanos_since_epoch(trace: &Trace) -> u64 {
    nanos(trace.started_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

/// Returns all events in the order of time, and those of each thread in their own order.
///
/// If leadership changes hands within one tick of the clock, the order is ambiguous. Then the thread that
/// stops to lead comes before the one that begins; and of several that begin, the one that stops first.
///
/// Leaves out what is later than the snapshot: a thread may have gone on while others were read already.
fn in_order(trace: &Trace) -> impl Iterator<Item = (usize, TraceEvent)> + '_ {
    let key = |thread: usize, index: usize| {
        let events = &trace.threads[thread].events;
        let event = events.get(index).filter(|event| event.at <= trace.taken_at)?;
        let stops_leading_at = (event.action == Action::Role(Role::Leads)).then(|| {
            let next = events[index + 1..].iter().find(|event| matches!(event.action, Action::Role(_)));
            next.map_or(Duration::MAX, |event| event.at)
        });
        Some(Reverse((event.at, stops_leading_at, thread, index)))
    };
    let mut heads: BinaryHeap<_> = (0..trace.threads.len()).filter_map(|thread| key(thread, 0)).collect();
    iter::from_fn(move || {
        let Reverse((.., thread, index)) = heads.pop()?;
        heads.extend(key(thread, index + 1));
        Some((thread, trace.threads[thread].events[index]))
    })
}

/// Returns the role that a thread has at its first event, if that event is not a role itself.
fn role_at_first(thread: &ThreadTrace) -> Role {
    // A thread without a role is not in the runtime yet, unless the event with its role was dropped.
    let unknown = if thread.dropped > 0 { Role::Processes } else { Role::Outside };
    let role = |event: &TraceEvent| match event.action {
        Action::Role(_) => Some(unknown),
        Action::Sleeps | Action::Events(_) => Some(Role::Leads),
        Action::PollBegins { .. } | Action::PollEnds => Some(Role::Processes),
        // The deputy is not one of the threads that take turns.
        Action::Stalls { .. } => Some(Role::Outside),
        _ => None,
    };
    thread.events.iter().find_map(role).unwrap_or(unknown)
}

/// The state of a thread, while the timeline is built.
#[derive(Debug, Default)]
struct ThreadNow {
    /// `None` before the first event.
    role: Option<Role>,
    sleeps: bool,
    /// Polls that have begun and not ended.
    polls: usize,
}

impl ThreadNow {
    fn leads(&self) -> bool {
        self.role == Some(Role::Leads)
    }

    fn is_awake(&self) -> bool {
        !self.sleeps && !matches!(self.role, None | Some(Role::Follows | Role::Outside))
    }
}

struct TimelineBuilder<'t> {
    trace: &'t Trace,
    marks: Vec<Mark>,
    members: Vec<ThreadNow>,
    counts: Counts,
    /// From here on, no event is missing. The poll for an earlier wake may have been dropped: that wake would
    /// be taken for the cause of a later poll.
    complete_from: Duration,
    /// The tasks that are ready, each with the marks of its wakes.
    ready: HashMap<u64, Vec<usize>>,
    /// The threads that were promoted and have not led since, each with the marks of its promotions.
    promoted: HashMap<usize, Vec<usize>>,
}

impl<'t> TimelineBuilder<'t> {
    fn new(trace: &'t Trace) -> Self {
        let lossy = trace.threads.iter().filter(|thread| thread.dropped > 0);
        let first_at = |thread: &ThreadTrace| thread.events.first().map(|event| event.at);
        Self {
            trace,
            marks: Vec::new(),
            members: trace.threads.iter().map(|_| ThreadNow::default()).collect(),
            counts: Counts::default(),
            complete_from: lossy.filter_map(first_at).max().unwrap_or_default(),
            ready: HashMap::new(),
            promoted: HashMap::new(),
        }
    }

    /// Adds an event, and before it what the rules of the [module](self) ask for. Leaves out an event that
    /// has no beginning or changes nothing.
    fn add(&mut self, thread: usize, at: Duration, action: Action) {
        let is_role = matches!(action, Action::Role(_));
        if self.members[thread].role.is_none() && !is_role {
            self.push(thread, at, Action::Role(role_at_first(&self.trace.threads[thread])));
        }
        let member = &self.members[thread];
        match action {
            Action::Role(role) if member.role == Some(role) => return,
            Action::PollEnds if member.polls == 0 => return,
            Action::Role(_) | Action::Sleeps if member.sleeps => self.push(thread, at, Action::Events(0)),
            _ => {}
        }
        self.push(thread, at, action);
    }

    /// Ends what the thread has begun and not ended. That changes no counts: the thread goes on.
    fn close(&mut self, thread: usize) {
        let (at, counts, member) = (self.trace.taken_at, self.counts, &self.members[thread]);
        let wait = member.sleeps.then_some(Action::Events(0));
        for action in wait.into_iter().chain(iter::repeat_n(Action::PollEnds, member.polls)) {
            let (causes, is_awake) = (Vec::new(), member.is_awake());
            self.marks.push(Mark { at, thread, action, causes, is_awake, counts });
        }
    }

    /// Adds a mark, and updates the state by it.
    fn push(&mut self, thread: usize, at: Duration, action: Action) {
        let causes = self.update_causes(thread, at, action);
        let member = &mut self.members[thread];
        let (was_awake, led) = (member.is_awake(), member.leads());
        match action {
            Action::Role(role) => member.role = Some(role),
            Action::Sleeps => member.sleeps = true,
            Action::Events(_) => member.sleeps = false,
            Action::PollBegins { .. } => member.polls += 1,
            Action::PollEnds => member.polls -= 1,
            _ => {}
        }
        let (is_awake, leads) = (member.is_awake(), member.leads());
        let counts = &mut self.counts;
        counts.awake = counts.awake + usize::from(is_awake) - usize::from(was_awake);
        counts.leaders = counts.leaders + usize::from(leads) - usize::from(led);
        counts.ready = self.ready.len();
        self.marks.push(Mark { at, thread, action, causes, is_awake, counts: self.counts });
    }

    /// Notes what this event may lead to. Returns the marks that have led to it.
    fn update_causes(&mut self, thread: usize, at: Duration, action: Action) -> Vec<usize> {
        let index = self.marks.len();
        let is_complete = at >= self.complete_from;
        match action {
            Action::Spawns { task, .. } if is_complete => _ = self.ready.entry(task).or_default(),
            Action::Wakes { task } if is_complete => self.ready.entry(task).or_default().push(index),
            Action::Promotes { thread: Some(other), .. } if is_complete => {
                self.promoted.entry(other).or_default().push(index);
            }
            Action::PollBegins { task, .. } => return self.ready.remove(&task).unwrap_or_default(),
            // A task that was cancelled ends without another poll.
            Action::Ends { task } => _ = self.ready.remove(&task),
            Action::Role(Role::Leads) => return self.promoted.remove(&thread).unwrap_or_default(),
            _ => {}
        }
        Vec::new()
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests;
