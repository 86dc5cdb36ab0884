//! [`Threads`]: a queue of work, and the threads that take it, first come first served.
//!
//! *Somebody comes.* Where work waits, a thread is on its way to it: it is being started, or was called and has not looked yet.
//! Or all threads that may be run something, and each takes the next piece when it is done. That is kept by whoever changes it, all
//! under one lock: who submits, and who takes a piece and leaves another one behind, sees to it that somebody comes
//! ([`Inner::successor`]). So it does not matter whether a piece of work returns.
//!
//! *How fast the pool grows.* One thread comes at a time, and sees to the next when it takes its piece: a heap of closures that do
//! next to nothing is done by a few threads before the others are there. A thread that comes and finds that nothing has been done since
//! the last one did finds work that blocks, and sees to [`AT_ONCE`] others; those that come do the same, so it doubles and redoubles,
//! until there is one for each piece.
//!
//! *Who is lost.* A thread whose work nobody waits for any more ([`lose`](Threads::lose)) does not count towards the limit. It ends when
//! its work returns.
//!
//! *The end.* Nothing is taken any more, and what waits is *doomed*: it never begins. Whoever ends the pool, and has the time, drops it.
//! Pieces for which somebody may wait are counted ([`Inner::open`]), so that a drain finds out when there are none.
//!
//! A thread without work stays awake for a moment, if that pays ([`spin`]), sleeps for a second, and goes. Nobody polls.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{fmt, io, mem};

use super::shared::Title;
use super::work::{After, Work};
use crate::ambient;
use crate::fork::Origin;
use crate::pool::{Pool, Who};
use crate::spin;
use crate::sync::{self, Flag, Instant, Mutex, thread};

mod ends;

/// How long a thread stays without work.
const LINGER: Duration = Duration::from_secs(1);
/// How long it stays awake of that, if that pays, where no runtime says.
const SPIN: Duration = Duration::from_micros(50);
/// A thread that comes sees to so many others at most. Each has to be started, and a piece of work waits meanwhile.
const AT_ONCE: usize = 2;

/// A piece of work that runs.
struct Piece {
    /// The thread's number.
    thread: usize,
    /// Its own.
    number: u64,
    /// `None` for a stream's.
    title: Option<Title>,
    /// Where the errand is, if it is one: for who says that it is lost.
    errand: Option<usize>,
    is_lost: bool,
}

/// The threads of a runtime, or of the process.
pub(crate) struct Threads {
    inner: Mutex<Inner>,
    closed: Flag,
    spin: Duration,
    /// Whose jobs they run; `None` for the default instance, on which free functions act anyway.
    pool: Option<Weak<Pool>>,
    origin: Origin,
}

struct Inner {
    queue: VecDeque<Work>,
    /// Threads without work; the last one came last, and is called first.
    idle: Vec<Arc<Seat>>,
    /// Threads that are on their way to work.
    coming: usize,
    /// Threads that were started and have not ended, but those that are lost.
    threads: usize,
    /// Below zero for a moment, where a thread comes back before it is counted.
    lost: isize,
    limit: usize,
    ever: usize,
    /// Pieces of work that were done; and how many there were when a thread came last.
    done: u64,
    done_then: u64,
    /// Those of them that were begun.
    ran: u64,
    /// Pieces that wait or run, and are not lost, but those of streams.
    open: usize,
    /// What never begins, because the runtime has ended, and is still to be dropped; and how many pieces that was.
    doomed: VecDeque<Work>,
    cancelled: usize,
    /// What runs, and who runs it.
    pieces: Vec<Piece>,
    crew: Vec<(usize, Who)>,
    begun: u64,
    /// Who is unparked when no piece is open.
    keeper: Option<thread::Thread>,
}

/// Where a thread sleeps.
struct Seat {
    thread: thread::Thread,
    called: Flag,
}

impl Seat {
    fn call(&self) {
        self.called.set(true);
        self.thread.unpark();
    }
}

/// What is to be done so that somebody comes.
enum Successor {
    Call(Arc<Seat>),
    Start(usize),
}

/// What the threads have done, and what there is right now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) threads: usize,
    pub(crate) idle: usize,
    pub(crate) queued: usize,
    pub(crate) jobs: u64,
    pub(crate) lost: usize,
}

impl Inner {
    /// Whom to have come for work that waits. `None` if there can be nobody else.
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

    /// The same, if nobody comes yet to work that waits.
    fn successor_if_needed(&mut self) -> Option<Successor> {
        if self.coming > 0 || self.queue.is_empty() { None } else { self.successor() }
    }

    /// The thread of this number begins it.
    fn begins(&mut self, thread: usize, work: &Work) {
        self.begun += 1;
        let (title, errand) = (work.title(), work.errand());
        self.pieces.push(Piece { thread, number: self.begun, title, errand, is_lost: false });
    }

    /// It is done with it.
    fn ends(&mut self, thread: usize, after: After) {
        self.done += 1;
        self.ran += u64::from(after != After::NotBegun);
        // From the end: what has been there for long, is, and the others look past it.
        let Some(at) = self.pieces.iter().rposition(|piece| piece.thread == thread) else { return };
        let is_open = self.pieces.swap_remove(at).title.is_some();
        // One that is lost is not open from when it was.
        self.closes(usize::from(is_open && after != After::Lost));
    }

    /// So many pieces are not open any more.
    fn closes(&mut self, pieces: usize) {
        self.open -= pieces;
        if self.open == 0 {
            self.keeper.iter().for_each(thread::Thread::unpark);
        }
    }
}

impl Threads {
    /// Threads for a runtime, or for the process.
    pub(super) fn new(limit: usize, pool: Option<&Arc<Pool>>) -> Self {
        let inner = Inner {
            queue: VecDeque::new(),
            idle: Vec::new(),
            coming: 0,
            threads: 0,
            lost: 0,
            limit,
            ever: 0,
            done: 0,
            done_then: u64::MAX,
            ran: 0,
            open: 0,
            doomed: VecDeque::new(),
            cancelled: 0,
            pieces: Vec::new(),
            crew: Vec::new(),
            begun: 0,
            keeper: None,
        };
        Self {
            inner: Mutex::new(inner),
            closed: Flag::new(false),
            spin: pool.map_or(SPIN, |pool| pool.policy.spin),
            pool: pool.map(Arc::downgrade),
            origin: Origin::here(),
        }
    }

    /// Leaves a piece of work here.
    ///
    /// # Errors
    ///
    /// That of the system, if there is no thread and none can be started. Then all that waits here is cancelled, this piece with it:
    /// nobody would ever come.
    pub(super) fn submit(self: &Arc<Self>, work: Work) -> io::Result<()> {
        if !self.origin.is_here() {
            // Its threads are another process's (P10).
            mem::forget(work);
            return Ok(());
        }
        let mut inner = sync::lock(&self.inner);
        if self.closed.is_set() {
            drop(inner);
            work.cancel();
            return Ok(());
        }
        inner.open += usize::from(work.is_open());
        inner.queue.push_back(work);
        let successor = inner.successor_if_needed();
        drop(inner);
        successor.map_or(Ok(()), |successor| self.have_come(successor))
    }

    /// How many threads there may be. Those that are more go when they have nothing to do.
    pub(super) fn set_limit(self: &Arc<Self>, limit: usize) {
        let mut inner = sync::lock(&self.inner);
        inner.limit = limit;
        let successor = inner.successor_if_needed();
        drop(inner);
        successor.into_iter().for_each(|successor| drop(self.have_come(successor)));
    }

    fn have_come(self: &Arc<Self>, successor: Successor) -> io::Result<()> {
        let number = match successor {
            Successor::Call(seat) => {
                seat.call();
                return Ok(());
            }
            Successor::Start(number) => number,
        };
        let threads = self.clone();
        let mut builder = thread::Builder::new().name(format!("blocking-{number}"));
        let pool = self.pool.as_ref().and_then(Weak::upgrade);
        if let Some(bytes) = pool.and_then(|pool| pool.crew()?.given_stack_size()) {
            builder = builder.stack_size(bytes);
        }
        let Err(error) = builder.spawn(move || threads.live(number)) else { return Ok(()) };
        let mut inner = sync::lock(&self.inner);
        inner.threads -= 1;
        inner.coming -= 1;
        if inner.threads > 0 {
            // One of them takes it when it is done; or at once, if it has become idle while another one was on its way.
            let idle = if inner.coming > 0 || inner.queue.is_empty() { None } else { inner.idle.pop() };
            inner.coming += usize::from(idle.is_some());
            drop(inner);
            idle.into_iter().for_each(|seat| seat.call());
            return Ok(());
        }
        let stranded = mem::take(&mut inner.queue);
        inner.closes(stranded.iter().filter(|work| work.is_open()).count());
        drop(inner);
        stranded.into_iter().for_each(Work::cancel);
        let what = format!(
            "cannot start a thread for what blocks: {error}. The limit of threads or of memory is reached, of the process \
             (`ulimit -v`), its user (`ulimit -u`) or its container"
        );
        Err(io::Error::new(error.kind(), what))
    }

    /// A thread's life.
    fn live(self: &Arc<Self>, number: usize) {
        ambient::move_in();
        let who = Who::here();
        sync::lock(&self.inner).crew.push((number, who));
        // It keeps the runtime's pool alive, for as long as it runs its jobs; the runtime's end has it go.
        match self.pool.as_ref().map(Weak::upgrade) {
            Some(Some(pool)) => pool.visit(|| self.work(number)),
            _ => self.work(number),
        }
        sync::lock(&self.inner).crew.retain(|(other, _)| *other != number);
    }

    fn work(self: &Arc<Self>, number: usize) {
        let seat = Arc::new(Seat { thread: thread::current(), called: Flag::new(false) });
        // It was started because somebody was wanted.
        loop {
            if self.serve(number) || !self.wait(&seat) {
                return;
            }
        }
    }

    /// Does what there is to do, as somebody who was on the way to it. True if the thread is over.
    fn serve(self: &Arc<Self>, number: usize) -> bool {
        let mut inner = sync::lock(&self.inner);
        inner.coming -= 1;
        // Nothing was done since somebody came last.
        let mut blocks = inner.done == inner.done_then;
        inner.done_then = inner.done;
        loop {
            let Some(work) = inner.queue.pop_front() else { return false };
            // How many this one sees to, and how many are to be on their way.
            let (at_most, enough) = if mem::take(&mut blocks) { (AT_ONCE, usize::MAX) } else { (1, 1) };
            for _ in 0..at_most {
                if inner.coming >= inner.queue.len().min(enough) {
                    break;
                }
                let Some(successor) = inner.successor() else { break };
                drop(inner);
                // If there is nobody to be had, somebody takes it who is done: this thread, at the latest.
                let _ = self.have_come(successor);
                inner = sync::lock(&self.inner);
            }
            inner.begins(number, &work);
            drop(inner);
            let after = work.run();
            inner = sync::lock(&self.inner);
            inner.ends(number, after);
            if after == After::Lost {
                inner.lost -= 1;
                return true;
            }
        }
    }

    /// Waits until it is called. False if the thread is over.
    fn wait(&self, seat: &Arc<Seat>) -> bool {
        let mut inner = sync::lock(&self.inner);
        if !inner.queue.is_empty() {
            // Somebody was quicker to come, perhaps, and this one sees to the rest.
            inner.coming += 1;
            return true;
        }
        if self.closed.is_set() || inner.threads > inner.limit {
            inner.threads -= 1;
            return false;
        }
        inner.idle.push(seat.clone());
        drop(inner);
        let sleep = || {
            let until = Instant::now().checked_add(LINGER);
            while !seat.called.is_set() && sync::park_until(until) {}
        };
        spin::wait(self.spin, || seat.called.is_set(), sleep);
        if !seat.called.take() {
            let mut inner = sync::lock(&self.inner);
            // Who called it has taken it off the list (L11, L13).
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

    /// The errand that a thread runs is waited for by nobody any more: there may be another one in its place, at once.
    pub(super) fn lose(self: &Arc<Self>, errand: usize) {
        let mut inner = sync::lock(&self.inner);
        if let Some(piece) = inner.pieces.iter_mut().find(|piece| piece.errand == Some(errand)) {
            piece.is_lost = true;
        }
        inner.lost += 1;
        inner.threads -= 1;
        inner.closes(1);
        let successor = inner.successor_if_needed();
        drop(inner);
        successor.into_iter().for_each(|successor| drop(self.have_come(successor)));
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_set()
    }

    pub(super) fn figures(&self) -> Figures {
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
