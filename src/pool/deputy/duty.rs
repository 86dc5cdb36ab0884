//! [`Duty`]: the deputy's state, in one atomic word.
//!
//! | state | meaning | next |
//! |---|---|---|
//! | `OFF` | there is no deputy | [`start`](Duty::start) |
//! | `STARTING` | its thread is being started, under a lock | [`started`](Duty::started), or `OFF` if that fails |
//! | `WATCHING` | its thread looks, or will within a tick | [`doze`](Duty::doze), [`resign`](Duty::resign) |
//! | `DOZING` | it sleeps until it is called | [`call`](Duty::call), [`rise`](Duty::rise) |
//! | `ARMED` | it sleeps, and was called: its switch is set, or is about to be | [`stand_down`](Duty::stand_down), `rise` |
//! | `LINGERING` | it sleeps for a while, because nothing needs it, or until it is called | `call`, `rise` |
//! | `ENDED` | the pool is gone; nobody starts another one | |
//!
//! Beside the state: `RUNG`, look now, and `HELP`, a thread is wanted at once. Both stay until the deputy takes them. Where there is
//! none, nobody could, so they are never set beside `OFF`: from that state, and no other word, one is started, and takes its word
//! back who resigned and is needed after all.
//!
//! No promise goes unwatched. Who makes one (see the README of the pool) makes it visible, fence, calls; the deputy says
//! that it dozes, or that it is gone, fence, looks for promises. Of two fences one is first: either the deputy sees the
//! promise and takes its word back, or the caller sees `DOZING` or `OFF` and gets a verdict that says what to do. Only one
//! caller gets it: the exchange that takes the word to `ARMED` is its.
//!
//! Who goes to sleep last may stand down a deputy that was called for nothing: he says for it that it dozes, fence, looks for
//! promises as it would. That leaves the switch. *While a look is due, the switch is set, or somebody is about to set it who
//! runs no code but ours*:
//!
//! - Whoever disarms it reads the word after that. If it is `DOZING` no more, others have called, or the deputy rose, and
//!   what they set may be what he disarmed: he arms it. Else nobody has, or who has was stood down again. (Who sets the switch
//!   has changed the word before, and the switch's own lock orders the two.)
//! - Who sees a promise after all does what a caller does, and arms it, too. To take the word back is not enough: it may have
//!   been to and fro meanwhile, and the switch disarmed by others, or over.
//! - Set too late, it costs a look for nothing.
//!
//! He looks for promises before he touches the word as well. Else a thread that sleeps and wakes twice a tick would put off
//! the look at one that blocks, for ever.

use crate::sync::{self, AtomicU32, Mutex, Ordering};

const OFF: u32 = 0;
const STARTING: u32 = 1;
const DOZING: u32 = 2;
const LINGERING: u32 = 3;
/// In the two states that have this bit, and in no other, a look is due within a tick.
const ON_DUTY: u32 = 4;
const ARMED: u32 = DOZING | ON_DUTY;
const WATCHING: u32 = LINGERING | ON_DUTY;
const STATE: u32 = 7;
const ENDED: u32 = 8;
const RUNG: u32 = 16;
const HELP: u32 = 32;

/// The word.
#[derive(Debug)]
pub(super) struct Duty {
    word: AtomicU32,
    /// Held by who starts the thread, until it is known what came of that: whoever comes meanwhile must not rely on a thread
    /// that is never started.
    starting: Mutex<()>,
}

/// What somebody who made a promise has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Call {
    /// The deputy looks within a tick anyway.
    Nothing,
    /// It dozed: set its switch.
    Arm,
    /// There is none: start one, if what was promised needs one.
    Start,
}

/// What others told the deputy while it did not look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) struct Orders {
    /// The pool is gone.
    pub(super) ended: bool,
    /// A thread is wanted at once.
    pub(super) help: bool,
}

impl Duty {
    pub(super) fn new() -> Self {
        Self { word: AtomicU32::new(OFF), starting: Mutex::new(()) }
    }

    /// Somebody made a promise that the deputy is to watch; it is visible already.
    #[inline]
    pub(super) fn call(&self) -> Call {
        // ORDER: pairs with the fences in `doze`, `stand_down` and `resign`.
        sync::full_fence();
        if self.word.load(Ordering::Relaxed) & (ON_DUTY | ENDED) == ON_DUTY {
            Call::Nothing
        } else {
            self.call_up()
        }
    }

    #[cold]
    fn call_up(&self) -> Call {
        let mut now = self.word.load(Ordering::Relaxed);
        loop {
            match now & (STATE | ENDED) {
                OFF | STARTING => return Call::Start,
                DOZING | LINGERING => {}
                _ => return Call::Nothing,
            }
            // ORDER: Relaxed, here and below: the word orders nothing but itself; what was promised is seen because of
            // the fences.
            let next = now | ON_DUTY;
            match self.word.compare_exchange(now, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Call::Arm,
                Err(seen) => now = seen,
            }
        }
    }

    /// Has the deputy look now, and asks for a thread; or does nothing if there is none, because nothing needs one: whoever does from
    /// now on starts it. The caller rings its switch after this.
    pub(super) fn ask_for_help(&self) {
        let mut now = self.word.load(Ordering::Relaxed);
        while now & STATE != OFF {
            let next = now | RUNG | HELP;
            match self.word.compare_exchange_weak(now, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(seen) => now = seen,
            }
        }
    }

    /// The pool is gone. The caller rings the switch after this.
    pub(super) fn end(&self) {
        self.word.fetch_or(ENDED | RUNG, Ordering::Relaxed);
    }

    /// Starts a deputy, unless there is one by now.
    ///
    /// # Errors
    ///
    /// That of `spawn`. The next caller tries again.
    pub(super) fn start<E>(&self, spawn: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let _starting = sync::lock(&self.starting);
        if !self.moved(OFF, STARTING) {
            return Ok(());
        }
        match spawn() {
            Ok(()) => self.started(),
            Err(error) => {
                // With what it was asked for meanwhile, which nobody will do.
                self.word.fetch_and(ENDED, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    }

    /// The thread runs, or is about to: said by it and by who started it, whoever is first.
    pub(super) fn started(&self) {
        self.moved(STARTING, WATCHING);
    }

    /// The deputy has seen nothing that it would have to watch: it sleeps, if that is so once more after it has said that it
    /// does. Where it only `lingers`, nothing needs it, and nobody stands it down, because its switch is set and stays so.
    /// `sleep` is told how to find out whether somebody called meanwhile. False if it did not sleep.
    pub(super) fn doze(
        &self,
        lingers: bool,
        is_quiet: impl FnOnce() -> bool,
        sleep: impl FnOnce(&dyn Fn() -> bool),
    ) -> bool {
        let state = if lingers { LINGERING } else { DOZING };
        if !self.moved(WATCHING, state) {
            return false;
        }
        // ORDER: pairs with the fence in `call`.
        sync::full_fence();
        let dozes = is_quiet();
        if dozes {
            sleep(&|| self.word.load(Ordering::Relaxed) != state);
        } else {
            // It is up, so nobody is to stand it down.
            self.word.fetch_or(WATCHING, Ordering::Relaxed);
        }
        dozes
    }

    /// The calling thread is about to sleep: if all do, a deputy that was called need not look. `disarm` takes its switch
    /// back. What is left to do is to arm it, or nothing.
    pub(super) fn stand_down(&self, is_quiet: impl Fn() -> bool, disarm: impl FnOnce()) -> Call {
        if self.word.load(Ordering::Relaxed) != ARMED || !is_quiet() || !self.moved(ARMED, DOZING) {
            return Call::Nothing;
        }
        // ORDER: pairs with the fence in `call`.
        sync::full_fence();
        if !is_quiet() {
            return self.call_up();
        }
        disarm();
        // ORDER: Relaxed: who set the switch before it was disarmed had changed the word, and the switch has a lock.
        if self.word.load(Ordering::Relaxed) == DOZING { Call::Nothing } else { Call::Arm }
    }

    /// Whether it is to look now.
    pub(super) fn is_rung(&self) -> bool {
        self.word.load(Ordering::Relaxed) & RUNG != 0
    }

    /// The deputy looks now, whether it dozed or waited for the next tick.
    pub(super) fn rise(&self) -> Orders {
        let mut now = self.word.load(Ordering::Relaxed);
        loop {
            let next = now & ENDED | WATCHING;
            match self.word.compare_exchange_weak(now, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Orders { ended: now & ENDED != 0, help: now & HELP != 0 },
                Err(seen) => now = seen,
            }
        }
    }

    /// Nothing needs the deputy: it is gone, if that is so once more after it has said so. False if it stays.
    pub(super) fn resign(&self, is_needed: impl FnOnce() -> bool) -> bool {
        if !self.moved(WATCHING, OFF) {
            return false;
        }
        // ORDER: pairs with the fence in `call`.
        sync::full_fence();
        // Who is needed after all comes back, unless another one was started meanwhile.
        !(is_needed() && self.moved(OFF, WATCHING))
    }

    /// True if the word was `from`, without any order beside it, and is `to` now.
    fn moved(&self, from: u32, to: u32) -> bool {
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

    /// Each state, before and after the end, with and without each order; and the three for themselves.
    fn words() -> impl Iterator<Item = (u32, u32, bool, u32)> {
        (0..64)
            .filter(|word| [OFF, STARTING, DOZING, LINGERING, ARMED, WATCHING].contains(&(word & STATE)))
            .map(|word| (word, word & STATE, word & ENDED != 0, word & (RUNG | HELP)))
    }

    #[test]
    fn a_call_takes_the_word_of_who_sleeps_and_of_nobody_else() {
        for (before, state, ended, orders) in words() {
            let (call, after) = match state {
                _ if ended => (Call::Nothing, before),
                OFF | STARTING => (Call::Start, before),
                DOZING => (Call::Arm, ARMED | orders),
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
            let taken = Orders { ended, help: orders & HELP != 0 };
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
    fn one_is_started_where_there_is_none_and_a_failure_leaves_it_so() {
        for (before, ..) in words() {
            let fails = duty(before);
            let failed = fails.start(|| Err(word(&fails)));
            assert_eq!(failed, if before == OFF { Err(STARTING) } else { Ok(()) }, "{before}");
            assert_eq!(word(&fails), before);
            let asked = duty(before);
            let _ = asked.start(|| {
                asked.ask_for_help();
                Err(())
            });
            assert_eq!(word(&asked), before, "{before}");
            let starts = duty(before);
            starts.start(|| Ok::<(), ()>(())).unwrap();
            assert_eq!(word(&starts), if before == OFF { WATCHING } else { before }, "{before}");
            let says = duty(before);
            says.started();
            assert_eq!(word(&says), if before == STARTING { WATCHING } else { before }, "{before}");
        }
    }

    #[test]
    fn it_dozes_and_goes_only_without_orders_and_if_it_is_quiet_then() {
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
                let after = if free && !lingers { ARMED } else { before };
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
            let goes = duty(before);
            assert_eq!((goes.resign(|| false), word(&goes)), (free, if free { OFF } else { before }));
            let stays = duty(before);
            assert_eq!((stays.resign(|| true), word(&stays)), (false, before));
        }
        // Another one was started meanwhile.
        let follows = duty(WATCHING);
        assert!(follows.resign(|| follows.start(|| Ok::<(), ()>(())).is_ok()));
    }

    #[test]
    fn it_is_stood_down_where_it_was_only_armed_and_all_is_quiet() {
        for (before, ..) in words() {
            let armed = before == ARMED;
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
    fn whoever_stands_it_down_arms_it_for_those_who_call_meanwhile() {
        // Somebody is up at the second look, and may have been seen in `ARMED` before.
        let late = duty(ARMED);
        let looks = Cell::new(0);
        let is_quiet = || looks.replace(looks.get() + 1) == 0;
        let no = || panic!("it is not quiet");
        assert_eq!((late.stand_down(is_quiet, no), word(&late)), (Call::Arm, ARMED));
        // Somebody called, or the deputy rose, or it was rung, before the switch was disarmed.
        let meanwhile: [fn(&Duty); 3] = [|duty| _ = duty.call(), |duty| _ = duty.rise(), Duty::ask_for_help];
        for meanwhile in meanwhile {
            let armed = duty(ARMED);
            assert_eq!(armed.stand_down(|| true, || meanwhile(&armed)), Call::Arm);
        }
    }
}

#[cfg(all(test, paceline_loom))]
mod models;
