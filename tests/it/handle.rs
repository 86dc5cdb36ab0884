//! A runtime used from other threads: through its handle, and by free functions.

use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use paceline::blocking::Job;
use paceline::{Async, Executor, Handle, Runtime, Task, ThreadKind, Timer, block_on, spawn, unblock};

use crate::given_time::RecvSoon;
use crate::setups::{SOON, Setup, eventually, for_each_builder, for_each_setup, pair, sockets, text_of};

/// Builds a runtime with workers of this name.
fn named(setup: Setup, name: &str) -> Runtime {
    setup.builder().thread_name(name).build().unwrap()
}

/// On whose worker free functions spawn here.
fn whose() -> String {
    let name = block_on(spawn(async { thread::current().name().map(String::from) }));
    name.expect("workers have names").split('-').next().unwrap().into()
}

fn said(panics: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(panics)).expect_err("the runtime is gone");
    text_of(&*panic).into()
}

#[test]
fn a_foreign_thread_spawns_and_waits() {
    for_each_setup(|runtime| {
        let handle = runtime.handle();
        let other = handle.clone();
        let there = thread::spawn(move || other.block_on(other.spawn(async { 6 * 7 })));
        assert_eq!(there.join().unwrap(), 42);
        assert_eq!(future::block_on(handle.spawn(async { 1 })), 1);
        assert_eq!(handle.metrics().workers, runtime.metrics().workers);
        assert!(format!("{handle:?}").starts_with("Handle"));
    });
}

#[test]
fn the_current_one_is_that_of_the_task_or_of_the_thread() {
    for_each_builder(|setup| {
        let runtime = named(setup, "mine");
        let there = || async { Handle::current().spawn(async { whose() }).await };
        assert_eq!(runtime.block_on(there()), "mine");
        assert_eq!(runtime.block_on(runtime.spawn(there())), "mine");
        let default = Handle::current();
        assert_eq!(default.block_on(async { whose() }), "paceline");
    });
}

/// Spawns, sources, timers and `block_on` act on the entered runtime until the guard is dropped, on this
/// thread only.
#[test]
fn free_functions_act_on_what_is_entered() {
    for_each_builder(|setup| {
        let runtime = named(setup, "mine");
        let before = runtime.metrics();
        let entered = runtime.handle().enter();
        assert_eq!(whose(), "mine");
        assert_eq!(thread::spawn(whose).join().unwrap(), "paceline");
        let (mut ours, mut theirs) = pair();
        assert_eq!(runtime.metrics().sources, before.sources + 2);
        block_on(async {
            let far = Timer::after(Duration::from_secs(3600));
            let mut far = Box::pin(far);
            assert!(future::poll_once(&mut far).await.is_none());
            assert_eq!(runtime.metrics().timers, before.timers + 1);
        });
        // Another library's `block_on` is in the entered runtime, too.
        future::block_on(async {
            theirs.write_all(b"x").await.unwrap();
            ours.read_exact(&mut [0]).await.unwrap();
            Timer::after(Duration::from_millis(1)).await;
            assert!(spawn(async { thread::current().name().unwrap().starts_with("mine") }).await);
        });
        drop(entered);
        assert_eq!(whose(), "paceline");
    });
}

/// The closures run on the runtime's threads, and act on that runtime in turn.
#[test]
fn closures_that_block_run_in_what_is_entered() {
    for_each_builder(|setup| {
        let runtime = named(setup, "mine");
        let entered = runtime.handle().enter();
        assert_eq!(future::block_on(unblock(whose)), "mine");
        assert_eq!(
            future::block_on(Job::new(whose).timeout(Duration::from_secs(3600)).submit()),
            Ok("mine".into())
        );
        eventually("both are counted", || runtime.metrics().blocking_jobs == 2);
        drop(entered);
        assert_eq!(future::block_on(unblock(whose)), "paceline");
        assert_eq!(future::block_on(Job::new(whose).submit()), Ok("paceline".into()));
        assert_eq!(runtime.metrics().blocking_jobs, 2);
    });
}

/// The newest of the remaining guards counts. Fails if a guard restores the state from before its creation.
#[test]
fn guards_nest_and_are_dropped_in_any_order() {
    for_each_builder(|setup| {
        let [one, two, three] = ["one", "two", "three"].map(|name| named(setup, name));
        let enter = |runtime: &Runtime| runtime.handle().enter();
        let (first, second, third) = (enter(&one), enter(&two), enter(&three));
        assert_eq!(whose(), "three");
        drop(second);
        assert_eq!(whose(), "three");
        drop(first);
        assert_eq!(whose(), "three");
        let again = enter(&one);
        assert_eq!(whose(), "one");
        drop(third);
        assert_eq!(whose(), "one");
        drop(again);
        assert_eq!(whose(), "paceline");
    });
}

/// A runtime is entered in a task and in a `block_on` of another runtime, which is restored afterwards; a
/// `block_on` on top of a guard has its own runtime.
#[test]
fn entered_inside_of_another_runtime() {
    for_each_builder(|setup| {
        let [mine, other] = ["mine", "other"].map(|name| named(setup, name));
        let handle = other.handle();
        let inside = move || {
            assert_eq!(whose(), "mine");
            let entered = handle.enter();
            assert_eq!(whose(), "other");
            drop(entered);
            assert_eq!(whose(), "mine");
        };
        mine.block_on(async { inside() });
        let inside2 = inside.clone();
        mine.block_on(mine.spawn(async move { inside2() }));
        let entered = other.handle().enter();
        mine.block_on(async { inside() });
        assert_eq!(whose(), "other");
        drop(entered);
    });
}

/// A guard is held across awaits, in a `block_on` and beside tasks: nothing is lost meanwhile.
#[test]
fn a_guard_may_be_held_while_a_future_waits() {
    for_each_builder(|setup| {
        let [mine, other] = ["mine", "other"].map(|name| named(setup, name));
        let executor = Executor::new();
        let (tell, told) = async_channel::bounded(1);
        let sender = executor.spawn(async move {
            for number in 0..100 {
                tell.send(number).await.unwrap();
                future::yield_now().await;
            }
        });
        mine.block_on(executor.run(async {
            let entered = other.handle().enter();
            for number in 0..100 {
                assert_eq!(told.recv().await, Ok(number));
                Timer::after(Duration::from_micros(10)).await;
            }
            sender.await;
            assert!(spawn(async { thread::current().name().unwrap().starts_with("other") }).await);
            drop(entered);
            assert!(spawn(async { thread::current().name().unwrap().starts_with("mine") }).await);
        }));
    });
}

/// A guard that leaves the `block_on` in which it was made stays in force.
#[test]
fn a_guard_outlives_the_block_on_that_made_it() {
    for_each_builder(|setup| {
        let [mine, other] = ["mine", "other"].map(|name| named(setup, name));
        let entered = mine.block_on(async { block_on(async { other.handle().enter() }) });
        assert_eq!(whose(), "other");
        assert_eq!(mine.block_on(async { whose() }), "mine");
        drop(entered);
        assert_eq!(whose(), "paceline");
    });
}

/// A handle does not keep the runtime alive: the threads end, and calls return errors.
#[test]
fn a_handle_outlives_its_runtime() {
    for_each_builder(|setup| {
        let runtime = setup.build();
        let handle = runtime.handle();
        let waiting = handle.spawn(pending::<()>());
        drop(runtime);
        assert_eq!(handle.metrics(), paceline::Metrics::default());
        assert_eq!(future::block_on(waiting.fallible()), None);
        assert_eq!(block_on(handle.spawn(async { 1 }).fallible()), None);
        assert!(said(|| block_on(handle.spawn(async {}))).contains("polled after completion"));
        assert!(
            said(|| handle.block_on(async {}))
                .contains("`Handle::block_on`: the runtime of this handle was dropped")
        );
        assert!(
            said(|| drop(handle.enter())).contains("`Handle::enter`: the runtime of this handle was dropped")
        );
        assert!(future::block_on(handle.drain(SOON)).is_clean());
    });
}

/// A runtime is dropped while it is entered, and while a foreign thread is in its `block_on`.
#[test]
fn a_runtime_is_dropped_while_its_handle_is_used() {
    for_each_builder(|setup| {
        let runtime = setup.build();
        let entered = runtime.handle().enter();
        let handle = runtime.handle();
        let (inside, is_inside) = std::sync::mpsc::channel();
        let other = thread::spawn(move || {
            handle.block_on(async {
                inside.send(()).unwrap();
                Timer::after(Duration::from_millis(50)).await;
                Timer::after(Duration::from_millis(5)).await;
                spawn(async {}).fallible().await
            })
        });
        is_inside.recv_soon().unwrap();
        drop(runtime);
        assert_eq!(other.join().unwrap(), None);
        assert_eq!(block_on(spawn(async {}).fallible()), None);
        assert!(Async::new(sockets().0).is_err());
        block_on(async { Timer::after(Duration::from_millis(1)).await });
        drop(entered);
        block_on(spawn(async {}));
    });
}

/// A handle keeps nothing of a runtime open. Fails if a handle has a strong reference.
#[cfg(target_os = "linux")]
#[test]
fn a_handle_keeps_no_descriptor_and_no_thread() {
    use crate::setups::is_child;
    let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
    if !is_child("handle::a_handle_keeps_no_descriptor_and_no_thread", ":") {
        return;
    }
    let before = (count("fd"), count("task"));
    let runtime = Runtime::builder().threads(2).build().unwrap();
    let handles = [(); 3].map(|()| runtime.handle());
    runtime.block_on(handles[0].spawn(async {}));
    drop(runtime);
    eventually("descriptors and threads are gone", || (count("fd"), count("task")) == before);
    drop(handles);
}

/// The runtime has been shut down, but still exists.
#[test]
fn a_handle_after_shutdown() {
    for_each_setup(|runtime| {
        let handle = runtime.handle();
        runtime.shutdown(SOON).unwrap();
        assert_eq!(future::block_on(handle.spawn(async {}).fallible()), None);
        handle.block_on(async { Timer::after(Duration::from_millis(1)).await });
        let entered = handle.enter();
        let task: Task<()> = spawn(async {});
        assert_eq!(future::block_on(task.fallible()), None);
        drop(entered);
    });
}

fn mine() -> Runtime {
    Runtime::builder().threads(1).thread_name("mine").build().unwrap()
}

/// Fails if a thread's next `block_on` has the waker of the last one while a copy of that is left.
#[test]
fn a_waker_that_is_left_over_wakes_no_later_block_on() {
    for runtime in [None, Some(mine())] {
        let wait = |future: &mut dyn FnMut(&mut Context<'_>) -> Poll<Option<Waker>>| match &runtime {
            Some(runtime) => runtime.block_on(poll_fn(future)),
            None => block_on(poll_fn(future)),
        };
        let left_over = wait(&mut |cx| Poll::Ready(Some(cx.waker().clone()))).unwrap();
        let (mut timer, mut polls) = (None, 0);
        wait(&mut |cx| {
            polls += 1;
            left_over.wake_by_ref();
            let timer = timer.get_or_insert_with(|| Timer::after(Duration::from_millis(5)));
            Pin::new(timer).poll(cx).map(|_| None)
        });
        assert_eq!(polls, 2);
    }
}

/// Fails if a thread that keeps what it needs for its next `block_on` counts as one that is in a `block_on`.
#[test]
fn a_thread_between_two_block_ons_is_in_none() {
    let runtimes = [(); 2].map(|()| mine());
    let callers = |runtime: &Runtime| {
        runtime.threads().iter().filter(|thread| thread.kind == ThreadKind::Caller).count()
    };
    for runtime in [0, 0, 1, 0].map(|at| &runtimes[at]) {
        assert_eq!(runtime.block_on(async { callers(runtime) }), 1);
        assert_eq!(runtimes.each_ref().map(callers), [0, 0]);
        runtime.block_on(async {
            Timer::after(Duration::from_millis(1)).await;
            assert_eq!(callers(runtime), 1);
        });
        assert_eq!(runtimes.each_ref().map(callers), [0, 0]);
    }
}

/// Fails if a `block_on` finds the entry instead of its own level when it joins a runtime.
#[test]
fn a_runtime_may_be_entered_before_a_block_on_waits_first() {
    let runtime = mine();
    block_on(async {
        let _entered = runtime.enter();
        Timer::after(Duration::from_millis(1)).await;
        assert_eq!(whose(), "mine");
    });
}

/// Fails if a thread's next `block_on` still counts for the runtime of the last one before it has to wait.
#[test]
fn a_block_on_that_needs_no_runtime_counts_for_none() {
    let runtime = mine();
    runtime.block_on(async {});
    let polls = || runtime.metrics().polls_direct + runtime.metrics().polls_surplus;
    let before = polls();
    let executor = Executor::new();
    block_on(executor.run(executor.spawn(async {})));
    assert_eq!(polls(), before);
}
