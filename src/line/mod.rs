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
//! **No reason to wake somebody is lost.** Who has one makes it visible, fence, looks at the line ([`call`](Line::call)); who
//! is about to sleep enters the line, fence, looks for reasons. Of two fences one is first, so at least one of the two sees
//! the other.
//!
//! **One at a time.** While somebody who was called has not left, nobody else is: a hundred reasons at once wake one thread and
//! not a hundred (LF4). That is enough, because who leaves after a call ends that, fence, looks for reasons, and calls the
//! next one if there are more than it takes. Whether it comes at all is the deputy's to see, who calls
//! [`another`](Line::call_another).
//!
//! The flag that says so is set under the lock, and only for somebody: it never stands for a look that finds nobody (L8). It is
//! cleared by who was taken out of the list under the same lock before, so never before it is set.

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

/// Those who sleep, or are about to.
#[derive(Debug)]
pub(crate) struct Line<T> {
    order: Order,
    /// How many; a hint that saves the lock.
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
    /// Nobody waits.
    Nobody,
    /// Somebody who was called before is on the way.
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
        // ORDER: pairs with the fence in `call`.
        sync::full_fence();
    }

    /// `who` is awake. True if it was called: then it looks for a reason after this, and calls the next one if it leaves some.
    pub(crate) fn leave(&self, who: &Arc<T>) -> bool {
        let mut waiting = sync::lock(&self.waiting);
        // From the back: who leaves by itself came lately more often than not.
        if let Some(at) = waiting.iter().rposition(|(_, other)| Arc::ptr_eq(other, who)) {
            let left = waiting.remove(at);
            self.length.store(waiting.len(), Ordering::Relaxed);
            drop(waiting);
            drop(left);
            return false;
        }
        drop(waiting);
        self.on_the_way.store(false, Ordering::Relaxed);
        // ORDER: pairs with the fence in `call`: whoever still saw the flag has left a reason that we see.
        sync::full_fence();
        true
    }

    /// Whether nobody waits, as far as one can tell without a lock.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.length.load(Ordering::Relaxed) == 0
    }

    /// Whether somebody was called who has not left.
    #[inline]
    pub(crate) fn somebody_comes(&self) -> bool {
        self.on_the_way.load(Ordering::Relaxed)
    }

    /// Whether somebody waits whose rank is better.
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

    /// The same without the fence: somebody who enters at this very moment may be missed.
    #[inline]
    pub(crate) fn invite(&self, reach: Rank) -> Called<T> {
        if self.is_empty() {
            return Called::Nobody;
        }
        if self.somebody_comes() { Called::OnTheWay } else { self.choose(reach, |line| line.somebody_comes()) }
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
        let Some(best) = waiting.iter().map(|(rank, _)| *rank).max().filter(|best| *best >= reach) else {
            return Called::Nobody;
        };
        let is_best = |(rank, _): &(Rank, _)| *rank == best;
        let at = match self.order {
            Order::LastInFirstOut => waiting.iter().rposition(is_best),
            Order::FirstInFirstOut => waiting.iter().position(is_best),
        };
        let (_, who) = at.and_then(|at| waiting.remove(at)).expect("the best one is there");
        self.length.store(waiting.len(), Ordering::Relaxed);
        self.on_the_way.store(true, Ordering::Relaxed);
        Called::Wake(who)
    }
}
