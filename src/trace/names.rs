//! [`Labels`]: texts that occur often in a trace and are written once, with a number.

use std::collections::HashMap;
use std::fmt;
use std::panic::Location;

use super::{FoundIn, Reason};
use crate::insight::StallKind;
use crate::probe::Syscall;
use crate::runtime::Role;

/// A text that occurs often: a word, or a place in the source code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Label {
    Word(&'static str),
    Place(&'static Location<'static>),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Label::Word(word) => f.write_str(word),
            Label::Place(place) => place.fmt(f),
        }
    }
}

impl From<&'static str> for Label {
    fn from(word: &'static str) -> Self {
        Label::Word(word)
    }
}

impl From<&'static Location<'static>> for Label {
    fn from(place: &'static Location<'static>) -> Self {
        Label::Place(place)
    }
}

/// The names that were written so far, each with its number.
#[derive(Debug, Default)]
pub(super) struct Labels(HashMap<Label, u32>);

impl Labels {
    /// Returns the number of `name`, from one on. Calls `write` with it if the name is new.
    pub(super) fn number(&mut self, name: Label, write: impl FnOnce(u32)) -> u32 {
        let next = u32::try_from(self.0.len() + 1).unwrap_or(u32::MAX);
        *self.0.entry(name).or_insert_with(|| {
            write(next);
            next
        })
    }
}

/// Returns the name of a role, as both formats show it.
pub(super) fn role(role: Role) -> &'static str {
    match role {
        Role::Leads => "leads",
        Role::Follows => "follows",
        Role::Processes => "processes",
        Role::Blocks => "blocks",
        Role::Computes => "computes",
        Role::Starves => "starves",
        Role::Outside => "outside",
    }
}

/// Returns the name of the reason for a promotion.
pub(super) fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Work => "work waits",
        Reason::SlowTask => "slow task",
        Reason::Leaves => "leader leaves",
        Reason::PassesOn => "passed on",
        Reason::Deputy => "deputy",
    }
}

/// Returns the name of the place where a task was found.
pub(super) fn found_in(place: FoundIn) -> &'static str {
    match place {
        FoundIn::Slot => "direct",
        FoundIn::Queue => "queue",
        FoundIn::Stolen => "stolen",
    }
}

/// Returns what a stalled task does, and the system call in which it sleeps, if that is known.
pub(super) fn stall(kind: StallKind) -> (&'static str, Option<Syscall>) {
    match kind {
        StallKind::Blocked(call) => ("blocks", call),
        StallKind::Computing => ("computes", None),
        StallKind::Unknown => ("blocks or computes", None),
    }
}
