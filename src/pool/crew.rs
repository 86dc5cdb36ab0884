//! The crew: a runtime's own threads. A worker is nothing but a `block_on` of the executor's `run`.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::block_on::Root;
use super::parting::Parting;
use super::patience::Who;
use super::{Pool, StallHook, Station, block_on, slice};
use crate::ambient;
use crate::executor::{Run, StateRef};
use crate::sync::{Condvar, Counter, Event, Flag, Instant, Mutex, MutexGuard, thread};

/// How long a thread beyond the usual number stays when nobody needs it.
const LINGER: Duration = Duration::from_secs(1);

/// How large a worker's stack is if nothing is said: the standard library's default.
const STACK_SIZE: usize = 2 << 20;

/// What a runtime's owner wants to have called.
pub(crate) type Hook = Arc<dyn Fn() + Send + Sync>;

/// What a crew is made of.
pub(crate) struct CrewConfig {
    pub(crate) state: StateRef,
    pub(crate) threads: usize,
    pub(crate) max_threads: usize,
    pub(crate) name: String,
    pub(crate) stack_size: Option<usize>,
    pub(crate) on_start: Option<Hook>,
    pub(crate) on_stop: Option<Hook>,
    pub(crate) on_park: Option<Hook>,
    pub(crate) on_unpark: Option<Hook>,
    pub(crate) on_stall: Option<StallHook>,
}

impl fmt::Debug for CrewConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrewConfig")
            .field("threads", &self.threads)
            .field("max_threads", &self.max_threads)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A runtime's threads.
#[derive(Debug)]
pub(crate) struct Crew {
    config: CrewConfig,
    /// All workers were started once.
    complete: Flag,
    /// Held by who starts them.
    starting: Mutex<()>,
    /// It takes no tasks any more.
    pub(super) closed: Flag,
    pub(super) parting: Parting,
    pub(super) stopped: Flag,
    pub(super) stop: Event,
    roll: Mutex<Roll>,
    pub(super) changed: Condvar,
    /// A hook that was told of a stall is not back yet.
    pub(super) reporting: Flag,
    /// Threads added because all others were stuck.
    pub(crate) replacements: Counter,
}

#[derive(Debug, Default)]
pub(super) struct Roll {
    /// Threads that were started and have not ended.
    pub(super) live: usize,
    /// Those of them that are only starting, in order.
    starting: Vec<Starter>,
    ever: usize,
    pub(super) threads: Vec<Who>,
    /// Other threads that cancel tasks.
    pub(super) cancelling: Vec<Who>,
    /// Workers that wait for all others to stop, in a task that shuts the runtime down.
    pub(super) stoppers: Vec<thread::ThreadId>,
    /// Times that nobody was left to wait for.
    pub(super) stops: usize,
}

#[derive(Debug)]
struct Starter {
    number: usize,
    since: Instant,
    is_reserve: bool,
}

/// What a crew has by way of threads.
pub(super) struct Staff {
    pub(super) live: usize,
    /// Those of them that take longer to start than they should.
    pub(super) late: usize,
    /// There is a reserve, or one is starting, and not late.
    pub(super) reserve: bool,
}

impl Crew {
    pub(super) fn new(config: CrewConfig) -> Self {
        Self {
            config,
            complete: Flag::new(false),
            starting: Mutex::new(()),
            closed: Flag::new(false),
            parting: Parting::default(),
            stopped: Flag::new(false),
            stop: Event::new(),
            roll: Mutex::default(),
            changed: Condvar::new(),
            reporting: Flag::new(false),
            replacements: Counter::default(),
        }
    }

    pub(crate) fn state(&self) -> &StateRef {
        &self.config.state
    }

    pub(super) fn name(&self) -> &str {
        &self.config.name
    }

    /// Whether this is the executor that its workers run.
    pub(super) fn runs(&self, state: &StateRef) -> bool {
        std::ptr::eq(&**self.state(), &**state)
    }

    pub(crate) fn has_surplus(&self) -> bool {
        self.config.state.has_surplus()
    }

    /// Whether there are to be no workers: its tasks are polled by whoever is in a `block_on`.
    pub(crate) fn is_unmanned(&self) -> bool {
        self.config.threads == 0
    }

    /// Whether somebody wants to know when a thread sleeps.
    pub(super) fn tells_of_sleep(&self) -> bool {
        self.config.on_park.is_some() || self.config.on_unpark.is_some()
    }

    /// The calling thread is about to sleep, or is up again.
    #[cold]
    pub(super) fn tells(&self, pool: &Arc<Pool>, parks: bool) {
        call(pool, if parks { self.config.on_park.as_ref() } else { self.config.on_unpark.as_ref() });
    }

    pub(super) fn stall_hook(&self) -> Option<StallHook> {
        self.config.on_stall.clone()
    }

    /// Whether there are workers, or will be, or those that were stopped are not gone yet.
    pub(super) fn is_at_work(&self) -> bool {
        !self.is_stopped() || self.live() > 0
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.is_set()
    }

    /// Threads alive right now.
    pub(crate) fn live(&self) -> usize {
        self.roll().live
    }

    /// The threads, but those that are just being started.
    pub(super) fn workers(&self) -> Vec<thread::Thread> {
        self.roll().threads.iter().map(|who| who.thread.clone()).collect()
    }

    /// How many threads there are; and how many of them take longer than `limit` to start, in a hook that blocks, perhaps: each of
    /// them twice as long as the one before, for all of them may only wait for a core.
    pub(super) fn staff(&self, now: Instant, limit: Duration) -> Staff {
        let roll = self.roll();
        let limits = (0..).map(|number: u32| limit * (1 << number.min(16)));
        let is_late = |starter: &Starter, limit| now.saturating_duration_since(starter.since) >= limit;
        let late =
            roll.starting.iter().zip(limits).take_while(|(starter, limit)| is_late(starter, *limit)).count();
        let starts = roll.starting[late..].iter().any(|starter| starter.is_reserve);
        Staff { live: roll.live, late, reserve: starts || self.config.state.has_reserve() }
    }

    /// How large the stacks of the runtime's threads are to be, if anything was said.
    pub(crate) fn given_stack_size(&self) -> Option<usize> {
        self.config.stack_size
    }

    /// How large a worker's stack is.
    pub(crate) fn stack_size(&self) -> usize {
        self.config.stack_size.unwrap_or(STACK_SIZE)
    }

    pub(super) fn roll(&self) -> MutexGuard<'_, Roll> {
        self.roll.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the workers, if that was not done yet. When it fails, those that run stay, and the next call starts the
    /// rest.
    #[inline]
    pub(crate) fn start(self: &Arc<Self>, pool: &Arc<Pool>) -> io::Result<()> {
        if self.complete.is_set() { Ok(()) } else { self.start_the_rest(pool) }
    }

    #[cold]
    fn start_the_rest(self: &Arc<Self>, pool: &Arc<Pool>) -> io::Result<()> {
        // Whoever comes while another one starts them has to know whether there are any.
        let _starting = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        pool.deputy.call().map_err(|error| self.short_of_threads(&error))?;
        while self.hire(pool, self.config.threads, false).map_err(|error| self.short_of_threads(&error))? {}
        self.complete.set(true);
        Ok(())
    }

    fn short_of_threads(&self, error: &io::Error) -> io::Error {
        let (wanted, live) = (self.config.threads, self.live());
        let what = format!(
            "cannot start a thread ({live} of {wanted} workers run): {error}. The limit of threads or of memory is \
             reached, of the process (`ulimit -v`), its user (`ulimit -u`) or its container; raise it, or have \
             fewer workers or smaller stacks (`PACELINE_THREADS`, `Builder::threads`, `Builder::stack_size`)"
        );
        io::Error::new(error.kind(), what)
    }

    /// How many workers there are to be that do not block.
    pub(super) fn threads(&self) -> usize {
        self.config.threads
    }

    /// One more thread, because all others are stuck; as the reserve, because they compute. False if there are as many as there
    /// may be.
    pub(super) fn add_thread(self: &Arc<Self>, pool: &Arc<Pool>, is_reserve: bool) -> bool {
        let hired = self.hire(pool, self.config.max_threads, is_reserve);
        let added = matches!(hired, Ok(true));
        if added {
            self.replacements.add_shared(1);
        }
        added
    }

    fn hire(self: &Arc<Self>, pool: &Arc<Pool>, limit: usize, is_reserve: bool) -> io::Result<bool> {
        self.enlist(pool, is_reserve, |roll| roll.live < limit && !self.is_stopped())
    }

    /// One more thread for a crew that was stopped, and is to be cleared up: that is the first thing it does.
    pub(super) fn hire_for_the_end(self: &Arc<Self>, pool: &Arc<Pool>) -> bool {
        matches!(self.enlist(pool, false, |_| true), Ok(true))
    }

    fn enlist(
        self: &Arc<Self>,
        pool: &Arc<Pool>,
        is_reserve: bool,
        may: impl FnOnce(&Roll) -> bool,
    ) -> io::Result<bool> {
        let number = {
            let mut roll = self.roll();
            if !may(&roll) {
                return Ok(false);
            }
            roll.live += 1;
            roll.ever += 1;
            let number = roll.ever;
            roll.starting.push(Starter { number, since: Instant::now(), is_reserve });
            number
        };
        let mut builder = thread::Builder::new().name(format!("{}-{number}", self.config.name));
        if let Some(size) = self.config.stack_size {
            builder = builder.stack_size(size);
        }
        let (crew, pool) = (self.clone(), pool.clone());
        let started = builder.spawn(move || crew.work(&pool, number, is_reserve));
        started.map(|_| true).inspect_err(|_| {
            let mut roll = self.roll();
            roll.live -= 1;
            roll.has_started(number);
        })
    }

    /// A worker's life.
    fn work(&self, pool: &Arc<Pool>, number: usize, is_reserve: bool) {
        let who = Who::here();
        ambient::move_in();
        self.roll().threads.push(who);
        if is_reserve {
            slice::shorten();
        }
        // One that comes to clear up where there are no workers is none.
        let (on_start, on_stop) = (self.config.on_start.as_ref(), self.config.on_stop.as_ref());
        let [on_start, on_stop] = [on_start, on_stop].map(|hook| hook.filter(|_| !self.is_unmanned()));
        call(pool, on_start);
        // Its runner is known before it counts as started: a reserve is missed at no moment.
        let begin = if is_reserve { Run::reserve } else { Run::new };
        let mut stopped = Box::pin(self.until_stopped());
        let mut run = begin(self.config.state.clone(), stopped.as_mut() as Root<'_>);
        self.roll().has_started(number);
        loop {
            let linger = self.is_overstaffed(0).then_some(LINGER);
            let worked = catch_unwind(AssertUnwindSafe(|| {
                block_on::drive(Some(pool), Arc::new(Station::lingering(linger)), run)
            }));
            // A panic out of a waker must not cost a thread (P2).
            let unneeded = matches!(worked, Ok(None));
            let is_stopped = self.is_stopped();
            if is_stopped {
                // Before this thread counts as gone, so that who waits for that finds all futures dropped and the hook called.
                self.clear_up(pool);
                call(pool, on_stop);
            }
            if self.may_leave(is_stopped, unneeded) {
                if !is_stopped {
                    call(pool, on_stop);
                }
                break;
            }
            stopped = Box::pin(self.until_stopped());
            run = Run::new(self.config.state.clone(), stopped.as_mut() as Root<'_>);
        }
        self.changed.notify_all();
        if self.is_stopped() && self.live() == 0 {
            // Nobody may be waiting for that: the runtime was shut down inside of a task.
            self.cancel_all(pool);
        }
    }

    pub(super) async fn until_stopped(&self) {
        let listener = self.stop.listen();
        // A stop that came before we listened.
        if !self.is_stopped() {
            listener.await;
        }
    }

    /// Whether there are more threads than usual, not counting those that are `stuck`.
    pub(super) fn is_overstaffed(&self, stuck: usize) -> bool {
        self.roll().live > self.config.threads.saturating_add(stuck)
    }

    /// Whether this thread may end: the crew was stopped, or nobody needs it and there are more than usual. Then it
    /// counts as gone from that moment (L11).
    fn may_leave(&self, is_stopped: bool, unneeded: bool) -> bool {
        let mut roll = self.roll();
        let leaves = is_stopped || unneeded && roll.live > self.config.threads;
        if leaves {
            roll.live -= 1;
            let me = thread::current().id();
            roll.threads.retain(|who| who.id() != me);
        }
        leaves
    }
}

/// A hook that panics has said so by its panic message; the thread goes on all the same.
pub(super) fn call(pool: &Arc<Pool>, hook: Option<&Hook>) {
    if let Some(hook) = hook {
        let _ = catch_unwind(AssertUnwindSafe(|| pool.visit(|| hook())));
    }
}

impl Roll {
    fn has_started(&mut self, number: usize) {
        self.starting.retain(|other| other.number != number);
    }
}
