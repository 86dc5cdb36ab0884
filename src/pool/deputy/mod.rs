//! The deputy: the standby that watches the watchers.
//!
//! Promotion is free by default: a thread that leaves leadership vacant promises to be back after one short poll. There
//! are more promises of that kind; the README of the pool lists them, and who breaks each. The deputy is who notices:
//! while a thread of the pool is awake, it looks once a tick ([`max_blind`](super::Policy::max_blind)), and
//! [`Audit`] says what it does about what it finds. Of two looks the second one knows that nothing has happened since the
//! first, so a promise is broken for two ticks at most.
//!
//! It sleeps without a timeout when no promise is open (LF9). Who makes one then, a thread that wakes up above all, sets
//! its [`Switch`]: that takes a system call, and wakes nobody before the tick is over. What begins and ends within a tick
//! costs it one look, or none where such bursts are rare: who goes to sleep last takes the switch back.
//!
//! It starts with the first source or timer of the pool, or when a second thread comes; it ends when nothing was in use
//! for a second, in a pool without workers. It runs nobody's code but ours and waits for nobody, so nobody has to watch
//! over it: who has to lead, to call a hook or a stranger's waker gets a thread for that. Only where there are no threads to be had
//! it takes events itself.

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
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use super::Pool;
use super::audit::Audit;
use super::stall::Stalls;
use crate::executor::Overseer;
use crate::fork::Origin;
use crate::sync::{Counter, Instant, thread};
use duty::{Call, Duty};
use switch::Switch;

/// How long a deputy stays that nobody needs.
const LINGER: Duration = Duration::from_secs(1);

/// The deputy, as others reach it. It knows its pool only by a weak reference: whoever calls it is not to be the one who
/// drops the pool.
#[derive(Debug)]
pub(crate) struct Deputy {
    origin: Origin,
    pool: OnceLock<Weak<Pool>>,
    /// The time between two looks.
    tick: Duration,
    duty: Duty,
    switch: Switch,
    /// Times that leadership was vacant for a whole tick.
    pub(crate) rescues: Counter,
    pub(crate) stalls: Stalls,
}

impl Overseer for Deputy {
    fn look(self: Arc<Self>) {
        // The pool is looked at only if there is no deputy yet.
        let is_needed = || self.pool.get().and_then(Weak::upgrade).is_some_and(|pool| pool.needs_deputy());
        let _ = self.call_if(is_needed);
    }
}

impl Deputy {
    /// The deputy of a pool that is still being made.
    pub(super) fn new(tick: Duration) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            origin: Origin::here(),
            pool: OnceLock::new(),
            tick,
            duty: Duty::new(),
            switch: Switch::new()?,
            rescues: Counter::default(),
            stalls: Stalls::default(),
        }))
    }

    /// The pool is there.
    pub(super) fn serves(&self, pool: Weak<Pool>) {
        assert!(self.pool.set(pool).is_ok(), "a deputy has one pool");
    }

    /// The time between two looks.
    pub(super) fn tick(&self) -> Duration {
        self.tick
    }

    /// A promise was made that it has to watch: from now on it does.
    ///
    /// # Errors
    ///
    /// What the system says when no thread can be started. The pool works without, as long as nobody blocks, and the next one
    /// who comes by tries again.
    #[inline]
    pub(crate) fn call(self: &Arc<Self>) -> io::Result<()> {
        self.call_if(|| true)
    }

    /// The same, if there is a deputy; else `is_needed` tells whether one is started.
    #[inline]
    pub(super) fn call_if(self: &Arc<Self>, is_needed: impl FnOnce() -> bool) -> io::Result<()> {
        match self.duty.call() {
            Call::Arm => self.arm(),
            Call::Start if is_needed() => self.start()?,
            Call::Nothing | Call::Start => {}
        }
        Ok(())
    }

    /// Whether who slept for so many nanoseconds may [`stand_down`](Self::stand_down) the deputy: it takes a system call, and
    /// another one of who wakes up. A look takes two switches, but comes once a tick only.
    #[inline]
    pub(super) fn is_long(&self, slept: u64) -> bool {
        2 * u128::from(slept) >= self.tick.as_nanos()
    }

    /// The calling thread is about to sleep: if all do, the deputy that was called when it woke up has nothing to look at.
    #[cold]
    pub(super) fn stand_down(&self, is_quiet: impl Fn() -> bool) {
        if self.duty.stand_down(is_quiet, || self.switch.arm(Duration::MAX)) == Call::Arm {
            self.arm();
        }
    }

    #[cold]
    fn arm(&self) {
        if self.origin.is_here() {
            self.switch.arm(self.tick);
        }
    }

    #[cold]
    fn start(self: &Arc<Self>) -> io::Result<()> {
        if !self.origin.is_here() {
            return Ok(());
        }
        self.duty.start(|| {
            let deputy = self.clone();
            let thread = thread::Builder::new().name("paceline-deputy".into());
            thread.spawn(move || deputy.serve()).map(drop)
        })
    }

    /// A task that will block is about to run and nobody is parked: add a thread now, not at the next tick.
    #[cold]
    pub(super) fn ask_for_help(&self) {
        self.duty.ask_for_help();
        self.switch.ring();
    }

    /// The pool is gone.
    pub(super) fn end(&self) {
        self.duty.end();
        self.switch.ring();
    }

    /// The deputy's thread.
    fn serve(&self) {
        self.duty.started();
        let mut audit = Audit::default();
        let mut unneeded_since = None;
        loop {
            let orders = self.duty.rise();
            let Some(pool) = self.pool.get().and_then(Weak::upgrade) else { return };
            if orders.ended {
                return;
            }
            // A look that panics is a defect of ours, but not the last look.
            let look = AssertUnwindSafe(|| audit.look(&pool, orders.help));
            let quiet = catch_unwind(look).unwrap_or_else(|_| {
                audit = Audit::default();
                false
            });
            let needed = pool.needs_deputy();
            let since = *unneeded_since.get_or_insert_with(Instant::now);
            if needed {
                unneeded_since = None;
            } else if since.elapsed() >= LINGER && self.duty.resign(|| pool.still_needs_deputy()) {
                return;
            }
            if quiet && self.dozes(pool, &audit, needed) {
                audit.forget();
            } else {
                self.switch.sleep(Some(self.tick), || self.duty.is_rung());
            }
        }
    }

    /// Sleeps until it is called, if all is quiet, and lets go of the pool before that; not for long if it is not `needed`,
    /// and not if that is over by now, because those who went may have called before it dozed.
    fn dozes(&self, pool: Arc<Pool>, audit: &Audit, needed: bool) -> bool {
        let reactor = pool.reactor.clone();
        // Whoever takes the last source or timer away while it sleeps calls it.
        reactor.tell_when_empty(needed);
        let still_quiet = move || audit.is_quiet(&pool) && pool.needs_deputy() == needed;
        let limit = (!needed).then_some(LINGER);
        let dozed = self.duty.doze(!needed, still_quiet, |called| self.switch.sleep(limit, called));
        reactor.tell_when_empty(false);
        dozed
    }
}
