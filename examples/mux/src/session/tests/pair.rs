//! Two sessions, and programs that open, write, read, close and drop at random.

use std::collections::BTreeMap;

use super::*;
use crate::random::{Random, rounds};

/// The byte at a position of a direction of a stream.
fn byte(side: usize, id: u32, at: usize) -> u8 {
    (side * 101 + id as usize * 31 + at * 7 + at / 256) as u8
}

/// A handle of a stream at one of the sides.
#[derive(Default)]
struct Handle {
    written: usize,
    closed: bool,
    read: usize,
    eof: bool,
    /// The other side has given the stream up.
    reset: bool,
    dropped: bool,
}

/// Two sessions, and programs that act at random.
pub(super) struct Pair {
    pub(super) ends: [End; 2],
    /// The bytes on their way to each side.
    wires: [Vec<u8>; 2],
    handles: [BTreeMap<u32, Handle>; 2],
    /// All bytes that were sent to each side.
    pub(super) sent: [Vec<u8>; 2],
}

impl Pair {
    pub(super) fn new(random: &mut Random) -> Self {
        let mut end = |role| {
            let window = [1, 10, 1000, 40_000][random.below(4)];
            let mut end = End::new(role, window, random.below(6) as u32);
            let hello = Frame::Hello { window, streams: end.session.config.streams };
            end.outbox.push(0, hello);
            end
        };
        let ends = [end(Role::Client), end(Role::Server)];
        Self { ends, wires: Default::default(), handles: Default::default(), sent: Default::default() }
    }

    fn send(&mut self, side: usize) {
        let end = &mut self.ends[side];
        let mut wire = Vec::new();
        while !end.outbox.is_empty() {
            assert!(end.outbox.poll_write(&mut wire, &mut cx()).is_ready());
        }
        if end.session.has_heard_hello() {
            wire.extend(end.says());
        }
        end.keeps_limits();
        self.sent[1 - side].extend(&wire);
        self.wires[1 - side].extend(wire);
    }

    /// Delivers some of the bytes, cut anywhere.
    fn arrive(&mut self, side: usize, len: usize) {
        let bytes: Vec<u8> = self.wires[side].drain(..len).collect();
        self.ends[side].hears_bytes(&bytes).expect("both follow the rules");
    }

    /// Returns some handle of a side that is not dropped.
    fn any(&self, side: usize, random: &mut Random) -> Option<u32> {
        let ids: Vec<_> = self.handles[side].iter().filter(|(_, handle)| !handle.dropped).collect();
        (!ids.is_empty()).then(|| *ids[random.below(ids.len())].0)
    }

    pub(super) fn step(&mut self, random: &mut Random) {
        let side = random.below(2);
        let end = &mut self.ends[side];
        match random.below(12) {
            0 => {
                if let Poll::Ready(Ok(id)) = end.session.poll_open(&mut 0, &cx(), &mut end.wakes) {
                    self.handles[side].insert(id, Handle::default());
                }
            }
            1 => {
                if let Some(id) = end.accept() {
                    self.handles[side].insert(id, Handle::default());
                }
            }
            2..5 => self.send(side),
            5..7 => {
                let len = self.wires[side].len();
                self.arrive(side, random.below(len + 1));
            }
            _ => {
                if let Some(id) = self.any(side, random) {
                    self.act(side, id, random);
                }
            }
        }
    }

    fn act(&mut self, side: usize, id: u32, random: &mut Random) {
        let mut handle = self.handles[side].remove(&id).expect("it is there");
        let gone = self.handles[1 - side].get(&id).is_some_and(|other| other.dropped);
        let end = &mut self.ends[side];
        match random.below(10) {
            0 => {
                end.close(id);
                handle.closed = true;
            }
            1 => {
                end.drop(id);
                handle.dropped = true;
            }
            2..6 => {
                let len = 1 + random.below(20_000);
                let bytes: Vec<u8> =
                    (handle.written..handle.written + len).map(|at| byte(side, id, at)).collect();
                match end.write(id, &bytes) {
                    Poll::Ready(Ok(written)) => {
                        assert!(!handle.closed && 0 < written && written <= len);
                        handle.written += written;
                    }
                    Poll::Ready(Err(Error::Closed)) => assert!(handle.closed),
                    Poll::Ready(Err(Error::Reset(DROPPED))) => {
                        assert!(gone);
                        handle.reset = true;
                    }
                    Poll::Ready(other) => panic!("{other:?}"),
                    Poll::Pending => assert!(!handle.closed),
                }
            }
            _ => match end.read(id, 1 + random.below(20_000)) {
                Poll::Ready(Ok(bytes)) if bytes.is_empty() => handle.eof = true,
                Poll::Ready(Ok(bytes)) => {
                    for (at, read) in bytes.iter().enumerate() {
                        assert_eq!(
                            *read,
                            byte(1 - side, id, handle.read + at),
                            "at {} of {id}",
                            handle.read + at
                        );
                    }
                    handle.read += bytes.len();
                }
                Poll::Ready(Err(Error::Reset(DROPPED))) => {
                    assert!(gone);
                    handle.reset = true;
                }
                Poll::Ready(other) => panic!("{other:?}"),
                Poll::Pending => {}
            },
        }
        self.handles[side].insert(id, handle);
    }

    /// Delivers all bytes, and the answers, until there are none.
    fn settle(&mut self) {
        loop {
            (0..2).for_each(|side| self.send(side));
            if self.wires.iter().all(Vec::is_empty) {
                return;
            }
            for side in 0..2 {
                self.arrive(side, self.wires[side].len());
            }
        }
    }
}

#[test]
fn whatever_two_programs_do_bytes_arrive_in_order_and_nothing_stays() {
    rounds(300, |random| {
        let mut pair = Pair::new(random);
        for _ in 0..random.below(400) {
            pair.step(random);
        }
        // All written and closed bytes are read to the end, unless one side gave the stream up.
        pair.settle();
        for side in 0..2 {
            while let Some(id) = pair.ends[side].accept() {
                pair.handles[side].insert(id, Handle::default());
            }
        }
        for id in 1..100 {
            for side in 0..2 {
                let Some(mut handle) = pair.handles[side].remove(&id) else { continue };
                while !handle.dropped {
                    match pair.ends[side].read(id, 1000) {
                        Poll::Ready(Ok(bytes)) if bytes.is_empty() => {
                            handle.eof = true;
                            break;
                        }
                        Poll::Ready(Ok(bytes)) => handle.read += bytes.len(),
                        _ => break,
                    }
                    pair.settle();
                }
                let other = &pair.handles[1 - side].get(&id);
                if let (false, Some(other)) = (handle.dropped || handle.reset, other) {
                    if other.closed && !other.reset {
                        assert!(handle.eof, "stream {id} was closed");
                    }
                    if handle.eof || !other.dropped {
                        assert_eq!(handle.read, other.written, "all of stream {id}");
                    }
                }
                pair.handles[side].insert(id, handle);
            }
        }
        // When all handles were dropped, the streams have ended, and each side may open as many as at the
        // beginning.
        for side in 0..2 {
            for (id, handle) in std::mem::take(&mut pair.handles[side]) {
                if !handle.dropped {
                    pair.ends[side].drop(id);
                }
            }
        }
        pair.settle();
        for side in 0..2 {
            let session = &pair.ends[side].session;
            assert!(session.lanes.is_empty(), "{:?}", session.lanes);
            assert_eq!(session.ours.may_open, pair.ends[1 - side].session.config.streams);
        }
        for side in 0..2 {
            let end = &mut pair.ends[side];
            end.session.say_goodbye(&mut end.wakes);
            assert!(matches!(
                end.session.poll_open(&mut 0, &cx(), &mut end.wakes),
                Poll::Ready(Err(Error::Goodbye))
            ));
        }
        pair.settle();
        assert!(pair.ends.iter().all(|end| end.session.is_finished()));
    });
}
