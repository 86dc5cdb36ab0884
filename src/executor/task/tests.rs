//! What the state of a task relies on: `async-task` drops the future of a task before its schedule function,
//! which keeps the state alive that the future's drop uses.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use super::*;

/// What the parts of one task share.
#[derive(Clone, Default)]
struct Scene {
    dropped: Arc<Mutex<Vec<&'static str>>>,
    queue: Arc<Mutex<Vec<Runnable>>>,
    wakers: Arc<Mutex<Vec<Waker>>>,
    handle: Arc<Mutex<Option<Task<()>>>>,
}

/// Tells when it is dropped.
struct Tells(&'static str, Scene);

impl Drop for Tells {
    fn drop(&mut self) {
        self.1.dropped.lock().unwrap().push(self.0);
    }
}

impl Scene {
    /// Builds a task as [`make`] does. Its future does what `poll` does.
    fn task(&self, poll: fn(&Scene) -> Poll<()>) -> (Runnable, Task<()>) {
        let (future, schedule) = (Tells("future", self.clone()), Tells("schedule", self.clone()));
        let future = poll_fn(move |cx| {
            future.1.wakers.lock().unwrap().push(cx.waker().clone());
            poll(&future.1)
        });
        let schedule = move |task, _: ScheduleInfo| schedule.1.queue.lock().unwrap().push(task);
        Builder::new().propagate_panic(true).spawn(|()| future, WithInfo(schedule))
    }

    /// Takes the task that was scheduled.
    fn scheduled(&self) -> Runnable {
        self.queue.lock().unwrap().pop().expect("it was scheduled")
    }

    fn drop_wakers(&self) {
        let wakers = mem::take(&mut *self.wakers.lock().unwrap());
        drop(wakers);
    }
}

/// A way in which a task ends: what its poll does, and what is done to it.
type End = (&'static str, fn(&Scene) -> Poll<()>, fn(&Scene, Runnable, Task<()>));

const WAITS: fn(&Scene) -> Poll<()> = |_| Poll::Pending;

const ENDS: &[End] = &[
    (
        "it is awaited",
        |_| Poll::Ready(()),
        |_, runnable, task| {
            runnable.run();
            futures_lite::future::block_on(task);
        },
    ),
    (
        "its handle is dropped after the last poll",
        |_| Poll::Ready(()),
        |_, runnable, task| {
            runnable.run();
            drop(task);
        },
    ),
    (
        "it is detached",
        |_| Poll::Ready(()),
        |_, runnable, task| {
            task.detach();
            runnable.run();
        },
    ),
    ("it is cancelled before the first poll", WAITS, |_, runnable, task| {
        drop(task);
        runnable.run();
    }),
    ("its runnable is dropped before the first poll", WAITS, |_, runnable, task| {
        drop(runnable);
        drop(task);
    }),
    ("it waits and is cancelled", WAITS, |scene, runnable, task| {
        runnable.run();
        drop(task);
        scene.scheduled().run();
    }),
    ("it is woken, and its runnable is dropped", WAITS, |scene, runnable, task| {
        runnable.run();
        scene.wakers.lock().unwrap()[0].wake_by_ref();
        drop(scene.scheduled());
        drop(task);
    }),
    ("its last waker is dropped", WAITS, |scene, runnable, task| {
        runnable.run();
        task.detach();
        scene.drop_wakers();
        drop(scene.scheduled());
    }),
    (
        "it is cancelled in its poll",
        |scene| {
            drop(scene.handle.lock().unwrap().take());
            Poll::Pending
        },
        |scene, runnable, task| {
            *scene.handle.lock().unwrap() = Some(task);
            runnable.run();
        },
    ),
    (
        "its poll panics",
        |_| panic!("on purpose"),
        |_, runnable, task| {
            runnable.run();
            let awaited = catch_unwind(AssertUnwindSafe(|| futures_lite::future::block_on(task)));
            assert!(awaited.is_err(), "the awaiting code gets the panic");
        },
    ),
    (
        "its poll panics, and it is detached",
        |_| panic!("on purpose"),
        |_, runnable, task| {
            task.detach();
            runnable.run();
        },
    ),
];

/// Fails if a version of `async-task` drops the schedule function first.
#[test]
fn the_future_is_dropped_before_the_schedule_function() {
    for (what, poll, end) in ENDS {
        let scene = Scene::default();
        let (runnable, task) = scene.task(*poll);
        end(&scene, runnable, task);
        scene.drop_wakers();
        assert_eq!(*scene.dropped.lock().unwrap(), ["future", "schedule"], "{what}");
    }
}
