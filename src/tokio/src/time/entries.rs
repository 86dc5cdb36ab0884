//! [`Entries`]: the waits for a clock that can be paused, in the order of their deadlines.

use std::collections::BTreeMap;
use std::mem;
use std::task::Waker;

/// Whole milliseconds since the clock was made. A deadline between two of them is rounded up, the time is
/// rounded down: so nothing is early.
pub(super) type Tick = u64;

/// Identifies an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) due: Tick,
    /// Unique among all entries.
    number: u64,
}

#[derive(Debug, Default)]
pub(super) struct Entries {
    waiting: BTreeMap<Key, Waker>,
    ever: u64,
}

impl Entries {
    /// Returns the key for a new entry.
    pub(super) fn key(&mut self, due: Tick) -> Key {
        self.ever += 1;
        Key { due, number: self.ever }
    }

    /// Inserts an entry, or replaces its waker. The returned waker may run any code when it is dropped;
    /// `None` means that the entry was new.
    pub(super) fn put(&mut self, key: Key, waker: Waker) -> Option<Waker> {
        self.waiting.insert(key, waker)
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Waker> {
        self.waiting.remove(&key)
    }

    pub(super) fn first(&self) -> Option<Tick> {
        self.waiting.first_key_value().map(|(key, _)| key.due)
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Removes entries that are due by `now`.
    pub(super) fn take_due(&mut self, now: Tick) -> Vec<Waker> {
        let later = now
            .checked_add(1)
            .map_or_else(BTreeMap::new, |next| self.waiting.split_off(&Key { due: next, number: 0 }));
        mem::replace(&mut self.waiting, later).into_values().collect()
    }

    pub(super) fn take_all(&mut self) -> Vec<Waker> {
        mem::take(&mut self.waiting).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_comes_out_in_order_and_nothing_else() {
        let mut entries = Entries::default();
        let [late, early, same] = [7, 3, 3].map(|due| entries.key(due));
        for key in [late, early, same] {
            assert!(entries.put(key, Waker::noop().clone()).is_none());
        }
        assert!(entries.put(same, Waker::noop().clone()).is_some());
        assert_eq!(entries.first(), Some(3));
        assert_eq!(entries.take_due(2).len(), 0);
        assert_eq!(entries.take_due(6).len(), 2);
        assert!(entries.remove(early).is_none() && entries.remove(late).is_some());
        assert_eq!(
            (entries.first(), entries.take_due(Tick::MAX).len(), entries.take_all().len()),
            (None, 0, 0)
        );
    }
}
