//! Waking, yielding, spawning: the executor alone, without events.
//!
//! Hypothesis: a task that is woken on its own thread costs one exchange on the slot and no queue; surplus
//! costs a push and a pop of the ring; a spawn costs its allocation.

use std::future::poll_fn;
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};
use std::time::Duration;

use futures_lite::future::yield_now;
use paceline::{Executor, Task};

use super::{Rounds, in_task, own_waker, woken};

/// Wakes a task. Its waker is taken once, so that the cases measure wakes and no registration.
type Bell = Arc<OnceLock<Waker>>;

/// A task that can be woken, and then calls `then`, any number of times.
fn listener(executor: &Executor<'static>, then: impl Fn() + Send + 'static) -> (Bell, Task<()>) {
    let bell = Bell::default();
    let set = bell.clone();
    let task = executor.spawn(poll_fn(move |cx| {
        if set.get().is_some() {
            then();
        } else {
            let _ = set.set(cx.waker().clone());
        }
        Poll::Pending
    }));
    (bell, task)
}

fn ring(bell: &Bell) {
    bell.get().expect("the listener has been polled").wake_by_ref();
}

pub(super) fn slot(mut rounds: Rounds) -> Duration {
    in_task(|executor| async move {
        let this_task = own_waker().await;
        let (bell, _listener) = listener(&executor, move || this_task.wake_by_ref());
        yield_now().await;
        for () in &mut rounds {
            ring(&bell);
            woken().await;
        }
        rounds.took()
    })
}

pub(super) fn surplus(mut rounds: Rounds) -> Duration {
    in_task(|executor| async move {
        let listeners = [(); 4].map(|()| listener(&executor, || {}));
        yield_now().await;
        for () in &mut rounds {
            listeners.iter().for_each(|(bell, _)| ring(bell));
            yield_now().await;
        }
        rounds.took()
    })
}

pub(super) fn wake_scheduled(mut rounds: Rounds) -> Duration {
    in_task(|executor| async move {
        let (bell, _listener) = listener(&executor, || {});
        yield_now().await;
        for () in &mut rounds {
            ring(&bell);
        }
        rounds.took()
    })
}

pub(super) fn wake_outside(mut rounds: Rounds) -> Duration {
    let executor = Executor::new();
    let (bell, _listener) = listener(&executor, || {});
    assert!(executor.try_tick());
    for () in &mut rounds {
        ring(&bell);
        assert!(executor.try_tick());
    }
    rounds.took()
}

pub(super) fn yield_once(mut rounds: Rounds) -> Duration {
    in_task(|_| async move {
        for () in &mut rounds {
            yield_now().await;
        }
        rounds.took()
    })
}

pub(super) fn spawn(mut rounds: Rounds) -> Duration {
    in_task(|executor| async move {
        for () in &mut rounds {
            executor.spawn(async {}).await;
        }
        rounds.took()
    })
}

pub(super) fn spawn_detached(mut rounds: Rounds) -> Duration {
    in_task(|executor| async move {
        for () in &mut rounds {
            executor.spawn(async {}).detach();
            yield_now().await;
        }
        rounds.took()
    })
}
