//! The notes of the current thread: where they go, and the functions that make them.

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::chunk::Chunk;
use super::forks;
use super::note::Note;
use super::store::{AboutThread, Store};
use super::{FoundIn, Reason, RoleNow};
use crate::simulated;

thread_local! {
    /// The log of the recorder that records this thread now; null if none does.
    static LOG: Cell<*const Log> = const { Cell::new(ptr::null()) };
    /// The numbers of the tasks that this thread spawns next, and their end.
    static TASK_NUMBERS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    static THREAD_NUMBER: u64 = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
}

static NEXT_TASK: AtomicU64 = AtomicU64::new(1);
static NEXT_THREAD: AtomicU64 = AtomicU64::new(1);

/// How many numbers a thread reserves at a time.
const TASK_NUMBERS_AT_ONCE: u64 = 256;

/// The number of a task, which no other task of the process has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskNumber(u64);

impl TaskNumber {
    #[inline]
    pub(crate) fn next() -> Self {
        let (mut next, mut end) = TASK_NUMBERS.get();
        if next == end {
            next = NEXT_TASK.fetch_add(TASK_NUMBERS_AT_ONCE, Ordering::Relaxed);
            end = next + TASK_NUMBERS_AT_ONCE;
        }
        TASK_NUMBERS.set((next + 1, end));
        Self(next)
    }

    /// Returns the number.
    pub(crate) fn get(self) -> Option<u64> {
        Some(self.0)
    }
}

/// The number of a thread, which no other thread of the process has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadNumber(u64);

impl ThreadNumber {
    /// Returns the number of the current thread.
    pub(crate) fn here() -> Self {
        Self(THREAD_NUMBER.with(|number| *number))
    }

    /// Returns the number.
    pub(crate) fn get(self) -> u64 {
        self.0
    }
}

/// The recorder of a runtime, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    /// Rises with each change of `store`.
    version: AtomicUsize,
    store: Mutex<Option<Arc<Store>>>,
}

impl Recording {
    /// Creates a recording without a recorder.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn store(&self) -> Option<Arc<Store>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has `store` record the runtime from now on, in the place of the previous one. A thread notices that at
    /// its next [`Membership::refresh`].
    pub(crate) fn start(&self, store: Arc<Store>) {
        self.change(|current| current.replace(store));
    }

    /// Ends the recording, if `store` records the runtime.
    pub(crate) fn stop(&self, store: &Arc<Store>) {
        self.change(|current| current.take_if(|current| Arc::ptr_eq(current, store)));
    }

    fn change(&self, change: impl FnOnce(&mut Option<Arc<Store>>) -> Option<Arc<Store>>) {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        // A thread that sees the new version takes the lock, and so sees the new store.
        self.version.fetch_add(1, Ordering::Relaxed);
        if let Some(ended) = change(&mut store) {
            ended.end();
        }
    }
}

/// Where the notes of a thread go.
#[derive(Debug)]
struct Log {
    store: Arc<Store>,
    thread: u64,
    chunk: RefCell<Arc<Chunk>>,
    /// The role that was noted last.
    role: Cell<Option<RoleNow>>,
    /// Where the thread found the task that it took last.
    found: Cell<FoundIn>,
}

impl Log {
    /// Adds the current thread to the store.
    fn new(store: Arc<Store>) -> Self {
        let thread = ThreadNumber::here().0;
        let about = || {
            let here = thread::current();
            AboutThread { number: thread, name: here.name().map(Into::into), id: here.id(), os_id: os_id() }
        };
        let chunk = store.add(thread, about).into();
        Self { store, thread, chunk, role: Cell::new(None), found: Cell::new(FoundIn::Queue) }
    }

    fn note(&self, note: Note) {
        self.note_at(self.store.clock.ticks(), note);
    }

    fn note_at(&self, ticks: u64, note: Note) {
        let words = note.encode(ticks);
        let mut chunk = self.chunk.borrow_mut();
        if !chunk.push(words) {
            *chunk = self.store.exchange(self.thread);
            chunk.push(words);
        }
    }

    fn note_role(&self, role: RoleNow) {
        if self.role.replace(Some(role)) != Some(role) {
            // After the note of the last leader, whose end this thread has seen.
            self.note_at(self.store.clock.ticks_after_reads(), Note::Role(role));
        }
    }
}

/// The part of the current thread in the recording of a runtime, for as long as the thread is in a `block_on`
/// of that runtime. A `block_on` inside of another one has a membership of its own. While it exists, the
/// thread counts as outside of the other runtime, unless both are the same.
#[derive(Debug)]
pub(crate) struct Membership {
    /// The version of the recording at the last refresh; `None` before the first.
    version: Option<usize>,
    /// `None` if no recorder records the runtime, or if the log below is that of the same recorder.
    log: Option<Rc<Log>>,
    /// The log that was in use before.
    below: *const Log,
    /// How many forks there were when it was made.
    forks: u32,
}

impl Membership {
    /// Creates a membership that changes nothing until the first [`refresh`](Self::refresh).
    pub(crate) fn new() -> Self {
        Self { version: None, log: None, below: LOG.get(), forks: forks::number() }
    }

    /// Notes from now on what `recording` asks for. Called at each turn of the thread.
    #[inline]
    pub(crate) fn refresh(&mut self, recording: &Recording) {
        let version = recording.version.load(Ordering::Relaxed);
        if self.version != Some(version) {
            self.version = Some(version);
            self.change(recording);
        }
    }

    /// Returns the log of the `block_on` below this one.
    fn below(&self) -> Option<&Log> {
        // SAFETY: the log belongs to a membership that was made earlier on this thread and is dropped later.
        // The other membership changes its log only in its own `refresh`, which the thread calls when this
        // membership is gone.
        unsafe { self.below.as_ref() }
    }

    #[cold]
    fn change(&mut self, recording: &Recording) {
        if self.forks != forks::number() {
            return;
        }
        let store = recording.store();
        let is_same = |below: &Log| store.as_ref().is_some_and(|store| Arc::ptr_eq(store, &below.store));
        let shares = self.below().is_some_and(is_same);
        if let Some(below) = self.below() {
            below.note_role(if shares { RoleNow::Processes } else { RoleNow::Outside });
        }
        let log = store.filter(|_| !shares).map(|store| Rc::new(Log::new(store)));
        let in_use = match &log {
            Some(log) => Rc::as_ptr(log),
            None if shares => self.below,
            None => ptr::null(),
        };
        LOG.set(in_use);
        self.log = log;
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if self.store.is_here() {
            self.store.leave(self.thread);
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        if self.forks != forks::number() {
            // In the child of a fork: the logs belong to the parent, and so do the locks of their stores.
            return;
        }
        if let Some(log) = self.log.as_ref().filter(|log| log.role.get().is_some()) {
            log.note_role(RoleNow::Outside);
        }
        LOG.set(self.below);
        if let (Some(below), Some(_)) = (self.below(), self.version) {
            below.note_role(RoleNow::Processes);
        }
    }
}

/// Returns the number by which the operating system knows the current thread, or 0.
fn os_id() -> u64 {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        u64::from(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs())
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    {
        0
    }
}

/// Calls `f` with the log of this thread, if there is one.
#[inline]
fn with_log(f: impl FnOnce(&Log)) {
    // SAFETY: the membership that has set the pointer sets another one before it drops the log.
    if let Some(log) = unsafe { LOG.get().as_ref() } {
        f(log);
    }
}

/// The thread has this role from now on.
#[inline]
pub(crate) fn role(role: RoleNow) {
    with_log(|log| log.note_role(role));
}

/// The leader goes to sleep in the poller.
#[inline]
pub(crate) fn sleeps() {
    with_log(|log| log.note(Note::Sleeps));
}

/// The leader has asked the poller, which has reported `number` events.
#[inline]
pub(crate) fn events(number: usize) {
    with_log(|log| log.note(Note::Events(number as u64)));
}

/// The thread wakes another one to lead.
#[inline]
pub(crate) fn promotes(thread: ThreadNumber, reason: Reason) {
    with_log(|log| log.note(Note::Promotes(thread.0, reason)));
}

/// The thread steals so many events of the thread of this number.
#[inline]
pub(crate) fn steals(thread: u64, events: u32) {
    with_log(|log| log.note(Note::Steals(thread, events.into())));
}

#[inline]
pub(crate) fn spawns(task: TaskNumber, spawned_at: &'static Location<'static>) {
    simulated::spawns(task.0, spawned_at);
    with_log(|log| log.note(Note::Spawns(task.0, spawned_at)));
}

#[inline]
pub(crate) fn wakes(task: TaskNumber) {
    simulated::wakes(task.0);
    with_log(|log| log.note(Note::Wakes(task.0)));
}

/// Keeps where this thread has found the task that it polls next.
#[inline]
pub(crate) fn finds(place: FoundIn) {
    with_log(|log| log.found.set(place));
}

/// A poll of a task in progress. Its drop notes the end, which may be a panic.
#[derive(Debug)]
pub(crate) struct PollNote(());

impl PollNote {
    /// Notes that a poll begins of the task that was [found](finds) last.
    #[inline]
    pub(crate) fn begin(task: TaskNumber, spawned_at: &'static Location<'static>) -> Self {
        simulated::begins_poll(task.0);
        with_log(|log| log.note(Note::PollBegins(task.0, spawned_at, log.found.get())));
        Self(())
    }

    /// Notes that the poll is over.
    #[inline]
    pub(crate) fn end(self) {}
}

impl Drop for PollNote {
    #[inline]
    fn drop(&mut self) {
        simulated::ends_poll();
        with_log(|log| log.note(Note::PollEnds));
    }
}

/// A time in which this thread notes nothing, because it acts for another runtime than the one that it is in.
#[derive(Debug)]
pub(crate) struct Pause(*const Log);

impl Pause {
    pub(crate) fn begin() -> Self {
        Self(LOG.replace(ptr::null()))
    }

    pub(crate) fn end(self) {}
}

impl Drop for Pause {
    fn drop(&mut self) {
        LOG.set(self.0);
    }
}

/// Has the thread of a forked child note nothing for the recorders of its parent.
#[cfg(all(unix, not(miri)))]
pub(crate) fn note_fork() {
    forks::add();
    LOG.set(ptr::null());
}

/// The future of a task was dropped.
#[inline]
pub(crate) fn ends(task: TaskNumber) {
    simulated::ends(task.0);
    with_log(|log| log.note(Note::Ends(task.0)));
}

#[inline]
pub(crate) fn timer_fires() {
    with_log(|log| log.note(Note::TimerFires));
}

/// The deputy has found that a thread does not return from a task, or from the future of a `block_on`.
pub(crate) fn stalls(
    thread: ThreadNumber,
    spawned_at: &'static Location<'static>,
    kind: impl FnOnce() -> u64,
    lasted: Duration,
) {
    with_log(|log| {
        log.note(Note::Stalls(thread.0, spawned_at));
        log.note(Note::StallDetail(kind(), u64::try_from(lasted.as_nanos()).unwrap_or(u64::MAX)));
    });
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    fn recording() -> (Recording, Arc<Store>) {
        let (recording, store) = (Recording::new(), Arc::new(Store::new(Duration::MAX, 1 << 20, false)));
        recording.start(store.clone());
        (recording, store)
    }

    /// Returns the notes of the current thread.
    fn notes(store: &Store) -> Vec<Note> {
        let here = ThreadNumber::here().0;
        let (_, threads) = store.snapshot();
        let own = threads.iter().find(|thread| thread.about.number == here);
        own.map_or(vec![], |thread| thread.notes.iter().map(|(_, note)| *note).collect())
    }

    #[test]
    fn a_thread_notes_what_it_does_while_it_is_a_member() {
        let (recording, store) = recording();
        let at = Location::caller();
        sleeps();
        {
            let mut member = Membership::new();
            sleeps();
            member.refresh(&recording);
            role(RoleNow::Leads);
            role(RoleNow::Leads);
            events(2);
            finds(FoundIn::Stolen);
            PollNote::begin(TaskNumber(7), at).end();
        }
        sleeps();
        let expected = [
            Note::Role(RoleNow::Leads),
            Note::Events(2),
            Note::PollBegins(7, at, FoundIn::Stolen),
            Note::PollEnds,
            Note::Role(RoleNow::Outside),
        ];
        assert_eq!(notes(&store), expected);
    }

    #[test]
    fn a_recorder_starts_and_ends_at_the_next_turn() {
        let (recording, first) = recording();
        let mut member = Membership::new();
        member.refresh(&recording);
        let second = Arc::new(Store::new(Duration::MAX, 1 << 20, false));
        recording.start(second.clone());
        timer_fires();
        member.refresh(&recording);
        sleeps();
        recording.stop(&first);
        member.refresh(&recording);
        sleeps();
        recording.stop(&second);
        member.refresh(&recording);
        sleeps();
        drop(member);
        assert_eq!(notes(&first), [Note::TimerFires]);
        assert_eq!(notes(&second), [Note::Sleeps, Note::Sleeps]);
    }

    #[test]
    fn a_thread_is_outside_while_it_is_in_another_runtime() {
        let [(outer, outer_store), (inner, inner_store)] = [(); 2].map(|()| recording());
        let unrecorded = Recording::new();
        let mut below = Membership::new();
        below.refresh(&outer);
        role(RoleNow::Processes);
        for recording in [&inner, &unrecorded, &outer] {
            let mut above = Membership::new();
            above.refresh(recording);
            sleeps();
        }
        timer_fires();
        let [processes, outside] = [RoleNow::Processes, RoleNow::Outside].map(Note::Role);
        let expected = [processes, outside, processes, outside, processes, Note::Sleeps, Note::TimerFires];
        assert_eq!(notes(&outer_store), expected);
        assert_eq!(notes(&inner_store), [Note::Sleeps]);
    }

    #[test]
    fn no_two_tasks_have_the_same_number() {
        let numbers = || (0..1000).map(|_| TaskNumber::next().0).collect::<Vec<_>>();
        let mut all: Vec<u64> =
            (0..4).map(|_| thread::spawn(numbers)).flat_map(|it| it.join().unwrap()).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 4000);
    }
}
