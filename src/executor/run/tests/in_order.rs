//! The order in which a round polls tasks and the root future.

use std::future::poll_fn;
use std::sync::Mutex;

use super::super::super::turns::ROUND;
use super::*;

/// The names of the polled futures, in order.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    fn push(&self, name: impl Into<String>) {
        self.0.lock().unwrap().push(name.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn spawn(state: &StateRef, future: impl Future<Output = ()> + Send + 'static) {
    // SAFETY: the future is `Send` and borrows nothing.
    unsafe {
        task::spawn(
            state.clone(),
            future,
            crate::observed::SpawnMeta::unobserved(std::panic::Location::caller()),
        )
    }
    .detach();
}

/// Calls `f` with a closure that polls a `run` of `state` as the root future of a host. The future inside
/// the `run` pushes "root" and never ends.
fn hosted(state: &StateRef, trace: &Trace, f: impl FnOnce(&mut dyn FnMut(), &Arc<Mutex<Option<Waker>>>)) {
    let waker = Waker::from(Arc::new(Quiet));
    let place = Place::default();
    let _host = HostGuard::enter(waker.data(), Some(&place));
    host::here(Host::set_watched);
    let root = Arc::<Mutex<Option<Waker>>>::default();
    let (roots_trace, roots_waker) = (trace.clone(), root.clone());
    let future = poll_fn(move |cx: &mut Context<'_>| {
        roots_trace.push("root");
        *roots_waker.lock().unwrap() = Some(cx.waker().clone());
        Poll::<()>::Pending
    });
    let mut run = Box::pin(Run::in_order(state.clone(), future));
    let mut poll = || assert!(run.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    f(&mut poll, &root);
}

fn numbers(from: u32, to: u32) -> Vec<String> {
    (from..to).map(|number| number.to_string()).collect()
}

/// Fails if tasks go into a direct slot or a ring.
#[test]
fn tasks_are_polled_in_the_order_in_which_they_became_ready() {
    let (state, trace) = (StateRef::in_order(), Trace::default());
    hosted(&state, &trace, |poll, _| {
        poll();
        assert_eq!(trace.take(), ["root"]);
        for number in 0..1000 {
            let (state, trace) = (state.clone(), trace.clone());
            let child = 1000 + number;
            spawn(&state.clone(), async move {
                trace.push(number.to_string());
                spawn(&state, async move { trace.push(child.to_string()) });
            });
        }
        (0..2000_u32.div_ceil(ROUND)).for_each(|_| poll());
        assert_eq!(trace.take(), numbers(0, 2000));
    });
}

/// Fails if the root future is polled as soon as it is woken, and if it waits for more than a round.
#[test]
fn the_root_future_has_its_turn_after_a_round_or_when_no_task_is_left() {
    let (state, trace) = (StateRef::in_order(), Trace::default());
    hosted(&state, &trace, |poll, root| {
        poll();
        trace.take();
        let wake_root = || root.lock().unwrap().as_ref().expect("it was polled").wake_by_ref();
        let tasks = |count: u32| {
            for number in 0..count {
                let (trace, root) = (trace.clone(), root.clone());
                spawn(&state, async move {
                    trace.push(number.to_string());
                    root.lock().unwrap().as_ref().expect("it was polled").wake_by_ref();
                });
            }
        };
        tasks(3);
        poll();
        assert_eq!(trace.take(), ["0", "1", "2"]);
        poll();
        assert_eq!(trace.take(), ["root"]);
        wake_root();
        tasks(ROUND + 2);
        poll();
        assert_eq!(trace.take(), [vec!["root".into()], numbers(0, ROUND)].concat());
        poll();
        assert_eq!(trace.take(), [vec!["root".into()], numbers(ROUND, ROUND + 2)].concat());
        poll();
        assert_eq!(trace.take(), ["root"]);
    });
}

/// Fails if a task is polled before all events that were fetched together have woken their tasks; and if
/// the next round waits for them again, although another thread may have taken the remaining events.
#[test]
fn no_task_is_polled_between_events_that_were_fetched_together() {
    let (state, trace) = (StateRef::in_order(), Trace::default());
    hosted(&state, &trace, |poll, _| {
        poll();
        trace.take();
        let named = trace.clone();
        spawn(&state, async move { named.push("task") });
        host::here(|host| host.events_wait.set(true));
        poll();
        assert!(trace.take().is_empty());
        poll();
        assert_eq!(trace.take(), ["task"]);
    });
}

/// Fails if tasks from other threads starve while tasks of this thread keep yielding.
#[test]
fn tasks_of_other_threads_have_their_turn_beside_tasks_that_yield() {
    let (state, trace) = (StateRef::in_order(), Trace::default());
    hosted(&state, &trace, |poll, _| {
        for _ in 0..2 {
            spawn(&state, async {
                loop {
                    futures_lite::future::yield_now().await;
                }
            });
        }
        poll();
        trace.take();
        let (others, named) = (state.clone(), trace.clone());
        std::thread::spawn(move || spawn(&others, async move { named.push("brought") })).join().unwrap();
        poll();
        assert_eq!(trace.take(), ["brought"]);
    });
    // The two that yield would keep their executor alive.
    state.cancel_all();
}
