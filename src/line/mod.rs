//! [`Line`]: the list of sleepers, of which one is woken when there is a reason. Followers wait in a line for
//! leadership, runners in another one for tasks.
//!
//! ```text
//!            enter                   call
//!   awake ---------> in the line ------------> called, on the way
//!     ^                  |                        |
//!     |      leave       |         leave          |
//!     +------------------+------------------------+
//! ```
//!
//! **No reason to wake a sleeper is lost.** A caller makes its reason visible, passes a fence and reads the
//! line ([`call`](Line::call)). A thread that is about to sleep enters the line, passes a fence and looks for
//! reasons. The two fences are sequentially consistent, so they have an order:
//!
//! - If the fence of the call is first, the entering thread sees the reason and does not sleep.
//! - If the fence of the entering thread is first, the call finds its entry. Otherwise another call has taken
//!   the entry, or the thread has left by itself; in both cases the thread is awake, and enters anew before
//!   it sleeps.
//!
//! **At most one sleeper is on the way** (LF4). While a called sleeper has not left, no other is called: a
//! hundred reasons at once wake one thread and not a hundred. A call that finds the flag `on_the_way` set
//! relies on the called sleeper. The called sleeper clears the flag, passes a fence and looks for reasons.
//! The call has read the flag before it was cleared, so the fence of the call is first, and the sleeper sees
//! its reason. A called sleeper that takes nothing, or leaves more than it takes, calls the next one.
//!
//! **The flag is set only while a called sleeper exists.** A call sets it under the lock, after it has taken
//! a sleeper from the list. If a call set the flag first and then found no sleeper, other calls would rely on
//! a thread that does not exist. The taken sleeper clears the flag after it has held the same lock, so never
//! before the flag is set.
//!
//! **A sleeper that leaves while it is called** learns from the list, under the lock, which came first. There
//! is no third case: a sleeper that is no longer on the list was called, is about to be woken, and answers
//! for the call, also if it leaves for good. What a call has to tell its sleeper is [marked](Line::marking)
//! under the same lock, so a sleeper that leaves never waits for its caller.
//!
//! **A called sleeper may fail to run.** The deputy notices and has [another one](Line::call_another) called.
//! Then two are on the way. The first of them that leaves clears the flag for both, so a later call may wake
//! one more than is needed. Both look for reasons after they have cleared the flag, so no reason is lost.

use std::collections::VecDeque;

use crate::sync::{self, Arc, AtomicBool, AtomicU8, AtomicUsize, Mutex, Ordering};

/// Number of pieces of work left from which on [waking a sleeper](Line::is_wake_worth) pays.
const WORTH_A_WAKE: usize = 2;

/// Selects which sleeper of the best rank is woken first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WakeOrder {
    /// The sleeper that parked last: its caches are warm, and threads that are not needed stay asleep.
    #[default]
    LastInFirstOut,
    /// The sleeper that has waited longest: work spreads over all threads.
    FirstInFirstOut,
}

/// The claim of a thread to lead, or of a runner to be woken; the better claim is the greater value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// The thread exists only to lead, and leads only while neither a host nor a guest can.
    Relief,
    /// The thread only awaits a future, and leads only while no host can. As a runner: a stranger polls it,
    /// and may never do so again.
    Guest,
    /// The thread hosts a runner and polls the tasks that its events wake, and leads whenever it can.
    Host,
}

/// Returns the value of [`Line::best`] for a line in which this is the best rank.
#[inline]
fn claim(rank: Rank) -> u8 {
    rank as u8 + 1
}

/// The sleepers, and the threads that are about to sleep. Each of them is in the line at most once.
#[derive(Debug)]
pub(crate) struct Line<T> {
    order: WakeOrder,
    /// The best rank in `waiting`, see [`claim`], or zero if the line is empty. Written under the lock of
    /// `waiting`: a hint that saves taking it.
    best: AtomicU8,
    /// Whether a sleeper was called that has not left.
    on_the_way: AtomicBool,
    /// Pieces of work that have to be left before waking a sleeper pays.
    worth_a_wake: AtomicUsize,
    /// The sleepers in the order in which they entered.
    waiting: Mutex<VecDeque<(Rank, Arc<T>)>>,
    /// Called under the lock with each sleeper that a call takes.
    mark: fn(&T),
}

/// The result of a call.
#[derive(Debug)]
#[must_use]
pub(crate) enum Called<T> {
    /// No sleeper in the line has a sufficient rank. If the line is empty, a sleeper that was called before
    /// may be on the way all the same.
    NoSleeper,
    /// A sleeper that was called before is on the way, and will see the reason.
    OnTheWay,
    /// The caller has to wake this sleeper.
    Wake(Arc<T>),
}

impl<T> Line<T> {
    /// Makes an empty line. `order` says which sleeper of the best rank is called first.
    pub(crate) fn new(order: WakeOrder) -> Self {
        Self::marking(order, |_| ())
    }

    /// Does the same, for sleepers that a call marks before it wakes them. A called sleeper that
    /// [leaves](Self::leave) has its mark, even if its caller has not woken it yet. `mark` is called with the
    /// lock held.
    pub(crate) fn marking(order: WakeOrder, mark: fn(&T)) -> Self {
        Self {
            order,
            best: AtomicU8::new(0),
            on_the_way: AtomicBool::new(false),
            worth_a_wake: AtomicUsize::new(WORTH_A_WAKE),
            waiting: Mutex::new(VecDeque::new()),
            mark,
        }
    }

    /// Adds `sleeper`, which is about to sleep and has to look for a reason to stay awake after this. Passes
    /// the fence for that.
    pub(crate) fn enter(&self, sleeper: &Arc<T>, rank: Rank) {
        let mut waiting = sync::lock(&self.waiting);
        waiting.push_back((rank, sleeper.clone()));
        let best = self.best.load(Ordering::Relaxed).max(claim(rank));
        self.best.store(best, Ordering::Relaxed);
        drop(waiting);
        // ORDER: pairs with the fence in `call`. Either this thread sees the caller's reason, or the caller
        // sees this entry.
        sync::full_fence();
    }

    /// Removes `sleeper`, which is awake and has entered since it left last. Returns whether it was called:
    /// then no sleeper is on its way any more, and this one has to look for a reason after this, and to call
    /// the next sleeper if it leaves reasons behind.
    pub(crate) fn leave(&self, sleeper: &Arc<T>) -> bool {
        let mut waiting = sync::lock(&self.waiting);
        // From the back: a sleeper that leaves by itself has usually entered recently.
        if let Some(at) = waiting.iter().rposition(|(_, other)| Arc::ptr_eq(other, sleeper)) {
            waiting.remove(at);
            self.update_best(&waiting);
            return false;
        }
        drop(waiting);
        self.on_the_way.store(false, Ordering::Relaxed);
        // ORDER: pairs with the fence in `call`. If a caller still saw the flag, its reason is visible to
        // this thread.
        sync::full_fence();
        true
    }

    /// Writes the hint after a sleeper was removed. The caller holds the lock.
    fn update_best(&self, waiting: &VecDeque<(Rank, Arc<T>)>) {
        let best = waiting.iter().map(|(rank, _)| claim(*rank)).max().unwrap_or(0);
        self.best.store(best, Ordering::Relaxed);
    }

    /// Returns whether the line is empty. A hint, read without the lock.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.best.load(Ordering::Relaxed) == 0
    }

    /// Returns the sleepers in the line, in the order in which they entered.
    pub(crate) fn waiting(&self) -> Vec<Arc<T>> {
        sync::lock(&self.waiting).iter().map(|(_, sleeper)| sleeper.clone()).collect()
    }

    /// Returns whether a call now would wake a sleeper: a sleeper with a rank of at least `reach` is in the
    /// line, and no called sleeper is still on its way. A hint, read without a fence.
    #[inline]
    pub(crate) fn has_sleeper(&self, reach: Rank) -> bool {
        self.best.load(Ordering::Relaxed) >= claim(reach) && !self.has_called()
    }

    /// Returns whether to wake a sleeper to share the work: at least [`WORTH_A_WAKE`] pieces are left beside
    /// the piece that the caller does itself, or pieces are [long](Self::set_long_pieces); and a sleeper with
    /// a rank of at least `reach` is in the line, and no sleeper that was called is still on its way. The
    /// caller counts the events of the batch, or the tasks that wait.
    ///
    /// A wake costs a futex call and a switch of threads, about as much as a short request. The caller has
    /// done a single short piece before a woken thread arrives, so for that piece the wake is wasted; two
    /// pieces or more occupy both threads. Where pieces are long, the woken thread arrives in time for the
    /// next piece: with two connections two events are never left, and without this case one thread would do
    /// all the work.
    ///
    /// A woken leader asks the same question, and a woken runner calls the next one while any task is left.
    /// So wakes form a chain until all threads work or less is left.
    ///
    /// Skipping a wake loses no work: the caller takes the next piece itself, and if it blocks or computes
    /// instead, the deputy notices.
    #[inline]
    pub(crate) fn is_wake_worth(&self, reach: Rank, left: impl FnOnce() -> usize) -> bool {
        // If all threads are awake, which is usual under load, the count is not needed.
        self.has_sleeper(reach) && left() >= self.worth_a_wake.load(Ordering::Relaxed)
    }

    /// Sets whether the pieces of work are long: then waking a sleeper pays even if no piece is left.
    pub(crate) fn set_long_pieces(&self, are_long: bool) {
        self.worth_a_wake.store(if are_long { 0 } else { WORTH_A_WAKE }, Ordering::Relaxed);
    }

    /// Returns whether a sleeper was called that has not left. A hint, read without a fence.
    #[inline]
    pub(crate) fn has_called(&self) -> bool {
        self.on_the_way.load(Ordering::Relaxed)
    }

    /// Returns whether a sleeper of better rank is in the line. A hint, read without a fence: a leader that
    /// asks before it sleeps has passed one since it announced the sleep, and the sleeper passes the fence of
    /// [`enter`](Self::enter) before it looks whether to interrupt the leader.
    pub(crate) fn has_better(&self, than: Rank) -> bool {
        self.best.load(Ordering::Relaxed) > claim(than)
    }

    /// Takes the best sleeper with a rank of at least `reach` out of the line, unless a sleeper that was
    /// called is still on its way. Wakes none: the caller does. The reason has to be visible before this.
    #[inline]
    pub(crate) fn call(&self, reach: Rank) -> Called<T> {
        // ORDER: pairs with the fences in `enter` and `leave`. A thread that enters or leaves sees the
        // reason, or this call sees its entry or its cleared flag.
        sync::full_fence();
        self.invite(reach)
    }

    /// Takes a sleeper out of the line as [`call`](Line::call) does, without the fence. Unless the caller has
    /// passed a fence since its reason became visible, a thread that enters or leaves at this moment may miss
    /// the reason.
    #[inline]
    pub(crate) fn invite(&self, reach: Rank) -> Called<T> {
        if self.is_empty() {
            return Called::NoSleeper;
        }
        if self.has_called() { Called::OnTheWay } else { self.choose(reach, Self::has_called) }
    }

    /// Does the same as [`call`](Line::call), even if a called sleeper is on the way: that sleeper may never
    /// run.
    pub(crate) fn call_another(&self, reach: Rank) -> Called<T> {
        self.choose(reach, |_| false)
    }

    /// Takes the best sleeper with a rank of at least `reach` out of the line, and marks it as on its way.
    /// Returns [`Called::OnTheWay`], and takes none, if `is_settled`, which is asked under the lock.
    #[cold]
    fn choose(&self, reach: Rank, is_settled: impl FnOnce(&Self) -> bool) -> Called<T> {
        let mut waiting = sync::lock(&self.waiting);
        if is_settled(self) {
            return Called::OnTheWay;
        }
        let ranks = waiting.iter().map(|(rank, _)| *rank).enumerate();
        // Of several equal ranks, `max_by_key` returns the last.
        let best = match self.order {
            WakeOrder::LastInFirstOut => ranks.max_by_key(|(_, rank)| *rank),
            WakeOrder::FirstInFirstOut => ranks.rev().max_by_key(|(_, rank)| *rank),
        };
        let Some((at, _)) = best.filter(|(_, rank)| *rank >= reach) else { return Called::NoSleeper };
        let (_, sleeper) = waiting.remove(at).expect("it was found there");
        self.update_best(&waiting);
        self.on_the_way.store(true, Ordering::Relaxed);
        (self.mark)(&sleeper);
        Called::Wake(sleeper)
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

    /// Calls all sleepers with a rank of at least `reach`, one after the other.
    fn called(order: WakeOrder, reach: Rank) -> Vec<&'static str> {
        let line = Line::new(order);
        ALL.into_iter().for_each(|(rank, name)| line.enter(&Arc::new(name), rank));
        let next = || match line.call(reach) {
            Called::Wake(sleeper) => {
                assert!(matches!(line.call(reach), Called::OnTheWay | Called::NoSleeper), "one at a time");
                assert!(line.leave(&sleeper));
                Some(*sleeper)
            }
            Called::OnTheWay => unreachable!("the called sleeper has left"),
            Called::NoSleeper => None,
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn the_best_rank_comes_first_and_of_these_the_last_or_the_first_that_came() {
        use WakeOrder::{FirstInFirstOut, LastInFirstOut};
        let lifo = ["host 2", "host 1", "guest 2", "guest 1", "relief"];
        let fifo = ["host 1", "host 2", "guest 1", "guest 2", "relief"];
        for (reach, count) in [(Rank::Host, 2), (Rank::Guest, 4), (Rank::Relief, 5)] {
            assert_eq!(called(LastInFirstOut, reach), lifo[..count]);
            assert_eq!(called(FirstInFirstOut, reach), fifo[..count]);
        }
    }

    #[test]
    fn a_wake_is_worth_it_if_two_pieces_are_left_and_no_sleeper_is_on_its_way() {
        let line = Line::new(WakeOrder::default());
        assert!(!line.is_wake_worth(Rank::Host, || 9), "no sleeper");
        let sleepers = [(); 2].map(Arc::new);
        sleepers.iter().for_each(|sleeper| line.enter(sleeper, Rank::Host));
        assert_eq!(
            [0, 1, 2, 9].map(|left| line.is_wake_worth(Rank::Host, || left)),
            [false, false, true, true]
        );
        let Called::Wake(called) = line.call(Rank::Host) else { panic!("a sleeper waits") };
        assert!(!line.is_wake_worth(Rank::Host, || 9), "a sleeper is on its way");
        assert!(line.leave(&called));
        assert!(line.is_wake_worth(Rank::Host, || 2), "the next one may be woken");
        let by_length = [true, false].map(|are_long| {
            line.set_long_pieces(are_long);
            [0, 1, 2].map(|left| line.is_wake_worth(Rank::Host, || left))
        });
        assert_eq!(by_length, [[true; 3], [false, false, true]], "long pieces are worth a wake each");
    }

    #[test]
    fn a_sleeper_that_leaves_by_itself_was_not_called_and_cannot_be() {
        let line = Line::new(WakeOrder::default());
        let [guest, host] = [(); 2].map(Arc::new);
        line.enter(&guest, Rank::Guest);
        line.enter(&host, Rank::Host);
        assert!(line.has_better(Rank::Guest) && !line.has_better(Rank::Host));
        assert!(line.has_sleeper(Rank::Host));
        assert!(!line.leave(&host));
        assert!(line.has_better(Rank::Relief) && !line.has_better(Rank::Guest));
        assert!(line.has_sleeper(Rank::Guest) && !line.has_sleeper(Rank::Host));
        assert!(matches!(line.call(Rank::Relief), Called::Wake(called) if Arc::ptr_eq(&called, &guest)));
        assert!(line.is_empty() && line.has_called());
    }
}
