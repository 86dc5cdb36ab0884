//! The trace of a simulation, in a file in the format of [Perfetto](https://ui.perfetto.dev).
//!
//! Each node has a track with the polls of its tasks, what it noted, and its faults, and below it one for
//! each of its connections, with the packets. An arrow leads from each wake to the poll that it has caused.
//!
//! All that happens at one virtual time has no width. So the things that happen at one time are drawn one
//! after the other, in steps of at most [`DRAWN_STEP`], and in any case before what happens next.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::journal::{Incident, JournalEntry};
use super::net::{Fate, HostId, Kernel};
use super::simulation::Simulated;
use super::story::{packet_text, place_of};
use super::tasks::{SimTasks, TaskId};
use crate::trace::perfetto::{Message, field, number, value};

pub(super) const EXTENSION: &str = "pftrace";

/// The distance of two things that happen at one time, if there is room.
const DRAWN_STEP: u64 = 10_000;

/// Writes the trace of what has happened so far. Reports an error on standard error.
pub(super) fn write(simulation: &Simulated, path: &Path) {
    let seed = simulation.seed;
    let bytes = {
        let state = simulation.state();
        let entries = Vec::from_iter(&state.journal.entries);
        simulation.network.with_kernel(|kernel| encode(seed, &entries, &state.tasks, kernel))
    };
    if let Err(reason) = fs::write(path, bytes) {
        eprintln!("{}", error(path, &reason));
    }
}

/// Returns the message about a file that cannot be written.
pub(super) fn error(path: &Path, error: &io::Error) -> String {
    format!(
        "the trace of the simulation cannot be written to {}: {error}. Set PACELINE_TRACE to a file, or to a folder \
         that exists, where you may write",
        path.display()
    )
}

/// Returns the whole file.
fn encode(seed: u64, entries: &[&JournalEntry], tasks: &SimTasks, kernel: &Kernel) -> Vec<u8> {
    let mut file = TraceFile {
        packets: Message::new(),
        tasks,
        kernel,
        tracks: BTreeMap::new(),
        wakes: BTreeMap::new(),
        open: BTreeMap::new(),
    };
    let process = Message::new()
        .uint(field::PROCESS_PID, 1)
        .text(field::PROCESS_NAME, &format!("simulation with seed {seed}"));
    let about =
        Message::new().uint(field::DESCRIPTOR_UUID, PROCESS).message(field::DESCRIPTOR_PROCESS, process);
    file.packet(
        0,
        Message::new().message(
            field::TRACK_DESCRIPTOR,
            about.uint(field::DESCRIPTOR_CHILD_ORDERING, value::ORDERING_EXPLICIT),
        ),
        value::NAMES_CLEARED,
    );
    let mut end = 0;
    for (index, (entry, at)) in entries.iter().zip(drawn_at(entries)).enumerate() {
        file.draw(index as u64 + 1, entry, at);
        end = at;
    }
    for (host, polls) in std::mem::take(&mut file.open) {
        let track = file.track(Of::Node(host));
        (0..polls).for_each(|_| file.event(track, end, value::END, "", Message::new()));
    }
    file.packets.into_bytes()
}

/// Returns the times at which the entries are drawn, in nanoseconds.
fn drawn_at(entries: &[&JournalEntry]) -> Vec<u64> {
    let times: Vec<u64> = entries.iter().map(|entry| nanos(entry.at)).collect();
    let (mut drawn, mut from, mut last) = (Vec::new(), 0, 0);
    while from < times.len() {
        let here = times[from..].iter().take_while(|at| **at == times[from]).count();
        let room = times.get(from + here).map_or(u64::MAX, |next| next.saturating_sub(times[from]));
        let step = (room / (here as u64 + 1)).min(DRAWN_STEP);
        let steps = (0..here as u64).map(|index| times[from] + index * step);
        drawn.extend(steps.map(|at| {
            // Two things at one time keep their order only if their times differ.
            last = at.max(last + 1);
            last
        }));
        from += here;
    }
    drawn
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The number of the track of all nodes.
const PROCESS: u64 = 1;

/// What a track shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    Node(HostId),
    /// The packets between two sockets, as the node has seen them. The lower address is the first one.
    Connection(HostId, SocketAddr, SocketAddr),
}

struct TraceFile<'a> {
    packets: Message,
    tasks: &'a SimTasks,
    kernel: &'a Kernel,
    /// The numbers of the tracks that are described.
    tracks: BTreeMap<Of, u64>,
    /// The flows that lead to the next poll of a task.
    wakes: BTreeMap<TaskId, Vec<u64>>,
    /// How many polls are in progress on a node.
    open: BTreeMap<HostId, usize>,
}

impl TraceFile<'_> {
    /// Draws an entry. `flow` is the number of an arrow that may begin there.
    fn draw(&mut self, flow: u64, entry: &JournalEntry, at: u64) {
        let node = self.track(Of::Node(entry.host));
        match &entry.what {
            Incident::Noted(text) | Incident::File(text) | Incident::Fault(text) | Incident::Chosen(text) => {
                self.instant(node, at, text, Message::new())
            }
            Incident::Panicked(task) => self.instant(node, at, "panics", number("task", (*task).into())),
            Incident::Spawned(task) => self.instant(node, at, "spawns", number("task", (*task).into())),
            Incident::Ended(task) => self.instant(node, at, "ends", number("task", (*task).into())),
            Incident::Woken(task) => {
                self.wakes.entry(*task).or_default().push(flow);
                let begins = Message::new().fixed64(field::FLOWS, flow).with(number("task", (*task).into()));
                self.instant(node, at, "wakes", begins);
            }
            Incident::PollBegins(task) => {
                let causes = self.wakes.remove(task).unwrap_or_default();
                let flows = causes
                    .iter()
                    .fold(Message::new(), |all, flow| all.fixed64(field::TERMINATING_FLOWS, *flow));
                *self.open.entry(entry.host).or_default() += 1;
                let name = self.tasks.line(*task).map_or_else(|| "the test".into(), ToString::to_string);
                self.event(node, at, value::BEGIN, &name, flows.with(number("task", (*task).into())));
            }
            Incident::PollEnds => {
                if let Some(left) = self.open.get(&entry.host).and_then(|open| open.checked_sub(1)) {
                    self.open.insert(entry.host, left);
                    self.event(node, at, value::END, "", Message::new());
                }
            }
            Incident::Packet(packet) => {
                let (low, high) = (packet.from.min(packet.to), packet.from.max(packet.to));
                let track = self.track(Of::Connection(entry.host, low, high));
                let what = packet_text(packet.kind, packet.bytes);
                let fate = match packet.fate {
                    Fate::Sent => "",
                    Fate::Held => " (held)",
                    Fate::Delivered => " (arrives)",
                    Fate::Dropped => " (lost)",
                };
                self.instant(
                    track,
                    at,
                    &format!("{}: {what}{fate}", place_of(self.kernel, packet.to)),
                    Message::new(),
                );
            }
        }
    }

    /// Returns the number of a track. The first call describes it.
    fn track(&mut self, of: Of) -> u64 {
        if let Some(track) = self.tracks.get(&of) {
            return *track;
        }
        let (parent, name) = match of {
            Of::Node(host) => (PROCESS, self.kernel.name(host).to_owned()),
            Of::Connection(host, low, high) => {
                let parent = self.track(Of::Node(host));
                (parent, format!("{} and {}", place_of(self.kernel, low), place_of(self.kernel, high)))
            }
        };
        let track = PROCESS + 1 + self.tracks.len() as u64;
        self.tracks.insert(of, track);
        let about = Message::new()
            .uint(field::DESCRIPTOR_UUID, track)
            .text(field::DESCRIPTOR_NAME, &name)
            .uint(field::DESCRIPTOR_PARENT, parent)
            .uint(field::DESCRIPTOR_RANK, track);
        self.packet(0, Message::new().message(field::TRACK_DESCRIPTOR, about), value::NAMES_NEEDED);
        track
    }

    fn instant(&mut self, track: u64, at: u64, name: &str, details: Message) {
        self.event(track, at, value::INSTANT, name, details);
    }

    fn event(&mut self, track: u64, at: u64, kind: u64, name: &str, details: Message) {
        let event = Message::new().uint(field::EVENT_TYPE, kind).uint(field::TRACK_UUID, track);
        let event = if name.is_empty() { event } else { event.text(field::EVENT_NAME, name) };
        self.packet(at, Message::new().message(field::TRACK_EVENT, event.with(details)), value::NAMES_NEEDED);
    }

    fn packet(&mut self, at: u64, content: Message, flags: u64) {
        let packet = Message::new()
            .uint(field::TIMESTAMP, at)
            .uint(field::SEQUENCE, 1)
            .uint(field::SEQUENCE_FLAGS, flags);
        self.packets.push(field::PACKET, &packet.with(content));
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    /// Fails if what happens at one time has no width, or is drawn after what happens later.
    #[test]
    fn what_happens_at_one_time_is_drawn_in_steps_before_what_happens_next() {
        let drawn = |times: &[u64]| {
            let entry = |at: &u64| JournalEntry {
                at: Duration::from_nanos(*at),
                host: HostId::FIRST,
                what: Incident::PollEnds,
            };
            let entries: Vec<JournalEntry> = times.iter().map(entry).collect();
            drawn_at(&entries.iter().collect::<Vec<_>>())
        };
        assert_eq!(drawn(&[]), []);
        let far = 100 * DRAWN_STEP;
        assert_eq!(drawn(&[0, 0, 0, far]), [1, DRAWN_STEP, 2 * DRAWN_STEP, far]);
        assert_eq!(drawn(&[400, 400, 400, 800]), [400, 500, 600, 800]);
        // Without room they keep their order.
        assert_eq!(drawn(&[5, 5, 5, 6]), [5, 6, 7, 8]);
    }
}
