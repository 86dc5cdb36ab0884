//! The crew: a runtime's own threads. A worker is a thread in a `block_on` of the executor's `run`.

use std::fmt;
use std::io;
use std::sync::Arc;

use super::block_on::{PoolSource, Root};
use super::parting::Parting;
use super::{Pool, Station, block_on};
use crate::ambient;
use crate::blocking_threads::LINGER;
use crate::executor::{Run, StateRef};
use crate::insight::{StallHook, TaskPanic};
use crate::leadership::Rank;
use crate::notice::{ReportName, print_start};
use crate::probe::ThreadState;
use crate::sync::{self, Condvar, Counter, Event, Flag, Mutex, thread};
use crate::waking;

/// Size of a worker's stack if the program sets none: the standard library's default.
const STACK_SIZE: usize = 2 << 20;

/// A function that the owner of a runtime wants to have called.
pub(crate) type Hook = Arc<dyn Fn() + Send + Sync>;

/// The program's hook for panics of tasks.
pub(crate) type PanicHook = Arc<dyn Fn(&TaskPanic) + Send + Sync>;

/// Returns the name of a thread of a runtime, from its number among the workers or among the threads for
/// closures that block.
pub(crate) type ThreadNames = Arc<dyn Fn(usize) -> String + Send + Sync>;

/// The settings of a crew.
#[derive(Default)]
pub(crate) struct CrewConfig {
    /// The wanted number of workers that do not block; 0 in a runtime of the current thread.
    pub(crate) threads: usize,
    /// The largest number of workers.
    pub(crate) max_threads: usize,
    /// The beginning of the names of threads that the program gives no name.
    pub(crate) name: String,
    pub(crate) thread_names: Option<ThreadNames>,
    /// Whether the runtime is in the place of one of tokio. Closures that block and have not begun at the end
    /// are run then instead of cancelled.
    pub(crate) in_place_of_tokio: bool,
    /// The size of the threads' stacks in bytes, if the program sets it.
    pub(crate) stack_size: Option<usize>,
    /// Called on each worker before its first task.
    pub(crate) on_start: Option<Hook>,
    /// Called on each worker before it ends.
    pub(crate) on_stop: Option<Hook>,
    /// Called on a thread that has no task left to poll: see [`with_park_hooks`](Crew::with_park_hooks).
    pub(crate) on_park: Option<Hook>,
    /// Called on such a thread before it polls tasks again.
    pub(crate) on_unpark: Option<Hook>,
    /// Called with each panic of a task, on the thread that polled the task.
    pub(crate) on_task_panic: Option<PanicHook>,
    /// Called with each report of a stall, on a thread of its own.
    pub(crate) on_stall: Mutex<Vec<StallHook>>,
}

/// A runtime's threads.
pub(crate) struct Crew {
    /// The executor that the workers run.
    pub(crate) state: StateRef,
    pub(crate) config: CrewConfig,
    /// All workers were started once.
    complete: Flag,
    pub(crate) parting: Parting,
    pub(super) stop: Event,
    pub(super) roll: Mutex<Roll>,
    pub(super) changed: Condvar,
    /// Counts threads that were added because others were stuck: takers and standbys.
    pub(crate) replacements: Counter,
}

#[derive(Debug, Default)]
pub(super) struct Roll {
    /// Threads that were started and have not ended.
    pub(super) live: usize,
    /// Number of threads that were ever given a place, those included that could not be started, and the
    /// helper of the end: the number of the next one's name is one more.
    ever: usize,
    /// Threads that run, and ways to ask what each one does.
    pub(super) threads: Vec<(thread::Thread, ThreadState)>,
}

/// The numbers of a crew's threads, as plain data.
#[derive(Clone, Debug)]
pub(crate) struct Staff {
    /// The wanted number of workers that do not block: `Builder::threads`.
    pub(crate) threads: usize,
    /// `Builder::max_threads`; 0 once the crew was stopped.
    pub(crate) max_threads: usize,
    /// Workers that were started and have not ended.
    pub(crate) live: usize,
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").field("name", &self.config.name).finish_non_exhaustive()
    }
}

impl Crew {
    /// Makes a crew without threads: [`start`](Self::start) starts them.
    pub(super) fn new((state, config): (StateRef, CrewConfig)) -> Self {
        Self {
            state,
            config,
            complete: Flag::new(false),
            parting: Parting::new(),
            stop: Event::new(),
            roll: Mutex::default(),
            changed: Condvar::new(),
            replacements: Counter::default(),
        }
    }

    pub(crate) fn runs(&self, state: &StateRef) -> bool {
        std::ptr::eq(&*self.state, &**state)
    }

    /// Returns whether the crew has no workers: the threads in a `block_on` poll its tasks.
    pub(crate) fn is_unmanned(&self) -> bool {
        self.config.threads == 0
    }

    /// Has the program's hook, if there is one, called for each panic of a task of the runtime, as a visit to
    /// `pool`. Without a hook, and once the pool is gone, the executor prints a line.
    pub(crate) fn watch_panics(&self, pool: &Arc<Pool>) {
        if self.config.on_task_panic.is_none() {
            return;
        }
        // The pool keeps the crew, and the crew its executor.
        let pool = Arc::downgrade(pool);
        self.state.panics.tell_by(move |panic| {
            let Some(pool) = pool.upgrade() else { return false };
            let Some(hook) = pool.crew().and_then(|crew| crew.config.on_task_panic.clone()) else {
                return false;
            };
            // A hook that panics has said so by its panic message.
            waking::call(|| pool.visit(|| hook(panic)));
            true
        });
    }

    /// Returns how many threads are alive: workers, and the helper of the end.
    pub(crate) fn live(&self) -> usize {
        sync::lock(&self.roll).live
    }

    /// Returns these threads, except those that are still starting.
    pub(crate) fn running(&self) -> Vec<(thread::Thread, ThreadState)> {
        sync::lock(&self.roll).threads.clone()
    }

    /// Returns the numbers of threads.
    pub(crate) fn staff(&self) -> Staff {
        Staff {
            threads: self.config.threads,
            max_threads: if self.parting.is_stopped() { 0 } else { self.config.max_threads },
            live: self.live(),
        }
    }

    /// Returns the name that the program gives to the thread of this number; `None` if the program gives no
    /// names, if its function panics, or if the name has a NUL in it, which no thread may have.
    pub(crate) fn given_thread_name(&self, number: usize) -> Option<String> {
        let names = self.config.thread_names.as_ref()?;
        waking::catch(|| names(number)).filter(|name| !name.contains('\0'))
    }

    /// Returns the size of a worker's stack.
    pub(crate) fn stack_size(&self) -> usize {
        self.config.stack_size.unwrap_or(STACK_SIZE)
    }

    /// Starts the workers, and the deputy, unless that was done. If it fails, the workers that run stay, and
    /// the next call starts the rest.
    #[inline]
    pub(crate) fn start(self: &Arc<Self>, pool: &Arc<Pool>) -> io::Result<()> {
        if self.complete.is_set() { Ok(()) } else { self.start_missing(pool) }
    }

    /// Starts the deputy and the workers that are missing; only the deputy if the crew was stopped. Does not
    /// wait for another thread that is starting a worker. If that fails, the other thread gets the error, and
    /// the deputy starts a worker for the tasks that wait.
    #[cold]
    fn start_missing(self: &Arc<Self>, pool: &Arc<Pool>) -> io::Result<()> {
        pool.deputy.call_or_start().map_err(|error| self.short_of_threads(&error))?;
        while let Some(place) = self.reserve(self.config.threads) {
            self.clone().start_worker(pool, place).map_err(|error| self.short_of_threads(&error))?;
        }
        if !self.complete.raise() && ReportName::Start.is_made() && !pool.reactor.is_simulated() {
            print_start(self.config.threads, self.config.in_place_of_tokio);
        }
        Ok(())
    }

    /// Returns `error` with a message that says how many workers run, and what helps.
    fn short_of_threads(&self, error: &io::Error) -> io::Error {
        let (wanted, live) = (self.config.threads, self.live());
        let what = format!(
            "cannot start a thread ({live} of {wanted} workers run): {error}. The limit of threads or of memory is \
             reached, of the process (`ulimit -v`), its user (`ulimit -u`) or its container; raise it, or have \
             fewer workers or smaller stacks (`PACELINE_THREADS`, `Builder::threads`, `Builder::stack_size`)"
        );
        io::Error::new(error.kind(), what)
    }

    /// Starts one more worker, because others are stuck, and counts it as a replacement. If it `stands_by`, it
    /// is a standby. Returns false if there are as many as there may be, if
    /// the crew was stopped, or if no thread can be started.
    ///
    /// If the program has a function for the names, a new thread calls it and starts the worker: the deputy
    /// runs no code of the program.
    pub(crate) fn add_thread(self: &Arc<Self>, pool: &Arc<Pool>, stands_by: bool) -> bool {
        let Some(mut place) = self.reserve(self.config.max_threads) else { return false };
        place.stands_by = stands_by;
        let (crew, for_it) = (self.clone(), pool.clone());
        let started = match self.config.thread_names {
            None => crew.start_worker(pool, place),
            Some(_) => sync::start_errand(move || _ = crew.start_worker(&for_it, place)),
        };
        if started.is_ok() {
            self.replacements.add_shared(1);
        }
        started.is_ok()
    }

    /// Adds a worker that is about to start to the roll. Returns `None` if `limit` workers or more are alive,
    /// or if the crew was stopped.
    fn reserve(self: &Arc<Self>, limit: usize) -> Option<CrewPlace> {
        let mut roll = sync::lock(&self.roll);
        let may_start = roll.live < limit && !self.parting.is_stopped();
        may_start.then(|| self.add_place(&mut roll))
    }

    /// Adds a thread that is about to start to the roll.
    pub(super) fn add_place(self: &Arc<Self>, roll: &mut Roll) -> CrewPlace {
        roll.live += 1;
        roll.ever += 1;
        CrewPlace { crew: self.clone(), number: roll.ever, thread: None, stands_by: false, is_left: false }
    }

    /// Returns a builder for a thread of this name, with a stack of the size that the program has set.
    pub(super) fn thread_builder(&self, name: String) -> thread::Builder {
        let builder = thread::Builder::new().name(name);
        match self.config.stack_size {
            Some(size) => builder.stack_size(size),
            None => builder,
        }
    }

    /// Starts the worker that a place was reserved for. Gives the place back, and returns the error of the
    /// system, if no thread can be started. Calls the program's function for names, so the caller must hold
    /// no lock.
    fn start_worker(self: Arc<Self>, pool: &Arc<Pool>, mut place: CrewPlace) -> io::Result<()> {
        let number = place.number;
        let name = self.given_thread_name(number).unwrap_or_else(|| format!("{}-{number}", self.config.name));
        let (builder, pool) = (self.thread_builder(name), pool.clone());
        // If no thread can be started, the place is given back when the closure is dropped.
        builder.spawn(move || self.work(&pool, &mut place)).map(drop)
    }

    /// Runs a worker from its start to its end, and calls its hooks. If the crew is stopped, the worker
    /// cancels tasks and calls its hook for the end before it counts as gone, and the last one of the crew
    /// cancels what is left once more. If there are more workers than usual, the worker ends when the
    /// deputy releases it, or when it was not needed for [`LINGER`]; it counts as gone before it
    /// calls that hook. A panic of its loop does not end it.
    fn work(&self, pool: &Arc<Pool>, place: &mut CrewPlace) {
        ambient::move_in();
        place.arrive();
        let on_stop = self.config.on_stop.as_ref();
        call(pool, self.config.on_start.as_ref());
        let mut stopped = Box::pin(self.until_stopped());
        let mut run = Run::new(self.state.clone(), stopped.as_mut() as Root<'_>);
        if place.stands_by {
            run.stand_by();
        }
        loop {
            let linger = (self.live() > self.config.threads).then_some(LINGER);
            // A panic of the loop must not end the thread.
            let hooked = self.with_park_hooks(pool, run);
            let station = Arc::new(Station::with(Rank::Guest, linger));
            let worked = waking::catch(|| block_on::drive(PoolSource::Given(pool.clone()), station, hooked));
            let unneeded = worked.is_some_and(|left| left.is_none());
            let is_stopped = self.parting.is_stopped();
            if is_stopped {
                // Before this thread counts as gone: a thread that waits for that finds all futures dropped
                // and the hook called.
                self.cancel_all(pool);
                call(pool, on_stop);
            }
            if self.leave(place, is_stopped, unneeded) {
                if !is_stopped {
                    call(pool, on_stop);
                }
                break;
            }
            stopped = Box::pin(self.until_stopped());
            run = Run::new(self.state.clone(), stopped.as_mut() as Root<'_>);
        }
        self.changed.notify_all();
        if self.parting.is_stopped() && self.live() == 0 {
            // The end does not wait for a thread that was stuck.
            self.cancel_all(pool);
        }
    }

    /// Waits until the crew is stopped; not at all if it was.
    pub(super) async fn until_stopped(&self) {
        let listener = self.stop.listen();
        // A stop that came before `listen` is found here.
        if !self.parting.is_stopped() {
            listener.await;
        }
    }

    /// Removes the thread from the crew if the crew was stopped, or if the thread is not needed and there
    /// are more than usual. The thread counts as gone from that moment, so no thread relies
    /// on it. Returns false if it stays.
    fn leave(&self, place: &mut CrewPlace, is_stopped: bool, unneeded: bool) -> bool {
        let mut roll = sync::lock(&self.roll);
        let leaves = is_stopped || unneeded && roll.live > self.config.threads;
        if leaves {
            place.give_back(&mut roll);
        }
        leaves
    }
}

/// A thread's place in the crew, which exists before the thread does. Dropping it gives the place back,
/// however the thread ended.
pub(super) struct CrewPlace {
    crew: Arc<Crew>,
    number: usize,
    /// `None` before the thread runs.
    thread: Option<thread::ThreadId>,
    /// The thread starts as a standby.
    stands_by: bool,
    is_left: bool,
}

impl CrewPlace {
    /// Adds the calling thread, for which the place is, to the threads that run.
    pub(super) fn arrive(&mut self) {
        let here = thread::current();
        self.thread = Some(here.id());
        sync::lock(&self.crew.roll).threads.push((here, ThreadState::here()));
    }

    /// Removes the thread from the roll. The drop of the place does not do so again.
    fn give_back(&mut self, roll: &mut Roll) {
        self.is_left = true;
        roll.live -= 1;
        roll.threads.retain(|(thread, _)| Some(thread.id()) != self.thread);
    }
}

impl Drop for CrewPlace {
    /// Removes the thread from the roll, unless it has left, and wakes the threads that wait for it.
    fn drop(&mut self) {
        if !self.is_left {
            let crew = self.crew.clone();
            self.give_back(&mut sync::lock(&crew.roll));
            crew.changed.notify_all();
        }
    }
}

/// Calls the hook, if there is one, as a visit to `pool`: what the hook spawns or registers belongs to that
/// pool. If the hook panics, the panic hook reports that, and the thread goes on.
pub(super) fn call(pool: &Arc<Pool>, hook: Option<&Hook>) {
    if let Some(hook) = hook {
        waking::call(|| pool.visit(|| hook()));
    }
}
