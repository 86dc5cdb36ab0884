//! [`Ledger`]: the actions in progress, the activities that must make progress, and the number of completed
//! actions of each kind.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::leftovers;
use crate::scene::Dice;

#[derive(Default)]
pub struct Ledger {
    number: AtomicUsize,
    open: AtomicUsize,
    entries: Mutex<BTreeMap<usize, Entry>>,
    done: Mutex<BTreeMap<&'static str, Sum>>,
    beats: Mutex<Vec<Beats>>,
    /// Milliseconds for which the machine let this process run, as far as the watchdog can tell.
    clock: AtomicU64,
}

struct Entry {
    kind: &'static str,
    place: &'static str,
    dice: Dice,
    since: Instant,
    since_clock: Duration,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    done: u64,
    longest: Duration,
    longest_in: &'static str,
}

/// The activities that repeat.
struct Beats {
    name: String,
    count: Arc<AtomicU64>,
    seen: u64,
    moved: Duration,
}

impl Ledger {
    pub fn begin(self: &Arc<Self>, kind: &'static str, place: &'static str, dice: &Dice) -> Ticket {
        let number = self.number.fetch_add(1, Relaxed);
        let (since, since_clock) = (Instant::now(), self.clock());
        let entry = Entry { kind, place, dice: dice.clone(), since, since_clock };
        self.entries.lock().unwrap().insert(number, entry);
        self.open.fetch_add(1, Relaxed);
        Ticket { ledger: self.clone(), number, ended: false }
    }

    /// Registers an activity that must repeat until its pulse is dropped.
    pub fn pulse(self: &Arc<Self>, name: impl Into<String>) -> Pulse {
        let count = Arc::new(AtomicU64::new(0));
        let beats = Beats { name: name.into(), count: count.clone(), seen: 0, moved: self.clock() };
        self.beats.lock().unwrap().push(beats);
        Pulse { ledger: self.clone(), count }
    }

    pub fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    pub fn done(&self, kind: &str) -> u64 {
        self.done.lock().unwrap().get(kind).map_or(0, |sum| sum.done)
    }

    pub fn done_in_all(&self) -> u64 {
        self.done.lock().unwrap().values().map(|sum| sum.done).sum()
    }

    /// Reports how often each kind was completed since the last call, and the longest action.
    pub fn rounds(&self, before: &mut BTreeMap<&'static str, u64>) -> String {
        let done = self.done.lock().unwrap();
        let rounds = done.iter().map(|(kind, sum)| {
            let before = before.insert(kind, sum.done).unwrap_or(0);
            format!("{kind} {}", sum.done - before)
        });
        rounds.collect::<Vec<_>>().join(", ")
    }

    pub fn clock(&self) -> Duration {
        Duration::from_millis(self.clock.load(Relaxed))
    }

    pub fn advance(&self, by: Duration) {
        self.clock.fetch_add(by.as_millis() as u64, Relaxed);
    }

    /// Reports everything that has made no progress for so long, and all other open actions; empty if there
    /// is no such thing.
    pub fn stuck(&self, limit: Duration) -> String {
        let now = self.clock();
        let entries = self.entries.lock().unwrap();
        let mut any = entries.values().any(|entry| now.saturating_sub(entry.since_clock) >= limit);
        let mut text: String = entries.values().map(|entry| format!("{entry}\n")).collect();
        for beats in &mut *self.beats.lock().unwrap() {
            let count = beats.count.load(Relaxed);
            if count != beats.seen {
                (beats.seen, beats.moved) = (count, now);
            }
            let still = now.saturating_sub(beats.moved);
            any |= still >= limit;
            text += &format!("{}: round {count}, for {still:?}\n", beats.name);
        }
        if any { text } else { String::new() }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, place, dice, since, .. } = self;
        write!(f, "{kind} ({place}, {dice:?}), begun {:?} ago", since.elapsed())
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, Sum { done, longest, longest_in }) in &*self.done.lock().unwrap() {
            writeln!(f, "{done:9} {kind}, the longest took {longest:.0?} ({longest_in})")?;
        }
        Ok(())
    }
}

/// An action in progress.
pub struct Ticket {
    ledger: Arc<Ledger>,
    number: usize,
    ended: bool,
}

impl Ticket {
    pub fn ends(mut self) {
        self.ended = true;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let entry = self.ledger.entries.lock().unwrap().remove(&self.number).expect("it ends once");
        if self.ended {
            let mut done = self.ledger.done.lock().unwrap();
            let sum = done.entry(entry.kind).or_default();
            sum.done += 1;
            let took = entry.since.elapsed();
            if took > sum.longest {
                (sum.longest, sum.longest_in) = (took, entry.place);
            }
        } else {
            leftovers::failed(&format!("{entry}: ended in a panic, or was dropped"));
        }
        self.ledger.open.fetch_sub(1, Relaxed);
    }
}

/// The pulse of a repeated activity.
pub struct Pulse {
    ledger: Arc<Ledger>,
    count: Arc<AtomicU64>,
}

impl Pulse {
    pub fn beat(&self) {
        self.count.fetch_add(1, Relaxed);
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.ledger.beats.lock().unwrap().retain(|beats| !Arc::ptr_eq(&beats.count, &self.count));
    }
}
