//! Compares the readiness word with a plain struct of its meaning: on one thread, every operation in every
//! state.

use Direction::{Read, Write};

use super::*;

/// The meaning of the word, as the table in its file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spelled {
    generation: u32,
    gone: bool,
    marks: u8,
    ways: [DirectionState; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DirectionState {
    ready: bool,
    cut: bool,
    armed: bool,
    busy: bool,
    listed: bool,
    count: u16,
}

impl Spelled {
    /// Reads the fields of the table out of the word.
    fn of(word: u64) -> Self {
        let bit = |at: u32| word >> at & 1 != 0;
        let way = |at: u32, count: u32| DirectionState {
            ready: bit(at),
            cut: bit(at + 1),
            armed: bit(at + 2),
            busy: bit(at + 3),
            listed: bit(at + 4),
            count: (word >> count) as u16,
        };
        let marks = (word >> 11) as u8 & 0xf;
        Self { generation: (word >> 47) as u32, gone: bit(10), marks, ways: [way(0, 15), way(5, 31)] }
    }

    fn busy(&self) -> bool {
        self.ways.iter().any(|way| way.busy)
    }

    /// Returns whether the condition of a wait holds: the direction is ready, or its count has changed.
    fn has(&self, direction: Direction, until: Until) -> bool {
        let way = self.ways[direction as usize];
        match until {
            Until::Ready => way.ready,
            Until::After(count) | Until::Told(count) => way.count != count,
        }
    }

    /// Records an event, and returns the cells and the lists that it concerns, for each direction. An event
    /// of another generation, or of a source that is gone, concerns none.
    fn event(&mut self, generation: u32, happened: Happened) -> [(bool, bool); 2] {
        let mut delivered = [(false, false); 2];
        if self.gone || self.generation != generation {
            return delivered;
        }
        self.marks |= happened.marks.0;
        let ways = Direction::BOTH.map(|way| (happened.ready[way as usize], happened.cut[way as usize]));
        for (way, ((happened, cut), delivered)) in self.ways.iter_mut().zip(ways.iter().zip(&mut delivered)) {
            if *happened {
                *delivered = (way.armed && !way.busy, way.listed);
                way.armed &= way.busy;
                way.busy |= delivered.0;
                (way.ready, way.listed) = (true, false);
                way.cut |= cut;
                way.count = way.count.wrapping_add(1);
            }
        }
        delivered
    }

    /// Ends the source: advances the generation, and keeps only the busy flags and the counts. Returns
    /// whether to free the record, because no direction is busy.
    fn retire(&mut self) -> bool {
        self.generation = (self.generation + 1) % (1 << 17);
        (self.gone, self.marks) = (true, 0);
        for way in &mut self.ways {
            *way = DirectionState { busy: way.busy, count: way.count, ..DirectionState::default() };
        }
        !self.busy()
    }
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Every operation in every state, unreachable ones included; around the wrap of counts and generations.
#[test]
fn agrees_with_the_word_spelled_out() {
    for seed in 1..if cfg!(miri) { 20 } else { 400 } {
        let mut state = seed * 0x9E37_79B9;
        let flags = random(&mut state) & 0x7fff;
        let word = ReadinessWord(AtomicU64::new(0x1fffe << 47 | 0xffef << 31 | 0xfffe << 15 | flags));
        let mut spelled = Spelled::of(word.0.load(Ordering::Relaxed));
        for _ in 0..40 {
            let chance = random(&mut state);
            let chances = |at: u32| chance >> (16 + at) & 1 != 0;
            let direction = if chances(0) { Read } else { Write };
            let count = spelled.ways[direction as usize].count.wrapping_sub(u16::from(chances(1)));
            let until = if chances(2) { Until::Ready } else { Until::After(count) };
            let over = spelled.has(direction, until);
            match chance % 10 {
                0 if !spelled.busy() => {
                    assert_eq!(word.open(), spelled.generation);
                    let way = DirectionState { ready: true, ..DirectionState::default() };
                    spelled = Spelled { gone: false, marks: 0, ways: [way; 2], ..spelled };
                }
                1 => assert_eq!(word.retire(), spelled.retire()),
                2 => {
                    let claimed = word.claim(direction, until);
                    let way = &mut spelled.ways[direction as usize];
                    if over {
                        assert_eq!(claimed, Err(Wait::Over));
                    } else if way.busy {
                        assert_eq!(claimed, Err(Wait::Unsure));
                    } else {
                        assert_eq!(claimed, Ok(way.count));
                        (way.armed, way.busy) = (false, true);
                    }
                }
                3 => {
                    let way = &mut spelled.ways[direction as usize];
                    if way.count == count {
                        assert!(word.settle(direction, count));
                        (way.armed, way.busy) = (true, false);
                    } else {
                        assert!(!word.settle(direction, count));
                    }
                }
                4 => {
                    spelled.ways[direction as usize].busy = false;
                    assert_eq!(word.release(direction), spelled.gone && !spelled.busy());
                }
                5 => {
                    assert_eq!(word.list(direction, until), !over);
                    spelled.ways[direction as usize].listed |= !over;
                }
                6 => {
                    let proof = if chances(3) { Proof::WouldBlock } else { Proof::ShortTransfer };
                    word.clear(direction, count, proof);
                    let way = &mut spelled.ways[direction as usize];
                    if way.count == count && !(proof == Proof::ShortTransfer && way.cut) {
                        (way.ready, way.cut) = (false, false);
                    }
                }
                7 => {
                    let before = word.snapshot().0;
                    let seen = Readiness(before & !(0xffff << 15) | u64::from(count) << 15);
                    let over = Marks(random(&mut state) as u8 & 0xf);
                    assert_eq!(word.unmark(seen, over).0, seen.0 & !(u64::from(over.0) << 11));
                    if spelled.ways[0].count == count {
                        spelled.marks &= !over.0;
                    }
                }
                _ => {
                    let marks = Marks(random(&mut state) as u8 & 0xf);
                    let happened = Happened { ready: [4, 5].map(chances), cut: [6, 7].map(chances), marks };
                    let generation = if chances(8) { spelled.generation } else { 0x1fffe };
                    let delivery = word.event(generation, happened);
                    let told = spelled.event(generation, happened);
                    assert_eq!(delivery == Delivery::default(), told == [(false, false); 2]);
                    let cells = Direction::BOTH.map(|way| (delivery.has_cell(way), delivery.has_list(way)));
                    assert_eq!(cells, told);
                }
            }
            assert_eq!(Spelled::of(word.0.load(Ordering::Relaxed)), spelled);
            let now = word.snapshot();
            assert_eq!((now.generation(), now.is_open()), (spelled.generation, !spelled.gone));
            for (direction, way) in Direction::BOTH.into_iter().zip(spelled.ways) {
                assert_eq!((now.count(direction), now.has(direction, Until::Ready)), (way.count, way.ready));
                assert_eq!(now.is_armed(direction), way.armed || way.listed);
                assert_eq!(now.has(direction, Until::After(count)), way.count != count);
            }
        }
    }
}
