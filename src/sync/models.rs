//! The threads of the loom models, which park, and helpers that the models share.
//!
//! Parking is built on loom's `Notify` and not on loom's `park`: there, an `unpark` also ends the wait for a
//! lock, and the release of a lock takes away a token that was set.

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
    /// Sets the token that makes the thread's `park` return.
    pub(crate) fn unpark(&self) {
        self.0.notify();
    }
}

impl Thread {
    /// Returns the id of the one thread that all threads of a model run on: no model uses it.
    pub(crate) fn id(&self) -> ThreadId {
        std::thread::current().id()
    }

    pub(crate) fn name(&self) -> Option<&str> {
        None
    }
}

/// A thread that is not started yet.
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

/// Returns the current thread.
pub(crate) fn current() -> Thread {
    CURRENT
        .with(|current| current.borrow_mut().get_or_insert_with(|| Thread(Arc::new(Notify::new()))).clone())
}

/// Waits for the token. Once in a model's run it also returns without one.
pub(crate) fn park() {
    current().0.wait();
}

/// Lets another thread take a step.
pub(crate) fn yield_now() {
    loom::thread::yield_now();
}

/// Unparks the thread.
#[cfg(test)]
impl std::task::Wake for Thread {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }
}

/// Returns a waker that unparks the current thread.
#[cfg(test)]
pub(crate) fn waker() -> std::task::Waker {
    Arc::new(current()).into()
}

/// Runs a model under every schedule with at most `LOOM_MAX_PREEMPTIONS` preemptions, by default 2.
#[cfg(test)]
pub(crate) fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(2);
    builder.check(body);
}

/// A condition that becomes true once, and one thread that waits for it.
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

    /// Opens the latch. Relaxed on purpose: a latch orders a model's steps and must not hide that a protocol
    /// orders nothing.
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
