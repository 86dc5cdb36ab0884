//! [`Duty`]: the deputy's state, in one atomic word.
//!
//! | state | meaning | next |
//! |---|---|---|
//! | `OFF` | there is no deputy, or its thread is being started | [`start`](Duty::start) |
//! | `WATCHING` | its thread looks, or will within a tick | [`doze`](Duty::doze) |
//! | `DOZING` | it sleeps until it is called | [`call`](Duty::call), [`rise`](Duty::rise) |
//! | `CALLED` | it sleeps, and was called: a look is due | [`stand_down`](Duty::stand_down), `rise` |
//! | `LINGERING` | it sleeps with its switch set, for a limited time | `call`, `rise` |
//! | `ENDED` | the pool is gone, and no deputy is started any more | |
//!
//! Beside the state, the word has two orders: `RUNG`, look now, and `HELP`, add a thread at once. Both stay
//! until the deputy takes them. Asking for help sets neither while the state is `OFF`: a deputy is started
//! only from exactly `OFF`.
//!
//! **No promise goes unwatched.** A thread that makes a promise (the README of the pool lists them) makes
//! it visible, passes a fence and reads the word ([`call`](Duty::call)). The deputy, before it sleeps,
//! writes `DOZING` or `LINGERING`, passes a fence and looks for promises. The two fences are sequentially
//! consistent, so they have an order:
//!
//! - If the fence of the caller is first, the deputy sees the promise, and takes its word back.
//! - If the fence of the deputy is first, the caller reads the deputy's word, or a later one. If that says
//!   that the deputy sleeps, the caller gets a verdict that says what to do. Of several callers only one has
//!   to set the switch: its exchange has set the bit `ON_DUTY`.
//!
//! **A thread that goes to sleep may stand down a deputy that was called**
//! ([`stand_down`](Duty::stand_down)). The thread writes `DOZING` on the deputy's behalf, passes a fence and
//! looks for promises as the deputy would; so the argument above holds with this thread in the place of the
//! deputy. The switch adds one more condition: *while a look is due, the switch is set, or
//! a thread that runs no user code before is about to set it.*
//!
//! - The thread that disarms the switch reads the word after that. If the word is not `DOZING` any more,
//!   other threads have called or the deputy rose, and the setting that was disarmed may be theirs: this
//!   thread arms the switch. If the word is `DOZING`, no call has come, or the deputy was stood down again
//!   after each call. (A thread that sets the switch has changed the word before; the lock inside the
//!   switch orders its setting before the disarming.)
//! - A thread that sees a promise after it has written `DOZING` does what a caller does, and arms the
//!   switch, too. Taking the word back would not be enough: the word may have changed to `CALLED` and back
//!   meanwhile, and the switch may have been disarmed by other threads, or have fired.
//! - A switch that is set too late costs one look that finds nothing.
//!
//! The thread also looks for promises before it changes the word. Otherwise a thread that sleeps and wakes
//! twice a tick would stand the deputy down again and again, and put off the look at another thread that
//! blocks, for ever.

use crate::sync::{self, AtomicU32, Mutex, Ordering};

const OFF: u32 = 0;
const DOZING: u32 = 2;
const LINGERING: u32 = 3;
/// Set in `CALLED` and `WATCHING` and in no other state: a look is due within a tick.
const ON_DUTY: u32 = 4;
const CALLED: u32 = DOZING | ON_DUTY;
const WATCHING: u32 = LINGERING | ON_DUTY;
const STATE: u32 = 7;
const ENDED: u32 = 8;
const RUNG: u32 = 16;
const HELP: u32 = 32;

/// The deputy's state and orders, in one word.
#[derive(Debug)]
pub(crate) struct Duty {
    word: AtomicU32,
    /// Held while the thread is started, until the result is known: a caller that comes meanwhile must not
    /// rely on a thread that never starts, and must not start a second one.
    starting: Mutex<()>,
}

/// The verdict for a thread that made a promise: its next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Call {
    /// The deputy looks within a tick anyway.
    Nothing,
    /// The deputy slept: set its switch.
    Arm,
    /// There is no deputy: start one, if the promise needs one.
    Start,
}

impl Duty {
    pub(crate) fn new() -> Self {
        Self { word: AtomicU32::new(OFF), starting: Mutex::new(()) }
    }

    /// Returns what a thread has to do that made a promise for the deputy to watch. If the deputy sleeps,
    /// marks that a look is due: only the first of several callers gets [`Call::Arm`]. The promise has to be
    /// visible before this.
    #[inline]
    pub(crate) fn call(&self) -> Call {
        // ORDER: pairs with the fences in `doze` and `stand_down`. The thread that wrote the word there sees
        // the promise, or this thread sees what it wrote.
        sync::full_fence();
        if self.word.load(Ordering::Relaxed) & (ON_DUTY | ENDED) == ON_DUTY {
            Call::Nothing
        } else {
            self.call_up()
        }
    }

    /// Returns what [`call`](Self::call) does, without its fence, which the caller has passed. Marks that a
    /// look is due only if that is [`Call::Arm`].
    #[cold]
    fn call_up(&self) -> Call {
        let mut now = self.word.load(Ordering::Relaxed);
        loop {
            match now & (STATE | ENDED) {
                OFF => return Call::Start,
                DOZING | LINGERING => {}
                _ => return Call::Nothing,
            }
            // ORDER: Relaxed, here and below: the word publishes no other memory. The fences make promises
            // visible.
            let next = now | ON_DUTY;
            match self.word.compare_exchange(now, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Call::Arm,
                Err(seen) => now = seen,
            }
        }
    }

    /// Orders the deputy to look now and to add a thread. Has no effect if there is no deputy: the next
    /// promise that needs one starts it. The caller rings the switch after this.
    pub(crate) fn ask_for_help(&self) {
        let mut now = self.word.load(Ordering::Relaxed);
        while now & STATE != OFF {
            let next = now | RUNG | HELP;
            match self.word.compare_exchange_weak(now, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(seen) => now = seen,
            }
        }
    }

    /// Notes that the pool is gone. The caller rings the switch after this.
    pub(crate) fn end(&self) {
        self.word.fetch_or(ENDED | RUNG, Ordering::Relaxed);
    }

    /// Starts a deputy, unless there is one by now or the pool has ended. Waits if another thread is starting
    /// one.
    ///
    /// # Errors
    ///
    /// Returns the error of `spawn`. The next caller tries again.
    pub(crate) fn start<E>(&self, spawn: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let _starting = sync::lock(&self.starting);
        if self.word.load(Ordering::Relaxed) == OFF {
            spawn()?;
            // Unless the thread has risen already, or the pool has ended.
            self.transition(OFF, WATCHING);
        }
        Ok(())
    }

    /// Makes the deputy sleep, after it has seen no promise. Writes the word and calls `sleep` if it
    /// `is_quiet` after that, too. If it `lingers`, it sleeps with its switch set, so no other thread may
    /// stand it down. `sleep` gets a function that returns whether the word has changed since. Returns false
    /// if the deputy did not sleep, because it has an order, or `is_quiet` returned false.
    pub(crate) fn doze(
        &self,
        lingers: bool,
        is_quiet: impl FnOnce() -> bool,
        sleep: impl FnOnce(&dyn Fn() -> bool),
    ) -> bool {
        let state = if lingers { LINGERING } else { DOZING };
        if !self.transition(WATCHING, state) {
            return false;
        }
        // ORDER: pairs with the fence in `call`. The caller sees that the deputy sleeps, or `is_quiet` sees
        // its promise.
        sync::full_fence();
        let dozes = is_quiet();
        if dozes {
            sleep(&|| self.word.load(Ordering::Relaxed) != state);
        } else {
            // `WATCHING` even if a call has set `CALLED` meanwhile: no other thread may stand down a deputy
            // that is awake.
            self.word.fetch_or(WATCHING, Ordering::Relaxed);
        }
        dozes
    }

    /// Stands down a deputy that was called and has no order, if `is_quiet`: all threads sleep, and the
    /// calling one is about to. `disarm` takes its switch back. Returns what is left to do: arm the switch,
    /// because a promise or a call came meanwhile, or nothing.
    pub(crate) fn stand_down(&self, is_quiet: impl Fn() -> bool, disarm: impl FnOnce()) -> Call {
        if self.word.load(Ordering::Relaxed) != CALLED || !is_quiet() || !self.transition(CALLED, DOZING) {
            return Call::Nothing;
        }
        // ORDER: pairs with the fence in `call`: the caller sees `DOZING`, or this thread sees its promise.
        sync::full_fence();
        if !is_quiet() {
            return self.call_up();
        }
        disarm();
        // ORDER: Relaxed. A thread that set the switch before it was disarmed has changed the word before
        // that, and the lock inside the switch orders the two.
        if self.word.load(Ordering::Relaxed) == DOZING { Call::Nothing } else { Call::Arm }
    }

    /// Returns whether the deputy is to look now.
    pub(crate) fn is_rung(&self) -> bool {
        self.word.load(Ordering::Relaxed) & RUNG != 0
    }

    /// Sets the word for a look, whether the deputy slept or waited for the next tick, and clears the orders.
    /// Returns whether a thread is to be added at once; `None` if the pool is gone.
    pub(crate) fn rise(&self) -> Option<bool> {
        let mut now = self.word.load(Ordering::Relaxed);
        loop {
            let next = now & ENDED | WATCHING;
            match self.word.compare_exchange_weak(now, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return (now & ENDED == 0).then_some(now & HELP != 0),
                Err(seen) => now = seen,
            }
        }
    }

    /// Changes the word from exactly `from`, without orders, to `to`. Returns false if it was not `from`.
    fn transition(&self, from: u32, to: u32) -> bool {
        self.word.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn duty(word: u32) -> Duty {
        Duty { word: AtomicU32::new(word), starting: Mutex::new(()) }
    }

    fn word(duty: &Duty) -> u32 {
        duty.word.load(Ordering::Relaxed)
    }

    /// Each state, before and after the end, with and without each order; with the state, the end and the
    /// orders apart.
    fn words() -> impl Iterator<Item = (u32, u32, bool, u32)> {
        (0..64)
            .filter(|word| [OFF, DOZING, LINGERING, CALLED, WATCHING].contains(&(word & STATE)))
            .map(|word| (word, word & STATE, word & ENDED != 0, word & (RUNG | HELP)))
    }

    #[test]
    fn a_call_changes_the_word_of_a_deputy_that_sleeps_only() {
        for (before, state, ended, orders) in words() {
            let (call, after) = match state {
                _ if ended => (Call::Nothing, before),
                OFF => (Call::Start, before),
                DOZING => (Call::Arm, CALLED | orders),
                LINGERING => (Call::Arm, WATCHING | orders),
                _ => (Call::Nothing, before),
            };
            let duty = duty(before);
            assert_eq!((duty.call(), word(&duty)), (call, after), "{before}");
        }
    }

    #[test]
    fn an_order_stays_until_it_is_taken() {
        for (before, _, ended, orders) in words() {
            let duty = duty(before);
            assert_eq!(duty.is_rung(), orders & RUNG != 0);
            let taken = (!ended).then_some(orders & HELP != 0);
            assert_eq!((duty.rise(), word(&duty)), (taken, WATCHING | before & ENDED), "{before}");
        }
        for (before, state, ..) in words() {
            let duty = duty(before);
            duty.ask_for_help();
            assert_eq!(word(&duty), if state == OFF { before } else { before | RUNG | HELP }, "{before}");
        }
        for (before, ..) in words() {
            let duty = duty(before);
            duty.end();
            assert_eq!(word(&duty), before | ENDED | RUNG, "{before}");
        }
    }

    #[test]
    fn a_deputy_is_started_only_if_there_is_none_and_a_failure_leaves_the_word_as_it_was() {
        for (before, ..) in words() {
            let fails = duty(before);
            let failed = fails.start(|| Err(()));
            assert_eq!(failed, if before == OFF { Err(()) } else { Ok(()) }, "{before}");
            assert_eq!(word(&fails), before);
            let starts = duty(before);
            starts.start(|| Ok::<(), ()>(())).unwrap();
            assert_eq!(word(&starts), if before == OFF { WATCHING } else { before }, "{before}");
            // The thread may be faster than its starter.
            let dozes = duty(before);
            let thread = || {
                let _ = dozes.rise();
                dozes.doze(false, || true, |_| ());
                Ok::<(), ()>(())
            };
            dozes.start(thread).unwrap();
            assert_eq!(word(&dozes), if before == OFF { DOZING } else { before }, "{before}");
        }
    }

    #[test]
    fn a_deputy_dozes_only_without_orders_and_if_all_is_quiet_then() {
        for (before, ..) in words() {
            let free = before == WATCHING;
            for lingers in [false, true] {
                let dozes = duty(before);
                let mut called = [None; 2];
                let slept = dozes.doze(
                    lingers,
                    || true,
                    |is_called| {
                        called[0] = Some(is_called());
                        let _ = dozes.call();
                        called[1] = Some(is_called());
                    },
                );
                let after = if free && !lingers { CALLED } else { before };
                assert_eq!((slept, word(&dozes)), (free, after), "{before}");
                assert_eq!(called, if free { [Some(false), Some(true)] } else { [None; 2] });
                let loud = duty(before);
                let noise = || {
                    loud.end();
                    false
                };
                assert!(!loud.doze(lingers, noise, |_| panic!("it is not quiet")));
                assert_eq!(word(&loud), if free { WATCHING | ENDED | RUNG } else { before });
            }
        }
    }

    #[test]
    fn a_deputy_is_stood_down_only_if_it_is_armed_and_all_is_quiet() {
        for (before, ..) in words() {
            let armed = before == CALLED;
            let disarmed = Cell::new(false);
            let disarm = || disarmed.set(true);
            let quiet = duty(before);
            let expected = (Call::Nothing, if armed { DOZING } else { before }, armed);
            assert_eq!((quiet.stand_down(|| true, disarm), word(&quiet), disarmed.take()), expected);
            let loud = duty(before);
            let expected = (Call::Nothing, before, false);
            assert_eq!((loud.stand_down(|| false, disarm), word(&loud), disarmed.take()), expected);
        }
    }

    #[test]
    fn a_thread_that_stands_the_deputy_down_arms_the_switch_for_calls_that_come_meanwhile() {
        // A thread is awake at the second look, and may have seen `CALLED` before.
        let late = duty(CALLED);
        let looks = Cell::new(0);
        let is_quiet = || looks.replace(looks.get() + 1) == 0;
        let no = || panic!("it is not quiet");
        assert_eq!((late.stand_down(is_quiet, no), word(&late)), (Call::Arm, CALLED));
        // A call, the rise of the deputy or a request for help came before the switch was disarmed.
        let meanwhile: [fn(&Duty); 3] = [|duty| _ = duty.call(), |duty| _ = duty.rise(), Duty::ask_for_help];
        for meanwhile in meanwhile {
            let armed = duty(CALLED);
            assert_eq!(armed.stand_down(|| true, || meanwhile(&armed)), Call::Arm);
        }
    }
}

#[cfg(all(test, paceline_loom))]
mod models;
