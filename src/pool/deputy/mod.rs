//! The deputy: the thread that notices when another thread breaks a promise. `watch` has what its thread
//! does.
//!
//! By default, a leader gives leadership up without waking a follower, and promises to be back after one
//! short poll. Threads make more promises of that kind; the README of the pool lists them, and how each is
//! broken. While a thread of the pool is awake, the deputy looks once a tick
//! ([`max_blind`](super::Tuning::max_blind)), and `watch/decide.rs` decides what to do about what it finds.
//! At the second of two looks the deputy knows that nothing has happened since the first, so a promise is
//! broken for two ticks at most.
//!
//! If nothing changes from look to look, because all threads that are awake stay in one poll, the deputy
//! looks less often (`watch/audit.rs`).
//!
//! The deputy sleeps without a timeout when no promise is open (LF9). A thread that makes a promise then,
//! usually because it wakes up, sets the deputy's [`Switch`]: that takes a system call, and wakes no thread
//! before the tick is over. A burst of work that begins and ends within a tick costs the deputy one look;
//! if such bursts are rare, it costs none, because the leader that goes to sleep last disarms the switch.
//!
//! The deputy starts with the first source or timer of the pool, with the first thread that runs an executor
//! there, or when a second thread comes, and stays until the pool ends. The deputy runs no user code and
//! waits for no thread, so no part has to watch over it: to lead, and to call hooks and foreign wakers, it
//! starts other threads. While none can be started, events wait.

mod duty;
#[cfg_attr(
    all(any(target_os = "linux", target_os = "android"), not(any(paceline_shuttle, miri))),
    path = "switch_timer.rs"
)]
#[cfg_attr(
    not(all(any(target_os = "linux", target_os = "android"), not(any(paceline_shuttle, miri)))),
    path = "switch_condvar.rs"
)]
mod switch;

use std::io;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::Pool;
use crate::executor::Notices;
use crate::insight::Stalls;
use crate::sync::{self, Counter, thread};
use duty::{Call, Duty};
pub(super) use switch::Switch;

/// The function of the deputy's thread, which returns when the pool is gone. The caller of [`Pool::new`]
/// provides the function, because the code that looks at a pool stands above this module.
pub(crate) type Watch = fn(&Deputy);

/// The deputy's state, as other threads reach it. The reference to the pool is weak: holding the deputy
/// does not keep the pool alive.
#[derive(Debug)]
pub(crate) struct Deputy {
    pool: Weak<Pool>,
    /// The time between two looks.
    pub(crate) tick: Duration,
    /// The function of its thread.
    watch: Watch,
    pub(crate) duty: Duty,
    pub(crate) switch: Switch,
    /// Times that leadership was abandoned.
    pub(crate) rescues: Counter,
    pub(crate) stalls: Stalls,
}

impl Deputy {
    /// Creates the deputy of a pool that is still being made, without its thread: that starts with the first
    /// [`call_or_start`](Self::call_or_start), and runs `watch`. `tick` is the time between two looks.
    pub(super) fn new(pool: Weak<Pool>, switch: Switch, tick: Duration, watch: Watch) -> Self {
        let (rescues, stalls) = (Counter::default(), Stalls::default());
        Self { pool, tick, watch, duty: Duty::new(), switch, rescues, stalls }
    }

    /// Has the deputy watch a promise that the calling thread has made: starts a deputy if there is none, and
    /// sets the switch of one that sleeps.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if no thread can be started. The pool works without a deputy as long
    /// as no thread blocks, and the next call tries again.
    pub(crate) fn call_or_start(self: &Arc<Self>) -> io::Result<()> {
        match self.duty.call() {
            Call::Arm => self.arm(),
            Call::Start => self.start()?,
            Call::Nothing => {}
        }
        Ok(())
    }

    /// Does the same as [`call_or_start`](Self::call_or_start) if a deputy exists, and otherwise nothing.
    #[inline]
    pub(crate) fn notify(&self) {
        if self.duty.call() == Call::Arm {
            self.arm();
        }
    }

    /// Stands the deputy down if it was called and sleeps, `is_quiet`, and this pays: all threads sleep, and
    /// the calling one is about to, so the deputy has nothing to look at. Until that thread has called
    /// [`notify`](Self::notify) after its sleep, it runs no user code.
    ///
    /// That costs a system call, and the next wake-up another one; a look costs two switches of threads, but
    /// comes once a tick only. So the thread must have `slept` for half a tick lately, in nanoseconds.
    #[inline]
    pub(super) fn stand_down(&self, slept: u64, is_quiet: impl Fn() -> bool) {
        if 2 * u128::from(slept) >= self.tick.as_nanos()
            && self.duty.stand_down(is_quiet, || self.switch.arm(Duration::MAX)) == Call::Arm
        {
            self.arm();
        }
    }

    /// Has the deputy wake up after a tick.
    #[cold]
    fn arm(&self) {
        self.switch.arm(self.tick);
    }

    /// Starts the deputy's thread, unless there is one by now or the pool has ended. Returns the error of the
    /// system if no thread can be started.
    #[cold]
    fn start(self: &Arc<Self>) -> io::Result<()> {
        self.duty.start(|| {
            let deputy = self.clone();
            let thread = thread::Builder::new().name("paceline-deputy".into());
            thread.spawn(move || (deputy.watch)(&deputy)).map(drop)
        })
    }

    /// Has the deputy look now, and not at the next tick, and add a worker if leadership is vacant and too
    /// few workers can run: a task that will block is about to run, and no parked thread was found to lead.
    /// Has no effect if there is no deputy.
    #[cold]
    pub(super) fn ask_for_help(&self) {
        self.duty.ask_for_help();
        self.switch.ring();
    }

    /// Tells the deputy that the pool is gone, and wakes it. Does not wait for its thread to end.
    pub(super) fn end(&self) {
        self.duty.end();
        self.switch.ring();
    }

    /// Returns the pool, if it still exists.
    pub(crate) fn pool(&self) -> Option<LentPool> {
        self.pool.upgrade().map(|pool| LentPool(Some(pool)))
    }
}

impl Notices for Deputy {
    /// Has the deputy look at tasks for which no runner sleeps.
    fn look_soon(&self) {
        self.notify();
    }
}

/// A reference to a pool, for a thread that runs no user code, or is in the middle of something else. If it
/// turns out to be the last reference, a new thread drops the pool: the hooks of the program go with it, and
/// the wakers of timers that are due.
#[derive(Debug)]
pub(crate) struct LentPool(Option<Arc<Pool>>);

impl Deref for LentPool {
    type Target = Arc<Pool>;

    fn deref(&self) -> &Arc<Pool> {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for LentPool {
    fn drop(&mut self) {
        if let Some(last) = self.0.take().and_then(Arc::into_inner) {
            // If there is no thread, the pool is dropped here.
            let _ = sync::start_errand(move || drop(last));
        }
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle, miri))))]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use crate::Runtime;

    /// Tells which thread drops it.
    struct Tells(mpsc::Sender<thread::ThreadId>);

    impl Drop for Tells {
        fn drop(&mut self) {
            let _ = self.0.send(thread::current().id());
        }
    }

    /// Fails if the deputy's reference, which may be the last one, drops the pool like any other.
    #[test]
    fn the_hooks_of_a_runtime_are_dropped_by_no_thread_that_only_looks() {
        let (tell, told) = mpsc::channel();
        let tells = Tells(tell);
        let hook = move |_: &_| _ = &tells;
        let runtime = Runtime::builder().threads(1).on_stall(hook).build().unwrap();
        let lent = runtime.pool.deputy.pool().unwrap();
        drop(runtime);
        drop(lent);
        let dropped_by = told.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_ne!(dropped_by, thread::current().id());
    }
}
