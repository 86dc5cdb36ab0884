//! The signals of the process, and their listeners.
//!
//! 1. The handler, in which little is allowed, marks its signal's slot as pending and rings a bell, one for
//!    all signals.
//! 2. One thread of the process listens to the bell. The thread belongs to no runtime: a runtime that is not
//!    driven or has ended delays no signal for others, and no runtime counts a task that the program has not
//!    spawned.
//! 3. The thread clears the mark and notifies the listeners of the slot, in all runtimes.
//!
//! A handler stays for the life of the process, as in the real tokio: after the last listener was dropped, a
//! signal does not end the process.
//!
//! A current-thread runtime of the real tokio delivers no signal during a poll. So there, a listener also
//! receives a signal that was sent earlier in the poll that makes it. Here the thread may deliver during a
//! poll. So deliveries are counted, a thread remembers the count when a poll begins, and a new listener also
//! receives what was delivered since ([`SEEN`]). (A nested `block_on` begins polls of its own.)

use std::cell::Cell;
use std::ffi::c_int;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use real::sync::watch;
use signal_hook_registry::FORBIDDEN;

use crate::bell::{self, Bell};
use crate::context::{self, Place};
use crate::quiet::quietly;
use crate::runtime::Handle;

/// How often the thread has notified the listeners of a slot.
static DELIVERIES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// [`DELIVERIES`] when this thread last began a poll, or the last delivery that a listener received on
    /// it.
    static SEEN: Cell<usize> = const { Cell::new(0) };
}

struct Registry {
    /// One slot for each signal, from 1.
    slots: Vec<Slot>,
    /// The thread listens to it.
    bell: Bell,
}

#[derive(Default)]
struct Slot {
    is_pending: AtomicBool,
    /// The number of the last delivery.
    told: watch::Sender<usize>,
    /// The error's number, if there is one.
    handler: OnceLock<Result<(), Option<i32>>>,
}

/// Called at the beginning of each poll on this thread.
#[inline]
pub(crate) fn begin_poll() {
    // ORDER: Relaxed. If a delivery woke the task, this load sees its number. A later delivery that it misses
    // counts as one during the poll.
    SEEN.set(DELIVERIES.load(Ordering::Relaxed));
}

/// Called when a listener has received that delivery: a listener that the same poll makes later receives no
/// delivery up to this one, of any signal.
pub(super) fn received(delivery: usize) {
    SEEN.set(SEEN.get().max(delivery));
}

/// Makes a listener for a signal, for a task of `runtime`.
pub(super) fn subscribe(number: c_int, runtime: &Handle) -> io::Result<watch::Receiver<usize>> {
    if number <= 0 || FORBIDDEN.contains(&number) {
        return Err(io::Error::other(format!("Refusing to register signal {number}")));
    }
    if runtime.is_shut_down() {
        return Err(io::Error::other("signal driver gone"));
    }
    let registry = registry()?;
    let slot = registry.slots.get(number as usize - 1).ok_or_else(|| io::Error::other("signal too large"))?;
    slot.enable(number, &registry.bell)?;
    let mut told = slot.told.subscribe();
    // Where no poll runs, `SEEN` may be old.
    let is_in_poll = context::place() != Place::Outside;
    if is_in_poll && *told.borrow() > SEEN.get() {
        told.mark_changed();
    }
    Ok(told)
}

/// Returns the number of the last delivery of a signal that has had a listener.
#[cfg(all(test, feature = "rt"))]
pub(super) fn last_delivery(number: c_int) -> usize {
    *registry().unwrap().slots[number as usize - 1].told.borrow()
}

/// The first call starts the thread; if that fails, this call returns the error, and the next call tries
/// again.
fn registry() -> io::Result<&'static Registry> {
    static REGISTRY: Mutex<Option<&'static Registry>> = Mutex::new(None);

    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(registry) = *registry {
        return Ok(registry);
    }
    let (bell, rings) = Bell::new()?;
    let slots = (1..=largest()).map(|_| Slot::default()).collect();
    let started: &Registry = Box::leak(Box::new(Registry { slots, bell }));
    // A waker that panics ends neither the thread nor the notification of other signals.
    let tell = || started.slots.iter().for_each(|slot| quietly(|| slot.tell()));
    thread::Builder::new().name("tokio-signal".into()).spawn(move || bell::listen(rings, tell))?;
    Ok(registry.insert(started))
}

#[cfg(any(target_os = "linux", target_os = "illumos"))]
fn largest() -> c_int {
    libc::SIGRTMAX()
}

#[cfg(not(any(target_os = "linux", target_os = "illumos")))]
fn largest() -> c_int {
    33
}

impl Slot {
    /// Installs the handler, once.
    fn enable(&'static self, number: c_int, bell: &Bell) -> io::Result<()> {
        let enable = || {
            // ORDER: SeqCst, like the swap in `tell`. The ring follows, and the thread that hears it sees the
            // mark.
            let mark = || self.is_pending.store(true, Ordering::SeqCst);
            // SAFETY: `mark` is one store.
            let result = unsafe { bell.ring_at(number, mark) };
            result.map_err(|error| error.raw_os_error())
        };
        self.handler.get_or_init(enable).map_err(|number| match number {
            Some(number) => io::Error::from_raw_os_error(number),
            None => io::Error::other("registering signal handler failed"),
        })
    }

    fn tell(&self) {
        // ORDER: see `enable`.
        if self.is_pending.swap(false, Ordering::SeqCst) {
            // ORDER: Relaxed. A task that this wakes sees the new count in `begin_poll`.
            let delivery = DELIVERIES.fetch_add(1, Ordering::Relaxed) + 1;
            self.told.send_replace(delivery);
        }
    }
}
