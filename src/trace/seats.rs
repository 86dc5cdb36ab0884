//! [`assign`]: which thread is which worker, for tools that know a fixed number of workers.
//!
//! A *seat* is the number of a worker. A thread takes a seat when it enters the runtime, and gives it up when
//! it leaves. These rules say which one, the first that fits:
//!
//! | the thread | takes |
//! |---|---|
//! | enters, and had a seat before that is free now | its first seat |
//! | enters while another thread is in a turn that is reported as a stall | the seat of the stalled thread |
//! | enters | the free seat with the lowest number |
//! | wakes up, polls no task, and has left its first seat to a replacement that is gone | its first seat |
//!
//! By the second rule, a replacement becomes the worker that it replaces, as after tokio's `block_in_place`.
//! The deputy may start it before the stall is long enough for a report, so stalls are looked up in advance.
//! The stalled thread moves to another seat. It does so with the whole poll, so that the poll is not cut in
//! two: the seat must have been free since the poll began.
//!
//! If older events of a thread were dropped, its first event is not the one with which it has entered. So
//! such a thread is no replacement.

use std::collections::HashSet;

use super::events::{Action, Trace};
use super::timeline::{Mark, Timeline};
use crate::runtime::Role;

/// From the mark with this index on, a thread has this seat. The seat is free again when the thread leaves
/// the runtime or moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) mark: usize,
    pub(super) thread: usize,
    pub(super) seat: usize,
}

/// Returns which thread takes which seat, in the order of the marks.
pub(super) fn assign(trace: &Trace, timeline: &Timeline) -> Vec<Move> {
    let members =
        trace.threads.iter().map(|thread| Occupant { is_lossy: thread.dropped > 0, ..Occupant::default() });
    let stalled_turns = stalled_turns(trace, timeline);
    let mut room = Room { members: members.collect(), stalled_turns, ..Room::default() };
    timeline.marks.iter().enumerate().for_each(|(index, mark)| room.follow(index, mark));
    room.moves.sort_by_key(|change| change.mark);
    room.moves
}

/// Returns whether a thread that does this begins another turn: a poll, a sleep, or a role. A stall lasts
/// from one such mark to the next.
fn begins_turn(action: Action) -> bool {
    let is_poll = matches!(action, Action::PollBegins { .. } | Action::PollEnds);
    is_poll || matches!(action, Action::Role(_) | Action::Sleeps | Action::Events(_))
}

/// Returns the marks with which turns begin that are reported as stalls.
fn stalled_turns(trace: &Trace, timeline: &Timeline) -> HashSet<usize> {
    let mut turns = vec![None; trace.threads.len()];
    let mut stalled = HashSet::new();
    for (index, mark) in timeline.marks.iter().enumerate() {
        match mark.action {
            Action::Stalls { thread: Some(thread), .. } => stalled.extend(turns[thread]),
            // A thread that sleeps is not stalled.
            action if begins_turn(action) => turns[mark.thread] = mark.is_awake.then_some(index),
            _ => {}
        }
    }
    stalled
}

#[derive(Debug, Default)]
struct Occupant {
    /// Older events of the thread were dropped.
    is_lossy: bool,
    is_awake: bool,
    seat: Option<usize>,
    /// The first seat that the thread has had.
    first_seat: Option<usize>,
    /// How many polls the thread has begun and not ended.
    polls: usize,
    /// The thread is in a turn that began at this mark and is reported as a stall. No other thread has its
    /// seat so far.
    stalled_since: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
enum SeatState {
    Taken,
    /// Free since the mark with this index.
    Free(usize),
}

#[derive(Debug, Default)]
struct Room {
    members: Vec<Occupant>,
    stalled_turns: HashSet<usize>,
    seats: Vec<SeatState>,
    moves: Vec<Move>,
}

impl Room {
    /// Updates the state by a mark.
    fn follow(&mut self, index: usize, mark: &Mark) {
        if !begins_turn(mark.action) {
            return;
        }
        let member = &mut self.members[mark.thread];
        let wakes_up = mark.is_awake && !member.is_awake;
        member.is_awake = mark.is_awake;
        member.stalled_since = self.stalled_turns.contains(&index).then_some(index);
        match (mark.action, member.seat) {
            (Action::PollBegins { .. }, _) => member.polls += 1,
            (Action::PollEnds, _) => member.polls -= 1,
            (Action::Role(Role::Outside), Some(seat)) => {
                member.seat = None;
                self.seats[seat] = SeatState::Free(index + 1);
            }
            (Action::Role(Role::Outside), None) => {}
            (Action::Role(_), None) => self.enter(index, mark.thread),
            _ if wakes_up => self.return_to_first_seat(index, mark.thread),
            _ => {}
        }
    }

    /// Gives a seat to a thread that enters the runtime.
    fn enter(&mut self, index: usize, thread: usize) {
        let mut seat = self.free_first_seat(thread);
        if seat.is_none() && !self.members[thread].is_lossy {
            seat = self.vacate_for_replacement();
        }
        let seat = seat.unwrap_or_else(|| self.free_seat(index));
        self.place(index, thread, seat);
    }

    /// Moves a thread that wakes up to its first seat, if that is free.
    fn return_to_first_seat(&mut self, index: usize, thread: usize) {
        if let Some(first) = self.free_first_seat(thread).filter(|_| self.members[thread].polls == 0) {
            self.place(index, thread, first);
        }
    }

    /// Returns the first seat that a thread has had, if it is free.
    fn free_first_seat(&self, thread: usize) -> Option<usize> {
        let first = self.members[thread].first_seat;
        first.filter(|seat| matches!(self.seats[*seat], SeatState::Free(_)))
    }

    /// Moves a stalled thread to another seat, from the beginning of its turn on. Returns the seat that it
    /// had.
    fn vacate_for_replacement(&mut self) -> Option<usize> {
        let stalled = self.members.iter().enumerate();
        let stalled =
            stalled.filter_map(|(thread, member)| Some((member.seat?, member.stalled_since?, thread)));
        let (seat, since, thread) = stalled.min()?;
        let other = self.free_seat(since);
        self.place(since, thread, other);
        self.members[thread].stalled_since = None;
        Some(seat)
    }

    /// Returns the lowest seat that has been free since the mark with this index.
    fn free_seat(&mut self, index: usize) -> usize {
        let is_free = |seat: &SeatState| matches!(seat, SeatState::Free(since) if *since <= index);
        self.seats.iter().position(is_free).unwrap_or_else(|| {
            self.seats.push(SeatState::Free(0));
            self.seats.len() - 1
        })
    }

    /// Moves a thread to a free seat. Its former seat is free from then on.
    fn place(&mut self, index: usize, thread: usize, seat: usize) {
        let member = &mut self.members[thread];
        if let Some(former) = member.seat.replace(seat) {
            self.seats[former] = SeatState::Free(index + 1);
        }
        member.first_seat.get_or_insert(seat);
        self.seats[seat] = SeatState::Taken;
        self.moves.push(Move { mark: index, thread, seat });
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests;
