//! What the loom models have in the place of threads that park, and what they share.
//!
//! Parking is built on loom's `Notify` and not on loom's `park`: there, an `unpark` also ends the wait for a lock,
//! and the release of a lock takes away a token that was left.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use loom::sync::Notify;

pub(crate) use std::thread::ThreadId;

loom::thread_local! {
    static CURRENT: RefCell<Option<Thread>> = RefCell::new(None);
}

/// A handle to a thread of a model.
#[derive(Clone, Debug)]
pub(crate) struct Thread(Arc<Notify>);

impl Thread {
    /// Leaves the token that makes the thread's `park` return.
    pub(crate) fn unpark(&self) {
        self.0.notify();
    }
}

impl Thread {
    /// Of the one thread that all threads of a model are: no model asks.
    pub(crate) fn id(&self) -> ThreadId {
        std::thread::current().id()
    }

    pub(crate) fn name(&self) -> Option<&str> {
        None
    }
}

/// A thread to be.
#[derive(Debug)]
pub(crate) struct Builder;

impl Builder {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn name(self, _: String) -> Self {
        self
    }

    pub(crate) fn stack_size(self, _: usize) -> Self {
        self
    }

    pub(crate) fn spawn(self, body: impl FnOnce() + 'static) -> io::Result<()> {
        loom::thread::spawn(body);
        Ok(())
    }
}

/// The current thread.
pub(crate) fn current() -> Thread {
    CURRENT
        .with(|current| current.borrow_mut().get_or_insert_with(|| Thread(Arc::new(Notify::new()))).clone())
}

/// Waits for the token; once in a model's run it also returns for no reason.
pub(crate) fn park() {
    current().0.wait();
}

/// Lets another thread take a step.
pub(crate) fn yield_now() {
    loom::thread::yield_now();
}

/// Makes a thread look again.
#[cfg(test)]
impl std::task::Wake for Thread {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }
}

/// A waker that unparks the current thread.
#[cfg(test)]
pub(crate) fn waker() -> std::task::Waker {
    Arc::new(current()).into()
}

/// Runs a model under every schedule with at most `LOOM_MAX_PREEMPTIONS` preemptions; 2, if nothing is said.
#[cfg(test)]
pub(crate) fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(2);
    builder.check(body);
}

/// Something that becomes true once, and one thread that waits for it.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Latch {
    open: loom::sync::atomic::AtomicBool,
    bell: Notify,
}

#[cfg(test)]
impl Latch {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { open: loom::sync::atomic::AtomicBool::new(false), bell: Notify::new() })
    }

    /// Relaxed on purpose: a latch orders a model's steps and must not hide that a protocol orders nothing.
    pub(crate) fn open(&self) {
        self.open.store(true, loom::sync::atomic::Ordering::Relaxed);
        self.bell.notify();
    }

    pub(crate) fn wait(&self) {
        while !self.open.load(loom::sync::atomic::Ordering::Relaxed) {
            self.bell.wait();
        }
    }
}
