//! [`Line`]: those who sleep until one of them is wanted. Followers wait in one for leadership, runners in one for tasks.
//!
//! ```text
//!            enter                   call
//!   awake ---------> in the line ------------> called, on the way
//!     ^                  |                        |
//!     |      leave       |         leave          |
//!     +------------------+------------------------+
//! ```
//!
//! **No reason to wake somebody is lost.** Who has one makes it visible, fence, looks at the line ([`call`](Line::call)). Who
//! is about to sleep enters the line, fence, looks for reasons. Two sequentially consistent fences have an order.
//!
//! - The fence of the call is first: who enters sees the reason, and does not sleep.
//! - The fence of who enters is first: the call finds it. Or somebody else has called it, or it has left by itself: then it
//!   is awake, and enters anew before it sleeps.
//!
//! **One on the way at a time** (LF4). While somebody who was called has not left, nobody else is: a hundred reasons at once
//! wake one thread and not a hundred. So a call that finds the flag set relies on somebody to look after it. That one clears
//! the flag, fence, looks for reasons; the call has read the flag as it was before, so its fence is first, and its reason is
//! seen. Who was called and leaves more than it takes, or takes nothing, calls the next one.
//!
//! **The flag always stands for somebody** (L8). It is set under the lock, and with somebody in hand. Were it set for a look
//! that then finds nobody, whoever saw it would rely on nobody. It is cleared by who was taken out under the same lock before,
//! so never before it is set.
//!
//! **Who leaves while it is called** (L1, L6) learns from the list, under the lock, which was first. There is no third case:
//! who is not on it any more was called, is about to be woken, and answers for the call; also if it leaves for good.
//!
//! **Whether it comes at all** is the deputy's to see, who has [`another`](Line::call_another) called. Then two are on the
//! way. The first of them that leaves clears the flag for both, so that more are called than are needed; each looks after it
//! has cleared, so nothing is lost.

use std::collections::VecDeque;

use crate::sync::{self, Arc, AtomicBool, AtomicUsize, Mutex, Ordering};

/// Which of those that sleep is woken first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The one that parked last: its caches are warm, and threads that are not needed stay asleep.
    #[default]
    LastInFirstOut,
    /// The one that has waited longest: work spreads over all threads.
    FirstInFirstOut,
}

/// Who comes first; the better claim is the greater one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// It is here only to lead, because nobody else did. It does so where nobody else can.
    Relief,
    /// It only awaits a future, and leads only where no host can. As a runner: it is polled by a stranger, who may not come.
    Guest,
    /// It hosts a runner: tasks that its events wake are polled by it directly. It leads whenever it can.
    Host,
}

/// Those who sleep, or are about to. Each of them is in it once, at most.
#[derive(Debug)]
pub(crate) struct Line<T> {
    order: Order,
    /// How many; a hint that saves the lock, under which it is written.
    length: AtomicUsize,
    /// Somebody was called and has not left.
    on_the_way: AtomicBool,
    /// In the order in which they came.
    waiting: Mutex<VecDeque<(Rank, Arc<T>)>>,
}

/// Whom a call found.
#[derive(Debug)]
#[must_use]
pub(crate) enum Called<T> {
    /// Nobody waits whose rank is good enough.
    Nobody,
    /// Somebody who was called before is on the way, and will see the reason.
    OnTheWay,
    /// The caller wakes this one.
    Wake(Arc<T>),
}

impl<T> Line<T> {
    pub(crate) fn new(order: Order) -> Self {
        Self {
            order,
            length: AtomicUsize::new(0),
            on_the_way: AtomicBool::new(false),
            waiting: Mutex::new(VecDeque::new()),
        }
    }

    /// `who` is about to sleep: it looks for a reason not to after this.
    pub(crate) fn enter(&self, who: &Arc<T>, rank: Rank) {
        let mut waiting = sync::lock(&self.waiting);
        waiting.push_back((rank, who.clone()));
        self.length.store(waiting.len(), Ordering::Relaxed);
        drop(waiting);
        // ORDER: pairs with the fence in `call`. Either we see its reason, or it sees us.
        sync::full_fence();
    }

    /// `who` entered and is awake. True if it was called: then it looks for a reason after this, and calls the next one if it
    /// leaves some.
    pub(crate) fn leave(&self, who: &Arc<T>) -> bool {
        let mut waiting = sync::lock(&self.waiting);
        // From the back: who leaves by itself came lately more often than not.
        if let Some(at) = waiting.iter().rposition(|(_, other)| Arc::ptr_eq(other, who)) {
            waiting.remove(at);
            self.length.store(waiting.len(), Ordering::Relaxed);
            return false;
        }
        drop(waiting);
        self.on_the_way.store(false, Ordering::Relaxed);
        // ORDER: pairs with the fence in `call`. Whoever still saw the flag has left a reason that we see.
        sync::full_fence();
        true
    }

    /// Whether nobody waits, as far as one can tell without a lock.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many wait, as far as one can tell without a lock.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length.load(Ordering::Relaxed)
    }

    /// Those that wait.
    pub(crate) fn waiting(&self) -> Vec<Arc<T>> {
        let mut who = Vec::with_capacity(self.len());
        who.extend(sync::lock(&self.waiting).iter().map(|(_, who)| who.clone()));
        who
    }

    /// Whether somebody was called who has not left.
    #[inline]
    pub(crate) fn somebody_comes(&self) -> bool {
        self.on_the_way.load(Ordering::Relaxed)
    }

    /// Whether somebody waits whose rank is better; as far as one can tell without a fence.
    pub(crate) fn has_better(&self, than: Rank) -> bool {
        !self.is_empty() && sync::lock(&self.waiting).iter().any(|(rank, _)| *rank > than)
    }

    /// There is a reason, which is visible already: takes the best one of those whose rank is `reach` or better out of the line.
    #[inline]
    pub(crate) fn call(&self, reach: Rank) -> Called<T> {
        // ORDER: pairs with the fences in `enter` and `leave`.
        sync::full_fence();
        self.invite(reach)
    }

    /// The same without the fence. If the caller has passed none since the reason became visible, somebody who enters or
    /// leaves at this very moment may miss it.
    #[inline]
    pub(crate) fn invite(&self, reach: Rank) -> Called<T> {
        if self.is_empty() {
            return Called::Nobody;
        }
        if self.somebody_comes() { Called::OnTheWay } else { self.choose(reach, Self::somebody_comes) }
    }

    /// The same if whoever was called may not come.
    pub(crate) fn call_another(&self, reach: Rank) -> Called<T> {
        self.choose(reach, |_| false)
    }

    #[cold]
    fn choose(&self, reach: Rank, is_settled: impl FnOnce(&Self) -> bool) -> Called<T> {
        let mut waiting = sync::lock(&self.waiting);
        if is_settled(self) {
            return Called::OnTheWay;
        }
        let ranks = waiting.iter().map(|(rank, _)| *rank).enumerate();
        // Of several that are equal, `max_by_key` finds the last.
        let best = match self.order {
            Order::LastInFirstOut => ranks.max_by_key(|(_, rank)| *rank),
            Order::FirstInFirstOut => ranks.rev().max_by_key(|(_, rank)| *rank),
        };
        let Some((at, _)) = best.filter(|(_, rank)| *rank >= reach) else { return Called::Nobody };
        let (_, who) = waiting.remove(at).expect("it was found there");
        self.length.store(waiting.len(), Ordering::Relaxed);
        self.on_the_way.store(true, Ordering::Relaxed);
        Called::Wake(who)
    }
}

#[cfg(all(test, paceline_loom))]
mod models;

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    const ALL: [(Rank, &str); 5] = [
        (Rank::Guest, "guest 1"),
        (Rank::Host, "host 1"),
        (Rank::Relief, "relief"),
        (Rank::Host, "host 2"),
        (Rank::Guest, "guest 2"),
    ];

    /// Calls all whose rank is `reach` or better, one after the other.
    fn called(order: Order, reach: Rank) -> Vec<&'static str> {
        let line = Line::new(order);
        ALL.into_iter().for_each(|(rank, name)| line.enter(&Arc::new(name), rank));
        let next = || match line.call(reach) {
            Called::Wake(who) => {
                assert!(matches!(line.call(reach), Called::OnTheWay | Called::Nobody), "one at a time");
                assert!(line.leave(&who));
                Some(*who)
            }
            Called::OnTheWay => unreachable!("who was called has left"),
            Called::Nobody => None,
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn the_best_rank_comes_first_and_of_these_the_last_or_the_first_that_came() {
        use Order::{FirstInFirstOut, LastInFirstOut};
        let lifo = ["host 2", "host 1", "guest 2", "guest 1", "relief"];
        let fifo = ["host 1", "host 2", "guest 1", "guest 2", "relief"];
        for (reach, count) in [(Rank::Host, 2), (Rank::Guest, 4), (Rank::Relief, 5)] {
            assert_eq!(called(LastInFirstOut, reach), lifo[..count]);
            assert_eq!(called(FirstInFirstOut, reach), fifo[..count]);
        }
    }

    #[test]
    fn who_leaves_by_itself_was_not_called_and_cannot_be() {
        let line = Line::new(Order::default());
        let [guest, host] = [(); 2].map(Arc::new);
        line.enter(&guest, Rank::Guest);
        line.enter(&host, Rank::Host);
        assert!(line.has_better(Rank::Guest) && !line.has_better(Rank::Host));
        assert!(!line.leave(&host));
        assert!(line.has_better(Rank::Relief) && !line.has_better(Rank::Guest));
        assert!(matches!(line.call(Rank::Relief), Called::Wake(who) if Arc::ptr_eq(&who, &guest)));
        assert!(line.is_empty() && line.somebody_comes());
    }
}
