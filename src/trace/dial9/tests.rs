use std::collections::HashMap;

use super::encoder::{BOOL, MAP, NAME, OPTIONAL, TEXT, U8, U32, VARINT};
use super::*;
use crate::trace::sketch::{self, Sketch};

/// A file that is read from its beginning.
struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn take(&mut self, len: usize) -> &[u8] {
        let (taken, left) = self.0.split_at(len);
        self.0 = left;
        taken
    }

    /// Returns a number that has so many bytes.
    fn number(&mut self, len: usize) -> u64 {
        self.take(len).iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn text(&mut self, bytes_of_len: usize) -> String {
        let len = self.number(bytes_of_len) as usize;
        String::from_utf8(self.take(len).to_vec()).unwrap()
    }

    fn varint(&mut self) -> u64 {
        let byte = self.number(1);
        if byte < 0x80 { byte } else { byte & 0x7f | self.varint() << 7 }
    }

    fn value(&mut self, kind: u8, names: &HashMap<u64, String>) -> String {
        match kind {
            BOOL | U8 => self.number(1).to_string(),
            U32 => self.number(4).to_string(),
            TEXT => self.text(4),
            NAME => names[&self.number(4)].clone(),
            VARINT => self.varint().to_string(),
            MAP => {
                let len = self.number(4);
                let entries = (0..len).map(|_| format!("{}={}", self.text(4), self.text(4)));
                entries.collect::<Vec<_>>().join(";")
            }
            _ if kind & OPTIONAL != 0 => match self.number(1) {
                0 => "-".to_owned(),
                _ => self.value(kind & !OPTIONAL, names),
            },
            _ => panic!("unknown type {kind}"),
        }
    }
}

/// An event: its time in nanoseconds, and its values.
type Read = (u64, Vec<String>);

/// A file, decoded.
#[derive(Debug, Default)]
struct Decoded {
    /// All events in the order of the file, each with the name of its schema.
    events: Vec<(String, Read)>,
    /// The annotations of each schema: the index of the field, the key and the value.
    annotations: HashMap<String, Vec<(u64, String, String)>>,
    resets: usize,
}

impl Decoded {
    fn new(file: &[u8]) -> Self {
        let (mut reader, mut decoded, mut time) = (Reader(file), Self::default(), 0);
        let (mut schemas, mut names) = (HashMap::new(), HashMap::new());
        assert_eq!(reader.take(5), b"TRC\0\x01");
        while !reader.0.is_empty() {
            match reader.number(1) {
                1 => {
                    let number = reader.number(2);
                    let name = reader.text(2);
                    assert_eq!(reader.number(1), 1);
                    let fields = reader.number(2);
                    let kinds: Vec<u8> =
                        (0..fields).map(|_| (reader.text(2), reader.number(1) as u8).1).collect();
                    schemas.insert(number, (name, kinds));
                }
                2 => {
                    let (name, kinds): &(String, Vec<u8>) = &schemas[&reader.number(2)];
                    time += reader.number(3);
                    let values = kinds.iter().map(|kind| reader.value(*kind, &names)).collect();
                    decoded.events.push((name.clone(), (time, values)));
                }
                3 => {
                    for _ in 0..reader.number(4) {
                        let number = reader.number(4);
                        assert_eq!(names.insert(number, reader.text(4)), None, "a name is written once");
                    }
                }
                5 => {
                    time = reader.number(8);
                    decoded.resets += 1;
                }
                6 => {
                    let (name, kinds) = &schemas[&reader.varint()];
                    let count = reader.number(2);
                    let all: Vec<_> =
                        (0..count).map(|_| (reader.number(2), reader.text(2), reader.text(4))).collect();
                    assert!(all.iter().all(|(field, ..)| *field < kinds.len() as u64));
                    decoded.annotations.insert(name.clone(), all);
                }
                other => panic!("unknown frame {other}"),
            }
        }
        decoded
    }

    fn of(trace: &Trace) -> Self {
        let mut file = Vec::new();
        trace.write_dial9(&mut file).unwrap();
        Self::new(&file)
    }

    /// Returns the events of one schema, with times in microseconds.
    fn all(&self, name: &str) -> Vec<(u64, Vec<&str>)> {
        let events = self.events.iter().filter(|event| event.0 == name);
        events.map(|(_, (at, values))| (at / 1_000, values.iter().map(|value| &**value).collect())).collect()
    }
}

#[test]
fn a_worker_parks_and_unparks_as_its_thread_sleeps_and_wakes() {
    let mut sketch = Sketch::new(&["a", "b"]);
    sketch.role(0, 1, Role::Processes).role(0, 4, Role::Leads).event(0, 6, Action::Sleeps);
    sketch.event(0, 9, Action::Events(1)).role(0, 12, Role::Follows).role(1, 13, Role::Follows);
    let decoded = Decoded::of(&sketch.trace);
    // The worker, its local queue, the time for which it was awake, and its thread.
    let unparks = [(1, vec!["0", "0", "0", "-", "100"]), (9, vec!["0", "0", "5000", "-", "100"])];
    assert_eq!(decoded.all("WorkerUnparkEvent"), unparks);
    let parks = [(6, vec!["0", "0", "5000", "100"]), (12, vec!["0", "0", "8000", "100"])];
    assert_eq!(decoded.all("WorkerParkEvent"), parks);
}

#[test]
fn a_poll_has_its_task_its_place_and_the_time_since_the_first_wake() {
    let mut sketch = Sketch::new(&["a"]);
    sketch.role(0, 1, Role::Processes).spawn(0, 2, 7).wake(0, 3, 7).wake(0, 5, 7);
    sketch.poll(0, 9, 7).wake(0, 10, 8).poll_ends(0, 11).poll(0, 12, 9).event(
        0,
        13,
        Action::Ends { task: 9 },
    );
    let decoded = Decoded::of(&sketch.trace);
    let place = sketch::place(7).to_string();
    let polls = [(9, vec!["0", "0", "7", &*place, "6000"]), (12, vec!["0", "0", "9", &place, "-"])];
    assert_eq!(decoded.all("PollStartEvent"), polls);
    // The second poll is open when the trace ends.
    assert_eq!(decoded.all("PollEndEvent"), [(11, vec!["0"]), (13, vec!["0"])]);
    assert_eq!(decoded.all("TaskSpawnEvent"), [(2, vec!["7", &*place, "1", "0"])]);
    let wakes = [(3, vec!["0", "7", "0"]), (5, vec!["0", "7", "0"]), (10, vec!["7", "8", "0"])];
    assert_eq!(decoded.all("WakeEventEvent"), wakes);
    assert_eq!(decoded.all("TaskTerminateEvent"), [(13, vec!["9"])]);
}

#[test]
fn a_thread_without_a_seat_wakes_from_an_unknown_worker() {
    let mut sketch = Sketch::new(&["a"]);
    sketch.wake(0, 3, 7);
    assert_eq!(Decoded::of(&sketch.trace).all("WakeEventEvent"), [(3, vec!["0", "7", "255"])]);
}

#[test]
fn a_replacement_is_the_same_worker_and_the_poll_that_blocks_is_whole() {
    let mut sketch = Sketch::new(&["blocks", "replacement", "deputy"]);
    sketch.role(0, 1, Role::Processes).poll(0, 100, 7).stall(2, 10_100, 0, 10_000);
    sketch.role(1, 10_200, Role::Leads).poll_ends(0, 60_100).role(0, 60_101, Role::Follows);
    let decoded = Decoded::of(&sketch.trace);
    let sits =
        |(at, values): (u64, Vec<&str>)| (at, values[0].to_owned(), values.last().unwrap().to_string());
    let sits = |name: &str| decoded.all(name).into_iter().map(sits).collect::<Vec<_>>();
    let text = |at: u64, worker: &str, tid: &str| (at, worker.to_owned(), tid.to_owned());
    let unparks = [text(1, "0", "100"), text(100, "1", "100"), text(10_200, "0", "101")];
    assert_eq!(sits("WorkerUnparkEvent"), unparks);
    assert_eq!(sits("WorkerParkEvent"), [text(100, "0", "100"), text(60_101, "1", "100")]);
    assert_eq!((decoded.all("PollStartEvent")[0].0, decoded.all("PollStartEvent")[0].1[0]), (100, "1"));
    assert_eq!(decoded.all("PollEndEvent"), [(60_100, vec!["1"])]);
    let roles = [
        (100, vec!["1000", "processes", "0", "100"]),
        (60_101, vec!["100000", "processes", "1", "100"]),
        (60_101, vec!["10200000", "leads", "0", "101"]),
    ];
    assert_eq!(decoded.all("RoleEvent"), roles);
    let stall = ["100000", "blocks", "1", "100", &sketch::place(0).to_string(), ""];
    assert_eq!(decoded.all("StallEvent"), [(10_100, stall.to_vec())]);
    let metadata = decoded.all("SegmentMetadataEvent")[0].1[0].to_owned();
    assert!(metadata.contains("runtime.main=0,1"), "{metadata}");
}

#[test]
fn roles_and_promotions_are_spans() {
    let mut sketch = Sketch::new(&["a", "b"]);
    sketch.role(0, 0, Role::Leads).role(0, 2, Role::Processes).promote(0, 3, 1).role(0, 9, Role::Outside);
    sketch.role(1, 1, Role::Follows).role(1, 8, Role::Leads).role(1, 12, Role::Follows);
    let decoded = Decoded::of(&sketch.trace);
    let roles = [
        (2, vec!["0", "leads", "0", "100"]),
        (8, vec!["1000", "follows", "1", "101"]),
        (9, vec!["2000", "processes", "0", "100"]),
        (12, vec!["8000", "leads", "1", "101"]),
    ];
    assert_eq!(decoded.all("RoleEvent"), roles);
    assert_eq!(decoded.all("PromoteEvent"), [(8, vec!["3000", "work waits", "1", "101", "100"])]);
    for name in ["RoleEvent", "PromoteEvent", "StallEvent"] {
        let annotations = &decoded.annotations[name];
        for role in ["span.start", "tokio.worker_id", "thread_id"] {
            assert!(annotations.iter().any(|(_, key, value)| (&**key, &**value) == ("dial9.role", role)));
        }
    }
}

#[test]
fn the_plain_format_has_events_of_dial9_only() {
    let trace = sketch::with_block();
    let mut file = Vec::new();
    trace.write_dial9_plain(&mut file).unwrap();
    let (plain, full) = (Decoded::new(&file), Decoded::of(&trace));
    assert!(plain.annotations.is_empty());
    let ours = ["RoleEvent", "PromoteEvent", "StallEvent"];
    assert!(ours.iter().all(|name| plain.all(name).is_empty() && !full.all(name).is_empty()));
    let known = full.events.iter().filter(|event| !ours.contains(&&*event.0));
    assert!(plain.events.iter().eq(known));
}

#[test]
fn a_pause_of_more_than_24_bits_of_nanoseconds_resets_the_time() {
    let mut sketch = Sketch::new(&["a"]);
    sketch.role(0, 1, Role::Processes).wake(0, 16_777, 7).wake(0, 33_555, 7).wake(0, 3_600_000_000, 7);
    let decoded = Decoded::of(&sketch.trace);
    let times: Vec<_> = decoded.all("WakeEventEvent").iter().map(|event| event.0).collect();
    assert_eq!(times, [16_777, 33_555, 3_600_000_000]);
    assert_eq!(decoded.resets, 2);
}

#[test]
fn the_depth_of_the_queue_is_written_every_ten_milliseconds() {
    let mut sketch = Sketch::new(&["a"]);
    sketch.role(0, 1, Role::Processes).wake(0, 2, 7).wake(0, 9_999, 8).wake(0, 10_002, 9).wake(0, 30_000, 10);
    let samples = Decoded::of(&sketch.trace);
    let depths = [(1, vec!["main", "0"]), (10_002, vec!["main", "3"]), (30_000, vec!["main", "4"])];
    assert_eq!(samples.all("RuntimeMetricsEvent"), depths);
}

#[test]
fn the_time_of_day_belongs_to_the_start() {
    let decoded = Decoded::of(&Sketch::new(&[]).trace);
    assert_eq!(decoded.all("ClockSyncEvent"), [(0, vec!["1790000000000000000"])]);
    assert!(!decoded.all("SegmentMetadataEvent")[0].1[0].contains("runtime.main"));
}

#[test]
fn two_numbers_of_workers_are_left_out() {
    assert_eq!([0, 253, 254, 255].map(worker_number), [0, 253, 256, 257]);
}

#[test]
fn times_never_go_back_and_no_thread_sits_on_the_seat_of_another_for_random_events() {
    for seed in 0..200 {
        let decoded = Decoded::of(&sketch::at_random(seed));
        assert!(decoded.events.is_sorted_by_key(|event| event.1.0), "{seed}");
        let mut awake = HashMap::new();
        for (name, (_, values)) in &decoded.events {
            let tid = values.last().unwrap().clone();
            match &**name {
                "WorkerUnparkEvent" => assert_eq!(awake.insert(values[0].clone(), tid), None, "{seed}"),
                "WorkerParkEvent" => assert_eq!(awake.remove(&values[0]), Some(tid), "{seed}"),
                _ => {}
            }
        }
    }
}

#[test]
fn the_error_of_the_writer_is_returned() {
    let mut space = [0_u8; 100];
    let error = sketch::with_block().write_dial9(&mut space[..]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WriteZero);
}
