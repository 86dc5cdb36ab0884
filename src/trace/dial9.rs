//! [`Trace::write_dial9`]: the format of dial9 0.5.7, which shows the workers of tokio.
//!
//! | here | in dial9 |
//! |---|---|
//! | a seat, see [`seats`] | a worker |
//! | the thread that has the seat | the `tid` of the worker. If it changes, dial9 shows a handoff |
//! | a thread falls asleep, as a follower or as the leader | the worker is parked |
//! | the time for which a thread was awake | its processor time |
//! | tasks that are ready | the depth of the global queue |
//! | the time from a wake to the poll | the scheduling delay |
//! | roles, promotions and stalls | events that are not dial9's own; it shows them as spans |
//!
//! A trace lacks the processor time. If it were zero, dial9 would report that the workers wait for cores.

mod encoder;
mod schemas;

use std::io;
use std::time::Duration;

use self::encoder::{Encoder, Values};
use self::schemas::EventKind;
use super::events::{Action, Trace};
use super::names;
use super::seats::{self, Move};
use super::timeline::{Mark, Timeline, nanos, nanos_since_epoch};
use crate::runtime::Role;

impl Trace {
    /// Writes the trace in the format of [dial9](https://docs.rs/dial9), the viewer and the scripts of which
    /// show tokio's workers. The format is that of version 0.5.7, and may change with dial9.
    ///
    /// A worker of dial9 is a thread of the runtime. If the deputy replaces a thread that blocks, the
    /// replacement continues as the same worker, and the viewer shows a handoff; the poll that blocks is
    /// shown on a worker of its own. Time for which a thread is awake counts as processor time.
    ///
    /// Roles, promotions and stalls are shown as spans. Some scripts do not expect them: `red_flag_scan.js`
    /// of version 0.5.7 fails. For such a script there is [`write_dial9_plain`](Self::write_dial9_plain).
    ///
    /// # Errors
    ///
    /// Returns the error of the writer.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn save(trace: paceline::trace::Trace) -> std::io::Result<()> {
    /// trace.write_dial9(std::fs::File::create("slow.bin")?)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn write_dial9(&self, mut writer: impl io::Write) -> io::Result<()> {
        writer.write_all(&encode(self, true))?;
        writer.flush()
    }

    /// Does the same as [`write_dial9`](Self::write_dial9), but leaves out roles, promotions and stalls. The
    /// file has only events that dial9 itself records.
    ///
    /// # Errors
    ///
    /// Returns the error of the writer.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn save(trace: paceline::trace::Trace) -> std::io::Result<()> {
    /// trace.write_dial9_plain(std::fs::File::create("slow.bin")?)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn write_dial9_plain(&self, mut writer: impl io::Write) -> io::Result<()> {
        writer.write_all(&encode(self, false))?;
        writer.flush()
    }
}

/// The name of the runtime, also in [`schemas::RUNTIME_WORKERS`].
const RUNTIME: &str = "main";
/// How often the depth of the queue is written, as dial9 does.
const SAMPLE: Duration = Duration::from_millis(10);

/// Returns the whole file. Without `extras`, there are only dial9's own events.
fn encode(trace: &Trace, extras: bool) -> Vec<u8> {
    let timeline = Timeline::new(trace);
    let moves = seats::assign(trace, &timeline);
    let mut file = Dial9File {
        timeline: &timeline,
        encoder: Encoder::new(schemas::all(extras)),
        extras,
        workers: trace.threads.iter().enumerate().map(|(at, thread)| Worker::new(at, thread.os_id)).collect(),
        next_sample: Duration::ZERO,
    };
    file.describe(trace, &moves);
    let mut moves = moves.into_iter().peekable();
    for (index, mark) in timeline.marks.iter().enumerate() {
        while let Some(change) = moves.next_if(|change| change.mark == index) {
            file.move_to(change.thread, change.seat, mark.at);
        }
        file.draw(mark);
        file.sample(mark);
    }
    (0..trace.threads.len()).for_each(|thread| file.end_role(thread, timeline.end));
    file.encoder.into_bytes()
}

/// A thread, as dial9 sees it.
#[derive(Debug)]
struct Worker {
    tid: u64,
    seat: Option<usize>,
    /// Since when the thread is awake, if it is.
    awake_since: Option<Duration>,
    /// For how long the thread was awake before that.
    awake: Duration,
    /// The tasks that the thread polls; the last one is inside of the one before it.
    polls: Vec<u64>,
    role: Role,
    /// Since when the thread has the role and its seat.
    role_since: Duration,
}

impl Worker {
    fn new(index: usize, os_id: u64) -> Self {
        // Threads without a number need different ones, by which dial9 sees that a worker has changed
        // threads.
        let tid = if os_id == 0 { index as u64 + 1 } else { os_id };
        let (awake, role_since) = (Duration::ZERO, Duration::ZERO);
        Self { tid, seat: None, awake_since: None, awake, polls: Vec::new(), role: Role::Outside, role_since }
    }

    /// Returns the number of the worker, if the thread has a seat.
    fn number(&self) -> Option<u64> {
        self.seat.map(worker_number)
    }
}

/// The number of a worker that is not known. The one below it stands for threads that may block.
const UNKNOWN_WORKER: u64 = 255;

/// Returns the number of a worker, which is that of the seat. Two numbers with a meaning are left out.
fn worker_number(seat: usize) -> u64 {
    let seat = seat as u64;
    if seat < UNKNOWN_WORKER - 1 { seat } else { seat + 2 }
}

/// A file, as far as it is written.
struct Dial9File<'t> {
    timeline: &'t Timeline,
    encoder: Encoder,
    extras: bool,
    workers: Vec<Worker>,
    /// When the depth of the queue is due.
    next_sample: Duration,
}

impl Dial9File<'_> {
    /// Writes what applies to the whole file.
    fn describe(&mut self, trace: &Trace, moves: &[Move]) {
        let seats = moves.iter().map(|change| change.seat + 1).max().unwrap_or(0);
        let workers: Vec<_> = (0..seats).map(|seat| worker_number(seat).to_string()).collect();
        let dropped: u64 = trace.threads.iter().map(|thread| thread.dropped).sum();
        let mut entries = vec![
            ("tokio.local_queue", "false".to_owned()),
            ("segment.complete", "true".to_owned()),
            ("paceline.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("paceline.written_for", "dial9 0.5.7".to_owned()),
            ("paceline.dropped_events", dropped.to_string()),
        ];
        if seats > 0 {
            entries.push((schemas::RUNTIME_WORKERS, workers.join(",")));
        }
        self.write(EventKind::Metadata, Duration::ZERO, Values::new().map(&entries));
        self.write(EventKind::ClockSync, Duration::ZERO, Values::new().varint(nanos_since_epoch(trace)));
    }

    /// Draws a mark of the timeline.
    fn draw(&mut self, mark: &Mark) {
        let Mark { at, thread, action, .. } = *mark;
        let worker = self.workers[thread].number();
        match action {
            Action::Role(role) => {
                self.end_role(thread, at);
                (self.workers[thread].role, self.workers[thread].role_since) = (role, at);
                if self.extras {
                    self.draw_promotions(mark);
                }
            }
            Action::PollBegins { task, .. } => {
                self.workers[thread].polls.push(task);
                self.draw_poll(mark);
            }
            Action::PollEnds => {
                self.workers[thread].polls.pop();
                if let Some(worker) = worker {
                    self.write(EventKind::PollEnd, at, Values::new().varint(worker));
                }
            }
            Action::Spawns { task, spawned_at } => {
                let place = self.encoder.name(spawned_at);
                let values = Values::new().varint(task).u32(place).byte(1).optional_varint(worker);
                self.write(EventKind::TaskSpawn, at, values);
            }
            Action::Wakes { task } => {
                let waker = self.workers[thread].polls.last().copied().unwrap_or(0);
                let worker = worker.unwrap_or(UNKNOWN_WORKER).min(UNKNOWN_WORKER) as u8;
                self.write(EventKind::Wake, at, Values::new().varint(waker).varint(task).byte(worker));
            }
            Action::Ends { task } => self.write(EventKind::TaskTerminate, at, Values::new().varint(task)),
            Action::Stalls { thread: Some(_), .. } if self.extras => self.draw_stall(mark),
            _ => {}
        }
        match (mark.is_awake, self.workers[thread].awake_since) {
            (true, None) => self.unpark(thread, at),
            (false, Some(_)) => self.park(thread, at),
            _ => {}
        }
        if action == Action::Role(Role::Outside) {
            self.workers[thread].seat = None;
        }
    }

    fn draw_poll(&mut self, mark: &Mark) {
        let Action::PollBegins { task, spawned_at, .. } = mark.action else { return };
        let Some(worker) = self.workers[mark.thread].number() else { return };
        let woken_at = mark.causes.first().map(|cause| self.timeline.marks[*cause].at);
        let delay = woken_at.map(|woken_at| nanos(mark.at.saturating_sub(woken_at)));
        let place = self.encoder.name(spawned_at);
        let values = Values::new().varint(worker).byte(0).varint(task).u32(place).optional_varint(delay);
        self.write(EventKind::PollStart, mark.at, values);
    }

    /// Draws for each promotion that has led to this mark how long the thread took to lead.
    fn draw_promotions(&mut self, mark: &Mark) {
        let worker = &self.workers[mark.thread];
        let (worker, tid) = (worker.number(), worker.tid);
        for cause in &mark.causes {
            let cause = &self.timeline.marks[*cause];
            let Action::Promotes { reason, .. } = cause.action else { continue };
            let reason = self.encoder.name(names::reason(reason));
            let from = self.workers[cause.thread].tid;
            let values =
                Values::new().varint(nanos(cause.at)).u32(reason).optional_varint(worker).varint(tid);
            self.write(EventKind::Promote, mark.at, values.varint(from));
        }
    }

    /// Draws a stall from its beginning to the moment at which it was found.
    fn draw_stall(&mut self, mark: &Mark) {
        let Action::Stalls { thread: Some(stalled), spawned_at, kind, lasted } = mark.action else { return };
        let (worker, tid) = (self.workers[stalled].number(), self.workers[stalled].tid);
        let (kind, call) = names::stall(kind);
        let (kind, place) = (self.encoder.name(kind), self.encoder.name(spawned_at));
        let values = Values::new()
            .varint(nanos(mark.at.saturating_sub(lasted)))
            .u32(kind)
            .optional_varint(worker)
            .varint(tid)
            .u32(place)
            .text(&call.map(|call| call.to_string()).unwrap_or_default());
        self.write(EventKind::Stall, mark.at, values);
    }

    /// Draws the role of a thread up to this time, if the thread has a seat.
    fn end_role(&mut self, thread: usize, at: Duration) {
        let Worker { role, role_since, tid, .. } = self.workers[thread];
        let is_shown = self.extras && role_since < at;
        if let Some(worker) = self.workers[thread].number().filter(|_| is_shown) {
            let role = self.encoder.name(names::role(role));
            let values = Values::new().varint(nanos(role_since)).u32(role).varint(worker).varint(tid);
            self.write(EventKind::Role, at, values);
        }
    }

    /// Gives another seat to a thread, before it does anything else at this time.
    fn move_to(&mut self, thread: usize, seat: usize, at: Duration) {
        let is_awake = self.workers[thread].awake_since.is_some();
        if is_awake {
            self.park(thread, at);
        }
        self.end_role(thread, at);
        self.workers[thread].seat = Some(seat);
        self.workers[thread].role_since = at;
        if is_awake {
            self.unpark(thread, at);
        }
    }

    fn park(&mut self, thread: usize, at: Duration) {
        let worker = &mut self.workers[thread];
        if let Some(since) = worker.awake_since.take() {
            worker.awake += at.saturating_sub(since);
        }
        let Some(number) = worker.number() else { return };
        let values = Values::new().varint(number).byte(0).varint(nanos(worker.awake)).varint(worker.tid);
        self.write(EventKind::Park, at, values);
    }

    fn unpark(&mut self, thread: usize, at: Duration) {
        let worker = &mut self.workers[thread];
        worker.awake_since = Some(at);
        let Some(number) = worker.number() else { return };
        let values = Values::new().varint(number).byte(0).varint(nanos(worker.awake)).optional_varint(None);
        let values = values.varint(worker.tid);
        self.write(EventKind::Unpark, at, values);
    }

    /// Writes the depth of the queue, if that is due.
    fn sample(&mut self, mark: &Mark) {
        if mark.at >= self.next_sample {
            self.next_sample = mark.at + SAMPLE;
            let depth = u32::try_from(mark.counts.ready).unwrap_or(u32::MAX);
            self.write(EventKind::RuntimeMetrics, mark.at, Values::new().text(RUNTIME).u32(depth));
        }
    }

    fn write(&mut self, kind: EventKind, at: Duration, values: Values) {
        self.encoder.event(kind as u16, nanos(at), values);
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests;
