//! Rounds: how long they are, and what a reserve leaves to others.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use super::super::spawn_at;
use super::*;
use crate::frame::Frame;
use futures_lite::future;

/// What a place for a host has to say: nothing.
#[derive(Default)]
struct Place(host::Runners);

impl host::Surroundings for Place {
    fn runners(&self) -> &host::Runners {
        &self.0
    }
    fn hosts(&self, _: &State) {}
    fn forgets(&self, _: &Runner, _: bool) {}
    fn cover(&self, _: super::super::Caught) {}
}

struct Quiet;

impl Wake for Quiet {
    fn wake(self: Arc<Self>) {}
}

/// Spawns a task on a runtime's executor.
fn spawn(state: &StateRef, body: impl FnOnce() + Send + 'static) {
    // SAFETY: it is `Send` and borrows nothing.
    unsafe { spawn_at(state, async move { body() }, std::panic::Location::caller()) }.detach();
}

/// Polls a `run` of `state` as the root future of a host.
fn hosted<R>(
    state: &StateRef,
    is_reserve: bool,
    f: impl FnOnce(&mut dyn FnMut() -> Poll<()>, &Arc<Runner>) -> R,
) -> R {
    let waker = Waker::from(Arc::new(Quiet));
    let frame = Frame::new(Host::new(waker.data(), Some(Arc::new(Place::default()))));
    let on_top = frame.enter();
    on_top.part().is_watched();
    let begin = if is_reserve { Run::reserve } else { Run::new };
    let mut run = Box::pin(begin(state.clone(), std::future::pending::<()>()));
    let runner = run.member.own.runner.clone();
    let result = f(&mut || run.as_mut().poll(&mut Context::from_waker(&waker)), &runner);
    drop(run);
    on_top.part().close();
    result
}

/// Fails if a round does not see that its thread is to look up.
#[test]
fn a_round_ends_when_its_thread_is_to_look_up() {
    let state = StateRef::shared();
    let ran = Arc::new(AtomicU32::new(0));
    hosted(&state, false, |poll, runner| {
        for number in 0..10 {
            let (ran, runner) = (ran.clone(), runner.clone());
            spawn(&state, move || {
                ran.fetch_add(1, Relaxed);
                if number == 3 {
                    runner.ask_to_look_up();
                }
            });
        }
        assert!(poll().is_pending());
        assert_eq!(ran.load(Relaxed), 4);
        assert!(poll().is_pending());
        assert_eq!(ran.load(Relaxed), 10);
    });
}

/// Fails if only the number of tasks bounds a round.
#[test]
fn rounds_of_long_tasks_are_short() {
    let state = StateRef::shared();
    let ran = Arc::new(AtomicU32::new(0));
    hosted(&state, false, |poll, _| {
        let mut round = |each: Duration| {
            for _ in 0..3 * BUDGET_ALONE {
                let ran = ran.clone();
                spawn(&state, move || {
                    let start = std::time::Instant::now();
                    while start.elapsed() < each {}
                    ran.fetch_add(1, Relaxed);
                });
            }
            // The first one that is full is not timed, the second one is.
            let mut rounds: Vec<_> = Vec::new();
            while ran.load(Relaxed) < 3 * BUDGET_ALONE {
                let before = ran.load(Relaxed);
                assert!(poll().is_pending());
                rounds.push(ran.load(Relaxed) - before);
            }
            ran.store(0, Relaxed);
            rounds
        };
        let long = round(Duration::from_micros(100));
        let [first, second, rest @ ..] = &*long else { panic!("{long:?}") };
        assert!(*first <= BUDGET_ALONE && *second <= BUDGET_ALONE && rest.len() > 8, "{long:?}");
        assert!(rest.iter().all(|tasks| *tasks <= FEWEST), "{long:?}");
        round(Duration::from_micros(100));
        let quick = round(Duration::ZERO);
        assert!(quick.iter().any(|tasks| *tasks > 8 * FEWEST), "{quick:?}");
    });
}

/// Fails if a reserve takes from the injector, or is called for what is there.
#[test]
fn a_reserve_leaves_surplus_to_others_until_it_is_no_reserve() {
    let state = StateRef::shared();
    let ran = Arc::new(AtomicU32::new(0));
    let counts = |ran: &Arc<AtomicU32>| {
        let ran = ran.clone();
        move || _ = ran.fetch_add(1, Relaxed)
    };
    // From a thread that hosts nobody.
    spawn(&state, counts(&ran));
    hosted(&state, true, |poll, runner| {
        assert!(poll().is_pending());
        assert_eq!((ran.load(Relaxed), state.injected()), (0, 1));
        assert!(state.rest(runner) && !state.any_idle());
        // What is woken here is its own.
        spawn(&state, counts(&ran));
        spawn(&state, counts(&ran));
        assert!(poll().is_pending());
        assert_eq!((ran.load(Relaxed), state.injected()), (2, 1));
        runner.set_reserve(false);
        assert!(poll().is_pending());
        assert_eq!((ran.load(Relaxed), state.injected()), (3, 0));
        assert!(state.rest(runner) && state.any_idle());
    });
}

/// Fails if what was woken elsewhere waits behind what nobody comes to; or if a reserve polls what was never polled, or is known
/// to compute.
#[test]
fn a_reserve_sifts_the_surplus_for_what_is_quick() {
    let state = StateRef::shared();
    let ran = Arc::new(AtomicU32::new(0));
    let (tell, told) = async_channel::unbounded::<()>();
    let polls = ran.clone();
    let quick = async move {
        while told.recv().await.is_ok() {
            polls.fetch_add(1, Relaxed);
        }
    };
    // SAFETY: it is `Send` and borrows nothing.
    unsafe { spawn_at(&state, quick, std::panic::Location::caller()) }.detach();
    hosted(&state, false, |poll, _| assert!(poll().is_pending()));
    // From a thread that hosts nobody.
    let new = ran.clone();
    spawn(&state, move || _ = new.fetch_add(100, Relaxed));
    tell.try_send(()).unwrap();
    hosted(&state, true, |poll, runner| {
        assert_eq!(state.injected(), 2);
        assert!(poll().is_pending());
        assert_eq!((ran.load(Relaxed), state.injected(), state.taken()), (1, 1, 1 + 1));
        let other = thread::spawn(move || tell.try_send(()));
        other.join().unwrap().unwrap();
        assert!(poll().is_pending());
        assert_eq!((ran.load(Relaxed), state.injected()), (1, 2), "it was not asked");
        runner.ask_to_sift();
        assert!(poll().is_pending());
        assert_eq!((ran.load(Relaxed), state.injected()), (2, 1));
        assert_eq!(runner.counters.surplus.get(), 2);
    });
}

/// Fails if a reserve leaves a task to others for ever that was caught once.
#[test]
fn a_reserve_polls_what_computed_once_after_a_while() {
    let state = StateRef::shared();
    let ran = Arc::new(AtomicU32::new(0));
    hosted(&state, true, |poll, runner| {
        let (ran_here, caught) = (ran.clone(), runner.clone());
        let computes_once = async move {
            caught.catch(caught.beat(), super::super::Caught::Computing);
            loop {
                ran_here.fetch_add(1, Relaxed);
                future::yield_now().await;
            }
        };
        assert!(poll().is_pending());
        // SAFETY: it is `Send` and borrows nothing.
        unsafe { spawn_at(&state, computes_once, std::panic::Location::caller()) }.detach();
        let mut sifts = |times: usize| {
            for _ in 0..times {
                runner.ask_to_sift();
                assert!(poll().is_pending());
            }
            ran.load(Relaxed)
        };
        // It is in the surplus after its first poll, and was left there in the same round.
        assert_eq!(sifts(1), 1);
        assert_eq!(sifts(1), 1, "it has a mark");
        assert_eq!(sifts(5), 1 + 5);
    });
}

/// Fails if a reserve leaves to nobody what does not fit into its ring: the chances to share it may all have been left out.
#[test]
fn a_reserve_with_more_tasks_than_it_can_hold_calls_somebody() {
    let state = StateRef::shared();
    (0..10).for_each(|_| state.gain.learns(false));
    hosted(&state, false, |poll, idle| {
        assert!(poll().is_pending());
        assert!(state.rest(idle) && state.any_idle());
        hosted(&state, true, |poll, runner| {
            assert!(poll().is_pending());
            (0..300).for_each(|_| spawn(&state, || ()));
            assert!(!state.idle.somebody_comes() && state.injected() > 0);
            while runner.has_tasks() {
                assert!(poll().is_pending());
            }
            assert!(state.injected() > 0 && state.idle.somebody_comes());
        });
    });
}

/// Fails if what a round took that had to look up is taken for what all of its tasks do.
#[test]
fn a_round_that_was_cut_short_says_nothing_of_the_next() {
    let state = StateRef::shared();
    let ran = Arc::new(AtomicU32::new(0));
    hosted(&state, false, |poll, runner| {
        let looks_up = Arc::new(std::sync::atomic::AtomicBool::new(false));
        for _ in 0..3 * BUDGET_ALONE {
            let (ran, looks_up, runner) = (ran.clone(), looks_up.clone(), runner.clone());
            spawn(&state, move || {
                let start = std::time::Instant::now();
                while start.elapsed() < ROUND {}
                ran.fetch_add(1, Relaxed);
                if looks_up.swap(false, Relaxed) {
                    runner.ask_to_look_up();
                }
            });
        }
        let mut round = || {
            let before = ran.load(Relaxed);
            assert!(poll().is_pending());
            ran.load(Relaxed) - before
        };
        while round() > FEWEST {}
        for _ in 0..3 {
            looks_up.store(true, Relaxed);
            assert_eq!([round(), round()], [1, FEWEST]);
        }
    });
}
