//! [`Threads`]: a queue of work, and the threads that take it, first come first served.
//!
//! **A thread is on its way to waiting work.** The thread is being started, or was called and has not looked
//! at the queue yet. Otherwise all permitted threads run a piece, and each takes the next one when it is
//! done. All changes happen under one lock, and each change keeps this promise: a thread that submits work,
//! or takes a piece and leaves another one in the queue, calls or starts a thread ([`Inner::successor`]). So
//! it does not matter whether a piece of work returns.
//!
//! **The pool grows slowly at first.** One thread at a time is on its way, and brings the next when it takes
//! its piece: a few threads finish a heap of short closures before more are started. If no piece was done
//! since the last thread arrived, an arriving thread concludes that the work blocks, and brings
//! [`MAX_BROUGHT`] others; those do the same, so the number of threads doubles again and again, until there
//! is one for each piece.
//!
//! **Lost threads.** A thread with work that is not awaited any more ([`lose`](Threads::lose)) does not count
//! towards the limit, and ends when its work returns.
//!
//! **The end.** No piece is taken any more, and the waiting ones are *doomed*: they never begin, and a thread
//! that ends the runtime and has the time drops them. If the owner wants the queue finished, the threads take
//! pieces as before, and end when there are none. Pieces with a result that a caller may await are counted
//! ([`Inner::open`]), so that a drain learns when there are none.
//!
//! A thread without work stays awake for a moment, if that pays ([`spin`]), sleeps for a second, and ends. No
//! thread polls the queue.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{fmt, io, mem};

use crate::ambient;
use crate::fork::{self, Origin};
use crate::probe::ThreadState;
use crate::simulated;
use crate::spin;
use crate::sync::{self, Flag, Instant, Mutex, thread};

mod ends;
mod work;

pub(crate) use work::{After, Errand, Title, Work};

/// How long a thread of paceline stays when it is not needed, here and in pools: so long that work which
/// comes once a second starts no threads.
pub(crate) const LINGER: Duration = Duration::from_secs(1);
/// How long a thread without work stays awake at most, if no runtime specifies it.
const SPIN: Duration = Duration::from_micros(50);
/// Upper bound of the threads that an arriving thread brings. The thread's own piece of work waits while it
/// starts them.
const MAX_BROUGHT: usize = 2;
/// For how many pieces there is room in the queue while none waits.
const ROOM: usize = 64;

/// A piece of work that runs.
#[derive(Clone)]
pub(crate) struct Piece {
    /// The thread that runs the piece.
    pub(crate) thread: thread::ThreadId,
    pub(crate) state: ThreadState,
    /// How many pieces were over when this one began: it differs between the pieces of a thread.
    pub(crate) number: u64,
    /// `None` for a piece of a stream.
    pub(crate) title: Option<Title>,
    /// The address of the errand, if the piece is one: [`Threads::lose`] finds the piece by it.
    errand: Option<usize>,
    /// Whether the deadline of the piece itself has passed: then no caller waits for the piece.
    pub(crate) is_lost: bool,
}

/// The runtime that the threads belong to.
pub(crate) trait Owner: Send + Sync {
    /// Calls `work` inside the runtime: free functions called by `work` act on this runtime.
    fn call(self: Arc<Self>, work: &mut dyn FnMut());
    /// Returns the name that the program gives to the thread of this number, if any.
    fn thread_name(&self, number: usize) -> Option<String>;
    /// Returns the stack size of a thread, if the program specifies it.
    fn stack_size(&self) -> Option<usize>;
    /// Returns how long a thread without work stays awake.
    fn spin(&self) -> Duration;
    /// Returns whether what waits when the runtime ends, or comes later, is run instead of cancelled.
    fn finishes_queue(&self) -> bool;
}

/// The threads of a runtime, or of the process.
pub(crate) struct Threads {
    inner: Mutex<Inner>,
    closed: Flag,
    spin: Duration,
    pub(crate) finishes_queue: bool,
    /// The runtime that the jobs come from; `None` for the default instance, on which free functions act
    /// anyway.
    owner: Option<Weak<dyn Owner>>,
    origin: Origin,
}

#[derive(Default)]
struct Inner {
    queue: VecDeque<Work>,
    /// Threads without work. The last one became idle last, and is called first.
    idle: Vec<Arc<IdleSeat>>,
    /// Threads that are on their way to work.
    coming: usize,
    /// Threads that were started and have not ended, without the lost ones.
    threads: usize,
    /// Threads that are lost. Below zero for a moment if a thread returns before it is counted.
    lost: isize,
    /// How many threads there may be.
    limit: usize,
    /// How many threads were started so far: the number of the last one.
    ever: usize,
    /// Pieces of work that are over, and how many there were when the last thread arrived.
    done: u64,
    done_then: u64,
    /// Pieces of `done` that were begun.
    ran: u64,
    /// Pieces that wait or run, without lost pieces and those of streams.
    open: usize,
    /// Pieces that never begin, because the runtime has ended, and are still to be dropped.
    doomed: VecDeque<Work>,
    /// The pieces that run.
    pieces: Vec<Piece>,
    /// The thread to unpark when no piece is open any more.
    keeper: Option<thread::Thread>,
}

/// The place where one thread sleeps.
struct IdleSeat {
    thread: thread::Thread,
    called: Flag,
}

impl IdleSeat {
    /// Wakes the thread of this seat, to look at the queue.
    fn call(&self) {
        self.called.set(true);
        self.thread.unpark();
    }
}

/// How to get a thread for waiting work.
enum Successor {
    /// Call a thread without work.
    Call(Arc<IdleSeat>),
    /// Start the thread of this number.
    Start(usize),
}

/// Figures of the work done, and of the present threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// Threads that were started and have not ended, without the lost ones.
    pub(crate) threads: usize,
    /// Threads without work.
    pub(crate) idle: usize,
    /// Pieces of work that wait for a thread.
    pub(crate) queued: usize,
    /// Pieces of work that have run.
    pub(crate) jobs: u64,
    /// Threads that are lost, and run still.
    pub(crate) lost: usize,
}

impl Inner {
    /// Returns how to get a thread for waiting work, and counts it as coming; the caller calls or starts it.
    /// `None` if there can be no other thread.
    fn successor(&mut self) -> Option<Successor> {
        let successor = match self.idle.pop() {
            Some(seat) => Successor::Call(seat),
            None if self.threads < self.limit => {
                self.threads += 1;
                self.ever += 1;
                Successor::Start(self.ever)
            }
            None => return None,
        };
        self.coming += 1;
        Some(successor)
    }

    /// Does the same as [`successor`](Self::successor), but only if work waits and no thread is on its way to
    /// it.
    fn successor_if_needed(&mut self) -> Option<Successor> {
        if self.coming > 0 || self.queue.is_empty() { None } else { self.successor() }
    }

    /// Records that the calling thread, `thread`, begins `work`. Does not run the work.
    fn begin_piece(&mut self, thread: thread::ThreadId, work: &Work) {
        let (state, title, errand) = (ThreadState::here(), work.title(), work.errand());
        self.pieces.push(Piece { thread, state, number: self.done, title, errand, is_lost: false });
    }

    /// Records that this thread is done with its piece. `after` says whether the piece counts as run, and
    /// whether it was lost: a lost piece was closed before. If no piece is open any more, unparks the thread
    /// that waits for that.
    fn end_piece(&mut self, thread: thread::ThreadId, after: After) {
        self.done += 1;
        self.ran += u64::from(after != After::NotBegun);
        // From the end: pieces that have run for long are at the beginning and tend to stay there.
        let Some(at) = self.pieces.iter().rposition(|piece| piece.thread == thread) else { return };
        let is_open = self.pieces.swap_remove(at).title.is_some();
        // A lost piece was closed when it was lost.
        self.close_pieces(usize::from(is_open && after != After::Lost));
    }

    /// Counts that many pieces as closed, and unparks the keeper if none is open.
    fn close_pieces(&mut self, pieces: usize) {
        self.open -= pieces;
        if self.open == 0 {
            if let Some(keeper) = &self.keeper {
                keeper.unpark();
            }
        }
    }
}

impl Threads {
    /// Makes the threads of a runtime, or of the process if there is no `owner`. Starts none; at most `limit`
    /// run at once, without the lost ones. Does not keep the owner alive.
    pub(crate) fn new(limit: usize, owner: Option<Arc<dyn Owner>>) -> Self {
        // The first thread that arrives does not conclude that the work blocks.
        let inner = Inner { limit, done_then: u64::MAX, ..Inner::default() };
        Self {
            inner: Mutex::new(inner),
            closed: Flag::new(false),
            spin: owner.as_ref().map_or(SPIN, |owner| owner.spin()),
            finishes_queue: owner.as_ref().is_some_and(|owner| owner.finishes_queue()),
            owner: owner.as_ref().map(Arc::downgrade),
            origin: Origin::here(),
        }
    }

    /// Queues a piece of work, and calls or starts a thread if none is on its way. After the end of the
    /// runtime the piece is cancelled instead, unless the owner wants the queue finished, and the result is
    /// `Ok`. A simulation that runs on the calling thread takes the piece. Aborts the child of a fork.
    ///
    /// # Errors
    ///
    /// Returns the system's error if there is no thread and none can be started. Then all waiting work is
    /// cancelled, this piece included, because no thread would ever take it.
    pub(crate) fn submit(self: &Arc<Self>, work: Work) -> io::Result<()> {
        if !self.origin.is_here() {
            fork::abort_child();
        }
        let Some(work) = simulated::take(work) else { return Ok(()) };
        let mut inner = sync::lock(&self.inner);
        if self.closed.is_set() && !self.finishes_queue {
            drop(inner);
            work.cancel();
            return Ok(());
        }
        inner.open += usize::from(work.is_open());
        inner.queue.push_back(work);
        let successor = inner.successor_if_needed();
        drop(inner);
        successor.map_or(Ok(()), |successor| self.call_or_start(successor))
    }

    /// Sets how many threads there may be. If work waits and no thread is on its way to it, a higher limit
    /// starts one; a failure of that is ignored. Surplus threads end when they have no work.
    pub(crate) fn set_limit(self: &Arc<Self>, limit: usize) {
        let mut inner = sync::lock(&self.inner);
        inner.limit = limit;
        let successor = inner.successor_if_needed();
        drop(inner);
        if let Some(successor) = successor {
            let _ = self.call_or_start(successor);
        }
    }

    /// Calls or starts a thread that was counted as coming. If it cannot be started and there are other
    /// threads, returns `Ok`, because one of these takes the work. If there are none, cancels all waiting
    /// work and returns the error.
    fn call_or_start(self: &Arc<Self>, successor: Successor) -> io::Result<()> {
        let number = match successor {
            Successor::Call(seat) => {
                seat.call();
                return Ok(());
            }
            Successor::Start(number) => number,
        };
        let threads = self.clone();
        let owner = self.owner.as_ref().and_then(Weak::upgrade);
        let name = owner.as_ref().and_then(|owner| owner.thread_name(number));
        let mut builder = thread::Builder::new().name(name.unwrap_or_else(|| format!("blocking-{number}")));
        if let Some(bytes) = owner.as_ref().and_then(|owner| owner.stack_size()) {
            builder = builder.stack_size(bytes);
        }
        let Err(error) = builder.spawn(move || threads.live()) else { return Ok(()) };
        let mut inner = sync::lock(&self.inner);
        inner.threads -= 1;
        inner.coming -= 1;
        if inner.threads > 0 {
            // Another thread takes the work when it is done with its piece; or at once, if it became idle
            // while this one counted as coming.
            let idle = inner.idle.pop();
            inner.coming += usize::from(idle.is_some());
            drop(inner);
            idle.into_iter().for_each(|seat| seat.call());
            return Ok(());
        }
        let stranded = mem::take(&mut inner.queue);
        inner.close_pieces(stranded.iter().filter(|work| work.is_open()).count());
        drop(inner);
        stranded.into_iter().for_each(Work::cancel);
        Err(io::Error::new(error.kind(), format!("cannot start a thread for what blocks: {error}")))
    }

    /// Runs a thread from its start to its end. Works in a call of the owner, which stays alive for so long;
    /// or without it, if there is no owner or it is gone.
    fn live(self: &Arc<Self>) {
        ambient::move_in();
        // The thread keeps the owner alive while it runs the owner's jobs; the runtime's end makes it leave.
        match self.owner.as_ref().map(Weak::upgrade) {
            Some(Some(owner)) => owner.call(&mut || self.work()),
            _ => self.work(),
        }
    }

    /// Takes pieces of work, and waits for others, until the thread has to end.
    fn work(self: &Arc<Self>) {
        let seat = Arc::new(IdleSeat { thread: thread::current(), called: Flag::new(false) });
        // A thread is started only if work waits, so it serves first.
        while !self.serve(seat.thread.id()) && self.wait(&seat) {}
    }

    /// Takes pieces of work until the queue is empty, as a thread that was on its way. Before each piece,
    /// calls or starts other threads for what is left in the queue. Returns true if the thread is lost, and
    /// has to end.
    fn serve(self: &Arc<Self>, here: thread::ThreadId) -> bool {
        let mut inner = sync::lock(&self.inner);
        inner.coming -= 1;
        // No piece was done since the last thread arrived.
        let mut blocks = inner.done == inner.done_then;
        inner.done_then = inner.done;
        loop {
            let Some(work) = inner.queue.pop_front() else { return false };
            // How many threads this one brings at most, and how many on their way are enough.
            let (at_most, enough) = if mem::take(&mut blocks) { (MAX_BROUGHT, usize::MAX) } else { (1, 1) };
            for _ in 0..at_most {
                if inner.coming >= inner.queue.len().min(enough) {
                    break;
                }
                let Some(successor) = inner.successor() else { break };
                drop(inner);
                // If no thread can be had, a thread that is done with its piece takes the work: this one, at
                // the latest.
                let _ = self.call_or_start(successor);
                inner = sync::lock(&self.inner);
            }
            inner.begin_piece(here, &work);
            drop(inner);
            let after = work.run();
            inner = sync::lock(&self.inner);
            inner.end_piece(here, after);
            if after == After::Lost {
                inner.lost -= 1;
                return true;
            }
        }
    }

    /// Waits until the thread is called; does not wait if work is in the queue. Returns false if the thread
    /// has to end, because it was not called for [`LINGER`], or the threads are closed or more than the
    /// limit. Then it is not counted any more.
    fn wait(&self, seat: &Arc<IdleSeat>) -> bool {
        let mut inner = sync::lock(&self.inner);
        if !inner.queue.is_empty() {
            // Work came between two locks: this thread takes it.
            inner.coming += 1;
            return true;
        }
        if self.closed.is_set() || inner.threads > inner.limit {
            inner.threads -= 1;
            return false;
        }
        // Many pieces may have waited at once.
        inner.queue.shrink_to(ROOM);
        inner.idle.push(seat.clone());
        drop(inner);
        let sleep = || {
            let until = Instant::now().checked_add(LINGER);
            while !seat.called.is_set() && sync::park_until(until) {}
        };
        spin::wait(self.spin, || seat.called.is_set(), sleep);
        if !seat.called.take() {
            let mut inner = sync::lock(&self.inner);
            // A thread that calls this one has taken its seat off the list, and relies on it.
            if let Some(at) = inner.idle.iter().position(|other| Arc::ptr_eq(other, seat)) {
                inner.idle.remove(at);
                inner.threads -= 1;
                return false;
            }
            drop(inner);
            while !seat.called.take() {
                sync::park_until(None);
            }
        }
        true
    }

    /// Counts the thread that runs the errand with this address as lost, because the deadline of the errand
    /// has passed. The thread does not count towards the limit any more: if work waits and no thread is on
    /// its way to it, calls or starts another one at once. The errand is not awaited any more, so if no
    /// other piece is open, this unparks the thread that waits for that.
    pub(crate) fn lose(self: &Arc<Self>, errand: usize) {
        let mut inner = sync::lock(&self.inner);
        if let Some(piece) = inner.pieces.iter_mut().find(|piece| piece.errand == Some(errand)) {
            piece.is_lost = true;
        }
        inner.lost += 1;
        inner.threads -= 1;
        inner.close_pieces(1);
        let successor = inner.successor_if_needed();
        drop(inner);
        if let Some(successor) = successor {
            let _ = self.call_or_start(successor);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_set()
    }

    /// Returns the names of closures that have not returned, and whether they run. Work of streams has no
    /// name, and is left out.
    pub(crate) fn unfinished(&self) -> Vec<(String, bool)> {
        let titles: Vec<(Title, bool)> = {
            let inner = sync::lock(&self.inner);
            let running = inner.pieces.iter().filter_map(|piece| Some((piece.title.clone()?, true)));
            let waiting = inner.queue.iter().filter_map(|work| Some((work.title()?, false)));
            running.chain(waiting).collect()
        };
        titles.into_iter().map(|(title, runs)| (title.to_string(), runs)).collect()
    }

    /// Returns the figures of this moment.
    pub(crate) fn figures(&self) -> Figures {
        let inner = sync::lock(&self.inner);
        Figures {
            threads: inner.threads,
            idle: inner.idle.len(),
            queued: inner.queue.len(),
            jobs: inner.ran,
            lost: usize::try_from(inner.lost).unwrap_or(0),
        }
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.figures().fmt(f)
    }
}

#[cfg(all(test, paceline_loom))]
mod models;

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests;
