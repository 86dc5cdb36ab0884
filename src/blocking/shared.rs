//! [`Shared`]: a job, between its handle, the thread that runs it, and the reactor, which watches its deadline.
//!
//! | side | may | until |
//! |---|---|---|
//! | the thread that began it | take the closure; write the result | `finish` |
//! | the same | take the result | it is told that nobody else does |
//! | who says first that it never begins: the handle, the reactor, the end of the runtime | take the closure | it has |
//! | the handle | take the result | it has |
//! | the reactor, by the timer's waker | say that the deadline has passed | the timer is taken away |
//!
//! [`State`] says who has the closure, and who the result. No lock is held while any of them runs user code (LF3).

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use super::error::JobError;
use super::handle::Cancelled;
use super::state::{Answer, Finish, Marked, State};
use super::threads::Threads;
use super::work::After;
use crate::io::Timer;
use crate::sync::{self, Mutex, ProtocolCell};
use crate::waking;

/// What a job does.
pub(super) type Body<T> = Box<dyn FnOnce(Cancelled) -> T + Send>;
/// What comes of it.
pub(super) type Outcome<T> = Result<T, Box<dyn Any + Send>>;

/// A job, for the threads that run it.
pub(super) trait Errand: Send + Sync {
    /// Runs it, unless nobody wants it any more.
    fn run(self: Arc<Self>) -> After;
    /// No thread will come.
    fn give_up(&self);
    fn title(&self) -> Title;
    /// Whether it will not begin in any case.
    fn is_settled(&self) -> bool;
}

/// What a job is called: where it was made, if it has no name. Its owner may be gone.
#[derive(Clone, Debug)]
pub(super) struct Title(pub(super) Option<Arc<str>>, pub(super) &'static Location<'static>);

impl fmt::Display for Title {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(name) => f.write_str(name),
            None => write!(f, "from {}", self.1),
        }
    }
}

/// What a token asks.
pub(super) trait Wanted: Send + Sync {
    fn is_cancelled(&self) -> bool;
}

/// A job.
pub(super) struct Shared<T> {
    state: State,
    body: ProtocolCell<Option<Body<T>>>,
    result: ProtocolCell<Option<Outcome<T>>>,
    /// Whoever awaits the handle.
    waker: Mutex<Option<Waker>>,
    /// While its deadline may pass.
    timer: Mutex<Option<Timer>>,
    deadline: Duration,
    title: Title,
    threads: Arc<Threads>,
}

// SAFETY: the cells are one side's at a time, as the table above says, and what is in them is `Send`.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T: Send + 'static> Shared<T> {
    pub(super) fn new(
        body: Body<T>,
        name: Option<String>,
        location: &'static Location<'static>,
        deadline: Duration,
        threads: Arc<Threads>,
    ) -> Arc<Self> {
        Arc::new(Self {
            state: State::new(),
            body: ProtocolCell::new(Some(body)),
            result: ProtocolCell::new(None),
            waker: Mutex::new(None),
            timer: Mutex::new(None),
            deadline,
            title: Title(name.map(Arc::from), location),
            threads,
        })
    }

    /// Has its deadline watched from now on.
    pub(super) fn watch(self: &Arc<Self>, timer: Timer) {
        *sync::lock(&self.timer) = Some(timer);
        self.look_at_deadline();
    }

    /// The timer has fired, or its runtime is gone: then it is armed elsewhere.
    fn look_at_deadline(self: &Arc<Self>) {
        let waker = Waker::from(self.clone());
        let mut timer = sync::lock(&self.timer);
        let is_due = timer.as_mut().is_some_and(|timer| {
            // It calls no code but ours, and nobody back.
            Pin::new(timer).poll(&mut Context::from_waker(&waker)).is_ready()
        });
        let fired = if is_due { timer.take() } else { None };
        drop(timer);
        if fired.is_some() {
            drop(fired);
            self.expire();
        }
    }

    fn expire(self: &Arc<Self>) {
        match self.state.expire() {
            Marked::Nothing => {}
            Marked::Unbegun => self.never_begins(),
            Marked::Running => {
                self.threads.lose(Arc::as_ptr(self).addr());
                self.tell();
            }
        }
    }

    /// Nobody wants the result, nor that it goes on. False if that makes no difference.
    pub(super) fn cancel(&self) -> bool {
        let marked = self.state.cancel();
        match marked {
            Marked::Nothing => {}
            Marked::Unbegun => self.never_begins(),
            Marked::Running => self.tell(),
        }
        marked != Marked::Nothing
    }

    /// The handle has gone, and nobody will ask. False if that makes no difference.
    pub(super) fn detach(&self) -> bool {
        let detached = self.state.detach() != Marked::Nothing;
        if detached {
            waking::discard(sync::lock(&self.waker).take());
        }
        detached
    }

    /// The state has just said to the caller that it does not, and that the closure is his.
    fn never_begins(&self) {
        // First: it may be that the closure is not dropped that soon.
        self.tell();
        // SAFETY: it is the caller's, as the state has said to him, and to nobody else.
        let body = unsafe { self.body.with_mut(Option::take) };
        waking::call(|| drop(body));
        self.disarm();
    }

    /// Wakes whoever waits for an answer: there is one.
    fn tell(&self) {
        let waker = sync::lock(&self.waker).take();
        waker.into_iter().for_each(waking::wake);
    }

    /// Whom to wake when there is an answer; the last one counts.
    pub(super) fn is_awaited_by(&self, waker: &Waker) {
        let waker = waker.clone();
        let old = sync::lock(&self.waker).replace(waker);
        waking::discard(old);
    }

    pub(super) fn answer(&self) -> Option<Answer> {
        self.state.answer()
    }

    /// Takes the result.
    ///
    /// # Safety
    ///
    /// Only for the side to which the state gives it.
    pub(super) unsafe fn take_result(&self) -> Option<Outcome<T>> {
        // SAFETY: exclusive, as the caller promises.
        unsafe { self.result.with_mut(Option::take) }
    }

    /// What is said of a job that gives no result.
    pub(super) fn error(&self, timed_out: bool) -> JobError {
        let name = self.name();
        if timed_out {
            JobError::TimedOut { name, deadline: self.deadline }
        } else {
            JobError::Cancelled { name }
        }
    }

    pub(super) fn name(&self) -> String {
        self.title.to_string()
    }

    /// Its deadline matters no more.
    fn disarm(&self) {
        let timer = sync::lock(&self.timer).take();
        drop(timer);
    }

    /// Runs it, if it is wanted.
    fn perform(self: &Arc<Self>) -> After {
        if !self.state.begin() {
            return After::NotBegun;
        }
        // SAFETY: it has begun, here.
        let body = unsafe { self.body.with_mut(Option::take) }.expect("it was not begun before");
        let token = Cancelled::new(self.clone());
        let outcome = catch_unwind(AssertUnwindSafe(|| body(token)));
        // SAFETY: it has begun, here, and has not finished.
        unsafe { self.result.with_mut(|result| *result = Some(outcome)) };
        match self.state.finish() {
            Finish::Deliver => {
                self.tell();
                After::Done
            }
            unwanted => {
                // SAFETY: it is this thread's, as `finish` says. It is dropped here, and so is a panic that nobody is to hear of.
                waking::call(|| drop(unsafe { self.take_result() }));
                if unwanted == Finish::Lost { After::Lost } else { After::Done }
            }
        }
    }
}

impl<T: Send + 'static> Errand for Shared<T> {
    fn run(self: Arc<Self>) -> After {
        let after = self.perform();
        self.disarm();
        // Perhaps the last reference, and with it a waker.
        waking::call(|| drop(self));
        after
    }

    fn give_up(&self) {
        self.cancel();
    }

    fn title(&self) -> Title {
        self.title.clone()
    }

    fn is_settled(&self) -> bool {
        self.state.is_unwanted()
    }
}

impl<T: Send + 'static> Wanted for Shared<T> {
    fn is_cancelled(&self) -> bool {
        self.state.is_unwanted() || self.threads.is_closed()
    }
}

/// The waker of the timer.
impl<T: Send + 'static> Wake for Shared<T> {
    fn wake(self: Arc<Self>) {
        self.look_at_deadline();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.look_at_deadline();
    }
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("name", &self.title.0).field("state", &self.state).finish_non_exhaustive()
    }
}
