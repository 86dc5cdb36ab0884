//! [`Sketch`]: traces made by hand, for the tests of the writers.

use std::panic::Location;
use std::time::{Duration, SystemTime};

use super::events::{Action, ThreadTrace, Trace, TraceEvent};
use super::{FoundIn, Reason};
use crate::insight::StallKind;
use crate::runtime::Role;

/// A trace in the making. Times are in microseconds.
#[derive(Debug)]
pub(super) struct Sketch {
    pub(super) trace: Trace,
}

impl Sketch {
    /// Begins a trace with threads of these names. The numbers of the threads are 100, 101, ...
    pub(super) fn new(names: &[&str]) -> Self {
        let thread = |(name, os_id): (&&str, u64)| ThreadTrace {
            name: Some((*name).to_owned()),
            thread_id: std::thread::current().id(),
            os_id,
            events: Vec::new(),
            dropped: 0,
        };
        let threads = names.iter().zip(100..).map(thread).collect();
        let started_at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
        Self { trace: Trace { threads, started_at, taken_at: Duration::ZERO } }
    }

    /// Adds an event, which is no earlier than the one before it on that thread. The trace is taken at the
    /// time of the last event.
    pub(super) fn event(&mut self, thread: usize, micros: u64, action: Action) -> &mut Self {
        let at = Duration::from_micros(micros);
        self.trace.threads[thread].events.push(TraceEvent { at, action });
        self.trace.taken_at = self.trace.taken_at.max(at);
        self
    }

    pub(super) fn role(&mut self, thread: usize, micros: u64, role: Role) -> &mut Self {
        self.event(thread, micros, Action::Role(role))
    }

    pub(super) fn promote(&mut self, thread: usize, micros: u64, other: usize) -> &mut Self {
        self.event(thread, micros, Action::Promotes { thread: Some(other), reason: Reason::Work })
    }

    pub(super) fn spawn(&mut self, thread: usize, micros: u64, task: u64) -> &mut Self {
        self.event(thread, micros, Action::Spawns { task, spawned_at: place(task) })
    }

    pub(super) fn wake(&mut self, thread: usize, micros: u64, task: u64) -> &mut Self {
        self.event(thread, micros, Action::Wakes { task })
    }

    pub(super) fn poll(&mut self, thread: usize, micros: u64, task: u64) -> &mut Self {
        self.event(thread, micros, Action::PollBegins { task, spawned_at: place(task), from: FoundIn::Queue })
    }

    pub(super) fn poll_ends(&mut self, thread: usize, micros: u64) -> &mut Self {
        self.event(thread, micros, Action::PollEnds)
    }

    /// Adds the report of a stall that began `lasted` microseconds ago.
    pub(super) fn stall(&mut self, deputy: usize, micros: u64, stalled: usize, lasted: u64) -> &mut Self {
        let lasted = Duration::from_micros(lasted);
        let kind = StallKind::Blocked(None);
        self.event(
            deputy,
            micros,
            Action::Stalls { thread: Some(stalled), spawned_at: place(0), kind, lasted },
        )
    }
}

/// Returns the place at which a task was spawned: there are two, one for odd numbers and one for even ones.
pub(super) fn place(task: u64) -> &'static Location<'static> {
    #[track_caller]
    fn here() -> &'static Location<'static> {
        Location::caller()
    }
    [here(), here()][task as usize % 2]
}

/// Returns a trace of two workers, which take turns in polling five tasks. The third turn blocks for 60 ms in
/// a task. The deputy reports that after 10 ms, and a replacement takes over.
pub(super) fn with_block() -> Trace {
    let mut sketch = Sketch::new(&["main", "worker-1", "worker-2", "replacement", "deputy"]);
    sketch.role(0, 0, Role::Processes);
    for task in 1..=5 {
        sketch.spawn(0, task, task).wake(0, task, task);
    }
    sketch.role(0, 6, Role::Follows);
    sketch.role(1, 0, Role::Follows).role(2, 0, Role::Follows);
    let (mut now, mut blocked) = (10, None);
    let leads = |turn: u64| match (turn, turn % 2) {
        (0..=2, _) | (3.., 1) => 1 + (turn % 2) as usize,
        _ => 3,
    };
    for turn in 0..400_u64 {
        let (leader, next, task) = (leads(turn), leads(turn + 1), 1 + turn % 5);
        sketch.role(leader, now, Role::Leads).event(leader, now + 1, Action::Sleeps);
        sketch.event(leader, now + 200, Action::Events(1)).role(leader, now + 201, Role::Processes);
        if turn != 2 {
            sketch.promote(leader, now + 202, next);
        }
        sketch.wake(leader, now + 203, task).poll(leader, now + 205, task);
        now += 210;
        if turn == 2 {
            blocked = Some(leader);
            sketch.stall(4, now + 10_000, leader, 10_000);
            now += 10_100;
        } else {
            sketch.poll_ends(leader, now).role(leader, now + 2, Role::Follows);
            now += 2;
        }
        if let Some(thread) = blocked.take_if(|_| now > 61_000) {
            sketch.poll_ends(thread, now).role(thread, now + 1, Role::Follows);
        }
        now += 5;
    }
    for task in 1..=5 {
        sketch.event(2, now + task, Action::Ends { task });
    }
    sketch.trace
}

/// Returns a trace with random events, as no runtime makes it. The same number makes the same trace.
pub(super) fn at_random(mut seed: u64) -> Trace {
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut sketch = Sketch::new(&["a", "b", "c", "d"]);
    let mut now = 0;
    for _ in 0..200 {
        now += random(3);
        let (thread, task, other) = (random(4) as usize, 1 + random(6), random(4) as usize);
        let roles = [Role::Leads, Role::Follows, Role::Processes, Role::Outside];
        match random(10) {
            0..=2 => sketch.role(thread, now, roles[random(4) as usize]),
            3 => sketch.event(thread, now, Action::Sleeps),
            4 => sketch.event(thread, now, Action::Events(random(3) as u32)),
            5 => sketch.poll(thread, now, task),
            6 => sketch.poll_ends(thread, now),
            7 => sketch.wake(thread, now, task),
            8 => sketch.promote(thread, now, other),
            _ => sketch.stall(thread, now, other, random(now + 1)),
        };
    }
    sketch.trace.threads[3].dropped = random(2);
    sketch.trace
}
