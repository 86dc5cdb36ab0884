//! [`Note`]: what a thread writes down, and its form in three words.
//!
//! | word | bits | meaning |
//! |---|---|---|
//! | 0 | 0 to 7 | the kind of note |
//! | 0 | 8 to 63 | when, in ticks of the recorder's clock |
//! | 1 | all | a number: of a task, a thread or events |
//! | 2 | all | a second number, or the address of a `Location` |

use std::panic::Location;
use std::ptr;

use super::chunk::Words;
use super::{FoundIn, Reason, RoleNow};

/// Something that a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    Role(RoleNow),
    Sleeps,
    Events(u64),
    /// The thread wakes the thread of this number to lead.
    Promotes(u64, Reason),
    /// The thread steals so many events of the thread of this number.
    Steals(u64, u64),
    Spawns(u64, &'static Location<'static>),
    Wakes(u64),
    PollBegins(u64, &'static Location<'static>, FoundIn),
    PollEnds,
    Ends(u64),
    TimerFires,
    /// The thread of this number does not return from a task that was spawned here. A `StallDetail` follows.
    Stalls(u64, &'static Location<'static>),
    /// The kind of the stall, with its system call, as the layer above encodes them; and how long it has
    /// lasted, in nanoseconds.
    StallDetail(u64, u64),
}

const KIND_BITS: u32 = 8;

/// All values of an enum, by which a note numbers them.
const ROLES: [RoleNow; 4] = [RoleNow::Leads, RoleNow::Follows, RoleNow::Processes, RoleNow::Outside];
const REASONS: [Reason; 5] =
    [Reason::Work, Reason::SlowTask, Reason::Leaves, Reason::PassesOn, Reason::Deputy];

/// Returns the place of `value` in `all`.
fn place<T: PartialEq>(all: &[T], value: &T) -> u64 {
    all.iter().position(|other| other == value).expect("the list has all values") as u64
}

fn address(location: &'static Location<'static>) -> u64 {
    ptr::from_ref(location).expose_provenance() as u64
}

/// Returns the location at an address that [`address`] has returned.
///
/// # Safety
///
/// The address is one that [`address`] has returned in this process.
unsafe fn location(address: u64) -> &'static Location<'static> {
    // SAFETY: as the caller promises, the address is that of a `&'static`.
    unsafe { &*ptr::with_exposed_provenance(address as usize) }
}

impl Note {
    /// Returns the note as words, for a note that was made `at` so many ticks.
    #[inline]
    pub(super) fn encode(self, at: u64) -> Words {
        let (kind, one, two) = match self {
            Note::Role(role) => (0, place(&ROLES, &role), 0),
            Note::Sleeps => (1, 0, 0),
            Note::Events(number) => (2, number, 0),
            Note::Promotes(thread, reason) => (3, thread, place(&REASONS, &reason)),
            Note::Spawns(task, at) => (4, task, address(at)),
            Note::Wakes(task) => (5, task, 0),
            Note::PollEnds => (6, 0, 0),
            Note::Ends(task) => (7, task, 0),
            Note::TimerFires => (8, 0, 0),
            Note::Stalls(thread, at) => (9, thread, address(at)),
            Note::StallDetail(kind, nanos) => (10, kind, nanos),
            Note::Steals(thread, events) => (11, thread, events),
            Note::PollBegins(task, at, source) => (12 + place(&FoundIn::PLACES, &source), task, address(at)),
        };
        [at << KIND_BITS | kind, one, two]
    }

    /// Returns the note, and the ticks at which it was made.
    ///
    /// # Safety
    ///
    /// [`encode`](Self::encode) has returned the words in this process.
    pub(super) unsafe fn decode([first, one, two]: Words) -> (u64, Note) {
        // SAFETY: the notes for which this is called have an address in the second word.
        let location = || unsafe { location(two) };
        let note = match first % (1 << KIND_BITS) {
            0 => Note::Role(ROLES[one as usize]),
            1 => Note::Sleeps,
            2 => Note::Events(one),
            3 => Note::Promotes(one, REASONS[two as usize]),
            4 => Note::Spawns(one, location()),
            5 => Note::Wakes(one),
            6 => Note::PollEnds,
            7 => Note::Ends(one),
            8 => Note::TimerFires,
            9 => Note::Stalls(one, location()),
            10 => Note::StallDetail(one, two),
            11 => Note::Steals(one, two),
            kind => Note::PollBegins(one, location(), FoundIn::PLACES[kind as usize - 12]),
        };
        (time(first), note)
    }
}

/// Returns the ticks in the first word of a note.
pub(super) fn time(first: u64) -> u64 {
    first >> KIND_BITS
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn each_note_is_the_same_after_a_round_trip() {
        let here = Location::caller();
        let mut notes = vec![
            Note::Sleeps,
            Note::Events(7),
            Note::Steals(6, 5),
            Note::Spawns(u64::MAX, here),
            Note::Wakes(3),
            Note::PollEnds,
            Note::Ends(4),
            Note::TimerFires,
            Note::Stalls(5, here),
            Note::StallDetail(u64::MAX, 9),
        ];
        notes.extend(ROLES.map(Note::Role));
        notes.extend(REASONS.map(|reason| Note::Promotes(2, reason)));
        notes.extend(FoundIn::PLACES.map(|source| Note::PollBegins(1, here, source)));
        for (at, note) in notes.into_iter().enumerate() {
            let words = note.encode(at as u64);
            // SAFETY: `encode` has just returned them.
            assert_eq!((unsafe { Note::decode(words) }, time(words[0])), ((at as u64, note), at as u64));
        }
    }
}
