//! A connection without its transport: the effect of each frame, and the frames to send.
//!
//! This module has no I/O, no clock and no task, so that tests can drive every case. One lock is around a
//! session ([`Shared`](crate::shared::Shared)), and wakers are called after it was released: each change
//! collects the waiting tasks in a list.
//!
//! | the waiting task~ | for | is woken by |
//! |---|---|---|
//! | a stream's reader | bytes, an end, a reset | `receive` |
//! | a stream's writer | credit, or room in its frame | `receive`, `emit` |
//! | a flush or close of a stream | its frame and its FIN to go out | `emit` |
//! | an opener of streams | the peer's HELLO, or credit for streams | `receive` |
//! | an acceptor of streams | a stream, or a GOODBYE | `receive`, `say_goodbye` |
//! | the driver | something to send | the code that queues it: see `owe` |
//! | a close of the connection | its driver's end | `done` |
//! | all of them | the end of the connection | `end` |

mod call;
mod emit;
mod lane;
mod receive;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::mem::take;
use std::task::{Context, Poll};

use crate::Config;
use crate::error::{Code, Error, Violation};
use crate::frame::{Frame, MAX_CREDIT};
use crate::outbox::{Outbox, Spare};
use crate::waiting::{Line, Place, Wakes};
use lane::{Lane, add};

/// The code of a stream that was dropped before its end.
pub(crate) const DROPPED: u32 = 0;
/// The code of a stream that was not accepted.
const REFUSED: u32 = 1;

/// The client opens the streams with odd numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Role {
    Client,
    Server,
}

/// The streams that one of the sides opens.
#[derive(Debug)]
struct Side {
    /// The number of its next stream.
    next: u64,
    /// How many streams it may open.
    may_open: u32,
}

#[derive(Debug)]
pub(crate) struct Session {
    config: Config,
    lanes: HashMap<u32, Lane>,
    /// The lanes with something to send, each once.
    queue: VecDeque<u32>,
    /// Streams that the peer has opened and the program has not accepted.
    arrived: VecDeque<u32>,
    ours: Side,
    theirs: Side,
    /// The window of each stream of this side, from the peer's HELLO.
    peer_window: Option<u32>,

    // Frames to send, other than those of lanes.
    ping: bool,
    pong: Option<u64>,
    /// How many of the peer's streams have ended without new credit.
    gone: u32,
    /// Refused streams, which have no lane.
    refused: Vec<u32>,

    /// The unanswered ping.
    pinged: Option<u64>,
    pings: u64,
    /// GOODBYE was sent, or has to be.
    leaving: Option<Leaving>,
    goodbye_heard: bool,
    ended: Option<Error>,
    /// How the driver ended.
    done: Option<Result<(), Error>>,

    spare: Spare,
    driver: Place,
    pub(crate) openers: Line,
    pub(crate) acceptors: Line,
    pub(crate) closers: Line,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Leaving {
    Owed,
    Said,
}

impl Session {
    pub(crate) fn new(role: Role, config: Config) -> Self {
        let (ours, theirs) = match role {
            Role::Client => (1, 2),
            Role::Server => (2, 1),
        };
        Self {
            lanes: HashMap::new(),
            queue: VecDeque::new(),
            arrived: VecDeque::new(),
            ours: Side { next: ours, may_open: 0 },
            theirs: Side { next: theirs, may_open: config.streams },
            peer_window: None,
            ping: false,
            pong: None,
            gone: 0,
            refused: Vec::new(),
            pinged: None,
            pings: 0,
            leaving: None,
            goodbye_heard: false,
            ended: None,
            done: None,
            spare: Spare::default(),
            driver: Place::default(),
            openers: Line::default(),
            acceptors: Line::default(),
            closers: Line::default(),
            config,
        }
    }

    /// Queues a lane that has something to send.
    fn owe(&mut self, id: u32, wakes: &mut Wakes) {
        let lane = held(&mut self.lanes, id);
        if !lane.queued {
            lane.queued = true;
            self.queue.push_back(id);
        }
        self.driver.wake(wakes);
    }

    /// Removes a lane that is over, has no handle and is not queued. Then its opener may have another stream.
    fn settle(&mut self, id: u32) {
        if self.lanes.get(&id).is_some_and(|lane| lane.is_over() && !lane.held && !lane.queued) {
            self.lanes.remove(&id);
            if self.is_theirs(id) {
                self.gone += 1;
            }
        }
    }

    fn is_theirs(&self, id: u32) -> bool {
        u64::from(id) % 2 == self.theirs.next % 2
    }

    /// Ends the connection for all waiting and later calls.
    pub(crate) fn end(&mut self, why: Error, wakes: &mut Wakes) {
        if self.ended.is_some() {
            return;
        }
        self.ended = Some(why);
        self.queue.clear();
        self.lanes.retain(|_, lane| {
            lane.end(wakes);
            lane.held
        });
        self.spare = Spare::default();
        self.openers.wake(wakes);
        self.acceptors.wake(wakes);
    }

    /// Records the driver's end.
    pub(crate) fn done(&mut self, result: Result<(), Error>, wakes: &mut Wakes) {
        self.end(result.clone().err().unwrap_or(Error::Goodbye), wakes);
        if self.done.is_none() {
            self.done = Some(result);
            self.closers.wake(wakes);
        }
    }

    /// Returns the memory for the bytes of streams: unread ones, and those that wait to be sent.
    pub(crate) fn memory(&self) -> usize {
        self.spare.memory() + self.lanes.values().map(Lane::memory).sum::<usize>()
    }
}

/// Returns a lane with a handle.
fn held(lanes: &mut HashMap<u32, Lane>, id: u32) -> &mut Lane {
    lanes.get_mut(&id).expect("a lane stays for as long as it has a handle")
}
