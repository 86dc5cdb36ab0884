//! Variants of the scenes in `blocked_leader` and `all_workers_blocked`: threads block in wakers, in drops,
//! and in nested or other runtimes.

use std::future::{Future, pending, poll_fn};
use std::os::unix::net::UnixStream;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, future};
use paceline::{Async, Executor, Runtime, Timer, block_on};

use crate::blocked_leader::{MOMENT, a_timer, soon};
use crate::given_time::RecvSoon;
use crate::setups::{AsleepThread, Latch, OpenOnDrop, SOON, arm, is_child, waker_that, without_looks};

/// Polls once with this waker.
fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// Returns a waker that blocks until the latch is open, and a latch that opens when the waker is called.
fn blocks_until(end: &Latch) -> (Waker, Latch) {
    let called = Latch::new();
    let (end, tell) = (end.clone(), called.clone());
    let waker = waker_that(move || {
        tell.open();
        end.wait();
    });
    (waker, called)
}

/// The deputy hands over a stuck thread's tasks, and the waker of the notified stranger blocks: the waker
/// runs on a thread of its own. Fails if the deputy calls it (`State::notify_or_start_errand`).
#[test]
fn lf5_a_strangers_waker_that_the_deputy_would_call_blocks() {
    if !is_child("blocked_corner_cases::lf5_a_strangers_waker_that_the_deputy_would_call_blocks", ":") {
        return;
    }
    static EXECUTOR: Executor<'static> = Executor::new();
    let end = Latch::new();
    let _end = OpenOnDrop(end.clone());
    let (waker, called) = blocks_until(&end);
    let mut stranger = pin!(EXECUTOR.run(pending::<()>()));
    assert!(poll(stranger.as_mut(), &waker).is_pending());
    let stuck = end.clone();
    thread::spawn(move || {
        block_on(EXECUTOR.run(async {
            Timer::after(Duration::from_millis(1)).await;
            let blocks = EXECUTOR.spawn(async move {
                // Goes into the slot.
                EXECUTOR.spawn(async {}).detach();
                stuck.wait();
            });
            blocks.await;
        }));
    });
    called.wait();
    soon("the deputy watches", || pollster::block_on(a_timer()));
}

/// A thread hosts a run that it does not poll any more, and a stranger runs the same executor. Before the
/// thread sleeps, perhaps as the leader, it gives the run's tasks to the stranger. Fails if it then calls the
/// stranger's waker as the leader (LF2).
#[test]
fn lf2_no_strangers_waker_is_called_by_a_leader() {
    if !is_child("blocked_corner_cases::lf2_no_strangers_waker_is_called_by_a_leader", ":") {
        return;
    }
    static EXECUTOR: Executor<'static> = Executor::new();
    let end = Latch::new();
    let _end = OpenOnDrop(end.clone());
    let (waker, called) = blocks_until(&end);
    let mut stranger = Box::pin(EXECUTOR.run(pending::<()>()));
    assert!(poll(stranger.as_mut(), &waker).is_pending());
    thread::spawn(|| {
        block_on(async {
            let mut forgotten = pin!(EXECUTOR.run(pending::<()>()));
            let place = Arc::new(Mutex::new(None::<Waker>));
            let task = {
                let place = place.clone();
                poll_fn(move |cx| {
                    *place.lock().unwrap() = Some(cx.waker().clone());
                    Poll::<()>::Pending
                })
            };
            EXECUTOR.spawn(task).detach();
            poll_fn(|cx| {
                assert!(forgotten.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
            let task = place.lock().unwrap().take().expect("it was polled");
            // The timer fires on this thread, and wakes the task here.
            let mut timer = Timer::never();
            arm(&mut timer, MOMENT, &waker_that(move || task.wake_by_ref()));
            pending::<()>().await;
        });
    });
    called.wait();
    soon("a thread leads", || {
        block_on(a_timer());
        pollster::block_on(a_timer());
    });
}

/// Every worker is stuck in a waker that it calls, not in a task. Fails if only polls count
/// as work (`StageCell::toggle_work`).
#[test]
fn lf5_workers_that_are_stuck_in_wakers() {
    for threads in [1, 2] {
        let end = Latch::new();
        let _end = OpenOnDrop(end.clone());
        let runtime = Runtime::builder().threads(threads).build().unwrap();
        let mut timers: Vec<_> = (0..threads).map(|_| Timer::never()).collect();
        for timer in &mut timers {
            let (waker, called) = blocks_until(&end);
            runtime.block_on(async { arm(timer, MOMENT, &waker) });
            called.wait();
        }
        soon("a worker is added", move || pollster::block_on(runtime.spawn(async {})));
    }
}

/// A task waits in a nested `block_on` of another pool for a task of the first pool, whose only worker waits.
#[test]
fn a_nested_block_on_in_another_runtime_may_wait_for_the_outer_one() {
    let build = || Arc::new(Runtime::builder().threads(1).build().unwrap());
    let (one, other) = (build(), build());
    soon("another worker runs what the first one waits for", move || {
        let nested = {
            let one = one.clone();
            async move { other.block_on(one.spawn(async { 7 })) }
        };
        assert_eq!(pollster::block_on(one.spawn(nested)), 7);
    });
}

/// Many tasks nest side by side: each holds a worker until the task that it
/// waits for is done.
#[test]
fn many_nested_block_ons_get_a_worker_each() {
    let runtime = Runtime::builder().threads(1).build().unwrap();
    soon("all are done", move || {
        let tasks: Vec<_> = (0..100)
            .map(|n| runtime.spawn(async move { block_on(paceline::spawn(async move { n })) }))
            .collect();
        let sum: i32 = tasks.into_iter().map(pollster::block_on).sum();
        assert_eq!(sum, 99 * 100 / 2);
    });
}

/// When the runtime ends, a timer is in the batch behind one whose task blocks.
#[test]
fn lf5_a_timer_in_the_batch_of_a_runtime_that_ends() {
    let end = Latch::new();
    let _end = OpenOnDrop(end.clone());
    // No thread takes the timer out of the batch before the runtime is dropped.
    let runtime = Runtime::builder().threads(1).max_threads(1).tuning(without_looks()).build().unwrap();
    let at = Instant::now() + 3 * MOMENT;
    let mut waits = Box::pin(Timer::at(at));
    runtime.block_on(async { assert!(poll(waits.as_mut(), Waker::noop()).is_pending()) });
    let stuck = Latch::new();
    runtime
        .spawn({
            let (stuck, end) = (stuck.clone(), end.clone());
            async move {
                Timer::at(at - Duration::from_micros(50)).await;
                stuck.open();
                end.wait();
            }
        })
        .detach();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        pollster::block_on(waits);
        tell.send(()).unwrap();
    });
    stuck.wait();
    runtime.shutdown(Duration::ZERO).unwrap_err();
    drop(runtime);
    told.recv_soon().expect("it fires elsewhere");
}

/// A task that its runtime could not stop waits for a source of that runtime, on a thread that would have
/// led.
#[test]
fn lf5_a_source_of_the_runtime_that_is_gone() {
    let runtime = Runtime::builder().threads(1).build().unwrap();
    let (begun, gone) = (Latch::new(), Latch::new());
    let (tell, told) = mpsc::channel();
    runtime
        .spawn({
            let (begun, gone) = (begun.clone(), gone.clone());
            async move {
                let (near, _far) = UnixStream::pair().unwrap();
                let mut near = Async::new(near).unwrap();
                begun.open();
                gone.wait();
                let read = pollster::block_on(near.read(&mut [0]));
                let (near, _far) = UnixStream::pair().unwrap();
                tell.send((read.map(drop), Async::new(near).map(drop))).unwrap();
            }
        })
        .detach();
    begun.wait();
    runtime.shutdown(Duration::ZERO).unwrap_err();
    drop(runtime);
    gone.open();
    let (read, new) = told.recv_soon().expect("neither waits");
    for error in [read.unwrap_err(), new.unwrap_err()] {
        assert!(error.to_string().contains("gone"), "{error}");
    }
}

/// A root future waits once more when it is dropped, after its thread has left the pool: the thread does not
/// leave a second time. Fails if it does (`Seat::is_member`), because then the count of hosts is wrong and
/// guests stand back for ever.
#[test]
fn lf5_a_wait_in_the_drop_of_a_root_future() {
    struct Waits(Arc<Runtime>);
    impl Drop for Waits {
        fn drop(&mut self) {
            self.0.block_on(a_timer());
        }
    }
    // A deputy or a worker that helps would hide the fault.
    let runtime = Runtime::builder().threads(1).tuning(without_looks()).build().unwrap();
    runtime.shutdown(SOON).unwrap();
    let runtime = Arc::new(runtime);
    soon("it waits and comes back", move || {
        for host in [false, true] {
            let (executor, waits) = (Executor::new(), Waits(runtime.clone()));
            let mut again = true;
            let root = poll_fn(move |cx| {
                let _waits = &waits;
                cx.waker().wake_by_ref();
                if std::mem::take(&mut again) { Poll::Pending } else { Poll::Ready(()) }
            });
            if host {
                runtime.block_on(future::or(executor.run(pending()), root));
            } else {
                runtime.block_on(root);
            }
        }
    });
}

/// LF3: a `run` that was polled here is dropped elsewhere, while a stranger of the same executor sleeps. The
/// thread that forgets the run may wake the stranger, whose waker waits, so it must not do so as the leader.
#[test]
fn lf5_a_run_that_is_dropped_elsewhere_beside_a_stranger() {
    static EXECUTOR: Executor<'static> = Executor::new();
    // Only this thread leads, and no deputy gives the task away before it does.
    let runtime = Runtime::builder().threads(1).tuning(without_looks()).build().unwrap();
    runtime.shutdown(SOON).unwrap();
    soon("it comes back", move || {
        let mut run = Some(Box::pin(EXECUTOR.run(pending::<()>())));
        let mut stranger = Box::pin(EXECUTOR.run(pending::<()>()));
        let waker = waker_that(|| block_on(a_timer()));
        let mut timer = Box::pin(Timer::after(MOMENT));
        runtime.block_on(poll_fn(move |cx| {
            if let Some(mut run) = run.take() {
                assert!(run.as_mut().poll(cx).is_pending());
                assert!(poll(stranger.as_mut(), &waker).is_pending());
                // The task waits in the runner of the first run, which is the future that is dropped.
                assert!(run.as_mut().poll(cx).is_pending());
                EXECUTOR.spawn(async {}).detach();
                thread::spawn(move || drop(run)).join().unwrap();
            }
            timer.as_mut().poll(cx)
        }));
    });
}

/// Of two runners of one executor, one is polled no more, and has a task. When the thread goes to sleep,
/// it marks the first runner as asleep and then gives the second one's task away: to the first runner, which
/// is on the same thread. Fails if the thread sleeps all the same: `is_woken` in `Station::try_enter_lines`.
#[test]
fn a_thread_that_calls_its_own_runner_does_not_sleep() {
    static EXECUTOR: Executor<'static> = Executor::new();
    let (sleeps, asleep) = AsleepThread::new();
    // This thread leads all the time, so that the other one parks.
    thread::spawn(move || {
        let executor = Executor::new();
        block_on(executor.run(async {
            sleeps();
            Timer::after(Duration::from_secs(3600)).await;
        }));
    });
    asleep.wait();
    soon("the task is run", || {
        let mut first = Box::pin(EXECUTOR.run(pending::<()>()));
        let mut second = Box::pin(EXECUTOR.run(pending::<()>()));
        let mut task = None;
        let mut polls = 0;
        block_on(poll_fn(move |cx| {
            polls += 1;
            assert!(first.as_mut().poll(cx).is_pending());
            match polls {
                // The thread has entered its pool by the next poll.
                1 => cx.waker().wake_by_ref(),
                2 => {
                    assert!(second.as_mut().poll(cx).is_pending());
                    // For the runner that was polled last.
                    task = Some(EXECUTOR.spawn(async {}));
                }
                _ => {}
            }
            if task.as_ref().is_some_and(|task| task.is_finished()) { Poll::Ready(()) } else { Poll::Pending }
        }));
    });
}
