//! Tests of rounds: their end, and the tasks that a standby leaves to others.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::super::host::HostGuard;
use super::super::idle::BeforeSleep;
use super::super::task;
use super::*;
use futures_lite::future;

mod in_order;

/// Surroundings of a host that ignore all calls.
#[derive(Default)]
struct Place(host::Runners);

impl host::Surroundings for Place {
    fn runners(&self) -> &host::Runners {
        &self.0
    }
    fn start_watch_as_host(&self) {}
    fn end_hosting(&self, _: &Runner, _: bool) {}
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
fn a_round_ends_when_its_thread_is_to_poll_the_reactor() {
    let state = StateRef::shared();
    let ran = Arc::new(AtomicU32::new(0));
    hosted(&state, |poll, runner| {
        for number in 0..10 {
            let (ran, runner) = (ran.clone(), runner.clone());
            spawn(&state, move || {
                ran.fetch_add(1, Relaxed);
                if number == 3 {
                    runner.orders.end_round();
                }
            });
        }
        assert!(poll().is_pending());
        assert_eq!(ran.load(Relaxed), 4);
        assert!(poll().is_pending());
        assert_eq!(ran.load(Relaxed), 10);
    });
}

/// Fails if a standby takes from the injector, or is called for what is there, before it is one no longer.
#[test]
fn a_standby_leaves_surplus_to_others() {
    let state = StateRef::shared();
    let ran = Arc::new(AtomicU32::new(0));
    let counts = |ran: &Arc<AtomicU32>| {
        let ran = ran.clone();
        move || _ = ran.fetch_add(1, Relaxed)
    };
    // From a thread that hosts no runner.
    spawn(&state, counts(&ran));
    hosted(&state, |poll, runner| {
        runner.stands_by.set(true);
        assert!(poll().is_pending());
        assert_eq!((ran.load(Relaxed), state.injected()), (0, 1));
        assert_eq!(state.enter_line(runner), BeforeSleep::Sleeps);
        state.notify();
        assert!(!state.any_idle() && !state.idle.has_called());
        // Tasks that are woken on its own thread.
        spawn(&state, counts(&ran));
        spawn(&state, counts(&ran));
        assert!(poll().is_pending());
        assert_eq!((ran.load(Relaxed), state.injected()), (2, 1));
        assert_eq!(state.enter_line(runner), BeforeSleep::Sleeps);
        runner.end_standby();
        assert!(poll().is_pending());
        assert_eq!((ran.load(Relaxed), state.injected()), (3, 0));
        assert!(state.enter_line(runner) == BeforeSleep::Sleeps && state.any_idle());
    });
}

/// Fails if a standby polls a task that was caught computing, or leaves a quick one to others for ever
/// because it was caught once; and if a task that wakes itself stays in its ring.
#[test]
fn a_standby_leaves_a_task_that_computed_to_others_for_a_while() {
    let state = StateRef::shared();
    let ran = Arc::new(AtomicU32::new(0));
    hosted(&state, |poll, runner| {
        let (ran_here, caught) = (ran.clone(), runner.clone());
        let computes_once = async move {
            caught.poll.catch(caught.poll.stage(), super::super::Caught::Computing);
            loop {
                ran_here.fetch_add(1, Relaxed);
                future::yield_now().await;
            }
        };
        assert!(poll().is_pending());
        runner.stands_by.set(true);
        // SAFETY: it is `Send` and borrows nothing.
        unsafe {
            task::spawn(
                state.clone(),
                computes_once,
                crate::observed::SpawnMeta::unobserved(std::panic::Location::caller()),
            )
        }
        .detach();
        let mut polls = || {
            // What the injector has is woken by an event again.
            while let Some(task) = state.pop_injected() {
                runner.slot.put(task).unwrap();
            }
            assert!(poll().is_pending());
            ran.load(Relaxed)
        };
        assert_eq!(polls(), 1);
        assert_eq!((polls(), polls(), polls()), (1, 1, 2), "it has a mark of two");
    });
}

/// Fails if the mark of a destructor, which the deputy has found at work in two looks, meets the task that is
/// polled next: a standby would leave it to others.
#[test]
fn a_destructor_that_was_caught_marks_no_task() {
    struct Caught(Arc<Runner>);
    impl Drop for Caught {
        fn drop(&mut self) {
            self.0.poll.catch(self.0.poll.stage(), super::super::Caught::Computing);
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
        runner.stands_by.set(true);
        tell.try_send(()).unwrap();
        assert!(poll().is_pending());
        assert_eq!((polls.load(Relaxed), state.injected()), (2, 0), "it has no mark");
    });
}
