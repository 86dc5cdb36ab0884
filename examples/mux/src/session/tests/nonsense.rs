//! Invalid bytes and frames, and conversations with mistakes in them.

use super::pair::Pair;
use super::*;
use crate::random::{Random, rounds};

/// Acts at random on the streams that have arrived.
fn live(end: &mut End, random: &mut Random) {
    if random.chance(2) {
        end.accept();
    }
    let ids: Vec<u32> = end.session.lanes.iter().filter(|(_, lane)| lane.held).map(|(id, _)| *id).collect();
    for id in ids {
        let waits = end.session.arrived.contains(&id);
        match random.below(8) {
            _ if waits => {}
            0..2 => drop(end.read(id, 1 + random.below(300))),
            2 => drop(end.write(id, &[1; 300])),
            3 => end.close(id),
            4 => end.drop(id),
            _ => {}
        }
    }
    if random.chance(3) {
        end.says();
    }
    if random.chance(20) {
        let _ = end.session.poll_open(&mut 0, &cx(), &mut end.wakes);
    }
    if random.chance(40) {
        end.session.ping();
    }
    if random.chance(100) {
        end.session.say_goodbye(&mut end.wakes);
    }
    end.wakes.release();
    end.keeps_limits();
}

#[test]
fn nonsense_never_panics_and_never_is_kept_beyond_the_limits() {
    rounds(300, |random| {
        // Invalid bytes, perhaps after a HELLO.
        let len = random.below(2000);
        let noise = random.bytes(len);
        let _ = End::new(Role::Server, 100, 4).hears_bytes(&noise);
        let _ = End::greeted(Role::Server, 100, 4).hears_bytes(&noise);

        // Frames that are valid one by one.
        let mut end = End::greeted(Role::Server, 100, 4);
        let mut next = 1;
        for _ in 0..random.below(300) {
            let stream = [1 + random.below(12) as u32, random.next() as u32, 0, next][random.below(4)];
            let frame = match random.below(12) {
                0..4 => {
                    let open = (next, Frame::Open);
                    next += 2;
                    open
                }
                4..6 if stream != 0 => (stream, Frame::Data(&noise[..noise.len().min(random.below(90))])),
                6 => (stream, Frame::Credit([1, 1000, random.next() as u32][random.below(3)])),
                7 if stream != 0 => (stream, Frame::Fin),
                8 if stream != 0 => (stream, Frame::Reset(random.next() as u32)),
                9 => (0, Frame::Ping(random.next())),
                10 => (0, Frame::Pong(end.session.pinged.unwrap_or(0))),
                11 if random.chance(20) => (0, Frame::Goodbye { code: 0, reason: "" }),
                _ => continue,
            };
            if let Frame::Data([]) = frame.1 {
                continue;
            }
            match end.hears(&[frame]) {
                Ok(()) => live(&mut end, random),
                Err(error) => {
                    end.session.end(error, &mut end.wakes);
                    live(&mut end, random);
                    break;
                }
            }
        }
    });
}

#[test]
fn a_conversation_with_mistakes_never_panics_and_never_is_kept_beyond_the_limits() {
    rounds(200, |random| {
        let mut pair = Pair::new(random);
        for _ in 0..200 {
            pair.step(random);
        }
        let mut wire = take(&mut pair.sent[1]);
        for _ in 0..random.below(5) {
            let (at, other) = (random.below(wire.len() + 1), random.below(wire.len() + 1));
            match random.below(4) {
                // A bit, in the first bytes more often: most of the others are data.
                0 if !wire.is_empty() => {
                    let at = if random.chance(2) {
                        at.min(wire.len() - 1)
                    } else {
                        random.below(wire.len().min(200))
                    };
                    wire[at] ^= 1 << random.below(8);
                }
                1 => drop(wire.drain(at.min(other)..at.max(other).min(at.min(other) + 40))),
                2 => {
                    let again = wire[at.min(other)..at.max(other).min(at.min(other) + 200)].to_vec();
                    wire.splice(at..at, again);
                }
                _ => {
                    let noise = random.bytes(20);
                    wire.splice(at..at, noise);
                }
            }
        }
        let mut end = End::new(Role::Server, pair.ends[1].session.config.window, 5);
        for piece in wire.chunks(1 + random.below(5000)) {
            let heard = end.hears_bytes(piece);
            if end.session.has_heard_hello() {
                live(&mut end, random);
            }
            if let Err(error) = heard {
                end.session.end(error, &mut end.wakes);
                live(&mut end, random);
                break;
            }
        }
    });
}
