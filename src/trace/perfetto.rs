//! [`Trace::write_perfetto`]: the format of Perfetto, which is a sequence of packets in protobuf's encoding.
//!
//! Each thread has a track for its roles, and below it one for the tasks that it polls. The process has a
//! track for each counter.
//!
//! Each thread is a packet sequence, and what belongs to no thread is another one. A sequence has its own
//! numbers for names, because a reader forgets the names of a sequence that lacks packets.
//!
//! Wakes and promotions are events without a duration. The index of such a mark in the timeline is the number
//! of the flow that begins there, which Perfetto draws as an arrow. A flow that has no end is not drawn.

#[cfg_attr(not(feature = "sim"), allow(dead_code, reason = "for the traces of simulations, too"))]
pub(crate) mod field;
mod protobuf;
pub(crate) mod value;

use std::time::Duration;
use std::{env, io, process};

pub(crate) use self::protobuf::Message;
use super::events::{Action, Trace};
use super::names::{self, Label, Labels};
use super::timeline::{Counts, Mark, Timeline, nanos, nanos_since_epoch};

impl Trace {
    /// Writes the trace in the format of [Perfetto](https://ui.perfetto.dev), which shows it in a browser.
    ///
    /// Each thread has two tracks:
    ///
    /// - Its roles: `leads`, `follows`, `processes` or `outside`. While the leader sleeps, a slice `waits for
    ///   events` is inside of `leads`. Promotions, timers and stalls are marked on this track.
    /// - The tasks that it polls. The name of a slice is the place where the task was spawned. Its arguments
    ///   are the number of the task, and whether the thread found it in its `direct` slot, in a `queue`, or
    ///   has `stolen` it from another thread. Spawns, wakes and ends of tasks are marked on this track.
    ///
    /// Arrows lead from each wake of a task to its next poll, and from each promotion of a thread to the
    /// moment at which that thread leads. An arrow is missing if one of its ends was dropped. Counters show
    /// the tasks that are ready, the threads that are awake, and the threads that lead, which is never more
    /// than one.
    ///
    /// # Errors
    ///
    /// Returns the error of the writer.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn save(trace: paceline::trace::Trace) -> std::io::Result<()> {
    /// trace.write_perfetto(std::fs::File::create("slow.pftrace")?)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn write_perfetto(&self, mut writer: impl io::Write) -> io::Result<()> {
        writer.write_all(&encode(self))?;
        writer.flush()
    }
}

/// Returns the whole file.
fn encode(trace: &Trace) -> Vec<u8> {
    let timeline = Timeline::new(trace);
    let mut file = PerfettoFile::new(trace);
    for (index, mark) in timeline.marks.iter().enumerate() {
        file.draw(index, mark);
        file.count(mark.at, mark.counts);
    }
    for thread in 0..trace.threads.len() {
        file.end_role(thread, timeline.end);
    }
    file.packets.into_bytes()
}

/// A track, which Perfetto knows by a number.
#[derive(Clone, Copy, Debug)]
enum Track {
    Process,
    Counter(usize),
    /// The roles of the thread with this index.
    Roles(usize),
    /// The tasks that the thread with this index polls.
    Tasks(usize),
}

impl Track {
    fn number(self) -> u64 {
        let number = match self {
            Track::Process => 1,
            Track::Counter(index) => 2 + index,
            Track::Roles(thread) => 2 + COUNTERS.len() + 2 * thread,
            Track::Tasks(thread) => 3 + COUNTERS.len() + 2 * thread,
        };
        number as u64
    }

    /// Returns the index of the packet sequence to which the events of the track belong.
    fn sequence(self) -> usize {
        match self {
            Track::Process | Track::Counter(_) => 0,
            Track::Roles(thread) | Track::Tasks(thread) => thread + 1,
        }
    }
}

type CounterValue = fn(Counts) -> usize;

/// The counters: the name of each, and what it counts.
const COUNTERS: [(&str, CounterValue); 3] = [
    ("leaders", |counts| counts.leaders),
    ("threads awake", |counts| counts.awake),
    ("ready tasks", |counts| counts.ready),
];

/// A file, as far as it is written.
struct PerfettoFile<'t> {
    trace: &'t Trace,
    packets: Message,
    /// The names in each sequence; `None` before its first packet.
    sequences: Vec<Option<Labels>>,
    threads: Vec<Drawn>,
    /// The values of the counters that were written last.
    counted: [Option<usize>; COUNTERS.len()],
}

/// What is open on the track with the roles of a thread.
#[derive(Clone, Debug, Default)]
struct Drawn {
    is_in_role: bool,
    waits: bool,
}

impl<'t> PerfettoFile<'t> {
    /// Begins a file: describes the clocks, the process, the counters and the threads.
    fn new(trace: &'t Trace) -> Self {
        let mut file = PerfettoFile {
            trace,
            packets: Message::new(),
            sequences: (0..=trace.threads.len()).map(|_| None).collect(),
            threads: vec![Drawn::default(); trace.threads.len()],
            counted: [None; COUNTERS.len()],
        };
        file.relate_clocks();
        file.describe_process();
        (0..trace.threads.len()).for_each(|thread| file.describe_thread(thread));
        file
    }

    /// Tells at which time of day the trace begins.
    fn relate_clocks(&mut self) {
        let clock = |id, time| Message::new().uint(field::CLOCK_ID, id).uint(field::CLOCK_TIME, time);
        let snapshot = Message::new()
            .message(field::CLOCKS, clock(value::CLOCK_BOOTTIME, 0))
            .message(field::CLOCKS, clock(value::CLOCK_REALTIME, nanos_since_epoch(self.trace)));
        self.packet(Track::Process, Duration::ZERO, Message::new().message(field::CLOCK_SNAPSHOT, snapshot));
    }

    fn describe_process(&mut self) {
        let program = env::current_exe().unwrap_or_default();
        let name = program.file_name().unwrap_or("paceline".as_ref()).to_string_lossy();
        let process =
            Message::new().uint(field::PROCESS_PID, process::id().into()).text(field::PROCESS_NAME, &name);
        let about = Message::new()
            .message(field::DESCRIPTOR_PROCESS, process)
            .uint(field::DESCRIPTOR_CHILD_ORDERING, value::ORDERING_EXPLICIT);
        self.describe(Track::Process, Duration::ZERO, about, Message::new());
        for (index, (name, _)) in COUNTERS.iter().enumerate() {
            let counter = Message::new().uint(field::COUNTER_UNIT, value::UNIT_COUNT);
            let about = Message::new()
                .text(field::DESCRIPTOR_NAME, name)
                .uint(field::DESCRIPTOR_PARENT, Track::Process.number())
                .message(field::DESCRIPTOR_COUNTER, counter)
                .uint(field::DESCRIPTOR_RANK, index as u64);
            self.describe(Track::Counter(index), Duration::ZERO, about, Message::new());
        }
    }

    /// Describes both tracks of a thread. The first packet tells whether older ones were dropped.
    fn describe_thread(&mut self, thread: usize) {
        let about = &self.trace.threads[thread];
        let (name, dropped) = (about.name.as_deref(), about.dropped);
        let at = about.events.first().map_or(Duration::ZERO, |event| event.at);
        // Threads with the same number would share a track. Zero is the number of an unknown one.
        let tid = if about.os_id == 0 { thread as u64 + 1 } else { about.os_id };
        let descriptor = Message::new()
            .uint(field::THREAD_PID, process::id().into())
            .uint(field::THREAD_TID, tid)
            .text(field::THREAD_NAME, name.unwrap_or("thread without a name"));
        let roles = Message::new()
            .uint(field::DESCRIPTOR_PARENT, Track::Process.number())
            .message(field::DESCRIPTOR_THREAD, descriptor)
            .uint(field::DESCRIPTOR_RANK, (COUNTERS.len() + thread) as u64);
        let loss = Message::new().uint(field::PREVIOUS_PACKET_DROPPED, u64::from(dropped > 0));
        self.describe(Track::Roles(thread), at, roles, loss);
        let tasks = Message::new()
            .uint(field::DESCRIPTOR_PARENT, Track::Roles(thread).number())
            .text(field::DESCRIPTOR_NAME, "tasks");
        self.describe(Track::Tasks(thread), at, tasks, Message::new());
        if dropped > 0 {
            self.instant(Track::Roles(thread), at, "older events were dropped", number("events", dropped));
        }
    }

    /// Draws a mark of the timeline, which has this index.
    fn draw(&mut self, index: usize, mark: &Mark) {
        let Mark { at, thread, action, ref causes, .. } = *mark;
        let (roles, tasks) = (Track::Roles(thread), Track::Tasks(thread));
        // Zero is not the number of a flow.
        let add_flow =
            |flows: Message, index: &usize| flows.fixed64(field::TERMINATING_FLOWS, *index as u64 + 1);
        let leads_here = causes.iter().fold(Message::new(), add_flow);
        let starts_here = Message::new().fixed64(field::FLOWS, index as u64 + 1);
        match action {
            Action::Role(role) => {
                self.end_role(thread, at);
                self.threads[thread].is_in_role = true;
                self.begin(roles, at, names::role(role), leads_here);
            }
            Action::Sleeps => {
                self.threads[thread].waits = true;
                self.begin(roles, at, "waits for events", Message::new());
            }
            Action::Events(count) => {
                let count = number("events", count.into());
                match std::mem::take(&mut self.threads[thread].waits) {
                    true => self.event(roles, at, value::END, None, count),
                    false => self.instant(roles, at, "takes events", count),
                }
            }
            Action::Promotes { thread, reason } => {
                let details =
                    starts_here.with(self.thread_of(thread)).with(text("reason", names::reason(reason)));
                self.instant(roles, at, "promotes", details);
            }
            Action::Steals { thread, events } => {
                let details = self.thread_of(thread).with(number("events", events.into()));
                self.instant(roles, at, "steals", details);
            }
            Action::Spawns { task, spawned_at } => {
                let details = number("task", task).with(text("at", &spawned_at.to_string()));
                self.instant(tasks, at, "spawns", details);
            }
            Action::Wakes { task } => {
                self.instant(tasks, at, "wakes", starts_here.with(number("task", task)))
            }
            Action::PollBegins { task, spawned_at, from } => {
                let details = number("task", task).with(text("from", names::found_in(from)));
                self.begin(tasks, at, spawned_at, leads_here.with(details));
            }
            Action::PollEnds => self.event(tasks, at, value::END, None, Message::new()),
            Action::Ends { task } => self.instant(tasks, at, "ends", number("task", task)),
            Action::TimerFires => self.instant(roles, at, "timer fires", Message::new()),
            Action::Stalls { thread: stalled, spawned_at, kind, lasted } => {
                let (kind, call) = names::stall(kind);
                let details = text("task", &spawned_at.to_string())
                    .with(text("kind", kind))
                    .with(call.map_or_else(Message::new, |call| text("system call", &call.to_string())))
                    .with(number("lasted_ns", nanos(lasted)));
                self.instant(Track::Roles(stalled.unwrap_or(thread)), at, "stalls", details);
            }
        }
    }

    /// Writes the counters that have changed.
    fn count(&mut self, at: Duration, counts: Counts) {
        for (index, (_, count)) in COUNTERS.iter().enumerate() {
            let count = count(counts);
            if self.counted[index].replace(count) != Some(count) {
                let count = Message::new().uint(field::COUNTER_VALUE, count as u64);
                self.event(Track::Counter(index), at, value::COUNTER, None, count);
            }
        }
    }

    fn end_role(&mut self, thread: usize, at: Duration) {
        if std::mem::take(&mut self.threads[thread].is_in_role) {
            self.event(Track::Roles(thread), at, value::END, None, Message::new());
        }
    }

    fn begin(&mut self, track: Track, at: Duration, name: impl Into<Label>, details: Message) {
        self.event(track, at, value::BEGIN, Some(name.into()), details);
    }

    /// Returns the note of another thread, by its name.
    fn thread_of(&self, thread: Option<usize>) -> Message {
        let name = thread.and_then(|thread| self.trace.threads[thread].name.as_deref());
        text("thread", name.unwrap_or("unknown"))
    }

    fn instant(&mut self, track: Track, at: Duration, name: &'static str, details: Message) {
        self.event(track, at, value::INSTANT, Some(name.into()), details);
    }

    /// Writes an event. The packet also defines the name, if that is new in its sequence.
    fn event(&mut self, track: Track, at: Duration, kind: u64, name: Option<Label>, details: Message) {
        let (mut event, mut packet) = (Message::new().uint(field::EVENT_TYPE, kind), Message::new());
        event = event.uint(field::TRACK_UUID, track.number());
        if let Some(name) = name {
            let names = self.sequences[track.sequence()].get_or_insert_default();
            let number = names.number(name, |number| {
                let entry = Message::new()
                    .uint(field::INTERNED_NUMBER, number.into())
                    .text(field::INTERNED_NAME, &name.to_string());
                let names = Message::new().message(field::EVENT_NAMES, entry);
                packet = Message::new().message(field::INTERNED_DATA, names);
            });
            event = event.uint(field::NAME_NUMBER, number.into());
        }
        self.packet(track, at, packet.message(field::TRACK_EVENT, event.with(details)));
    }

    /// Writes the description of a track, and `others` beside it in the same packet.
    fn describe(&mut self, track: Track, at: Duration, about: Message, others: Message) {
        let about = Message::new().uint(field::DESCRIPTOR_UUID, track.number()).with(about);
        self.packet(track, at, others.message(field::TRACK_DESCRIPTOR, about));
    }

    /// Writes a packet with this content.
    fn packet(&mut self, track: Track, at: Duration, content: Message) {
        let names = &mut self.sequences[track.sequence()];
        let flags = if names.is_none() { value::NAMES_CLEARED } else { value::NAMES_NEEDED };
        names.get_or_insert_default();
        let packet = Message::new()
            .uint(field::TIMESTAMP, nanos(at))
            .uint(field::SEQUENCE, track.sequence() as u64 + 1)
            .uint(field::SEQUENCE_FLAGS, flags)
            .with(content);
        self.packets.push(field::PACKET, &packet);
    }
}

/// Returns an argument of an event.
pub(crate) fn number(name: &str, value: u64) -> Message {
    let argument = Message::new().text(field::ANNOTATION_NAME, name).uint(field::ANNOTATION_UINT, value);
    Message::new().message(field::ANNOTATION, argument)
}

/// Returns an argument of an event.
fn text(name: &str, value: &str) -> Message {
    let argument = Message::new().text(field::ANNOTATION_NAME, name).text(field::ANNOTATION_TEXT, value);
    Message::new().message(field::ANNOTATION, argument)
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests;
