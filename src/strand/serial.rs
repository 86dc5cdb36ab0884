//! [`Serial`]: a spawned future whose polls are operations of a strand.
//!
//! The task itself is the runtime's, with its waker, its metrics and its end. What it does when it is polled is to queue a
//! [`Turn`], and whoever is inside then polls the future; most often that is the task's own thread.
//!
//! | desk | says |
//! |---|---|
//! | `queued` | a turn is queued, or kept until those that were spawned before have started. Taken back *before* the poll |
//! | `future` | it is not finished, and nobody polls it right now |
//! | `gone` | the task is gone: the next turn drops the future |
//! | `output` | it is finished, and the task has not been polled since |

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

/// A future of a strand.
pub(super) struct Turn<T, R> {
    strand: Strand<T>,
    /// How many were spawned before it.
    number: u64,
    desk: Mutex<Desk<R>>,
}

type Boxed<R> = Pin<Box<dyn Future<Output = R> + Send>>;

struct Desk<R> {
    future: Option<Boxed<R>>,
    /// The task's own. A task has one waker, so it is never changed.
    waker: Option<Waker>,
    output: Option<thread::Result<R>>,
    queued: bool,
    started: bool,
    gone: bool,
}

/// What a turn finds to do.
enum Todo<R> {
    Nothing,
    Poll(Boxed<R>, Waker),
    Drop(Option<Boxed<R>>, Option<Waker>),
}

impl<T, R> Turn<T, R> {
    fn desk(&self) -> MutexGuard<'_, Desk<R>> {
        sync::lock(&self.desk)
    }

    /// What there is to do, by who is inside.
    fn begins(&self) -> Todo<R> {
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

    /// A poll is over. What is left is dropped outside of the lock, and inside of the strand.
    fn ends(&self, future: Boxed<R>, result: Option<thread::Result<R>>) {
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
        waker.into_iter().for_each(Waker::wake);
    }
}

impl<T: Send + 'static, R: Send + 'static> Operation<T> for Turn<T, R> {
    fn run(this: &Arc<Linked<T, Self>>, _: &mut T) {
        let turn = &this.operation;
        let is_gone = {
            let desk = turn.desk();
            if desk.started { None } else { Some(desk.gone) }
        };
        if let Some(is_gone) = is_gone {
            let early = (!is_gone).then(|| this.clone() as Arc<dyn Early>);
            match turn.strand.starts().comes(turn.number, early) {
                Comes::InTime => turn.desk().started = true,
                Comes::Early if is_gone => {}
                Comes::Early => return,
            }
        }
        match turn.begins() {
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
                turn.ends(future, result);
            }
        }
        // After the poll, so that the next one does not begin before.
        if is_gone.is_some() {
            let next = turn.strand.starts().next();
            next.into_iter().for_each(Early::comes_again);
        }
    }
}

/// The task of a strand's future.
pub(super) struct Serial<T: Send + 'static, R: Send + 'static>(Arc<Linked<T, Turn<T, R>>>);

impl<T: Send + 'static, R: Send + 'static> Serial<T, R> {
    pub(super) fn new(strand: Strand<T>, future: impl Future<Output = R> + Send + 'static) -> Self {
        let number = strand.starts().spawned();
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

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        let turn = &self.0.operation;
        let mut desk = turn.desk();
        if desk.output.is_none() {
            if desk.waker.is_none() {
                // The runtime's own waker: none of the user's code.
                desk.waker = Some(cx.waker().clone());
            }
            // One that is queued already begins after this, and sees what this one was woken for.
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
    fn drop(&mut self) {
        let turn = &self.0.operation;
        let mut desk = turn.desk();
        desk.gone = true;
        let output = desk.output.take();
        // Where it is being polled, that poll drops it; where a turn is queued, that turn does.
        let is_left = desk.future.is_some() && !desk.queued;
        desk.queued |= is_left;
        drop(desk);
        if is_left {
            turn.strand.submit(self.0.clone());
        }
        drop(output);
    }
}

/// A first turn that came before those of futures that were spawned earlier.
pub(super) trait Early: Send + Sync {
    fn comes_again(self: Arc<Self>);
}

impl<T: Send + 'static, R: Send + 'static> Early for Linked<T, Turn<T, R>> {
    fn comes_again(self: Arc<Self>) {
        let strand = self.operation.strand.clone();
        strand.submit(self);
    }
}

/// In which order futures start: that in which they were spawned. Their tasks may come in another one, because a runtime has
/// several threads.
pub(super) struct Starts {
    spawned: u64,
    /// All before this one have started, or are gone.
    next: u64,
    /// Those that came too early; `None`: it is gone.
    early: BTreeMap<u64, Option<Arc<dyn Early>>>,
}

enum Comes {
    InTime,
    Early,
}

impl Starts {
    pub(super) const fn new() -> Self {
        Self { spawned: 0, next: 0, early: BTreeMap::new() }
    }

    fn spawned(&mut self) -> u64 {
        self.spawned += 1;
        self.spawned - 1
    }

    /// The first turn of that number has come. If it is early, it is kept, unless it is gone.
    fn comes(&mut self, number: u64, turn: Option<Arc<dyn Early>>) -> Comes {
        if number == self.next {
            self.next += 1;
            return Comes::InTime;
        }
        self.early.insert(number, turn);
        Comes::Early
    }

    /// One that came early, and whose time is now.
    fn next(&mut self) -> Option<Arc<dyn Early>> {
        loop {
            let next = self.early.remove(&self.next)?;
            if next.is_some() {
                return next;
            }
            self.next += 1;
        }
    }
}
