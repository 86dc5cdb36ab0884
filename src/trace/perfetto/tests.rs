use std::collections::HashMap;

use super::*;
use crate::insight::StallKind;
use crate::probe::Syscall;
use crate::runtime::Role;
use crate::trace::sketch::{self, Sketch};

/// The value of a field.
#[derive(Clone, Debug)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message, decoded.
#[derive(Clone, Debug, Default)]
struct Fields(Vec<(u64, Value)>);

impl Fields {
    fn decode(mut bytes: &[u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let value = match key & 7 {
                VARINT => Value::Number(varint(&mut bytes)),
                FIXED64 => Value::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
                BYTES => {
                    let len = varint(&mut bytes) as usize;
                    Value::Bytes(take(&mut bytes, len).to_vec())
                }
                other => panic!("unknown encoding {other}"),
            };
            fields.push((key >> 3, value));
        }
        Self(fields)
    }

    fn all(&self, field: u64) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |(number, _)| *number == field).map(|(_, value)| value)
    }

    fn numbers(&self, field: u64) -> Vec<u64> {
        let number = |value: &Value| match value {
            Value::Number(number) => *number,
            Value::Bytes(bytes) => panic!("no number: {bytes:?}"),
        };
        self.all(field).map(number).collect()
    }

    fn number(&self, field: u64) -> Option<u64> {
        self.numbers(field).first().copied()
    }

    fn messages(&self, field: u64) -> Vec<Fields> {
        let message = |value: &Value| match value {
            Value::Bytes(bytes) => Fields::decode(bytes),
            Value::Number(number) => panic!("no message: {number}"),
        };
        self.all(field).map(message).collect()
    }

    fn text(&self, field: u64) -> Option<String> {
        self.all(field).next().map(|value| match value {
            Value::Bytes(bytes) => String::from_utf8(bytes.clone()).unwrap(),
            Value::Number(number) => panic!("no text: {number}"),
        })
    }
}

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

fn take<'b>(bytes: &mut &'b [u8], len: usize) -> &'b [u8] {
    let (taken, left) = bytes.split_at(len);
    *bytes = left;
    taken
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let byte = take(bytes, 1)[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

/// An event of a track, as Perfetto reads it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Drawn {
    at: u64,
    kind: u64,
    name: String,
    flows: Vec<u64>,
    ends_flows: Vec<u64>,
    arguments: Vec<(String, String)>,
    count: Option<u64>,
}

/// A file, decoded: the events of each track, and the other packets.
#[derive(Debug, Default)]
struct Decoded {
    tracks: HashMap<u64, Vec<Drawn>>,
    packets: Vec<Fields>,
}

impl Decoded {
    fn new(trace: &Trace) -> Self {
        let mut file = Vec::new();
        trace.write_perfetto(&mut file).unwrap();
        let mut decoded = Self::default();
        let mut names: HashMap<(u64, u64), String> = HashMap::new();
        for packet in Fields::decode(&file).messages(1) {
            let (at, sequence) = (packet.number(8).unwrap(), packet.number(10).unwrap());
            if packet.number(13) == Some(1) {
                assert!(!names.keys().any(|(of, _)| *of == sequence));
            }
            for entry in packet.messages(12).iter().flat_map(|data| data.messages(2)) {
                let former = names.insert((sequence, entry.number(1).unwrap()), entry.text(2).unwrap());
                assert_eq!(former, None, "a name is written once");
            }
            for event in packet.messages(11) {
                let argument = |argument: Fields| {
                    let value = argument.number(3).map(|number| number.to_string());
                    (argument.text(10).unwrap(), value.or(argument.text(6)).unwrap())
                };
                let name = event.number(10).map(|number| names[&(sequence, number)].clone());
                decoded.tracks.entry(event.number(11).unwrap()).or_default().push(Drawn {
                    at,
                    kind: event.number(9).unwrap(),
                    name: name.unwrap_or_default(),
                    flows: event.numbers(47),
                    ends_flows: event.numbers(48),
                    arguments: event.messages(4).into_iter().map(argument).collect(),
                    count: event.number(30),
                });
            }
            decoded.packets.push(packet);
        }
        decoded
    }

    fn track(&self, track: Track) -> &[Drawn] {
        self.tracks.get(&track.number()).map_or(&[], |events| events)
    }

    /// Returns each slice of a track as begin, end and name, in the order of their ends.
    fn slices(&self, track: Track) -> Vec<(u64, u64, &str)> {
        let (mut open, mut slices) = (Vec::new(), Vec::new());
        for event in self.track(track) {
            match event.kind {
                1 => open.push(event),
                2 => {
                    let begin = open.pop().expect("a slice ends that has not begun");
                    slices.push((begin.at, event.at, &*begin.name));
                }
                _ => {}
            }
        }
        assert!(open.is_empty(), "{open:?}");
        slices
    }
}

fn arguments(arguments: &[(&str, &str)]) -> Vec<(String, String)> {
    arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn roles_are_contiguous_and_the_sleep_of_the_leader_is_inside_of_its_role() {
    let mut sketch = Sketch::new(&["a", "b"]);
    sketch.role(0, 1, Role::Leads).event(0, 2, Action::Sleeps).event(0, 5, Action::Events(3));
    sketch.role(0, 6, Role::Processes).event(0, 7, Action::TimerFires).role(0, 8, Role::Outside);
    sketch.role(1, 9, Role::Follows);
    let decoded = Decoded::new(&sketch.trace);
    let roles = Track::Roles(0);
    let slices = [
        (2_000, 5_000, "waits for events"),
        (1_000, 6_000, "leads"),
        (6_000, 8_000, "processes"),
        (8_000, 9_000, "outside"),
    ];
    assert_eq!(decoded.slices(roles), slices);
    let wait = decoded.track(roles).iter().find(|event| event.kind == 2).unwrap();
    assert_eq!(wait.arguments, arguments(&[("events", "3")]));
    let timer = decoded.track(roles).iter().find(|event| event.kind == 3).unwrap();
    assert_eq!((timer.at, &*timer.name), (7_000, "timer fires"));
}

#[test]
fn a_poll_is_a_slice_with_arrows_from_all_its_wakes() {
    let mut sketch = Sketch::new(&["a", "b"]);
    sketch.role(0, 0, Role::Processes).spawn(0, 1, 7).wake(0, 2, 7).wake(0, 3, 7).wake(0, 4, 8);
    sketch.role(1, 0, Role::Processes).poll(1, 10, 7).poll(1, 11, 5).poll_ends(1, 12).poll_ends(1, 13);
    let decoded = Decoded::new(&sketch.trace);
    let name = sketch::place(7).to_string();
    assert!(name.contains("sketch.rs:"));
    assert_eq!(decoded.slices(Track::Tasks(1)), [(11_000, 12_000, &*name), (10_000, 13_000, &*name)]);
    let poll = &decoded.track(Track::Tasks(1))[0];
    assert_eq!(poll.arguments, arguments(&[("task", "7"), ("from", "queue")]));
    let [spawn, first, second, unheard] = decoded.track(Track::Tasks(0)) else { panic!() };
    assert_eq!((&*spawn.name, &spawn.arguments[0].1), ("spawns", &"7".to_owned()));
    assert_eq!((&*first.name, &first.arguments), ("wakes", &arguments(&[("task", "7")])));
    assert_eq!(poll.ends_flows, [first.flows[0], second.flows[0]]);
    assert!(!poll.ends_flows.contains(&unheard.flows[0]));
}

#[test]
fn an_arrow_leads_from_a_promotion_to_the_new_leader() {
    let mut sketch = Sketch::new(&["a", "b"]);
    sketch.role(0, 0, Role::Leads).role(0, 1, Role::Processes).promote(0, 2, 1);
    sketch.role(1, 0, Role::Follows).role(1, 5, Role::Leads);
    let decoded = Decoded::new(&sketch.trace);
    let promotion = decoded.track(Track::Roles(0)).iter().find(|event| event.kind == 3).unwrap();
    assert_eq!(promotion.arguments, arguments(&[("thread", "b"), ("reason", "work waits")]));
    let leads = decoded.track(Track::Roles(1)).iter().find(|event| event.name == "leads").unwrap();
    assert_eq!((promotion.flows.len(), &leads.ends_flows), (1, &promotion.flows));
}

#[test]
fn a_stall_is_on_the_track_of_the_stalled_thread() {
    let mut sketch = Sketch::new(&["stalled", "deputy"]);
    sketch.role(0, 0, Role::Processes);
    let kind = StallKind::Blocked(Some(Syscall::new(9_999)));
    let (spawned_at, lasted) = (sketch::place(1), Duration::from_millis(10));
    sketch.event(1, 10_000, Action::Stalls { thread: Some(0), spawned_at, kind, lasted });
    let decoded = Decoded::new(&sketch.trace);
    let stall = decoded.track(Track::Roles(0)).iter().find(|event| event.kind == 3).unwrap();
    let place = spawned_at.to_string();
    let details = [
        ("task", &*place),
        ("kind", "blocks"),
        ("system call", "system call 9999"),
        ("lasted_ns", "10000000"),
    ];
    assert_eq!((&*stall.name, &stall.arguments), ("stalls", &arguments(&details)));
}

#[test]
fn counters_follow_the_counts() {
    let mut sketch = Sketch::new(&["a", "b"]);
    sketch.role(0, 1, Role::Leads).role(0, 2, Role::Processes).wake(0, 3, 7).role(1, 4, Role::Leads);
    let decoded = Decoded::new(&sketch.trace);
    let counted = |index| {
        let events = decoded.track(Track::Counter(index)).iter();
        events.map(|event| (event.at / 1_000, event.count.unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(counted(0), [(1, 1), (2, 0), (4, 1)]);
    assert_eq!(counted(1), [(1, 1), (4, 2)]);
    assert_eq!(counted(2), [(1, 0), (3, 1)]);
}

#[test]
fn a_thread_with_dropped_events_says_so_in_the_first_packet_of_its_sequence() {
    let mut sketch = Sketch::new(&["a", "b"]);
    sketch.role(0, 1, Role::Leads).role(1, 2, Role::Follows);
    sketch.trace.threads[1].dropped = 40;
    let decoded = Decoded::new(&sketch.trace);
    let lossy = decoded.packets.iter().filter(|packet| packet.number(42).is_some_and(|lost| lost > 0));
    let lossy: Vec<_> = lossy.map(|packet| (packet.number(10), packet.number(13))).collect();
    assert_eq!(lossy, [(Some(3), Some(1))]);
    let notice = &decoded.track(Track::Roles(1))[0];
    assert_eq!(
        (&*notice.name, &notice.arguments),
        ("older events were dropped", &arguments(&[("events", "40")]))
    );
    assert!(decoded.track(Track::Roles(0)).iter().all(|event| event.kind != 3));
}

#[test]
fn tracks_are_described_before_they_are_used_and_belong_to_the_process() {
    let decoded = Decoded::new(&sketch::with_block());
    let mut parents = HashMap::new();
    for packet in &decoded.packets {
        for track in packet.messages(60) {
            parents.insert(track.number(1).unwrap(), track.number(5));
        }
        for event in packet.messages(11) {
            assert!(parents.contains_key(&event.number(11).unwrap()));
        }
    }
    assert_eq!(parents.remove(&Track::Process.number()), Some(None));
    assert_eq!(parents.len(), 3 + 2 * 5);
    assert!(parents.values().all(|parent| parent.is_some()));
    let threads = decoded.packets.iter().flat_map(|packet| packet.messages(60));
    let threads: Vec<_> = threads.flat_map(|track| track.messages(4)).collect();
    assert_eq!((threads[1].number(2), threads[1].text(5).as_deref()), (Some(101), Some("worker-1")));
}

#[test]
fn slices_end_and_flows_begin_before_they_end_for_random_events() {
    for seed in 0..200 {
        let trace = sketch::at_random(seed);
        let decoded = Decoded::new(&trace);
        for thread in 0..trace.threads.len() {
            decoded.slices(Track::Tasks(thread));
            let slices = decoded.slices(Track::Roles(thread)).into_iter();
            let roles: Vec<_> = slices.filter(|slice| slice.2 != "waits for events").collect();
            assert!(roles.windows(2).all(|two| two[0].1 == two[1].0), "{seed}: {roles:?}");
            let first = trace.threads[thread].events[0].at;
            let ends = (roles[0].0, roles.last().unwrap().1);
            assert_eq!(ends, (nanos(first), nanos(trace.taken_at)));
        }
        let begun: Vec<_> = decoded.tracks.values().flatten().flat_map(|event| &event.flows).collect();
        let mut ended = decoded.tracks.values().flatten().flat_map(|event| &event.ends_flows);
        assert!(ended.all(|flow| begun.contains(&flow)));
    }
}

#[test]
fn the_error_of_the_writer_is_returned() {
    let mut space = [0_u8; 100];
    let error = sketch::with_block().write_perfetto(&mut space[..]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WriteZero);
}
