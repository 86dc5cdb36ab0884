//! The list of timed cases, and the result of one run.

use std::time::Duration;

use super::rivals::Rival;
use super::{accuracy, blocking, calls, channels, spawns, timers, wakes, yields};

/// A measured run: a duration for a number of operations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) elapsed: Duration,
    pub(super) operations: usize,
}

impl Sample {
    pub(super) fn nanos_per_operation(self) -> f64 {
        self.elapsed.as_nanos() as f64 / self.operations as f64
    }
}

/// The divisor of a case's full size: 1 in a full run, more in a quick one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) divisor: usize,
}

impl Scale {
    pub(super) fn of(self, full: usize) -> usize {
        (full / self.divisor).max(1)
    }
}

pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) operation: &'static str,
    pub(super) run: fn(Scale) -> Sample,
}

/// Returns the cases, which are the same for every rival, in the order of the table.
pub(super) fn cases<R: Rival>() -> Vec<Case> {
    let case = |name, operation, run| Case { name, operation, run };
    vec![
        case("spawn-await", "spawn and await, inside a task", spawns::one_by_one_in_task::<R>),
        case("spawn-await-main", "the same from main's block_on", spawns::one_by_one_in_main::<R>),
        case("spawn-many", "spawn 50 000 then await all, inside a task", spawns::many_in_task::<R>),
        case("spawn-many-main", "the same from main's block_on", spawns::many_in_main::<R>),
        case("spawn-outside", "remote spawn: from a plain thread, wait for all", spawns::from_outside::<R>),
        case("fan-out-100", "spawn 100 that report to the parent, per child", spawns::fan_out_100::<R>),
        case("fan-out-1000", "the same with 1 000", spawns::fan_out_1000::<R>),
        case("chain", "each of 50 000 tasks spawns the next", spawns::chain::<R>),
        case("yield", "one yield, 200 tasks yielding 1 000 times", yields::many_tasks::<R>),
        case("wake", "one task wakes another, which polls", wakes::in_task::<R>),
        case("wake-outside", "a plain thread and a task wake each other, per wake", wakes::from_outside::<R>),
        case("ping-pong", "round trip over two channels, inside a task", channels::one_in_task::<R>),
        case("ping-pong-main", "the same from main's block_on", channels::one_in_main::<R>),
        case("ping-pong-32", "round trip, 32 pairs at once", channels::thirty_two::<R>),
        case("ping-pong-two", "round trip between two runtimes of a process", channels::across::<R>),
        case("block-on", "block_on of a future that is ready, by a plain thread", calls::from_one::<R>),
        case("block-on-8", "the same by eight threads at once, per call", calls::from_eight::<R>),
        case("unblock", "an empty closure on a thread that may block", blocking::one_by_one_in_task::<R>),
        case("unblock-main", "the same from main's block_on", blocking::one_by_one_in_main::<R>),
        case("unblock-heap", "10 000 of them at once, then await all", blocking::heaps_in_task::<R>),
        case(
            "unblock-file",
            "64 KiB of a file of 1 GiB that is in memory, inside a task",
            blocking::file::<R>,
        ),
        case("timer-cancel", "arm a 10 s timer, poll once, drop", timers::arm_and_cancel::<R>),
        case("timer-held", "200 000 timers armed at once, then dropped", timers::held::<R>),
        case("timer-late", "how late a 1.3 ms sleep ends", accuracy::lateness::<R>),
        case("timer-fire", "CPU per fired timer, each in a task", accuracy::fire::<R>),
        case("timer-storm", "CPU per fired timer, 100 000 distinct ones in a second", accuracy::storm::<R>),
    ]
}
