//! [`Serial`]: a spawned future whose polls are operations of a strand.
//!
//! The task itself belongs to the runtime, with its waker, its metrics and its end. When the task is polled,
//! it queues a [`Turn`], and the thread inside polls the future; most often that is the task's own thread.
//!
//! | desk | says |
//! |---|---|
//! | `queued` | a turn is queued. Cleared *before* the poll |
//! | `future` | the future is not finished, and no thread polls it at the moment |
//! | `gone` | the task is gone: the next turn drops the future |
//! | `output` | the future is finished, and the task has not been polled since |

use std::collections::VecDeque;
use std::future::Future;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;

use super::Strand;
use super::door::{Linked, Operation};
use crate::sync::{self, Mutex, MutexGuard};
use crate::waking;

/// An operation that polls a future of a strand, and what the future shares with its task.
pub(super) struct Turn<T, R> {
    strand: Strand<T>,
    /// The number of futures that were spawned on the strand before.
    number: u64,
    desk: Mutex<Desk<R>>,
}

type Boxed<R> = Pin<Box<dyn Future<Output = R> + Send>>;

struct Desk<R> {
    future: Option<Boxed<R>>,
    /// The waker of the task, once that was polled. A task has one waker, so it never changes.
    waker: Option<Waker>,
    output: Option<thread::Result<R>>,
    queued: bool,
    started: bool,
    gone: bool,
}

/// The work of a turn.
enum Todo<R> {
    /// The future is finished, or being polled.
    Nothing,
    /// Poll the future, with the waker of its task.
    Poll(Boxed<R>, Waker),
    /// The task is gone: drop the future and the waker.
    Drop(Option<Boxed<R>>, Option<Waker>),
}

impl<T, R> Turn<T, R> {
    fn desk(&self) -> MutexGuard<'_, Desk<R>> {
        sync::lock(&self.desk)
    }

    /// Ends the wait of the turn, and takes from the desk what the turn has to poll or drop. Called inside.
    ///
    /// A turn that was called by a later future may be there before the first poll of the task. That poll
    /// comes anyway, and queues another turn, or takes the output; so no wake is needed before.
    fn begin(&self) -> Todo<R> {
        let mut desk = self.desk();
        desk.queued = false;
        if desk.gone {
            return Todo::Drop(desk.future.take(), desk.waker.take());
        }
        let Some(future) = desk.future.take() else { return Todo::Nothing };
        Todo::Poll(future, desk.waker.clone().unwrap_or_else(|| Waker::noop().clone()))
    }

    /// Ends a poll. Without a `result` the future goes back to the desk. With one, the result is stored for
    /// the task, which is woken. If the task is gone, future and result are dropped instead. All drops
    /// happen outside the lock and inside the strand.
    fn finish(&self, future: Boxed<R>, result: Option<thread::Result<R>>) {
        let mut future = Some(future);
        let mut desk = self.desk();
        let Some(result) = result else {
            if !desk.gone {
                desk.future = future.take();
            }
            drop(desk);
            return waking::call(|| drop(future));
        };
        let waker = desk.waker.take();
        let unwanted = if desk.gone { Some(result) } else { desk.output.replace(result) };
        drop(desk);
        waking::call(|| drop(future));
        waking::call(|| drop(unwanted));
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T: Send + 'static, R: Send + 'static> Operation<T> for Turn<T, R> {
    /// Polls the future, or drops it if its task is gone. A first turn that comes too early only calls those
    /// of the earlier futures, the last of which calls it again.
    fn run(this: &Arc<Linked<T, Self>>, _: &mut T) {
        let turn = &this.operation;
        let is_gone = {
            let desk = turn.desk();
            if desk.started { None } else { Some(desk.gone) }
        };
        if let Some(is_gone) = is_gone {
            if !turn.strand.starts().admit(turn.number, is_gone) {
                turn.desk().queued = false;
                let earlier = turn.strand.starts().call_before(turn.number);
                return earlier.into_iter().for_each(FirstTurn::call);
            }
            turn.desk().started = true;
        }
        match turn.begin() {
            Todo::Nothing => {}
            Todo::Drop(future, waker) => {
                waking::call(|| drop(future));
                waking::call(|| drop(waker));
            }
            Todo::Poll(mut future, waker) => {
                let mut cx = Context::from_waker(&waker);
                let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut cx)));
                let result = match polled {
                    Ok(Poll::Pending) => None,
                    Ok(Poll::Ready(output)) => Some(Ok(output)),
                    Err(panic) => Some(Err(panic)),
                };
                turn.finish(future, result);
            }
        }
        // After the poll, so that the next future does not start before.
        if is_gone.is_some() {
            let next = turn.strand.starts().next();
            if let Some(next) = next {
                next.call();
            }
        }
    }
}

/// The task of a strand's future.
pub(super) struct Serial<T: Send + 'static, R: Send + 'static>(Arc<Linked<T, Turn<T, R>>>);

impl<T: Send + 'static, R: Send + 'static> Serial<T, R> {
    /// Makes the task of a future, which gets its number in the order of these calls. Queues no turn: the
    /// first poll does.
    pub(super) fn new(strand: Strand<T>, future: impl Future<Output = R> + Send + 'static) -> Self {
        let desk = Desk {
            future: Some(Box::pin(future)),
            waker: None,
            output: None,
            queued: false,
            started: false,
            gone: false,
        };
        let desk = Mutex::new(desk);
        let make = |number| Linked::new(Turn { strand: strand.clone(), number, desk });
        let turn = strand.starts().add(make);
        Self(turn)
    }

    /// Takes the output, and resumes the panic of the future. `Pending` if there is no output yet.
    fn output(&self) -> Poll<R> {
        let output = self.0.operation.desk().output.take();
        match output {
            Some(Ok(output)) => Poll::Ready(output),
            Some(Err(panic)) => resume_unwind(panic),
            None => Poll::Pending,
        }
    }
}

impl<T: Send + 'static, R: Send + 'static> Future for Serial<T, R> {
    type Output = R;

    /// Returns the output, or resumes the panic of the future, if the future is finished. Otherwise queues
    /// a turn, or runs it here, and returns the output if that has finished the future. If a turn is queued
    /// already, only returns `Pending`: the turn wakes the task when the future is finished.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        let turn = &self.0.operation;
        let mut desk = turn.desk();
        if desk.output.is_none() {
            if desk.waker.is_none() {
                // The runtime's own waker, so no user code runs under the lock.
                desk.waker = Some(cx.waker().clone());
            }
            // A turn that is queued already begins after this, and sees what this poll was woken for.
            let is_queued = mem::replace(&mut desk.queued, true);
            drop(desk);
            if is_queued {
                return Poll::Pending;
            }
            turn.strand.submit(self.0.clone());
        } else {
            drop(desk);
        }
        self.output()
    }
}

impl<T: Send + 'static, R: Send + 'static> Drop for Serial<T, R> {
    /// Marks the task as gone, and drops an output that was not taken. Has an unfinished future dropped
    /// inside the strand: by a poll in progress, or by a turn, which this queues, or runs here, if none is
    /// queued.
    fn drop(&mut self) {
        let turn = &self.0.operation;
        let mut desk = turn.desk();
        desk.gone = true;
        let output = desk.output.take();
        // A poll in progress drops the future when it ends; a queued turn drops it when it runs.
        let is_left = desk.future.is_some() && !desk.queued;
        desk.queued |= is_left;
        drop(desk);
        if is_left {
            turn.strand.submit(self.0.clone());
        }
        drop(output);
    }
}

/// The turn of a future that has not started.
pub(super) trait FirstTurn: Send + Sync {
    /// Leaves the turn to the thread inside, or runs it here if there is none. Does nothing if it is queued.
    fn call(self: Arc<Self>);
}

impl<T: Send + 'static, R: Send + 'static> FirstTurn for Linked<T, Turn<T, R>> {
    fn call(self: Arc<Self>) {
        let is_queued = mem::replace(&mut self.operation.desk().queued, true);
        if !is_queued {
            let strand = self.operation.strand.clone();
            strand.submit(self);
        }
    }
}

/// Starts futures in the order in which they were spawned. Their tasks may run in another order, because a
/// runtime has several threads, or not at all: each future may be on another runtime, which no thread runs.
/// So a first turn that comes too early calls those of the earlier futures, and does not wait for their
/// tasks.
pub(super) struct Starts {
    /// The futures that have not started, in the order of their spawns; `None` if one is gone. The first is
    /// not `None`.
    waiting: VecDeque<Option<Arc<dyn FirstTurn>>>,
    /// The number of the first of these. All futures with a smaller one have started, or are gone.
    next: u64,
    /// The first turns of all futures with a smaller number have come or were called. Those that came too
    /// early are called again, one after the other.
    called: u64,
}

impl Starts {
    pub(super) const fn new() -> Self {
        Self { waiting: VecDeque::new(), next: 0, called: 0 }
    }

    /// Adds the future that is made with the number that it gets.
    fn add<F: FirstTurn + 'static>(&mut self, make: impl FnOnce(u64) -> Arc<F>) -> Arc<F> {
        let turn = make(self.next + self.waiting.len() as u64);
        self.waiting.push_back(Some(turn.clone()));
        turn
    }

    /// Admits the first turn of the future with this number if all earlier ones have started or are gone, or
    /// if its own task is gone. The caller has a reference to the turn, so the last one is not dropped here.
    fn admit(&mut self, number: u64, is_gone: bool) -> bool {
        let is_admitted = is_gone || number == self.next;
        if is_admitted {
            self.waiting[(number - self.next) as usize] = None;
        }
        while let Some(None) = self.waiting.front() {
            self.waiting.pop_front();
            self.next += 1;
        }
        is_admitted
    }

    /// Notes that the turn with this number came too early. Returns the turns before it that have neither
    /// come nor been called: the caller calls them.
    fn call_before(&mut self, number: u64) -> Vec<Arc<dyn FirstTurn>> {
        let from = self.called.max(self.next).min(number);
        self.called = self.called.max(number + 1);
        let place = |number| (number - self.next) as usize;
        self.waiting.range(place(from)..place(number)).flatten().cloned().collect()
    }

    /// Returns the turn to call after a future has started: the next one, if that has come too early.
    fn next(&self) -> Option<Arc<dyn FirstTurn>> {
        self.waiting.front().filter(|_| self.next < self.called)?.clone()
    }
}
