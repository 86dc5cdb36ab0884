//! [`SimEvents`]: what happens in a simulation, as a hash and, for [`check`](super::check), as a list that a
//! second run is compared with.
//!
//! The hash depends on virtual times, on tasks counted from the start of the simulation, on what happens to
//! them, and on the line and column of each spawn. It does not depend on addresses, on names of files, or on
//! what else the process does.

// Not `HashMap`: each new one changes the keys of the program's next one, and only some runs would make one
// here.
use std::collections::BTreeMap;
use std::fmt::Write;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::rng::Rng;
use super::tasks::TaskId;

/// What happens to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimEventKind {
    Spawned,
    /// The task was woken, by the task that was polled then.
    Woken,
    Polled,
    /// The task has ended; without a task, the test: the last event of a run.
    Ended,
    /// The task noted a text.
    Noted,
    /// A file was changed while the task was polled.
    File,
    /// Something happened to a packet of the network, while the task was polled.
    Packet,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SimEvent {
    /// Nanoseconds since the start of the simulation.
    pub(super) at: u64,
    pub(super) task: TaskId,
    pub(super) kind: SimEventKind,
    /// The line and column of a spawn; the task that wakes; the hash of a text or of a packet.
    pub(super) detail: u64,
}

/// All that happened in a run.
#[derive(Debug, Default)]
pub(super) struct FirstRun {
    pub(super) events: Vec<SimEvent>,
    /// The spawn lines of its tasks.
    pub(super) lines: Vec<&'static Location<'static>>,
    /// The texts that were noted, by their hashes.
    texts: BTreeMap<u64, String>,
}

/// What becomes of the events beside their hash.
#[derive(Debug)]
enum Use {
    None,
    Record(FirstRun),
    /// The events are compared with those of the first run, of which so many were equal.
    Compare(Arc<FirstRun>, usize, BTreeMap<u64, String>),
}

/// The events of a run.
#[derive(Debug)]
pub(super) struct SimEvents {
    hash: u64,
    number: u64,
    /// The time of the last event.
    last: u64,
    used: Use,
}

/// What a check does with the events of its two runs.
#[derive(Clone, Debug, Default)]
pub(super) enum CheckRun {
    /// There is no check.
    #[default]
    No,
    First,
    Second(Arc<FirstRun>),
}

/// The place of the first difference between two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Difference(usize, SimEvent);

impl SimEvents {
    pub(super) fn new(run: CheckRun) -> Self {
        let used = match run {
            CheckRun::No => Use::None,
            CheckRun::First => Use::Record(FirstRun::default()),
            CheckRun::Second(first) => Use::Compare(first, 0, BTreeMap::new()),
        };
        Self { hash: 0, number: 0, last: 0, used }
    }

    /// Adds an event. Returns the difference if the first run did something else instead.
    #[inline]
    pub(super) fn add(&mut self, event: SimEvent) -> Result<(), Difference> {
        let SimEvent { at, task, kind, detail } = event;
        for word in [at, u64::from(task) << 8 | kind as u64, detail] {
            self.hash = (self.hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.hash ^= self.hash >> 32;
        }
        self.number += 1;
        self.last = at;
        match &mut self.used {
            Use::None => {}
            Use::Record(recording) => recording.events.push(event),
            Use::Compare(first, equal, _) => {
                if first.events.get(*equal) != Some(&event) {
                    return Err(Difference(*equal, event));
                }
                *equal += 1;
            }
        }
        Ok(())
    }

    /// Keeps a text that has this hash, if it may be part of a difference.
    pub(super) fn keep_text(&mut self, hash: u64, text: String) {
        if let Use::Record(FirstRun { texts, .. }) | Use::Compare(_, _, texts) = &mut self.used {
            texts.entry(hash).or_insert(text);
        }
    }

    /// Returns the hash of a text. Keeps the text if it may be part of a difference.
    pub(super) fn hash_text(&mut self, text: &str) -> u64 {
        let mix = |hash: u64, byte: u8| Rng::new(hash ^ u64::from(byte)).next_u64();
        let hash = text.bytes().fold(text.len() as u64, mix);
        match &mut self.used {
            Use::None => {}
            Use::Record(FirstRun { texts, .. }) | Use::Compare(_, _, texts) => {
                texts.entry(hash).or_insert_with(|| text.into());
            }
        }
        hash
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the time of the last event.
    pub(super) fn last(&self) -> Duration {
        Duration::from_nanos(self.last)
    }

    /// Returns the recording, if this is the first run of a check, with the `lines` of its tasks.
    pub(super) fn take_recording(&mut self, lines: &[&'static Location<'static>]) -> Option<FirstRun> {
        match std::mem::replace(&mut self.used, Use::None) {
            Use::Record(recording) => Some(FirstRun { lines: lines.to_vec(), ..recording }),
            _ => None,
        }
    }

    /// Describes a difference. `lines` are those of the second run.
    pub(super) fn describe(
        &self,
        Difference(at, second): Difference,
        lines: &[&'static Location<'static>],
    ) -> String {
        let Use::Compare(first, _, texts) = &self.used else { return String::new() };
        let first_event = first.events.get(at);
        let mut text = format!("event {} is the first that differs between the two runs", at + 1);
        let of_first = first_event.map(|event| event.describe(&first.lines, &first.texts));
        for (run, event) in [("first", of_first), ("second", Some(second.describe(lines, texts)))] {
            let event = event.unwrap_or_else(|| "the test is over".into());
            let _ = write!(text, "\n{run:>8} run: {event}");
        }
        text
    }
}

impl SimEvent {
    fn describe(&self, lines: &[&'static Location<'static>], texts: &BTreeMap<u64, String>) -> String {
        let Self { at, task, kind, detail } = *self;
        let at = Duration::from_nanos(at);
        let task = name(task, lines);
        match kind {
            SimEventKind::Spawned => format!("at {at:?}, {task} is spawned"),
            SimEventKind::Woken if detail == 0 => format!("at {at:?}, {task} is woken, by no task"),
            SimEventKind::Woken => format!("at {at:?}, {task} is woken by {}", name(detail as TaskId, lines)),
            SimEventKind::Polled => format!("at {at:?}, {task} is polled"),
            SimEventKind::Ended => format!("at {at:?}, {task} ends"),
            SimEventKind::Packet => {
                let text = texts.get(&detail).map_or("something happens to a packet", |text| text);
                format!("at {at:?}, while {task} is polled, {text}")
            }
            SimEventKind::File => {
                let text = texts.get(&detail).map_or("changes a file", |text| text);
                format!("at {at:?}, while {task} is polled: {text}")
            }
            SimEventKind::Noted => {
                let text = texts.get(&detail).map_or("", |text| text);
                format!("at {at:?}, {task} notes {text:?}")
            }
        }
    }
}

/// Names a task, and the line that spawned it.
pub(super) fn name(task: TaskId, lines: &[&'static Location<'static>]) -> String {
    match (task as usize).checked_sub(1).and_then(|at| lines.get(at)) {
        Some(line) => format!("task {task}, spawned at {line},"),
        None => "the test".into(),
    }
}

/// Returns the line and column of a spawn, as the detail of its event.
pub(super) fn place(at: &Location<'_>) -> u64 {
    u64::from(at.line()) << 32 | u64::from(at.column())
}
