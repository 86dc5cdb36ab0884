//! The seam between the layers of a runtime and the simulation that this thread is in, if there is one.
//!
//! The layers report what happens to tasks, and ask which task is next. The trait [`Simulation`] is all that
//! they know of it; `sim` implements that. While a thread is in no simulation, each call here tests one
//! pointer. Without the feature `sim`, the build has `off.rs` in the place of this file.
//!
//! A simulation chooses tasks in one place, the [`Injector`]: the executors that a simulation governs keep
//! their order, so all of their ready tasks are in that queue. These are the executor of the simulation's
//! own runtime, and each executor that a program makes inside of it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::panic::Location;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

pub(crate) mod clock;
pub(crate) mod files;
pub mod fs;
pub mod sockets;

pub(crate) use clock::{Clock, ClockHold, Clocked};
pub use fs::for_tokio;
pub(crate) use sockets::*;

use async_task::Runnable;
use concurrent_queue::{ConcurrentQueue, PopError, PushError};
use files::FileCalls;

/// A simulation, as the layers of its runtime see it. All calls but [`note_outsider`] come from the
/// simulation's own thread.
///
/// [`note_outsider`]: Simulation::note_outsider
pub(crate) trait Simulation: Send + Sync {
    /// A task is spawned there. Numbers are those of `flight`: unique in the process, and not reproducible.
    fn spawns(&self, task: u64, at: &'static Location<'static>);
    /// A task is woken. If the wake makes it ready, it is queued next.
    fn wakes(&self, task: u64);
    fn begins_poll(&self, task: u64);
    fn ends_poll(&self);
    /// The future of a task was dropped. Returns a waker that is to be dropped.
    fn ends(&self, task: u64) -> Option<Waker>;
    /// Returns the number of the task that was spawned or woken last, which is the one that is queued now.
    fn queues(&self, task: &Runnable) -> u64;
    /// Returns the position of the task to poll next among the `ready` ones, of which there is at least one.
    fn picks(&self, ready: &VecDeque<ReadyTask>) -> usize;
    /// Returns the position of a task that is to be dropped before others are polled.
    fn find_cancelled(&self, ready: &VecDeque<ReadyTask>) -> Option<usize>;
    /// Drops a task as one of its host.
    fn cancels(&self, task: ReadyTask);
    /// Notes that a task was queued by a thread that is not in the simulation now. Returns its number if that
    /// thread is the simulation's own. Otherwise the simulation fails.
    fn note_outsider(&self, task: &Runnable) -> u64;
    /// Returns why the thread would sleep for ever: no task is ready, and no timer is armed.
    fn would_sleep(&self) -> String;
    /// Takes a piece of work that blocks, to run it later.
    fn takes(&self, piece: Box<dyn BlockingPiece>);
    /// Returns the virtual time since the start of the simulation.
    fn elapsed(&self) -> Duration;
    /// Returns the network.
    fn sockets(&self) -> &dyn SocketCalls;
    /// Returns the files.
    fn files(&self) -> &dyn FileCalls;
    /// Returns 64 random bits, in place of the operating system's.
    #[allow(dead_code, reason = "as for `with_system`")]
    fn random(&self) -> u64;
    /// Returns what the monotonic clock shows.
    #[allow(dead_code, reason = "as for `with_system`")]
    fn monotonic(&self) -> Duration;
    /// Returns what the wall clock of the present node shows, since 1970.
    #[allow(dead_code, reason = "as for `with_system`")]
    fn wall(&self) -> Duration;
}

/// A piece of work that blocks, with its steps.
pub(crate) trait BlockingPiece: Send {
    /// Returns where the piece was made; `None` for a piece of a stream.
    fn made_at(&self) -> Option<&'static Location<'static>>;
    /// Runs the piece. Returns its second step, which delivers the result, if that may come later.
    fn step(self: Box<Self>) -> Option<Box<dyn BlockingPiece>>;
    /// Cancels the piece, because no thread will run it.
    fn give_up(self: Box<Self>);
    /// Lets the clock leap although the piece waits.
    fn release_clock(&mut self);
}

/// A task in the queue, and its number; 0 if that is not known.
pub(crate) type ReadyTask = (u64, Runnable);

thread_local! {
    /// The simulation that this thread is in. [`ALIVE`] keeps it alive.
    static CURRENT: Cell<Option<ptr::NonNull<dyn Simulation>>> = const { Cell::new(None) };
    static ALIVE: RefCell<Held> = const { RefCell::new(Held(None)) };
    /// Whether this thread sees the clocks of the system, although it is in a simulation.
    static SEES_SYSTEM: Cell<bool> = const { Cell::new(false) };
}

struct Held(Option<Arc<dyn Simulation>>);

impl Drop for Held {
    /// The thread ends before its simulation does.
    fn drop(&mut self) {
        let _ = CURRENT.try_with(|current| current.set(None));
    }
}

/// Sets the simulation that this thread is in from now on. Returns the one before.
pub(crate) fn set_current(simulation: Option<Arc<dyn Simulation>>) -> Option<Arc<dyn Simulation>> {
    let pointer = simulation.as_deref().map(ptr::NonNull::from);
    ALIVE
        .try_with(|held| {
            CURRENT.set(pointer);
            mem::replace(&mut held.borrow_mut().0, simulation)
        })
        .ok()
        .flatten()
}

/// Calls `f` with the simulation that this thread is in, if there is one.
#[inline]
fn with_current<R>(f: impl FnOnce(&dyn Simulation) -> R) -> Option<R> {
    // SAFETY: `ALIVE` holds the simulation, and the pointer is taken away before that changes. `f` calls
    // no user code, so nothing enters or leaves a simulation meanwhile.
    CURRENT.try_with(Cell::get).ok().flatten().map(|simulation| f(unsafe { simulation.as_ref() }))
}

/// Returns the simulation that this thread is in, if there is one.
fn current() -> Option<Arc<dyn Simulation>> {
    ALIVE.try_with(|held| held.borrow().0.clone()).ok().flatten()
}

/// Returns whether this thread is in that simulation, and in no other one inside of it.
fn is_current(simulation: &dyn Simulation) -> bool {
    with_current(|current| ptr::addr_eq(current, simulation)).unwrap_or(false)
}

/// Returns whether this thread is in a simulation.
#[inline]
pub(crate) fn is_running() -> bool {
    with_current(|_| ()).is_some()
}

/// Calls `f` with the simulation that this thread gets its clocks and random numbers from. Returns `None` if
/// they are the system's.
#[allow(dead_code, reason = "only the functions of `sim_libc!` use it, which some systems do not have")]
pub(crate) fn with_system<R>(f: impl FnOnce(&dyn Simulation) -> R) -> Option<R> {
    if SEES_SYSTEM.get() { None } else { with_current(f) }
}

/// Sets whether this thread sees the clocks of the system, and returns whether it did before.
pub(crate) fn set_sees_system(sees: bool) -> bool {
    SEES_SYSTEM.replace(sees)
}

/// Until this is dropped, the thread sees the clocks and random numbers of the operating system, even in a
/// simulation. Code that waits for other threads needs this.
#[derive(Debug)]
pub struct SystemClocks {
    before: bool,
    /// Makes the value `!Send`.
    stays: PhantomData<*const ()>,
}

/// Returns a [`SystemClocks`]. A simulation that begins, or runs, while it exists has its own clocks.
#[inline]
pub fn system_clocks() -> SystemClocks {
    SystemClocks { before: set_sees_system(true), stays: PhantomData }
}

impl Drop for SystemClocks {
    #[inline]
    fn drop(&mut self) {
        set_sees_system(self.before);
    }
}

/// Panics: a thread in a simulation is about to sleep, and nothing in the simulation will wake it. Returns if
/// another thread wakes it meanwhile.
#[cold]
pub(crate) fn would_sleep(is_woken: impl Fn() -> bool) {
    match with_current(|simulation| simulation.would_sleep()) {
        Some(why) if !is_woken() => panic!("{why}"),
        _ => {}
    }
}

/// Returns the virtual time since the start of the simulation that this thread is in, if there is one.
pub(crate) fn elapsed() -> Option<Duration> {
    with_current(|simulation| simulation.elapsed())
}

/// Calls `call` with the network of the simulation that this thread is in, if there is one.
pub(crate) fn with_sockets<R>(call: impl FnOnce(&dyn SocketCalls) -> R) -> Option<R> {
    // The calls for streams ask only there.
    let is_supported = cfg!(any(target_os = "linux", target_os = "android"));
    // Not by the pointer: a rule of the network is code of the program.
    if is_supported { current().map(|simulation| call(simulation.sockets())) } else { None }
}

/// Calls `call` with the simulation that this thread is in, if there is one. It may be one of its calls for
/// files.
pub(crate) fn with_simulation<R>(call: impl FnOnce(&Arc<dyn Simulation>) -> R) -> Option<R> {
    if is_running() { current().as_ref().map(call) } else { None }
}

/// Calls `call` with the socket that a descriptor stands for, if this thread is in a simulation and the
/// descriptor stands for a socket there.
#[inline]
pub(crate) fn on_socket<R>(
    descriptor: &impl MaybeSimulated,
    call: impl FnOnce(&dyn SocketCalls, SocketNumber) -> R,
) -> Option<R> {
    if !is_running() {
        return None;
    }
    with_sockets(|sockets| sockets.find(descriptor.raw()).map(|socket| call(sockets, socket))).flatten()
}

#[inline]
pub(crate) fn spawns(task: u64, at: &'static Location<'static>) {
    with_current(|simulation| simulation.spawns(task, at));
}

#[inline]
pub(crate) fn wakes(task: u64) {
    with_current(|simulation| simulation.wakes(task));
}

#[inline]
pub(crate) fn begins_poll(task: u64) {
    with_current(|simulation| simulation.begins_poll(task));
}

#[inline]
pub(crate) fn ends_poll() {
    with_current(|simulation| simulation.ends_poll());
}

#[inline]
pub(crate) fn ends(task: u64) {
    drop(with_current(|simulation| simulation.ends(task)));
}

/// Passes the piece to the simulation that this thread is in. Returns it if there is none.
#[inline]
pub(crate) fn take<P: BlockingPiece + 'static>(piece: P) -> Option<P> {
    if !is_running() {
        return Some(piece);
    }
    match current() {
        // Not by the pointer: what the piece drops may end the simulation.
        Some(simulation) => simulation.takes(Box::new(piece)),
        None => return Some(piece),
    }
    None
}

/// The queue that all runners of an executor take from. In a simulation, that chooses which of the tasks
/// comes out.
#[derive(Debug)]
pub(crate) struct Injector {
    /// Without tasks if the executor is in a simulation; then it only says whether the injector is closed.
    queue: ConcurrentQueue<Runnable>,
    simulated: Option<SimulatedQueue>,
}

struct SimulatedQueue {
    simulation: Arc<dyn Simulation>,
    ready: Mutex<VecDeque<ReadyTask>>,
}

/// Creates an empty queue. If it `is_simulated`, the simulation on this thread governs it.
pub(crate) fn injector(is_simulated: bool) -> Injector {
    let simulation = if is_simulated { current() } else { None };
    let simulated = simulation.map(|simulation| SimulatedQueue { simulation, ready: Mutex::default() });
    Injector { queue: ConcurrentQueue::unbounded(), simulated }
}

impl Injector {
    #[inline]
    pub(crate) fn push(&self, task: Runnable) -> Result<(), PushError<Runnable>> {
        match &self.simulated {
            None => self.queue.push(task),
            Some(_) if self.queue.is_closed() => Err(PushError::Closed(task)),
            Some(simulated) => {
                simulated.push(task);
                Ok(())
            }
        }
    }

    #[inline]
    pub(crate) fn pop(&self) -> Result<Runnable, PopError> {
        self.simulated.as_ref().map_or_else(|| self.queue.pop(), SimulatedQueue::pop)
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len() + self.simulated.as_ref().map_or(0, |simulated| simulated.ready().len())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.simulated.as_ref().is_none_or(|simulated| simulated.ready().is_empty())
    }

    pub(crate) fn close(&self) -> bool {
        self.queue.close()
    }
}

impl SimulatedQueue {
    fn ready(&self) -> MutexGuard<'_, VecDeque<ReadyTask>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, task: Runnable) {
        let is_inside = is_current(&*self.simulation);
        let number =
            if is_inside { self.simulation.queues(&task) } else { self.simulation.note_outsider(&task) };
        self.ready().push_back((number, task));
    }

    /// Takes the task that the simulation chooses; the oldest one if the simulation does not run here.
    fn pop(&self) -> Result<Runnable, PopError> {
        loop {
            let mut ready = self.ready();
            if ready.is_empty() {
                return Err(PopError::Empty);
            }
            if let Some(cancelled) = self.simulation.find_cancelled(&ready).and_then(|at| ready.remove(at)) {
                drop(ready);
                self.simulation.cancels(cancelled);
                continue;
            }
            let at = if is_current(&*self.simulation) { self.simulation.picks(&ready) } else { 0 };
            let taken = if at == 0 { ready.pop_front() } else { ready.swap_remove_back(at) };
            return taken.map(|(_, task)| task).ok_or(PopError::Empty);
        }
    }
}

impl fmt::Debug for SimulatedQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedQueue").field("ready", &self.ready().len()).finish_non_exhaustive()
    }
}
