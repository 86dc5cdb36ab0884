//! Tests of rounds: their end, and the tasks that a worker without a permit leaves to others.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use super::super::host::HostGuard;
use super::super::idle::Rest;
use super::super::task;
use super::*;
use crate::flight::FoundIn;
use futures_lite::future;

mod in_order;

/// Surroundings of a host that ignore all calls.
#[derive(Default)]
struct Place(host::Runners);

impl host::Surroundings for Place {
    fn runners(&self) -> &host::Runners {
        &self.0
    }
    fn note_hosted(&self) {}
    fn note_forgotten(&self, _: &Runner, _: bool) {}
    fn cover(&self, _: super::super::Caught) {}
}

struct Quiet;

impl Wake for Quiet {
    fn wake(self: Arc<Self>) {}
}

/// Spawns a task on a runtime's executor.
fn spawn(state: &StateRef, body: impl FnOnce() + Send + 'static) {
    // SAFETY: the future is `Send` and borrows nothing.
    unsafe {
        task::spawn(
            state.clone(),
            async move { body() },
            crate::observed::SpawnMeta::unobserved(std::panic::Location::caller()),
        )
    }
    .detach();
}

/// Calls `f` with a closure that polls a `run` of `state` as the root future of a host, and with its runner.
fn hosted<R>(state: &StateRef, f: impl FnOnce(&mut dyn FnMut() -> Poll<()>, &Arc<Runner>) -> R) -> R {
    let waker = Waker::from(Arc::new(Quiet));
    let place = Place::default();
    let _host = HostGuard::enter(waker.data(), Some(&place));
    host::here(Host::set_watched);
    let mut run = Box::pin(Run::new(state.clone(), std::future::pending::<()>()));
    let runner = run.member.own.runner.clone();
    f(&mut || run.as_mut().poll(&mut Context::from_waker(&waker)), &runner)
}

/// Fails if a round does not see that its thread is to look up.
#[test]
fn a_round_ends_when_its_thread_is_to_look_up() {
    let state = StateRef::shared();
    let ran = Arc::new(AtomicU32::new(0));
    hosted(&state, |poll, runner| {
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

/// Polls the runner after the deputy has called it, if it rests.
fn call(state: &StateRef, poll: &mut dyn FnMut() -> Poll<()>, runner: &Runner) {
    if state.rest(runner) == Rest::Sleeps {
        state.notify_another();
    }
    assert!(poll().is_pending());
}

/// Fails if a worker without a permit takes from the injector, or is called for what is there.
#[test]
fn a_worker_without_a_permit_leaves_surplus_to_others() {
    let state = StateRef::shared();
    let ran = Arc::new(AtomicU32::new(0));
    let counts = |ran: &Arc<AtomicU32>| {
        let ran = ran.clone();
        move || _ = ran.fetch_add(1, Relaxed)
    };
    state.set_limit(0);
    // From a thread that hosts no runner.
    spawn(&state, counts(&ran));
    hosted(&state, |poll, runner| {
        assert!(poll().is_pending());
        assert_eq!((ran.load(Relaxed), state.injected()), (0, 1));
        assert_eq!(state.rest(runner), Rest::Sleeps);
        state.notify();
        assert!(state.any_idle() && !state.idle.has_called());
        // Tasks that are woken on its own thread need no permit.
        spawn(&state, counts(&ran));
        spawn(&state, counts(&ran));
        assert!(poll().is_pending());
        assert_eq!((ran.load(Relaxed), state.injected()), (2, 1));
        assert_eq!(state.rest(runner), Rest::Sleeps);
        state.set_limit(1);
        assert!(state.idle.has_called(), "the limit was raised");
        assert!(poll().is_pending());
        assert_eq!((ran.load(Relaxed), state.injected()), (3, 0));
        assert!(
            state.rest(runner) == Rest::Sleeps
                && state.any_idle()
                && state.permits.is_free()
                && !runner.holds_permit()
        );
    });
}

/// Fails if a poll of a task from the injector, or of a task that is known to compute, has no permit, or
/// keeps it.
#[test]
fn a_task_that_computes_or_was_queued_is_polled_with_a_permit() {
    let state = StateRef::shared();
    let held = Arc::new(AtomicU32::new(0));
    state.set_limit(1);
    hosted(&state, |poll, runner| {
        let (held_here, state_here, on) = (held.clone(), state.clone(), runner.clone());
        let (tell, told) = async_channel::unbounded::<()>();
        let looks = async move {
            loop {
                held_here.store(u32::from(on.holds_permit() && !state_here.permits.is_free()), Relaxed);
                on.catch(on.stage(), super::super::Caught::Computing);
                let _ = told.recv().await;
            }
        };
        // SAFETY: it is `Send` and borrows nothing.
        unsafe {
            task::spawn(
                state.clone(),
                looks,
                crate::observed::SpawnMeta::unobserved(std::panic::Location::caller()),
            )
        }
        .detach();
        assert!(poll().is_pending());
        assert_eq!(
            (held.load(Relaxed), runner.counters.get(FoundIn::Queue)),
            (1, 1),
            "it was in the injector"
        );
        // From this thread, into the slot.
        tell.try_send(()).unwrap();
        assert!(runner.has_tasks() && poll().is_pending());
        assert_eq!((held.load(Relaxed), runner.counters.get(FoundIn::Slot)), (1, 1), "it has a mark");
        assert!(state.permits.is_free() && !runner.holds_permit());
    });
}

/// Fails if a quick task that was woken on another thread waits behind tasks that need a permit; or if a
/// worker without a permit polls a task that was never polled, or is known to compute.
#[test]
fn a_worker_without_a_permit_sifts_the_surplus_for_quick_tasks() {
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
    unsafe {
        task::spawn(
            state.clone(),
            quick,
            crate::observed::SpawnMeta::unobserved(std::panic::Location::caller()),
        )
    }
    .detach();
    hosted(&state, |poll, _| assert!(poll().is_pending()));
    state.set_limit(0);
    // From a thread that hosts no runner.
    let new = ran.clone();
    spawn(&state, move || _ = new.fetch_add(100, Relaxed));
    tell.try_send(()).unwrap();
    hosted(&state, |poll, runner| {
        assert_eq!(state.injected(), 2);
        assert!(poll().is_pending());
        assert_eq!((ran.load(Relaxed), state.injected(), state.taken()), (1, 1, 1 + 1));
        let other = thread::spawn(move || tell.try_send(()));
        other.join().unwrap().unwrap();
        assert!(poll().is_pending());
        assert_eq!((ran.load(Relaxed), state.injected()), (1, 2), "it was not asked");
        call(&state, poll, runner);
        assert_eq!((ran.load(Relaxed), state.injected()), (2, 1));
        assert_eq!(runner.counters.get(FoundIn::Queue), 2);
    });
}

/// Fails if a task that was caught once is left to others for ever, or gets no permit where one is free.
#[test]
fn a_task_that_computed_once_needs_a_permit_for_a_while() {
    let state = StateRef::shared();
    let ran = Arc::new(AtomicU32::new(0));
    hosted(&state, |poll, runner| {
        let (ran_here, caught) = (ran.clone(), runner.clone());
        let computes_once = async move {
            caught.catch(caught.stage(), super::super::Caught::Computing);
            loop {
                ran_here.fetch_add(1, Relaxed);
                future::yield_now().await;
            }
        };
        assert!(poll().is_pending());
        state.set_limit(0);
        // SAFETY: it is `Send` and borrows nothing.
        unsafe {
            task::spawn(
                state.clone(),
                computes_once,
                crate::observed::SpawnMeta::unobserved(std::panic::Location::caller()),
            )
        }
        .detach();
        let mut sifts = |times: usize| {
            (0..times).for_each(|_| call(&state, poll, runner));
            ran.load(Relaxed)
        };
        // After its first poll the task is in the injector, and was left there in the same round.
        assert_eq!(sifts(1), 1);
        assert_eq!(sifts(1), 1, "it has a mark");
        assert_eq!(sifts(5), 1 + 5);
    });
}

/// Fails if the mark of a destructor, which the deputy has found at work in two looks, meets the task that is
/// polled next: that task would wait for a permit.
#[test]
fn a_destructor_that_was_caught_marks_no_task() {
    struct Caught(Arc<Runner>);
    impl Drop for Caught {
        fn drop(&mut self) {
            self.0.catch(self.0.stage(), super::super::Caught::Computing);
        }
    }
    let state = StateRef::shared();
    let polls = Arc::new(AtomicU32::new(0));
    let (tell, told) = async_channel::unbounded::<()>();
    hosted(&state, |poll, runner| {
        let here = crate::observed::SpawnMeta::unobserved(std::panic::Location::caller());
        let count = polls.clone();
        let quick = async move {
            while told.recv().await.is_ok() {
                count.fetch_add(1, Relaxed);
            }
        };
        // SAFETY: it is `Send` and borrows nothing.
        unsafe { task::spawn(state.clone(), quick, here) }.detach();
        assert!(poll().is_pending());
        let caught = Caught(runner.clone());
        // SAFETY: as above.
        drop(unsafe { task::spawn(state.clone(), async move { drop(caught) }, here) });
        tell.try_send(()).unwrap();
        assert!(poll().is_pending());
        assert_eq!(polls.load(Relaxed), 1);
        state.set_limit(0);
        tell.try_send(()).unwrap();
        assert!(poll().is_pending());
        assert_eq!((polls.load(Relaxed), state.injected()), (2, 0), "it has no mark, and needs no permit");
    });
}

/// Fails if a task counts as polled that was found and left to others, because it is known to compute.
#[test]
fn a_task_that_is_left_to_others_was_not_polled() {
    let state = StateRef::shared();
    let polls = Arc::new(AtomicU32::new(0));
    let (tell, told) = async_channel::unbounded::<()>();
    hosted(&state, |poll, runner| {
        let (count, caught) = (polls.clone(), runner.clone());
        let computes = async move {
            loop {
                count.fetch_add(1, Relaxed);
                caught.catch(caught.stage(), super::super::Caught::Computing);
                if told.recv().await.is_err() {
                    break;
                }
            }
        };
        let meta = crate::observed::SpawnMeta::unobserved(std::panic::Location::caller());
        // SAFETY: it is `Send` and borrows nothing.
        unsafe { task::spawn(state.clone(), computes, meta) }.detach();
        assert!(poll().is_pending());
        state.set_limit(0);
        tell.try_send(()).unwrap();
        assert!(runner.has_tasks() && poll().is_pending());
        assert_eq!((polls.load(Relaxed), state.injected()), (1, 1), "it waits for a permit");
        assert_eq!(runner.counters.total(), 1);
    });
}
