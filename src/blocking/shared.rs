//! [`SharedJob`]: a job, between its handle, the thread that runs it, and the reactor, which watches its
//! deadline.
//!
//! | side | may | until |
//! |---|---|---|
//! | the thread that began the job | take the closure; write the result | `finish` |
//! | the same thread | take the result, if `finish` gives it to this thread | it has taken it |
//! | the first side that settles an unbegun job | take the closure | it has taken it |
//! | the handle | take the result, if `finish` gives it to the handle | it has taken it |
//! | the reactor, by the timer's waker | report that the deadline has passed | the timer is dropped |
//!
//! An unbegun job is settled by the handle, the reactor, or the end of the runtime. [`JobState`] decides
//! which side has the closure, and which the result. No lock is held while user code runs (LF3).

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use super::state::{Answer, Effect, Finish, JobState};
use super::token::{CancelToken, Wanted};
use crate::blocking_threads::{After, Errand, Threads, Title};
use crate::io::Timer;
use crate::simulated;
use crate::sync::{self, Mutex, ProtocolCell};
use crate::waking;

/// The closure of a job.
pub(super) type Body<T> = Box<dyn FnOnce(CancelToken) -> T + Send>;
/// The result of a job, or its panic.
pub(super) type Outcome<T> = Result<T, Box<dyn Any + Send>>;

/// A job.
pub(super) struct SharedJob<T> {
    state: JobState,
    body: ProtocolCell<Option<Body<T>>>,
    result: ProtocolCell<Option<Outcome<T>>>,
    /// The waker of the task that awaits the handle.
    waker: Mutex<Option<Waker>>,
    /// Set while the deadline may still pass.
    timer: Mutex<Option<Timer>>,
    pub(super) timeout: Duration,
    title: Title,
    threads: Arc<Threads>,
}

// SAFETY: the cells belong to one side at a time, as the table above says, and their contents are `Send`.
unsafe impl<T: Send> Sync for SharedJob<T> {}

impl<T: Send + 'static> SharedJob<T> {
    /// Makes a job that is not queued, and whose timer is not set. Reports name the job by `name`, or by
    /// `location` without one; `timeout` is only for the error after it has passed. `threads` are to run the
    /// job, and count a lost one.
    pub(super) fn new(
        body: Body<T>,
        name: Option<String>,
        location: &'static Location<'static>,
        timeout: Duration,
        threads: Arc<Threads>,
    ) -> Arc<Self> {
        Arc::new(Self {
            state: JobState::new(),
            body: ProtocolCell::new(Some(body)),
            result: ProtocolCell::new(None),
            waker: Mutex::new(None),
            timer: Mutex::new(None),
            timeout,
            title: Title(name.map(Arc::from), location),
            threads,
        })
    }

    /// Watches the deadline from now on. If it has passed, the job expires here.
    pub(super) fn watch(self: &Arc<Self>, timer: Timer) {
        *sync::lock(&self.timer) = Some(timer);
        self.poll_deadline();
    }

    /// Polls the timer; if the deadline has passed, lets the job expire. If the timer's runtime is gone, the
    /// poll arms it elsewhere.
    fn poll_deadline(self: &Arc<Self>) {
        let waker = Waker::from(self.clone());
        let mut timer = sync::lock(&self.timer);
        let is_due = timer.as_mut().is_some_and(|timer| {
            // Under the lock: the poll runs no user code, and none that comes back here.
            Pin::new(timer).poll(&mut Context::from_waker(&waker)).is_ready()
        });
        let fired = if is_due { timer.take() } else { None };
        drop(timer);
        if fired.is_some() {
            drop(fired);
            self.expire();
        }
    }

    /// Lets the job expire: its deadline has passed. Drops the closure of a job that has not begun; counts
    /// the thread of a running one as lost. Wakes the task that awaits the handle. Does nothing if the job is
    /// over or was expired or, before it began, cancelled.
    fn expire(self: &Arc<Self>) {
        match self.state.expire() {
            Effect::Nothing => {}
            Effect::Unbegun => self.drop_unbegun(),
            Effect::Running => {
                // In a simulation, no thread runs the job.
                if !simulated::is_running() {
                    self.threads.lose(Arc::as_ptr(self).addr());
                }
                self.tell();
            }
        }
    }

    /// Cancels the job: neither its result nor its end is wanted. Drops the closure of a job that has not
    /// begun, and wakes the task that awaits the handle. Returns false if the job is over, or was cancelled
    /// or has expired.
    pub(super) fn cancel(&self) -> bool {
        let marked = self.state.cancel();
        match marked {
            Effect::Nothing => {}
            Effect::Unbegun => self.drop_unbegun(),
            Effect::Running => self.tell(),
        }
        marked != Effect::Nothing
    }

    /// Detaches the handle: no result will be asked for, and no task is woken. Returns false if the job is
    /// over, or was cancelled or has expired.
    pub(super) fn detach(&self) -> bool {
        let detached = self.state.detach() != Effect::Nothing;
        if detached {
            waking::discard(sync::lock(&self.waker).take());
        }
        detached
    }

    /// Drops the closure of a job that never begins, and its timer, after it has woken the task that awaits
    /// the handle. The state has just given the closure to the caller.
    fn drop_unbegun(&self) {
        // First, because the drop of the closure may take long.
        self.tell();
        // SAFETY: the state has given the closure to the caller, and to no other side.
        let body = unsafe { self.body.with_mut(Option::take) };
        waking::call(|| drop(body));
        self.disarm();
    }

    /// Wakes the task that awaits the handle, if there is one, because there is an answer. Takes its waker.
    fn tell(&self) {
        let waker = sync::lock(&self.waker).take();
        if let Some(waker) = waker {
            waking::wake(waker);
        }
    }

    /// Stores the waker to call when there is an answer. The last one counts.
    pub(super) fn store_waker(&self, waker: &Waker) {
        let waker = waker.clone();
        let old = sync::lock(&self.waker).replace(waker);
        waking::discard(old);
    }

    pub(super) fn answer(&self) -> Option<Answer> {
        self.state.answer()
    }

    /// Takes the result; `None` if it was taken before.
    ///
    /// # Safety
    ///
    /// Only the side to which the state gives the result may call this.
    pub(super) unsafe fn take_result(&self) -> Option<Outcome<T>> {
        // SAFETY: exclusive, as the caller promises.
        unsafe { self.result.with_mut(Option::take) }
    }

    pub(super) fn name(&self) -> String {
        self.title.to_string()
    }

    /// Drops the timer: the deadline does not matter any more.
    fn disarm(&self) {
        let timer = sync::lock(&self.timer).take();
        drop(timer);
    }

    /// Runs the closure, if the job is wanted, and catches its panic. Returns whether the closure ran.
    fn run_body(self: &Arc<Self>) -> bool {
        if !self.state.begin() {
            return false;
        }
        // SAFETY: `begin` has given the closure to this thread.
        let body = unsafe { self.body.with_mut(Option::take) }.expect("it was not begun before");
        let token = CancelToken::new(self.clone());
        let outcome = catch_unwind(AssertUnwindSafe(|| body(token)));
        // SAFETY: this thread has begun the job and has not called `finish`, so the result is its own.
        unsafe { self.result.with_mut(|result| *result = Some(outcome)) };
        true
    }

    /// Gives the result of a closure that ran to the handle, whose task is woken; or drops it here, if it is
    /// not wanted any more. Returns [`After::Lost`] if the deadline passed since the job began, else
    /// [`After::Done`].
    fn pass_on(&self) -> After {
        match self.state.finish() {
            Finish::Deliver => {
                self.tell();
                After::Done
            }
            unwanted => {
                // SAFETY: `finish` has given the result to this thread. A panic is dropped with it, because
                // it is not awaited.
                waking::call(|| drop(unsafe { self.take_result() }));
                if unwanted == Finish::Lost { After::Lost } else { After::Done }
            }
        }
    }
}

impl<T: Send + 'static> Errand for SharedJob<T> {
    /// Drops the timer after the job, and catches a panic of the last drop.
    fn run(self: Arc<Self>) -> After {
        let after = if self.run_body() { self.pass_on() } else { After::NotBegun };
        self.disarm();
        // This may be the last reference, and drop a waker.
        waking::call(|| drop(self));
        after
    }

    fn begin(self: Arc<Self>) -> bool {
        self.run_body()
    }

    fn deliver(self: Arc<Self>) {
        self.pass_on();
        self.disarm();
        waking::call(|| drop(self));
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

impl<T: Send + 'static> Wanted for SharedJob<T> {
    fn is_cancelled(&self) -> bool {
        self.state.is_unwanted() || self.threads.is_closed()
    }
}

/// The waker of the timer.
impl<T: Send + 'static> Wake for SharedJob<T> {
    fn wake(self: Arc<Self>) {
        self.poll_deadline();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.poll_deadline();
    }
}

impl<T> fmt::Debug for SharedJob<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("name", &self.title.0).field("state", &self.state).finish_non_exhaustive()
    }
}
