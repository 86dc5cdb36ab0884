//! [`Door`]: admits one thread at a time to a strand, and holds the operations that wait to be run there.
//!
//! | word | meaning | next |
//! |---|---|---|
//! | `FREE` | no thread is inside, nothing waits | [`enter`], [`queue`] |
//! | `HELD` | a thread is inside; nothing was queued since | [`leave`], [`open`], [`queue`] |
//! | a node | a thread is inside; this node was queued last, others hang on it | [`fetch`], [`queue`] |
//! | `OPEN` | no thread is inside, operations wait, a relay is on its way | [`take_over`], [`queue`] |
//!
//! [`enter`]: Door::enter
//! [`queue`]: Door::queue
//! [`take_over`]: Door::take_over
//! [`leave`]: Inside::leave
//! [`open`]: Inside::open
//! [`fetch`]: Inside::fetch
//!
//! The README beside this file argues that no operation is lost and that none overlaps another.

use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic;
use std::task::Waker;

use crate::executor;
use crate::sync::{AtomicPtr, Ordering, ProtocolCell};
use crate::waking;

/// An operation that runs inside a strand.
pub(super) trait Operation<T>: Send + Sync + Sized {
    /// Runs the operation, once for each time that it was queued. Called inside. The caller catches a panic
    /// of it.
    fn run(this: &Arc<Linked<T, Self>>, state: &mut T);
}

/// The part of a queued operation that the door knows.
pub(super) struct Node<T> {
    /// The node that was queued before this one. Written by the thread that queues the node, then by the
    /// thread inside.
    next: AtomicPtr<Node<T>>,
    /// Runs the operation, whatever its type. To be called inside, with a pointer from `Linked::into_node`.
    run: unsafe fn(*mut Node<T>, &mut T),
}

/// An operation that can be queued. `repr(C)`, because the door knows only the node at its beginning.
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

    /// Runs the operation and drops the reference that `into_node` turned into the pointer.
    ///
    /// # Safety
    ///
    /// The node is from `into_node`, and this is the only call for it.
    unsafe fn run(node: *mut Node<T>, state: &mut T) {
        // SAFETY: as the caller promises; the node is the first field of a `Linked`, which is `repr(C)`.
        let this = unsafe { Arc::from_raw(node.cast::<Self>()) };
        O::run(&this, state);
    }
}

/// A state, and the word that says which thread may use it.
pub(super) struct Door<T> {
    word: AtomicPtr<Node<T>>,
    /// Used by the thread inside.
    state: ProtocolCell<T>,
    /// The fetched operations, in the order in which they were queued. Used by the thread inside. Empty while
    /// the word is `FREE`.
    backlog: ProtocolCell<Backlog<T>>,
    /// The thread inside, or 0, and in how many `block_on`s it got in: see [`executor::place`]. Atomics of
    /// `std`: a thread looks only for values that it wrote itself.
    place: (atomic::AtomicUsize, atomic::AtomicU32),
}

// SAFETY: only the thread inside uses the cells, and the word admits one thread at a time. Different threads
// may follow each other, so the state is `Send`. Queued operations are `Send`, as `Operation` demands.
unsafe impl<T: Send> Send for Door<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Door<T> {}

/// The right to use the state, until it is given up in one of three ways: `leave`, `drain` or `open`.
#[must_use = "no other thread gets in until it is given up"]
pub(super) struct Inside<'a, T>(&'a Door<T>);

/// How a thread left the door.
#[must_use = "what waits relies on a relay"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DoorExit {
    /// Nothing waits.
    Free,
    /// Operations wait, and this thread has done its share: it has to send a relay.
    Open,
}

impl<T> Door<T> {
    const FREE: *mut Node<T> = ptr::null_mut();
    const HELD: *mut Node<T> = ptr::without_provenance_mut(1);
    const OPEN: *mut Node<T> = ptr::without_provenance_mut(2);

    /// Makes a door with no thread inside, and nothing queued.
    pub(super) fn new(state: T) -> Self {
        Self {
            word: AtomicPtr::new(Self::FREE),
            state: ProtocolCell::new(state),
            backlog: ProtocolCell::new(Backlog::EMPTY),
            place: Default::default(),
        }
    }

    /// Enters if no thread is inside and nothing waits.
    #[inline]
    pub(super) fn enter(&self) -> Option<Inside<'_, T>> {
        self.exchange(Self::FREE, Self::HELD).then(|| Inside::of(self))
    }

    /// Enters if operations wait and no thread has entered for them. For a relay.
    pub(super) fn take_over(&self) -> Option<Inside<'_, T>> {
        self.exchange(Self::OPEN, Self::HELD).then(|| Inside::of(self))
    }

    /// Changes the word from `from` to `to`. Returns false if the word is another one.
    #[inline]
    fn exchange(&self, from: *mut Node<T>, to: *mut Node<T>) -> bool {
        // ORDER: Acquire pairs with the Release of `Inside::try_release`: this thread sees what the last one
        // did inside.
        self.word.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Queues an operation for the thread inside. If there is none, enters, with the operation in the
    /// backlog: then the caller has to [`drain`](Inside::drain).
    pub(super) fn queue<O: Operation<T>>(&self, operation: Arc<Linked<T, O>>) -> Option<Inside<'_, T>> {
        let node = operation.into_node();
        // SAFETY: the node is kept alive by the reference that it was made of, until it is run.
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
            // ORDER: Release pairs with the Acquire of `fetch`, which sees this operation. `fetch` sees the
            // earlier ones, too, because this exchange continues their release sequences.
            match self.word.compare_exchange_weak(now, node, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return None,
                Err(other) => now = other,
            }
        }
    }

    /// Returns whether an operation that is awaited with this waker could never run, because its awaiter
    /// blocks the thread inside: the waker is that of a `block_on` on top of this thread's stack, and the
    /// same thread is inside further down.
    pub(super) fn would_wait_for_itself(&self, waker: &Waker) -> bool {
        let ((thread, depth), (inside, at)) = (executor::place(), &self.place);
        let is_below = inside.load(Ordering::Relaxed) == thread && at.load(Ordering::Relaxed) < depth;
        is_below && executor::is_awaited_on_top(waker)
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
    /// Makes the right of a thread that has just entered, and records its place on the stack.
    #[inline]
    fn of(door: &'a Door<T>) -> Self {
        let inside = Self(door);
        inside.record_place();
        inside
    }

    #[inline]
    fn record_place(&self) {
        let (thread, depth) = executor::place();
        self.0.place.0.store(thread, Ordering::Relaxed);
        self.0.place.1.store(depth, Ordering::Relaxed);
    }

    /// Calls `f` with the state.
    #[inline]
    pub(super) fn with<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: this is the only `Inside` of the door.
        unsafe { self.0.state.with_mut(f) }
    }

    /// Calls `f` with the queued operations. `f` must not run foreign code.
    fn backlog<R>(&self, f: impl FnOnce(&mut Backlog<T>) -> R) -> R {
        // SAFETY: this is the only `Inside` of the door, and `f` calls no code that could come here again.
        unsafe { self.0.backlog.with_mut(f) }
    }

    /// Leaves if nothing was queued meanwhile. Otherwise returns `Err`: the caller is still inside, and has
    /// to run what was queued. The backlog has to be empty.
    #[inline]
    pub(super) fn leave(self) -> Result<(), Self> {
        if self.try_release(Door::<T>::FREE) {
            return Ok(());
        }
        self.record_place();
        Err(self)
    }

    /// Leaves, with operations that wait. Until a relay or another thread enters for them, no thread runs
    /// them.
    pub(super) fn open(self) -> DoorExit {
        while !self.try_release(Door::<T>::OPEN) {
            self.fetch();
        }
        DoorExit::Open
    }

    /// Gives the state up: changes the word from `HELD` to `to`. Returns false if an operation was queued
    /// meanwhile; then the caller is still inside, and its place is not recorded any more.
    #[inline]
    fn try_release(&self, to: *mut Node<T>) -> bool {
        // First, because another thread may be inside right after the exchange.
        self.0.place.0.store(0, Ordering::Relaxed);
        // ORDER: Release pairs with the Acquire of `Door::exchange`, by which the next thread enters.
        let given = self.0.word.compare_exchange(Door::<T>::HELD, to, Ordering::Release, Ordering::Relaxed);
        given.is_ok()
    }

    /// Runs at most `limit` of the waiting operations, and leaves; returns [`DoorExit::Open`] if others wait.
    /// No panic leaves this call.
    pub(super) fn drain(mut self, limit: usize) -> DoorExit {
        for _ in 0..limit {
            while self.backlog(|backlog| backlog.is_empty()) {
                match self.leave() {
                    Ok(()) => return DoorExit::Free,
                    Err(inside) => self = inside,
                }
                self.fetch();
            }
            let node = self.backlog(Backlog::pop);
            // SAFETY: the node was queued, and has been taken out of the backlog once.
            waking::call(|| self.with(|state| unsafe { ((*node).run)(node, state) }));
        }
        if !self.backlog(|backlog| backlog.is_empty()) {
            return self.open();
        }
        // If an operation was queued meanwhile, `open` fetches it.
        self.leave().map_or_else(Self::open, |()| DoorExit::Free)
    }

    /// Moves the queued operations to the end of the backlog, in their order.
    fn fetch(&self) {
        // ORDER: Acquire pairs with the Release of each `queue` whose operation is taken.
        let last = self.0.word.swap(Door::<T>::HELD, Ordering::Acquire);
        if last != Door::<T>::HELD {
            self.backlog(|backlog| backlog.append(last));
        }
    }
}

/// Operations in the order in which they were queued.
struct Backlog<T> {
    first: *mut Node<T>,
    last: *mut Node<T>,
}

impl<T> Backlog<T> {
    const EMPTY: Self = Self { first: ptr::null_mut(), last: ptr::null_mut() };

    fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Appends a node that links to no other.
    fn push(&mut self, node: *mut Node<T>) {
        if self.is_empty() {
            self.first = node;
        } else {
            // SAFETY: a queued node stays alive until it is run, and that is not before it was popped.
            unsafe { (*self.last).next.store(node, Ordering::Relaxed) };
        }
        self.last = node;
    }

    /// Appends `last` and the nodes that it links to, which were queued before it.
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

    /// Removes and returns the first node. The backlog must not be empty.
    fn pop(&mut self) -> *mut Node<T> {
        let first = self.first;
        // SAFETY: as in `push`.
        self.first = unsafe { (*first).next.load(Ordering::Relaxed) };
        first
    }
}
