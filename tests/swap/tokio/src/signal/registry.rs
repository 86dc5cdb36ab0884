//! The process's signals, and who is told of them.
//!
//! 1. The handler, which may do little, marks its signal's slot as pending and rings a bell, one for all signals.
//! 2. Each runtime in which somebody has listened has a task that hears it, through a descriptor of its own. A ring is an event for all
//!    of them, so that it does not matter if one is not being driven, or has ended.
//! 3. Whichever comes first clears the mark and tells the listeners of the slot, in whatever runtime they wait.
//!
//! A handler stays for as long as the process, as the real one's: dropping the last listener does not have the next signal end the process.

use std::ffi::c_int;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use paceline::Async;
use real::sync::watch;
use signal_hook_registry::FORBIDDEN;

use crate::bell::Bell;
use crate::runtime::{Handle, Id};

struct Registry {
    /// One for each signal, from 1.
    slots: Vec<Slot>,
    bell: Bell,
    rings: UnixStream,
    /// Those in which a task hears the bell.
    runtimes: Mutex<Vec<Id>>,
}

#[derive(Default)]
struct Slot {
    is_pending: AtomicBool,
    told: watch::Sender<()>,
    /// The error's number, if it has one.
    handler: OnceLock<Result<(), Option<i32>>>,
}

/// A listener for a signal, which is told by this runtime as by any other.
pub(super) fn subscribe(number: c_int, runtime: &Handle) -> io::Result<watch::Receiver<()>> {
    if number <= 0 || FORBIDDEN.contains(&number) {
        return Err(io::Error::other(format!("Refusing to register signal {number}")));
    }
    if runtime.is_shut_down() {
        return Err(gone());
    }
    let registry = registry()?;
    let slot = registry.slots.get(number as usize - 1).ok_or_else(|| io::Error::other("signal too large"))?;
    registry.listen_in(runtime)?;
    slot.enable(number, &registry.bell)?;
    Ok(slot.told.subscribe())
}

fn gone() -> io::Error {
    io::Error::other("signal driver gone")
}

/// Has this runtime notice signals, if it can.
pub(super) fn listen_in(runtime: &Handle) {
    if runtime.has_io() && !runtime.is_shut_down() {
        // Another may be there that does.
        let _ = registry().and_then(|registry| registry.listen_in(runtime));
    }
}

fn registry() -> io::Result<&'static Registry> {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    if let Some(registry) = REGISTRY.get() {
        return Ok(registry);
    }
    let (bell, rings) = Bell::new()?;
    rings.set_nonblocking(true)?;
    let slots = (1..=largest()).map(|_| Slot::default()).collect();
    Ok(REGISTRY.get_or_init(|| Registry { slots, bell, rings, runtimes: Mutex::default() }))
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
            // ORDER: SeqCst, as the swap in `tell`. The ring comes after it, and whoever hears that sees it.
            let mark = || self.is_pending.store(true, Ordering::SeqCst);
            // SAFETY: that is one store.
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
            // Without listeners nobody is told, and one that comes later is not either.
            let _ = self.told.send(());
        }
    }
}

impl Registry {
    fn runtimes(&self) -> MutexGuard<'_, Vec<Id>> {
        self.runtimes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen_in(&'static self, runtime: &Handle) -> io::Result<()> {
        let id = runtime.id();
        let rings = {
            let mut runtimes = self.runtimes();
            if runtimes.contains(&id) {
                return Ok(());
            }
            let Some(_entered) = runtime.paceline().try_enter() else { return Err(gone()) };
            let rings = Async::new_nonblocking(self.rings.try_clone()?)?;
            runtimes.push(id);
            rings
        };
        // Not under the lock: a runtime that has just ended drops it at once.
        let listening = Listening { registry: self, id };
        runtime.paceline().spawn(async move { listening.run(rings).await }).detach();
        Ok(())
    }
}

/// That a runtime is among those that listen.
struct Listening {
    registry: &'static Registry,
    id: Id,
}

impl Listening {
    /// Until the runtime ends.
    async fn run(&self, rings: Async<UnixStream>) {
        // What another runtime has read it tells of in the same breath.
        while rings.trusted().read(|mut rings| rings.read(&mut [0; 128])).await.is_ok() {
            self.registry.slots.iter().for_each(Slot::tell);
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.registry.runtimes().retain(|id| *id != self.id);
    }
}
