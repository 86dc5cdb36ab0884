//! [`Door`]: who is inside of a strand, and what waits to be run there.
//!
//! | word | meaning | next |
//! |---|---|---|
//! | `FREE` | nobody is inside, nothing waits | [`enter`](Door::enter), [`queue`](Door::queue) |
//! | `HELD` | somebody is inside; nothing has come since | [`leave`](Inside::leave), [`open`](Inside::open), `queue` |
//! | a node | somebody is inside; this came last, and the rest hangs on it | [`fetch`](Inside::fetch), `queue` |
//! | `OPEN` | nobody is inside, the backlog is not empty, and a relay is on its way | [`take_over`](Door::take_over), `queue` |
//!
//! The README beside this file says why nothing is lost and nothing overlaps.

use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic;
use std::task::Waker;

use crate::executor;
use crate::frame;
use crate::sync::{AtomicPtr, Ordering, ProtocolCell};
use crate::waking;

/// Something that is to be done inside.
pub(super) trait Operation<T>: Send + Sync + Sized {
    /// Called inside, once for each time that it was queued. May panic, which ends here.
    fn run(this: &Arc<Linked<T, Self>>, state: &mut T);
}

/// The part of a queued operation that the door knows.
pub(super) struct Node<T> {
    /// Written by who queues it, then by who is inside.
    next: AtomicPtr<Node<T>>,
    /// Runs the operation, whatever its type. To be called inside, with what `Linked::into_node` gave.
    run: unsafe fn(*mut Node<T>, &mut T),
}

/// An operation that can be queued. `repr(C)`, because the door sees the node at its beginning and nothing else.
#[repr(C)]
pub(super) struct Linked<T, O> {
    node: Node<T>,
    pub(super) operation: O,
}

impl<T, O: Operation<T>> Linked<T, O> {
    pub(super) fn new(operation: O) -> Arc<Self> {
        Arc::new(Self { node: Node { next: AtomicPtr::new(ptr::null_mut()), run: Self::run }, operation })
    }

    fn into_node(self: Arc<Self>) -> *mut Node<T> {
        Arc::into_raw(self).cast_mut().cast()
    }

    /// # Safety
    ///
    /// The node is from `into_node`, and this is the only call for it.
    unsafe fn run(node: *mut Node<T>, state: &mut T) {
        // SAFETY: as the caller promises; the node is at the beginning of what it is a part of.
        let this = unsafe { Arc::from_raw(node.cast::<Self>()) };
        O::run(&this, state);
    }
}

/// A state, and the word that says who may touch it.
pub(super) struct Door<T> {
    word: AtomicPtr<Node<T>>,
    /// Touched by who is inside.
    state: ProtocolCell<T>,
    /// What was queued and fetched, first come first; touched by who is inside. Empty while the word is `FREE`.
    backlog: ProtocolCell<Backlog<T>>,
    /// Where on which thread's stack somebody is inside, or 0. Std's atomic: a thread looks only for what it wrote itself.
    place: atomic::AtomicUsize,
}

// SAFETY: who is inside touches the cells, and one thread is at a time; each may be another one, so the state is `Send`. What
// is queued is `Send`, as `Operation` demands.
unsafe impl<T: Send> Send for Door<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Door<T> {}

/// The right to touch what is inside, until it is given up in one of three ways: `leave`, `drain` or `open`.
#[must_use = "nobody else gets in until it is given up"]
pub(super) struct Inside<'a, T>(&'a Door<T>);

/// How somebody left.
#[must_use = "what waits relies on a relay"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing waits.
    Free,
    /// Something does, and this thread has done its share: it has to send a relay.
    Open,
}

impl<T> Door<T> {
    const FREE: *mut Node<T> = ptr::null_mut();
    const HELD: *mut Node<T> = ptr::without_provenance_mut(1);
    const OPEN: *mut Node<T> = ptr::without_provenance_mut(2);

    pub(super) fn new(state: T) -> Self {
        Self {
            word: AtomicPtr::new(Self::FREE),
            state: ProtocolCell::new(state),
            backlog: ProtocolCell::new(Backlog::EMPTY),
            place: atomic::AtomicUsize::new(0),
        }
    }

    /// Enters, if nobody is inside and nothing waits.
    #[inline]
    pub(super) fn enter(&self) -> Option<Inside<'_, T>> {
        self.exchange(Self::FREE, Self::HELD).then(|| Inside::of(self))
    }

    /// A relay has come: enters, if something waits and nobody else has come for it.
    pub(super) fn take_over(&self) -> Option<Inside<'_, T>> {
        self.exchange(Self::OPEN, Self::HELD).then(|| Inside::of(self))
    }

    #[inline]
    fn exchange(&self, from: *mut Node<T>, to: *mut Node<T>) -> bool {
        // ORDER: Acquire, to get in, pairs with the Release of who left: what it did inside is seen.
        self.word.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Leaves an operation for who is inside. If that is nobody, the caller is, and has to [`drain`](Inside::drain).
    pub(super) fn queue<O: Operation<T>>(&self, operation: Arc<Linked<T, O>>) -> Option<Inside<'_, T>> {
        let node = operation.into_node();
        // SAFETY: the node is kept alive by the count that it was made of, until it is run.
        let next = unsafe { &(*node).next };
        let mut now = self.word.load(Ordering::Relaxed);
        loop {
            if now == Self::FREE || now == Self::OPEN {
                if self.exchange(now, Self::HELD) {
                    let inside = Inside::of(self);
                    next.store(ptr::null_mut(), Ordering::Relaxed);
                    inside.backlog(|backlog| backlog.push(node));
                    return Some(inside);
                }
                now = self.word.load(Ordering::Relaxed);
                continue;
            }
            let rest = if now == Self::HELD { ptr::null_mut() } else { now };
            next.store(rest, Ordering::Relaxed);
            // ORDER: Release pairs with the Acquire of `fetch`, which sees the operation, and those below it, too: this
            // continues their release sequences.
            match self.word.compare_exchange_weak(now, node, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return None,
                Err(other) => now = other,
            }
        }
    }

    /// Whether who waits for an operation of its own with this waker waits for itself: the waker is that of a `block_on` on top
    /// of this thread's stack, and further down the same thread is inside.
    pub(super) fn would_wait_for_itself(&self, waker: &Waker) -> bool {
        let place = self.place.load(Ordering::Relaxed);
        place != 0 && executor::is_awaited_on_top(waker) && frame::here(|here| here.is_below(place))
    }
}

impl<T> fmt::Debug for Door<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.load(Ordering::Relaxed);
        f.write_str(match word {
            _ if word == Self::FREE => "free",
            _ if word == Self::HELD => "held",
            _ if word == Self::OPEN => "open",
            _ => "held, and others wait",
        })
    }
}

impl<'a, T> Inside<'a, T> {
    #[inline]
    fn of(door: &'a Door<T>) -> Self {
        let inside = Self(door);
        inside.says_where();
        inside
    }

    #[inline]
    fn says_where(&self) {
        self.0.place.store(frame::here(|here| here.place()), Ordering::Relaxed);
    }

    /// Shows `f` the state.
    #[inline]
    pub(super) fn with<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: this is the one who is inside.
        unsafe { self.0.state.with_mut(f) }
    }

    fn backlog<R>(&self, f: impl FnOnce(&mut Backlog<T>) -> R) -> R {
        // SAFETY: this is the one who is inside, and `f` calls nobody who could come here again.
        unsafe { self.0.backlog.with_mut(f) }
    }

    /// Leaves, unless somebody has queued something. For who entered where nothing waited, or has seen to all of it.
    #[inline]
    pub(super) fn leave(self) -> Result<(), Self> {
        if self.gives_up(Door::<T>::FREE) {
            return Ok(());
        }
        self.says_where();
        Err(self)
    }

    /// Leaves what waits to others.
    pub(super) fn open(self) -> Left {
        while !self.gives_up(Door::<T>::OPEN) {
            self.fetch();
        }
        Left::Open
    }

    #[inline]
    fn gives_up(&self, to: *mut Node<T>) -> bool {
        // Before anybody else can be inside.
        self.0.place.store(0, Ordering::Relaxed);
        // ORDER: Release pairs with the Acquire of who enters next.
        let given = self.0.word.compare_exchange(Door::<T>::HELD, to, Ordering::Release, Ordering::Relaxed);
        given.is_ok()
    }

    /// Runs what waits, `limit` of it at most, and leaves.
    pub(super) fn drain(mut self, limit: usize) -> Left {
        for _ in 0..limit {
            while self.backlog(|backlog| backlog.is_empty()) {
                match self.leave() {
                    Ok(()) => return Left::Free,
                    Err(inside) => self = inside,
                }
                self.fetch();
            }
            let node = self.backlog(Backlog::pop);
            // SAFETY: it was queued, and has been taken out once.
            waking::call(|| self.with(|state| unsafe { ((*node).run)(node, state) }));
        }
        if !self.backlog(|backlog| backlog.is_empty()) {
            return self.open();
        }
        // Where something has come, `open` fetches it.
        self.leave().map_or_else(Self::open, |()| Left::Free)
    }

    /// Takes what has come into the backlog.
    fn fetch(&self) {
        // ORDER: Acquire pairs with the Release of each `queue` whose operation is taken.
        let last = self.0.word.swap(Door::<T>::HELD, Ordering::Acquire);
        if last != Door::<T>::HELD {
            self.backlog(|backlog| backlog.append(last));
        }
    }
}

/// Operations in the order in which they came.
struct Backlog<T> {
    first: *mut Node<T>,
    last: *mut Node<T>,
}

impl<T> Backlog<T> {
    const EMPTY: Self = Self { first: ptr::null_mut(), last: ptr::null_mut() };

    fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Appends one that nothing hangs on.
    fn push(&mut self, node: *mut Node<T>) {
        if self.is_empty() {
            self.first = node;
        } else {
            // SAFETY: what is queued stays until it is run, and that is not before it was popped.
            unsafe { (*self.last).next.store(node, Ordering::Relaxed) };
        }
        self.last = node;
    }

    /// Appends `last` and what hangs on it, which came before it.
    fn append(&mut self, last: *mut Node<T>) {
        let (mut first, mut node) = (ptr::null_mut(), last);
        while !node.is_null() {
            // SAFETY: as in `push`.
            let next = unsafe { &(*node).next };
            let before = next.load(Ordering::Relaxed);
            next.store(first, Ordering::Relaxed);
            first = node;
            node = before;
        }
        self.push(first);
        self.last = last;
    }

    /// The first of them; there is one.
    fn pop(&mut self) -> *mut Node<T> {
        let first = self.first;
        // SAFETY: as in `push`.
        self.first = unsafe { (*first).next.load(Ordering::Relaxed) };
        first
    }
}
