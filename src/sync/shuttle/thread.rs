//! Threads that park on a condition variable of the virtual clock, and are counted.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use super::{Condvar, Instant, LocalKey, Mutex, cores, process_static};
use crate::sync;

/// Offers the core to other threads.
pub(crate) fn yield_now() {
    cores::offer_core();
    shuttle::thread::yield_now();
}

process_static! {
    /// An atomic of `std`, because counting is not part of a scenario.
    static STARTED: AtomicUsize = AtomicUsize::new(0);
}

process_static! {
    static ALIVE: AtomicUsize = AtomicUsize::new(0);
}

process_static! {
    /// The number of starts of the pool's threads that will fail.
    static FAILING: AtomicUsize = AtomicUsize::new(0);
}

/// Makes the next `number` starts fail, as if the system had no threads left, of threads that are named after
/// the crate.
#[cfg(test)]
pub(crate) fn fail_starts(number: u32) {
    FAILING.store(number as usize, Relaxed);
}

/// Returns whether the start of a thread of this name fails, which takes one of the failures that
/// `fail_starts` has set. False if none is left, and for a thread that is not named after the crate.
fn take_failure(name: Option<&str>) -> bool {
    let one_less = |left: usize| left.checked_sub(1);
    name.is_some_and(|name| name.starts_with("paceline"))
        && FAILING.fetch_update(Relaxed, Relaxed, one_less).is_ok()
}

static CURRENT: LocalKey<RefCell<Option<Thread>>> = LocalKey::new(|| RefCell::new(None));

/// A number that tells a thread from all others of its run.
// Public, because a stall hook is shown it; the module is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(unreachable_pub)]
pub struct ThreadId(usize);

/// Returns the processor time of a thread, and whether it runs or waits for a core, if a simulation is in
/// progress.
pub(crate) fn usage(thread: ThreadId) -> Option<(Duration, bool)> {
    cores::usage(thread.0)
}

/// A handle to a thread.
#[derive(Clone, Debug)]
pub(crate) struct Thread(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: ThreadId,
    name: Option<String>,
    token: Mutex<bool>,
    bell: Condvar,
}

impl Thread {
    /// Makes a handle with a new id. Starts no thread.
    fn new(name: Option<String>) -> Self {
        let id = ThreadId(STARTED.fetch_add(1, Relaxed));
        Self(Arc::new(Inner { id, name, token: Mutex::new(false), bell: Condvar::new() }))
    }

    /// Has the handle stand for the thread that calls this.
    fn begin(self) -> Self {
        cores::name_thread(self.0.id.0);
        self
    }

    pub(crate) fn id(&self) -> ThreadId {
        self.0.id
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    pub(crate) fn unpark(&self) {
        let mut token = sync::lock(&self.0.token);
        *token = true;
        drop(token);
        self.0.bell.notify_all();
    }
}

/// Returns the current thread.
pub(crate) fn current() -> Thread {
    let make = |current: &RefCell<Option<Thread>>| {
        let make = || Thread::new(None).begin();
        current.borrow_mut().get_or_insert_with(make).clone()
    };
    CURRENT.with(make)
}

pub(crate) fn park() {
    wait_for_token(None);
}

pub(crate) fn park_timeout(limit: Duration) {
    wait_for_token(Instant::now().checked_add(limit));
}

/// Takes the token of the current thread, waiting for it until `deadline`; `None` is for ever. Returns true
/// once it has the token, false if the deadline has passed.
pub(super) fn wait_for_token(deadline: Option<Instant>) -> bool {
    let Thread(inner) = current();
    let mut token = sync::lock(&inner.token);
    loop {
        if std::mem::take(&mut *token) {
            return true;
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let waited = match left {
            Some(left) if left.is_zero() => return false,
            Some(left) => inner.bell.wait_timeout(token, left).map(|(token, _)| token).ok(),
            None => inner.bell.wait(token).ok(),
        };
        token = waited.expect("no thread panics under it");
    }
}

/// A thread that is not started yet.
#[derive(Debug, Default)]
pub(crate) struct Builder(shuttle::thread::Builder, Option<String>);

/// A thread that can be joined.
#[derive(Debug)]
pub(crate) struct JoinHandle<T>(shuttle::thread::JoinHandle<T>, Thread);

impl Builder {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn name(self, name: String) -> Self {
        Self(self.0.name(name.clone()), Some(name))
    }

    pub(crate) fn stack_size(self, bytes: usize) -> Self {
        Self(self.0.stack_size(bytes), self.1)
    }

    /// Starts the thread. Returns an error instead if the name begins with `paceline` and the scenario has a
    /// failure left.
    pub(crate) fn spawn<T: Send + 'static>(
        self,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        /// Counts until the thread's body has ended, also by a panic.
        struct Alive;
        impl Drop for Alive {
            fn drop(&mut self) {
                ALIVE.fetch_sub(1, Relaxed);
            }
        }
        if take_failure(self.1.as_deref()) {
            return Err(io::Error::from(io::ErrorKind::WouldBlock));
        }
        let thread = Thread::new(self.1);
        ALIVE.fetch_add(1, Relaxed);
        let alive = Alive;
        let itself = thread.clone();
        let handle = self.0.spawn(move || {
            let _alive = alive;
            CURRENT.with(|current| current.replace(Some(itself.begin())));
            body()
        })?;
        Ok(JoinHandle(handle, thread))
    }
}

impl<T> JoinHandle<T> {
    pub(crate) fn thread(&self) -> &Thread {
        &self.1
    }

    pub(crate) fn join(self) -> std::thread::Result<T> {
        self.0.join()
    }
}

/// Returns the number of threads that were started in this run and have not ended.
#[cfg(test)]
pub(crate) fn alive() -> usize {
    ALIVE.load(Relaxed)
}
