//! Properties of a clock that can be paused, which tokio's own tests do not check.

use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use super::*;
use crate::runtime::{Builder, Runtime};
use crate::task::{spawn, spawn_blocking, yield_now};

fn runtime(is_paused: bool) -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(is_paused).build().unwrap()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Polls once, with a waker that does nothing.
fn poll_alone(future: impl Future) -> bool {
    pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn the_clock_waits_for_every_task_and_stops_at_every_deadline() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let log = |what: &'static str| {
        let order = order.clone();
        move |at: Instant| order.lock().unwrap().push((what, at.elapsed().as_millis()))
    };
    runtime(true).block_on(async {
        let start = Instant::now();
        let [busy, short, last] = ["busy", "short", "last"].map(log);
        for _ in 0..100 {
            // Dropped without a poll, in front of the others.
            spawn(pending::<()>()).abort();
        }
        spawn(async move {
            for _ in 0..1000 {
                yield_now().await;
            }
            busy(start);
            sleep(ms(5)).await;
            short(start);
        });
        sleep(ms(7)).await;
        last(start);
    });
    assert_eq!(*order.lock().unwrap(), [("busy", 0), ("short", 5), ("last", 7)]);
}

/// Fails now and then without the look after a closure has released the clock.
#[test]
fn what_a_closure_brings_comes_before_the_clock_moves() {
    runtime(true).block_on(async {
        for round in 0..2000 {
            let start = Instant::now();
            let waits = spawn(async { spawn_blocking(|| ()).await.unwrap() });
            let mut waits = pin!(waits);
            let in_time = timeout(ms(1), poll_fn(|cx| waits.as_mut().poll(cx))).await;
            assert!(in_time.is_ok(), "round {round}");
            assert_eq!(start.elapsed(), Duration::ZERO, "round {round}");
        }
    });
}

#[cfg(unix)]
#[test]
fn a_source_that_is_ready_comes_before_the_clock_moves() {
    use std::io::{Read, Write};
    runtime(true).block_on(async {
        let (here, mut there) = std::os::unix::net::UnixStream::pair().unwrap();
        let here = paceline::Async::new(here).unwrap();
        let start = Instant::now();
        let reads = spawn(async move {
            for _ in 0..100 {
                here.read_with(|mut stream| stream.read(&mut [0])).await.unwrap();
            }
            start.elapsed()
        });
        for _ in 0..100 {
            yield_now().await;
            there.write_all(&[0]).unwrap();
        }
        sleep(ms(1)).await;
        assert_eq!(reads.await.unwrap(), Duration::ZERO);
    });
}

/// Their wakers do not lead to a call: the clock moves on all the same.
#[test]
fn sleeps_that_wake_no_task_do_not_stop_the_clock() {
    runtime(true).block_on(async {
        let start = Instant::now();
        let mut alone = [1, 2, 3, 9].map(|millis| Box::pin(sleep(ms(millis))));
        assert!(alone.iter_mut().all(|sleep| !poll_alone(sleep.as_mut())));
        sleep(ms(4)).await;
        assert_eq!(start.elapsed(), ms(4));
        assert_eq!(alone.each_ref().map(|sleep| sleep.is_elapsed()), [true, true, true, false]);
        assert!(poll_alone(alone[2].as_mut()) && !poll_alone(alone[3].as_mut()));
    });
}

/// A thread outside of the runtime waits for its clock; later, all threads sleep.
#[test]
fn a_wait_on_another_thread_makes_the_clock_of_a_sleeping_runtime_move() {
    let runtime = runtime(true);
    let (handle, is_over) = (runtime.handle().clone(), Arc::new(AtomicBool::new(false)));
    let over = is_over.clone();
    let (tell, told) = crate::sync::oneshot::channel();
    let elsewhere = thread::spawn(move || {
        let sleeps = {
            let _entered = handle.enter();
            [sleep(ms(10)), sleep(ms(20))]
        };
        for sleep in sleeps {
            thread::sleep(ms(20));
            paceline::block_on(sleep);
        }
        over.store(true, SeqCst);
        let _ = tell.send(());
    });
    runtime.block_on(told).unwrap();
    assert!(is_over.load(SeqCst));
    elsewhere.join().unwrap();
}

#[test]
fn a_pause_finds_what_waits_and_an_end_of_it_lets_it_go_on() {
    runtime(false).block_on(async {
        let hour = Duration::from_secs(3600);
        let (long, longer) = (spawn(sleep(hour)), spawn(sleep(2 * hour)));
        yield_now().await;
        pause();
        advance(hour + ms(1)).await;
        long.await.unwrap();
        assert!(!longer.is_finished());

        // Idle: the clock moves by itself.
        longer.await.unwrap();
        let soon = spawn(sleep(ms(20)));
        yield_now().await;
        resume();
        let start = std::time::Instant::now();
        soon.await.unwrap();
        assert!(start.elapsed() >= ms(18), "it was paused, and is not any more: {:?}", start.elapsed());
    });
}

#[test]
fn a_sleep_is_registered_when_it_is_polled_and_forgotten_when_it_is_dropped() {
    for is_paused in [false, true] {
        let runtime = runtime(is_paused);
        let handle = runtime.handle().clone();
        let timers = || (handle.paceline().metrics().timers, handle.clock().pausable().unwrap().waiting());
        runtime.block_on(async {
            let mut asleep = Box::pin(sleep(ms(60_000)));
            assert_eq!(timers(), (0, 0));
            assert!(!poll_alone(asleep.as_mut()));
            assert_eq!(timers(), (usize::from(!is_paused), 1));
            asleep.as_mut().reset(Instant::now() + ms(50_000));
            assert!(!poll_alone(asleep.as_mut()));
            assert_eq!(timers(), (usize::from(!is_paused), 1));
            drop(asleep);
            assert_eq!(timers(), (0, 0));
        });
    }
}

#[test]
fn a_sleep_of_a_runtime_that_has_ended_panics_and_its_waiter_is_woken() {
    struct Told(mpsc::Sender<()>);
    impl Wake for Told {
        fn wake(self: Arc<Self>) {
            let _ = self.0.send(());
        }
    }
    let multi = || Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    for runtime in [runtime(true), runtime(false), multi()] {
        let entered = runtime.enter();
        let mut left = Box::pin(sleep(ms(60_000)));
        let (tell, told) = mpsc::channel();
        let waker = Waker::from(Arc::new(Told(tell)));
        assert_eq!(left.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending);
        drop(entered);
        drop(runtime);
        told.recv().unwrap();
        let panic = catch_unwind(AssertUnwindSafe(|| poll_alone(left.as_mut()))).unwrap_err();
        let text = panic.downcast_ref::<&str>().copied();
        let said = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        assert_eq!(said, Some("A Tokio 1.x context was found, but it is being shutdown."));
    }
}

/// Tasks that sleep while their runtime ends are dropped, not polled.
#[test]
fn no_task_panics_because_the_runtime_ends() {
    for _ in 0..100 {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let tasks: Vec<_> = (0..50)
            .map(|_| {
                runtime.spawn(async {
                    loop {
                        sleep(Duration::from_micros(10)).await;
                    }
                })
            })
            .collect();
        thread::sleep(Duration::from_micros(200));
        drop(runtime);
        assert!(tasks.into_iter().all(|task| paceline::block_on(task).unwrap_err().is_cancelled()));
    }
}

/// Polls another future once.
async fn poll_once<T>(future: impl Future<Output = T>) -> Poll<T> {
    let mut future = pin!(future);
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}

/// In tokio, timers fire when the runtime looks for events. Fails if the first poll reads the clock.
#[test]
fn a_sleep_is_pending_at_its_first_poll_unless_its_deadline_had_passed_before() {
    let multi = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    for runtime in [runtime(false), multi] {
        runtime.block_on(async {
            assert!(poll_once(sleep(Duration::ZERO)).await.is_pending());
            assert!(poll_once(sleep_until(Instant::now())).await.is_pending());
            assert!(poll_once(timeout(Duration::ZERO, pending::<()>())).await.is_pending());
            assert!(poll_once(sleep_until(Instant::now() - ms(50))).await.is_ready());
            // After that the sleeps are over.
            sleep(Duration::ZERO).await;
            timeout(Duration::ZERO, pending::<()>()).await.unwrap_err();
            assert!(timeout(Duration::ZERO, async {}).await.is_ok());
        });
    }
}

/// Fails if the first missed tick comes at once, or another one does not.
#[test]
fn an_interval_that_is_late_ticks_after_a_turn_and_then_at_once() {
    runtime(false).block_on(async {
        let mut interval = interval(ms(10));
        assert!(poll_once(interval.tick()).await.is_pending());
        interval.tick().await;
        thread::sleep(ms(35));
        assert!(poll_once(interval.tick()).await.is_pending());
        for _ in 0..3 {
            assert!(poll_once(interval.tick()).await.is_ready());
        }
    });
}

/// Fails if due tasks are woken before the future of `block_on` continues; and in a task, if they are not.
#[test]
fn after_an_advance_the_future_of_block_on_goes_on_first_and_a_task_last() {
    let trace = Arc::new(Mutex::new(Vec::new()));
    let sleeper = |name: &'static str, millis| {
        let trace = trace.clone();
        spawn(async move {
            sleep(ms(millis)).await;
            trace.lock().unwrap().push(name);
        })
    };
    runtime(true).block_on(async {
        let first = sleeper("first", 100);
        yield_now().await;
        advance(ms(100)).await;
        trace.lock().unwrap().push("root");
        first.await.unwrap();
        let second = sleeper("second", 100);
        let advances = trace.clone();
        let task = spawn(async move {
            yield_now().await;
            advance(ms(100)).await;
            advances.lock().unwrap().push("task");
        });
        task.await.unwrap();
        second.await.unwrap();
        // A cancelled advance wakes due tasks, too.
        let third = sleeper("third", 1);
        yield_now().await;
        assert!(poll_once(advance(ms(1))).await.is_pending());
        third.await.unwrap();
    });
    assert_eq!(*trace.lock().unwrap(), ["root", "first", "second", "task", "third"]);
}
