//! [`Workers`]: what each worker has done, by its number.
//!
//! Nothing is recorded while a worker runs. Its polls are paceline's own counts, and its time is the
//! processor time of its threads, as the system counts it. A worker has several threads, one after the other,
//! if one of them blocks and is replaced.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use paceline::{Load, ThreadLoad};

/// The accounts of the workers of a runtime.
#[derive(Debug)]
pub(crate) struct Workers(Mutex<State>);

#[derive(Debug)]
struct State {
    accounts: Vec<Account>,
    /// Whether the metrics of the runtime were asked for.
    is_asked: bool,
}

/// The counts and the threads of one worker.
#[derive(Clone, Debug, Default)]
struct Account {
    /// Its threads that exist now.
    threads: Vec<Member>,
    /// The thread that was its latest to start.
    latest: Option<ThreadId>,
    /// The part of the threads that have ended.
    past: Figures,
    /// The highest figures that were reported: none of them ever falls.
    seen: Figures,
}

/// A thread while it is a worker.
#[derive(Clone, Copy, Debug)]
struct Member {
    id: ThreadId,
    /// The processor time of the thread before it was a worker. `None` if it was not read.
    before: Option<Duration>,
}

/// The counts of one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Processor time. Zero if the system does not tell it.
    pub(crate) busy: Duration,
    /// Polls of tasks.
    pub(crate) polls: u64,
    /// Of these, the polls of tasks that were in the queue of another thread.
    pub(crate) stolen: u64,
}

impl Workers {
    pub(crate) fn new(number: usize) -> Self {
        Self(Mutex::new(State { accounts: vec![Account::default(); number], is_asked: false }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the new thread of a pool a worker, for the rest of its life. Returns the number of the worker:
    /// one that has had no thread, or else one without a thread, or else one whose threads all block.
    pub(super) fn start(&self, blocks: impl Fn(ThreadId) -> bool) -> usize {
        let mut state = self.lock();
        let accounts = &mut state.accounts;
        let is_stuck = |account: &Account| account.threads.iter().all(|thread| blocks(thread.id));
        // A thread that starts late may find that other workers have ended.
        let number = accounts.iter().position(|account| account.latest.is_none());
        let number = number.or_else(|| accounts.iter().position(|account| account.threads.is_empty()));
        let number = number.or_else(|| accounts.iter().position(is_stuck)).unwrap_or(0);
        accounts[number].join(Some(Duration::ZERO));
        number
    }

    /// Makes the current thread worker 0, until [`end`](Self::end). Its processor time is read if the metrics
    /// were asked for.
    pub(super) fn begin(&self) {
        let mut state = self.lock();
        let before = if state.is_asked { processor_time_here() } else { None };
        state.accounts[0].join(before);
    }

    /// Ends the current thread's part in a worker. `load` is read only where there are several workers.
    pub(super) fn end(&self, number: usize, load: impl FnOnce() -> Load) {
        let id = thread::current().id();
        let mut state = self.lock();
        let is_only = state.accounts.len() == 1;
        let account = &mut state.accounts[number];
        let Some(at) = account.threads.iter().position(|thread| thread.id == id) else { return };
        if let Some(before) = account.threads.swap_remove(at).before {
            account.past.busy += processor_time_here().unwrap_or_default().saturating_sub(before);
        }
        if account.latest == Some(id) {
            account.latest = account.threads.last().map(|thread| thread.id).or(account.latest);
        }
        if !is_only {
            state.attribute(number, &load());
        }
    }

    /// Notes that the metrics are asked for: from now on, all processor time is read.
    pub(super) fn ask(&self, load: impl FnOnce() -> Load) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.is_asked, true) {
            return;
        }
        let load = load();
        for thread in state.accounts.iter_mut().flat_map(|account| &mut account.threads) {
            let now = || find(&load, thread.id).and_then(|thread| thread.processor_time);
            thread.before = thread.before.or_else(now);
        }
    }

    /// Returns the counts of a worker so far.
    pub(crate) fn figures(&self, number: usize, load: &Load) -> Figures {
        let mut state = self.lock();
        let is_only = state.accounts.len() == 1;
        let account = &mut state.accounts[number];
        let mut now = account.past;
        for member in &account.threads {
            let Some(thread) = find(load, member.id) else { continue };
            let busy = member.before.and_then(|before| thread.processor_time?.checked_sub(before));
            now.busy += busy.unwrap_or_default();
            now.polls += thread.polls;
            now.stolen += thread.stolen;
        }
        if is_only {
            now.polls = load.past_polls + load.threads.iter().map(|thread| thread.polls).sum::<u64>();
            now.stolen = load.past_stolen + load.threads.iter().map(|thread| thread.stolen).sum::<u64>();
        }
        let seen = &mut account.seen;
        *seen = Figures {
            busy: seen.busy.max(now.busy),
            polls: seen.polls.max(now.polls),
            stolen: seen.stolen.max(now.stolen),
        };
        *seen
    }

    /// Returns the thread of a worker: the latest to start.
    #[allow(dead_code, reason = "behind tokio_unstable")]
    pub(crate) fn thread(&self, number: usize) -> Option<ThreadId> {
        self.lock().accounts[number].latest
    }

    /// Returns the number of tasks that wait for the threads of a worker.
    #[allow(dead_code, reason = "behind tokio_unstable")]
    pub(crate) fn queued(&self, number: usize, load: &Load) -> usize {
        let state = self.lock();
        let queued = |member: &Member| find(load, member.id).map_or(0, |thread| thread.queued);
        state.accounts[number].threads.iter().map(queued).sum()
    }
}

impl State {
    /// Gives a worker the polls of threads that have left, less those that other workers were given, or were
    /// reported to have beside those of their present threads. Unless two threads leave at the same moment,
    /// the rest is of its own thread.
    fn attribute(&mut self, number: usize, load: &Load) {
        let rest = |all: u64, count: fn(&Figures) -> u64, of_thread: fn(&ThreadLoad) -> u64| {
            let of = |(other, account): (usize, &Account)| {
                let given = count(&account.past);
                let present = account.threads.iter().filter_map(|thread| find(load, thread.id));
                let reported = count(&account.seen).saturating_sub(present.map(of_thread).sum());
                if other == number { given } else { given.max(reported) }
            };
            all.saturating_sub(self.accounts.iter().enumerate().map(of).sum())
        };
        let polls = rest(load.past_polls, |figures| figures.polls, |thread| thread.polls);
        let stolen = rest(load.past_stolen, |figures| figures.stolen, |thread| thread.stolen);
        let past = &mut self.accounts[number].past;
        past.polls += polls;
        past.stolen += stolen;
    }
}

impl Account {
    fn join(&mut self, before: Option<Duration>) {
        let id = thread::current().id();
        self.threads.push(Member { id, before });
        self.latest = Some(id);
    }
}

fn find(load: &Load, id: ThreadId) -> Option<&ThreadLoad> {
    load.threads.iter().find(|thread| thread.id == id)
}

/// Returns the processor time of the current thread so far.
#[cfg(unix)]
pub(super) fn processor_time_here() -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to `time` only.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    (result == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

#[cfg(not(unix))]
pub(super) fn processor_time_here() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_starts_after_the_end_of_another_has_a_number_of_its_own() {
        let workers = Workers::new(2);
        let live = || {
            let number = workers.start(|_| false);
            workers.end(number, Load::default);
            number
        };
        let numbers = [(); 3].map(|()| thread::scope(|scope| scope.spawn(live).join().unwrap()));
        assert_eq!(numbers, [0, 1, 0]);
    }
}
