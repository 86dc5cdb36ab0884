//! [`Serial`]: a spawned future whose polls are operations of a strand.
//!
//! The task itself belongs to the runtime, with its waker, its metrics and its end. When the task is polled,
//! it queues a [`Turn`], and the thread inside polls the future; most often that is the task's own thread.
//!
//! | desk | says |
//! |---|---|
//! | `queued` | a turn is queued, or kept until the earlier futures have started. Cleared *before* the poll |
//! | `future` | the future is not finished, and no thread polls it at the moment |
//! | `gone` | the task is gone: the next turn drops the future |
//! | `output` | the future is finished, and the task has not been polled since |

use std::collections::BTreeMap;
use std::future::Future;
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
    /// The waker of the task. A task has one waker, so it never changes.
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
    fn begin(&self) -> Todo<R> {
        let mut desk = self.desk();
        desk.queued = false;
        if desk.gone {
            return Todo::Drop(desk.future.take(), desk.waker.take());
        }
        match (desk.future.take(), desk.waker.clone()) {
            (Some(future), Some(waker)) => Todo::Poll(future, waker),
            _ => Todo::Nothing,
        }
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
    /// Polls the future, or drops it if its task is gone. A first turn that came too early is kept, and
    /// queued again by the first turn of the future before it.
    fn run(this: &Arc<Linked<T, Self>>, _: &mut T) {
        let turn = &this.operation;
        let is_gone = {
            let desk = turn.desk();
            if desk.started { None } else { Some(desk.gone) }
        };
        if let Some(is_gone) = is_gone {
            let early = (!is_gone).then(|| this.clone() as Arc<dyn EarlyTurn>);
            if turn.strand.starts().admit(turn.number, early) {
                turn.desk().started = true;
            } else if !is_gone {
                return;
            }
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
                next.queue_again();
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
        let number = strand.starts().assign_number();
        let desk = Desk {
            future: Some(Box::pin(future)),
            waker: None,
            output: None,
            queued: false,
            started: false,
            gone: false,
        };
        Self(Linked::new(Turn { strand, number, desk: Mutex::new(desk) }))
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
            let is_queued = std::mem::replace(&mut desk.queued, true);
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

/// A first turn that came before the first turns of futures that were spawned earlier.
pub(super) trait EarlyTurn: Send + Sync {
    /// Leaves the turn to the thread inside, or runs it here if there is none.
    fn queue_again(self: Arc<Self>);
}

impl<T: Send + 'static, R: Send + 'static> EarlyTurn for Linked<T, Turn<T, R>> {
    fn queue_again(self: Arc<Self>) {
        let strand = self.operation.strand.clone();
        strand.submit(self);
    }
}

/// Starts futures in the order in which they were spawned. Their tasks may run in another order, because a
/// runtime has several threads.
pub(super) struct Starts {
    /// The number of futures spawned so far.
    spawned: u64,
    /// All futures with a smaller number have started, or are gone.
    next: u64,
    /// The turns that came too early; `None` if the task is gone.
    early: BTreeMap<u64, Option<Arc<dyn EarlyTurn>>>,
}

impl Starts {
    pub(super) const fn new() -> Self {
        Self { spawned: 0, next: 0, early: BTreeMap::new() }
    }

    /// Counts a future that is spawned, and returns its number.
    fn assign_number(&mut self) -> u64 {
        self.spawned += 1;
        self.spawned - 1
    }

    /// Admits the first turn of the future with this number if all earlier ones have started. Keeps an early
    /// turn; of a task that is gone (`None`) keeps only that its number is to be skipped.
    fn admit(&mut self, number: u64, turn: Option<Arc<dyn EarlyTurn>>) -> bool {
        if number == self.next {
            self.next += 1;
            return true;
        }
        self.early.insert(number, turn);
        false
    }

    /// Removes and returns an early turn that may start now, if there is one. Skips the numbers of tasks that
    /// are gone.
    fn next(&mut self) -> Option<Arc<dyn EarlyTurn>> {
        loop {
            let next = self.early.remove(&self.next)?;
            if next.is_some() {
                return next;
            }
            self.next += 1;
        }
    }
}
