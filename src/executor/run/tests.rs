//! Tests of rounds: their end, whose turn it is, and the tasks that a standby leaves to takers.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::super::Caught;
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

/// Spawns a future on a runtime's executor.
fn spawn_future(state: &StateRef, future: impl Future<Output = ()> + Send + 'static) {
    let here = crate::observed::SpawnMeta::unobserved(std::panic::Location::caller());
    // SAFETY: the future is `Send` and borrows nothing.
    unsafe { task::spawn(state.clone(), future, here) }.detach();
}

/// Spawns a task that runs `body` in its only poll.
fn spawn(state: &StateRef, body: impl FnOnce() + Send + 'static) {
    spawn_future(state, async move { body() });
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

/// The names of the tasks that were polled, in order.
#[derive(Clone, Default)]
struct Polls(Arc<Mutex<Vec<&'static str>>>);

impl Polls {
    fn push(&self, name: &'static str) {
        self.0.lock().unwrap().push(name);
    }

    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Returns a future that yields between its polls, of which there are so many.
    fn yields(&self, name: &'static str, polls: u32) -> impl Future<Output = ()> + Send + 'static {
        let polled = self.clone();
        async move {
            for poll in 1..=polls {
                polled.push(name);
                if poll < polls {
                    future::yield_now().await;
                }
            }
        }
    }

    /// Returns a future whose polls are caught computing and take a tick each.
    fn computes(
        &self,
        name: &'static str,
        polls: u32,
        runner: &Arc<Runner>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (polled, runner) = (self.clone(), runner.clone());
        async move {
            for _ in 0..polls {
                polled.push(name);
                runner.orders.end_round();
                runner.poll.catch(runner.poll.stage(), Caught::Computing);
                future::yield_now().await;
            }
        }
    }
}

/// Fails if a round does not end with the first poll at whose end the deputy has looked.
#[test]
fn a_round_ends_with_the_tick() {
    let state = StateRef::shared();
    let polls = Polls::default();
    hosted(&state, |poll, runner| {
        for number in 0..10 {
            let (polls, runner) = (polls.clone(), runner.clone());
            spawn(&state, move || {
                polls.push("");
                if number == 3 {
                    runner.orders.end_round();
                }
            });
        }
        assert!(poll().is_pending());
        assert_eq!(polls.take().len(), 4);
        assert!(poll().is_pending());
        assert_eq!(polls.take().len(), 6);
    });
}

/// A poll that takes a tick wakes another task, and then the thread looks for events. Fails if the woken task
/// is left in the slot: the task that an event wakes would go behind the ring.
#[test]
fn a_round_that_ends_leaves_nothing_in_the_slot() {
    let state = StateRef::shared();
    let polls = Polls::default();
    hosted(&state, |poll, runner| {
        assert!(poll().is_pending());
        let (inner, polled, ticks) = (state.clone(), polls.clone(), runner.clone());
        spawn(&state, move || {
            spawn_future(&inner, polled.yields("woken", 1));
            ticks.orders.end_round();
        });
        spawn_future(&state, polls.yields("ring", u32::MAX));
        assert!(poll().is_pending());
        assert_eq!(polls.take(), ["woken"]);
        spawn_future(&state, polls.yields("event", 1));
        assert!(poll().is_pending());
        assert_eq!(polls.take()[..2], ["event", "ring"]);
    });
}

/// Tasks in the ring that yield for ever, and some in the injector. Fails if either waits for the others.
#[test]
fn the_ring_and_the_injector_take_turns() {
    let state = StateRef::shared();
    let polls = Polls::default();
    hosted(&state, |poll, _| {
        assert!(poll().is_pending());
        ["x", "y", "z"].into_iter().for_each(|name| {
            let (state, polls) = (state.clone(), polls.clone());
            std::thread::spawn(move || spawn_future(&state, polls.yields(name, 1))).join().unwrap();
        });
        spawn_future(&state, polls.yields("slot", 1));
        ["a", "b"].into_iter().for_each(|name| spawn_future(&state, polls.yields(name, u32::MAX)));
        assert!(poll().is_pending());
        assert_eq!(polls.take()[..9], ["slot", "a", "x", "b", "y", "a", "z", "b", "a"]);
    });
}

/// Three tasks that compute beside two that yield, of which each poll is quick. Fails if one kind starves the
/// other, or if tasks that compute overtake one another.
#[test]
fn tasks_that_compute_get_one_poll_in_a_tick_beside_quick_ones() {
    let state = StateRef::shared();
    let polls = Polls::default();
    hosted(&state, |poll, runner| {
        let computing = ["A", "B", "C"];
        for name in computing {
            spawn_future(&state, polls.computes(name, u32::MAX, runner));
            assert!(poll().is_pending());
        }
        // They are known from now on, and wait in this order.
        (0..9).for_each(|_| assert!(poll().is_pending()));
        while polls.take().last() != Some(&"C") {
            assert!(poll().is_pending());
        }
        ["a", "b"].into_iter().for_each(|name| spawn_future(&state, polls.yields(name, u32::MAX)));
        for name in computing {
            assert!(poll().is_pending());
            let round = polls.take();
            assert!(round.len() > 100 && !round.contains(&name), "quick ones until the tick ends");
            runner.orders.end_round();
            // The tick is found at the begin of a round, which is empty then.
            (0..2).for_each(|_| assert!(poll().is_pending()));
            let round = polls.take();
            assert_eq!(round.last(), Some(&name));
            assert!(round.len() <= 2, "{round:?}: only what an event has woken comes before it");
        }
    });
}

/// Fails if tasks that compute wait although nothing else does.
#[test]
fn tasks_that_compute_are_polled_at_once_if_there_are_no_others() {
    let state = StateRef::shared();
    let polls = Polls::default();
    hosted(&state, |poll, runner| {
        assert!(poll().is_pending());
        ["A", "B"].into_iter().for_each(|name| spawn_future(&state, polls.computes(name, 3, runner)));
        // The second one begins to compute after another poll of the first one, which is due by then.
        (0..8).for_each(|_| assert!(poll().is_pending()));
        assert_eq!(polls.take(), ["A", "A", "B", "A", "B", "B"]);
        assert_eq!((state.queued(), state.unfinished()), (0, Some(0)));
    });
}

/// A `run` under a foreign executor has no tick. Fails if tasks that compute starve there, or are put into the
/// slow queue again and again without a poll.
#[test]
fn tasks_that_compute_get_one_poll_in_a_round_where_no_deputy_looks() {
    let state = StateRef::shared();
    let polls = Polls::default();
    hosted(&state, |poll, runner| {
        spawn_future(&state, polls.computes("A", 1, runner));
        spawn_future(&state, polls.yields("a", u32::MAX));
        assert!(poll().is_pending());
        polls.take();
    });
    assert_eq!(state.queued(), 2);
    let mut run = Box::pin(Run::new(state.clone(), std::future::pending::<()>()));
    for _ in 0..2 {
        assert!(run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(polls.take().len() > 50);
    }
    assert_eq!(state.unfinished(), Some(1), "the one that computed has ended");
}

/// Fails if a standby polls a task that was never polled and that it takes from the injector, leaves a quick
/// one there, or polls one that takers are to poll.
#[test]
fn a_standby_polls_quick_tasks_and_leaves_the_others_to_takers() {
    let state = StateRef::shared();
    let polls = Polls::default();
    let (tell, told) = async_channel::unbounded::<()>();
    hosted(&state, |poll, runner| {
        let polled = polls.clone();
        spawn_future(&state, async move {
            while told.recv().await.is_ok() {
                polled.push("quick");
            }
        });
        assert!(poll().is_pending());
        runner.stands_by.set(true);
        let from_outside = |name| {
            let (state, polls) = (state.clone(), polls.clone());
            std::thread::spawn(move || spawn_future(&state, polls.yields(name, 1))).join().unwrap();
        };
        from_outside("x");
        let tell_elsewhere = tell.clone();
        std::thread::spawn(move || tell_elsewhere.try_send(()).unwrap()).join().unwrap();
        // What events of its own wake, or these spawn, it polls; and what yields comes back to it.
        spawn_future(&state, polls.yields("own", 2));
        assert!(state.has_tasks_for(runner));
        assert!(poll().is_pending());
        assert_eq!((polls.take(), state.queued()), (vec!["own", "own", "quick"], 1));
        assert!(!state.has_tasks_for(runner), "the other one waits for a taker");
        assert_eq!(state.enter_line(runner), BeforeSleep::Sleeps);
        assert!(!state.any_idle(), "it is woken by the deputy");
        // A task that has computed in a poll here.
        spawn_future(&state, polls.computes("A", 2, runner));
        (0..3).for_each(|_| assert!(poll().is_pending()));
        assert_eq!((polls.take(), state.queued()), (vec!["A"], 2));
        runner.end_standby();
        (0..3).for_each(|_| assert!(poll().is_pending()));
        assert_eq!((polls.take(), state.queued()), (vec!["A", "x"], 0), "the slow one is due");
        assert!(state.enter_line(runner) == BeforeSleep::Sleeps && state.any_idle());
    });
}

/// Fails if a task that was caught computing once, and is quick again, never comes back to the quick ones.
#[test]
fn a_task_that_was_caught_is_quick_again_after_two_polls() {
    let state = StateRef::shared();
    let polls = Polls::default();
    hosted(&state, |poll, runner| {
        let computes = polls.computes("A", 1, runner);
        let then = polls.yields("quick", u32::MAX);
        spawn_future(&state, async move {
            computes.await;
            then.await;
        });
        let slow: Vec<_> = (0..3)
            .map(|_| {
                runner.orders.end_round();
                (0..2).for_each(|_| assert!(poll().is_pending()));
                (polls.take()[0], state.queued())
            })
            .collect();
        assert_eq!(slow[0], ("A", 1));
        assert_eq!(slow[2], ("quick", 0), "{slow:?}");
    });
}

/// Fails if the mark of a destructor, which the deputy has found at work in two looks, meets the task that is
/// polled next: a standby would leave it to others.
#[test]
fn a_destructor_that_was_caught_marks_no_task() {
    struct IsCaught(Arc<Runner>);
    impl Drop for IsCaught {
        fn drop(&mut self) {
            self.0.poll.catch(self.0.poll.stage(), Caught::Computing);
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
        let caught = IsCaught(runner.clone());
        // SAFETY: as above.
        drop(unsafe { task::spawn(state.clone(), async move { drop(caught) }, here) });
        tell.try_send(()).unwrap();
        assert!(poll().is_pending());
        assert_eq!(polls.load(Relaxed), 1);
        runner.stands_by.set(true);
        tell.try_send(()).unwrap();
        assert!(poll().is_pending());
        assert_eq!((polls.load(Relaxed), state.queued()), (2, 0), "it has no mark");
    });
}
