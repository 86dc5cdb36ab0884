//! The list of the tasks that wait for a source beside the task in its cell, for example two tasks in
//! `accept`, or two that read clones of one stream.
//!
//! Such waiters are rare, so the list costs a pointer until it is used. Only their wakers tell the waiters
//! apart, and a task may stop waiting without notice: its future is dropped, or its `poll_` function is not
//! called again. So that a source that stays silent does not keep the wakers of all tasks that ever waited,
//! all waiters are woken when their number has doubled. A task that still waits comes back. One that has not
//! come back by the next time was woken after its last poll, so it can be forgotten. Of N tasks that have
//! given up, up to some `24 * sqrt(N)` are kept, and a poll compares its waker with all of them.
//!
//! Wakers are called and dropped outside the lock (LF3).

use std::mem;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use super::Direction;
use crate::sync::{self, Mutex};
use crate::waking;

/// The waiters of both directions of a source.
#[derive(Debug, Default)]
pub(super) struct Waiters(OnceLock<Box<[Mutex<WaiterList>; 2]>>);

#[derive(Debug, Default)]
struct WaiterList {
    /// The wakers in the order of their arrival, and whether each was called since its task last came.
    waiting: Vec<(Arc<Waker>, bool)>,
    /// How many of them were kept when all were woken last.
    kept: usize,
}

/// How many waiters may come before all of them are woken for the first time. Each may keep the memory of a
/// task, so they are few; but a task that is woken without an event is polled for nothing.
const FEW: usize = 64;

impl WaiterList {
    /// Adds a waiter. Returns the waiters that have to be woken.
    fn add(&mut self, waker: Arc<Waker>) -> Vec<Arc<Waker>> {
        let mut woken = Vec::new();
        if self.waiting.len() >= FEW + 2 * self.kept {
            woken.extend(self.waiting.iter().map(|(waker, _)| waker.clone()));
            self.waiting.retain(|(_, called)| !called);
            self.waiting.iter_mut().for_each(|(_, called)| *called = true);
            self.kept = self.waiting.len();
        }
        self.waiting.push((waker, false));
        woken
    }
}

impl Waiters {
    /// Adds a waiter, with a clone of `waker`, unless a waker is there that wakes the same task.
    pub(super) fn add(&self, direction: Direction, waker: &Waker) {
        let list = &self.0.get_or_init(Default::default)[direction as usize];
        if let Some((_, called)) = sync::lock(list).waiting.iter_mut().find(|(it, _)| it.will_wake(waker)) {
            *called = false;
            return;
        }
        let waker = Arc::new(waker.clone());
        let woken = sync::lock(list).add(waker);
        woken.into_iter().for_each(wake);
    }

    /// Empties the lists for the next source, and drops the wakers of the waiters: their source is gone.
    pub(super) fn forget(&self) {
        let lists = self.0.get().into_iter().flat_map(|lists| &**lists);
        let waiting = lists.flat_map(|list| mem::take(&mut *sync::lock(list)).waiting);
        waiting.for_each(|(waker, _)| waking::discard(Arc::into_inner(waker)));
    }

    /// Removes the waiters of a direction from its list and wakes them.
    #[cold]
    pub(super) fn wake_all(&self, direction: Direction) {
        let lists = self.0.get();
        let waiting = lists.map(|lists| mem::take(&mut sync::lock(&lists[direction as usize]).waiting));
        waiting.into_iter().flatten().for_each(|(waker, _)| wake(waker));
    }
}

fn wake(waker: Arc<Waker>) {
    waking::wake_by_ref(&waker);
    waking::discard(Arc::into_inner(waker));
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use std::sync::Weak;

    use super::*;
    use crate::waking::WakeCounter;
    use Direction::Read;

    /// Fails if only a certain number of waiters can sleep: then the tasks wake each other for ever.
    #[test]
    #[cfg_attr(miri, ignore = "a vtable has several addresses there, so that a waker may not know its copy")]
    fn any_number_of_waiters_sleeps() {
        let waiters = Waiters::default();
        let tasks: Vec<_> = (0..100).map(|_| WakeCounter::new()).collect();
        let mut polls = vec![0; tasks.len()];
        let mut come = |times: usize| {
            for _ in 0..times {
                for (polls, (counter, waker)) in polls.iter_mut().zip(&tasks) {
                    if *polls <= counter.times() {
                        waiters.add(Read, waker);
                        *polls = counter.times() + 1;
                    }
                }
            }
        };
        come(10);
        let before: usize = tasks.iter().map(|(counter, _)| counter.times()).sum();
        assert!(before < 10 * tasks.len(), "{before} wakes until all sleep");
        come(10);
        tasks.iter().for_each(|(_, waker)| waiters.add(Read, waker));
        assert_eq!(tasks.iter().map(|(counter, _)| counter.times()).sum::<usize>(), before, "all sleep");
        waiters.wake_all(Read);
        assert_eq!(tasks.iter().map(|(counter, _)| counter.times()).sum::<usize>(), before + tasks.len());
    }

    /// Fails if a silent source keeps the wakers of all tasks that ever waited, or forgets one that waits.
    #[test]
    fn waiters_that_are_gone_are_forgotten_and_one_that_comes_back_is_not() {
        let waiters = Waiters::default();
        let (stays, waker) = WakeCounter::new();
        let (mut polls, mut gone) = (0, Vec::<Weak<WakeCounter>>::new());
        for _ in 0..10_000 {
            if polls <= stays.times() {
                waiters.add(Read, &waker);
                polls = stays.times() + 1;
            }
            let (counter, waker) = WakeCounter::new();
            waiters.add(Read, &waker);
            gone.push(Arc::downgrade(&counter));
        }
        let kept = gone.iter().filter(|waker| waker.strong_count() > 0).count();
        assert!(kept < 2400, "{kept} of {} wakers are kept", gone.len());
        let before = stays.times();
        waiters.wake_all(Read);
        assert!(stays.times() > before);
    }

    /// Fails if the list of a source takes over how many waiters the source before it had.
    #[test]
    fn a_source_starts_with_a_list_of_its_own() {
        let waiters = Waiters::default();
        let (mut polls, tasks) = (vec![0; 1_000], [(); 1_000].map(|()| WakeCounter::new()));
        for _ in 0..10 {
            for (polls, (counter, waker)) in polls.iter_mut().zip(&tasks) {
                if *polls <= counter.times() {
                    waiters.add(Read, waker);
                    *polls = counter.times() + 1;
                }
            }
        }
        waiters.forget();
        let (first, waker) = WakeCounter::new();
        waiters.add(Read, &waker);
        for _ in 0..FEW {
            waiters.add(Read, &WakeCounter::new().1);
        }
        assert_eq!(first.times(), 1, "all are woken when the first few have come");
    }
}
