//! [`Machine`]: which thread has which core, and at what time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use shuttle::scheduler::Task;

/// A thread that other threads wait for leaves its core after so long.
pub(super) const SLICE: u64 = 1_500_000;

/// The thread that stands for all that is outside of the machine.
pub(super) const WORLD: usize = 0;

/// The costs of steps, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// Reading a line that the core has, or writing it without a locked instruction.
    pub(crate) access: u64,
    /// A locked instruction, or a fence, on a line that the core has.
    pub(crate) locked: u64,
    /// The instruction of a loop that waits for another core.
    pub(crate) pause: u64,
    /// Getting a line from another core.
    pub(crate) transfer: u64,
    /// Waking a thread, for the thread that wakes it, if a core is idle and has to be rung.
    pub(crate) wake: u64,
    /// The same if all cores are busy.
    pub(crate) wake_busy: u64,
    /// From the wake to the first step of the woken thread, on a core that was idle.
    pub(crate) latency: u64,
    /// The same on a core that another thread has just left.
    pub(crate) switch: u64,
    /// Falling asleep, for the thread itself.
    pub(crate) sleep: u64,
    /// Offering the core to other threads.
    pub(crate) offer: u64,
    /// Asking the poller: for the call, and for each event that it returns.
    pub(crate) wait: u64,
    pub(crate) event: u64,
    /// Interrupting the thread that waits for events.
    pub(crate) interrupt: u64,
    /// Reading the clock.
    pub(crate) clock: u64,
}

/// The counts of a simulation so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    /// Lines that a core got from another one, and the time that threads waited for them.
    pub(crate) transfers: u64,
    pub(crate) transfer_nanos: u64,
    /// Threads that were woken from a sleep.
    pub(crate) wakes: u64,
    /// The processor time of all threads.
    pub(crate) used: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The thread blocks, has not started, or has ended.
    Blocked,
    /// The thread waits for a core.
    Ready,
    Core(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Thread {
    /// The time of its next step.
    pub(super) clock: u64,
    pub(super) place: Place,
    /// The thread sleeps in the kernel if it blocks, so waking it costs a call.
    pub(super) sleeps: bool,
    last_core: usize,
    /// The processor time that it has used.
    pub(super) used: u64,
    /// The fair share that it has used: as `used`, but a thread that wakes up counts as one that has run.
    share: u64,
    /// When it got its core.
    since: u64,
    /// The rest of a step in the middle of which it lost its core.
    left: u64,
    pub(super) id: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Core {
    thread: Option<usize>,
    /// The thread that had the core last.
    last: usize,
    free_since: u64,
}

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) costs: Costs,
    cores: Vec<Core>,
    pub(super) threads: Vec<Thread>,
    pub(super) running: usize,
    /// The running thread offers its core.
    pub(super) offers: bool,
    /// The times of the world's events.
    pub(super) events: BinaryHeap<Reverse<u64>>,
    pub(super) totals: Totals,
}

#[derive(Debug)]
pub(super) struct Holders {
    /// A bit for each core; a single bit if that core has written last. None before the first access.
    cores: u128,
    /// When the last transfer ends.
    free_at: u64,
}

impl Default for Holders {
    fn default() -> Self {
        Self::NONE
    }
}

impl Holders {
    pub(super) const NONE: Self = Self { cores: 0, free_at: 0 };
}

impl Machine {
    /// Makes a machine with so many cores, all of them idle. The clock of the world begins at `start`.
    pub(super) fn new(cores: usize, costs: Costs, start: u64) -> Self {
        let world = Thread { clock: start, place: Place::Ready, ..Thread::new() };
        Self {
            costs,
            cores: vec![Core { thread: None, last: WORLD, free_since: start }; cores],
            threads: vec![world],
            running: WORLD,
            offers: false,
            events: BinaryHeap::new(),
            totals: Totals::default(),
        }
    }

    pub(super) fn charge(&mut self, nanos: u64) {
        if self.running != WORLD {
            let thread = &mut self.threads[self.running];
            thread.clock += nanos;
            thread.used += nanos;
            thread.share += nanos;
            self.totals.used += nanos;
        }
    }

    /// Gets a line for the core of the running thread.
    pub(super) fn access(&mut self, holders: &mut Holders, writes: bool) {
        let thread = &self.threads[self.running];
        let Place::Core(core) = thread.place else { return };
        let own = 1_u128 << core;
        let has_it = holders.cores == own || !writes && holders.cores & own != 0;
        if !has_it && holders.cores != 0 {
            let now = thread.clock;
            holders.free_at = holders.free_at.max(now) + self.costs.transfer;
            self.totals.transfers += 1;
            self.totals.transfer_nanos += holders.free_at - now;
            self.charge(holders.free_at - now);
        }
        holders.cores = if writes { own } else { holders.cores | own };
    }

    /// Chooses the thread that takes the next step.
    pub(super) fn choose(&mut self, runnable: &[&Task]) -> usize {
        let mut can_run = vec![false; self.threads.len()];
        for task in runnable {
            let thread = usize::from(task.id());
            if can_run.len() <= thread {
                can_run.resize(thread + 1, false);
                self.threads.resize(thread + 1, Thread::new());
            }
            can_run[thread] = true;
        }
        for (thread, can_run) in can_run.iter().enumerate().skip(1) {
            match (self.threads[thread].place, can_run) {
                (Place::Blocked, true) => self.note_woken(thread),
                (Place::Ready | Place::Core(_), false) => self.leave_core(thread, Place::Blocked),
                _ => {}
            }
        }
        if std::mem::take(&mut self.offers) {
            self.hand_over_core();
        }
        self.distribute();
        let on_cores = self.cores.iter().filter_map(|core| core.thread);
        let earliest = on_cores.min_by_key(|thread| self.threads[*thread].clock);
        let world = &self.threads[WORLD];
        let event = match world.place {
            Place::Blocked => self.events.peek().map(|Reverse(at)| world.clock.max(*at)),
            _ => Some(world.clock),
        };
        self.running = match (earliest, event.filter(|_| can_run[WORLD])) {
            (Some(thread), Some(at)) if self.threads[thread].clock < at => thread,
            (Some(thread), None) => thread,
            (_, at) => self.run_world(at),
        };
        self.running
    }

    /// Moves the world to the time of its next event, and takes that.
    fn run_world(&mut self, at: Option<u64>) -> usize {
        let world = &mut self.threads[WORLD];
        (world.clock, world.place) = (at.unwrap_or(world.clock), Place::Ready);
        while self.events.peek().is_some_and(|Reverse(at)| *at <= world.clock) {
            self.events.pop();
        }
        WORLD
    }

    /// Makes a thread ready that the last step has woken, and charges that step the wake.
    fn note_woken(&mut self, woken: usize) {
        if self.threads[woken].sleeps {
            self.totals.wakes += 1;
            let is_one_idle = self.cores.iter().any(|core| core.thread.is_none());
            self.charge(if is_one_idle { self.costs.wake } else { self.costs.wake_busy });
        }
        let now = self.threads[self.running].clock;
        let shares = self.cores.iter().filter_map(|core| core.thread).map(|other| self.threads[other].share);
        // A long sleep gives a thread no more than one slice ahead of the others.
        let least = shares.min().unwrap_or(0).saturating_sub(SLICE);
        let thread = &mut self.threads[woken];
        thread.clock = thread.clock.max(now);
        thread.share = thread.share.max(least);
        thread.place = Place::Ready;
    }

    /// Takes a thread off its core, at the time of its clock.
    fn leave_core(&mut self, thread: usize, place: Place) {
        if let Place::Core(core) = self.threads[thread].place {
            self.cores[core] = Core { thread: None, last: thread, free_since: self.threads[thread].clock };
        }
        self.threads[thread].place = place;
    }

    /// Gives cores to the threads that are ready, those with the least share first.
    fn distribute(&mut self) {
        while let Some(next) = self.next_ready() {
            if let Some(core) = self.free_core(next).or_else(|| self.take_core(next)) {
                self.enter_core(next, core);
            } else {
                break;
            }
        }
    }

    /// Gives the core of the running thread to a thread that is ready, if there is one.
    fn hand_over_core(&mut self) {
        if let (Place::Core(core), Some(next)) = (self.threads[self.running].place, self.next_ready()) {
            self.leave_core(self.running, Place::Ready);
            self.enter_core(next, core);
        }
    }

    fn next_ready(&self) -> Option<usize> {
        let ready = (1..self.threads.len()).filter(|thread| self.threads[*thread].place == Place::Ready);
        ready.min_by_key(|thread| self.threads[*thread].share)
    }

    /// Returns a core without a thread: the last one of this thread, or that which has been idle for longest.
    fn free_core(&self, thread: usize) -> Option<usize> {
        let last = self.threads[thread].last_core;
        let is_free = |core: &usize| self.cores[*core].thread.is_none();
        let longest =
            || (0..self.cores.len()).filter(is_free).min_by_key(|core| self.cores[*core].free_since);
        Some(last).filter(is_free).or_else(longest)
    }

    /// Takes a core for `next` from the thread with the greatest share, if that has used up its slice.
    fn take_core(&mut self, next: usize) -> Option<usize> {
        let (now, share) = (self.threads[self.running].clock, self.threads[next].share);
        let owners = self.cores.iter().filter_map(|core| core.thread);
        let may_lose = |owner: &usize| {
            let owner = &self.threads[*owner];
            owner.clock > owner.since + SLICE && owner.share > share
        };
        let loser = owners.filter(may_lose).max_by_key(|owner| self.threads[*owner].share)?;
        let Place::Core(core) = self.threads[loser].place else { return None };
        let thread = &mut self.threads[loser];
        // The rest of its step is done when it has a core again.
        let left = thread.clock.saturating_sub(now.max(thread.since));
        thread.left += left;
        thread.clock -= left;
        self.leave_core(loser, Place::Ready);
        Some(core)
    }

    fn enter_core(&mut self, next: usize, at: usize) {
        let Core { last, free_since, .. } = self.cores[at];
        let thread = &mut self.threads[next];
        let latency = match (thread.sleeps, free_since < thread.clock) {
            (true, true) => self.costs.latency,
            (false, true) => 0,
            (_, false) if last == next => 0,
            (_, false) => self.costs.switch,
        };
        thread.since = thread.clock.max(free_since) + latency;
        thread.clock = thread.since + std::mem::take(&mut thread.left);
        (thread.sleeps, thread.place, thread.last_core) = (false, Place::Core(at), at);
        self.cores[at].thread = Some(next);
    }
}

impl Thread {
    fn new() -> Self {
        Self {
            clock: 0,
            place: Place::Blocked,
            sleeps: false,
            last_core: 0,
            used: 0,
            share: 0,
            since: 0,
            left: 0,
            id: None,
        }
    }
}
