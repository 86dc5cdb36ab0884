//! A runtime without workers: its tasks are polled in its `block_on`s.

use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future;
use paceline::{Runtime, Timer, spawn, unblock};

use crate::io::tcp_pair;

fn runtime() -> Runtime {
    Runtime::builder().current_thread().build().unwrap()
}

#[test]
fn tasks_timers_and_sockets_are_served_by_whoever_waits() {
    let runtime = runtime();
    let here = thread::current().id();
    let (told, tells) = runtime.block_on(async {
        let (reader, writer) = tcp_pair().await.unwrap();
        let reads = spawn(async move {
            let read = reader.read_with(|mut stream| stream.read(&mut [0; 4])).await.unwrap();
            (read, thread::current().id())
        });
        let writes = spawn(async move {
            Timer::after(Duration::from_millis(1)).await;
            writer.get_ref().write_all(b"abcd").unwrap();
            thread::current().id()
        });
        assert_ne!(unblock(|| thread::current().id()).await, here);
        (reads.await, writes.await)
    });
    assert_eq!((told, tells), ((4, here), here));
    assert_eq!(runtime.metrics().workers, 0);
    assert_eq!(runtime.metrics().replacements, 0);
}

/// A task that is spawned by another thread wakes the one that waits, and is polled by it.
#[test]
fn what_others_spawn_wakes_who_waits() {
    let runtime = runtime();
    let handle = runtime.handle();
    let (tell, told) = mpsc::channel();
    let other = thread::spawn(move || {
        for _ in 0..100 {
            let tell = tell.clone();
            handle.spawn(async move { tell.send(thread::current().id()).unwrap() }).detach();
            assert_ne!(told.recv_timeout(Duration::from_secs(10)).unwrap(), thread::current().id());
        }
    });
    runtime.block_on(unblock(move || other.join().unwrap()));
}

/// Nobody polls them while nobody waits; then they go on. (Fails if a thread is added for what waits.)
#[test]
fn nothing_runs_between_two_waits() {
    let runtime = runtime();
    let polls = Arc::new(AtomicU32::new(0));
    let counts = polls.clone();
    let task = runtime.spawn(async move {
        for _ in 0..3 {
            counts.fetch_add(1, SeqCst);
            future::yield_now().await;
            Timer::after(Duration::from_millis(1)).await;
        }
    });
    thread::sleep(Duration::from_millis(30));
    assert_eq!(polls.load(SeqCst), 0);
    runtime.block_on(future::yield_now());
    let before = polls.load(SeqCst);
    thread::sleep(Duration::from_millis(30));
    assert_eq!(polls.load(SeqCst), before);
    runtime.block_on(task);
    assert_eq!(polls.load(SeqCst), 3);
    assert_eq!(runtime.metrics().replacements, 0);
}

/// A task that waits in a `block_on` of its own for another one, which only its own thread can poll.
#[test]
fn a_wait_inside_of_a_task_serves_the_others() {
    let runtime = runtime();
    let sum = runtime.block_on(async {
        let outer = spawn(async { paceline::block_on(spawn(async { 1 })) + 1 });
        outer.await + paceline::block_on(spawn(async { 40 }))
    });
    assert_eq!(sum, 42);
}

#[test]
fn it_ends_as_others_do() {
    let runtime = runtime();
    let dropped = Arc::new(());
    let held = dropped.clone();
    let task = runtime.spawn(async move {
        let _held = held;
        future::pending::<()>().await
    });
    runtime.block_on(future::yield_now());
    let report = runtime.block_on(runtime.drain(Duration::from_millis(10)));
    assert_eq!((report.finished, report.cancelled), (0, 1), "{report}");
    assert_eq!(Arc::strong_count(&dropped), 1);
    assert_eq!(paceline::block_on(task.fallible()), None);

    let runtime = self::runtime();
    let task = runtime.spawn(future::pending::<()>());
    let began = Instant::now();
    drop(runtime);
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(paceline::block_on(task.fallible()), None);
}

#[test]
fn two_threads_may_wait_at_once() {
    let runtime = Arc::new(runtime());
    let others: Vec<_> = (0..2)
        .map(|_| {
            let runtime = runtime.clone();
            thread::spawn(move || {
                for number in 0..200 {
                    let task = runtime.spawn(async move {
                        future::yield_now().await;
                        number
                    });
                    assert_eq!(runtime.block_on(task), number);
                }
            })
        })
        .collect();
    others.into_iter().for_each(|other| other.join().unwrap());
}

#[test]
fn the_default_instance_is_not_one() {
    let error = Runtime::builder().current_thread().install().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

/// Before each sleep, and outside of leadership: what the hook makes is done. (Fails if the hook is called where the thread sleeps
/// in any case: then it sleeps for ever.)
#[test]
fn who_is_about_to_sleep_says_so_and_does_what_that_brings() {
    for threads in [0, 1, 2] {
        let (parks, unparks) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (tell, told) = async_channel::unbounded();
        let (counts, ups) = (parks.clone(), unparks.clone());
        let builder = Runtime::builder()
            .on_thread_park(move || {
                // A task of this runtime, spawned by the hook.
                if counts.fetch_add(1, SeqCst) < 3 {
                    let tell = tell.clone();
                    spawn(async move { tell.send(()).await.unwrap() }).detach();
                }
            })
            .on_thread_unpark(move || _ = ups.fetch_add(1, SeqCst));
        let runtime = match threads {
            0 => builder.current_thread().build(),
            threads => builder.threads(threads).build(),
        }
        .unwrap();
        let waits = runtime.spawn(async move {
            for _ in 0..3 {
                told.recv().await.unwrap();
            }
        });
        runtime.block_on(waits);
        runtime.block_on(runtime.spawn(Timer::after(Duration::from_millis(1))));
        drop(runtime);
        let (parks, unparks) = (parks.load(SeqCst), unparks.load(SeqCst));
        assert!(parks >= 3 && unparks <= parks, "{parks} {unparks}");
        assert!(unparks + threads.max(1) as u32 >= parks, "each that is told ends: {parks} {unparks}");
    }
}

/// Each task that waits in a `block_on` of its own polls the next one on top of it: too many of them say so. (Fails if the depth is not looked
/// at: the stack is too small then, and the process is aborted.)
#[test]
fn waits_inside_of_tasks_are_not_nested_for_ever() {
    const TASKS: u32 = 400;
    let runtime = runtime();
    let (gate, opened) = async_channel::bounded::<()>(1);
    let began = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (opened, began) = (opened.clone(), began.clone());
            runtime.spawn(async move {
                began.fetch_add(1, SeqCst);
                assert!(paceline::block_on(opened.recv()).is_err());
            })
        })
        .collect();
    let opens = thread::spawn(move || {
        while began.load(SeqCst) < TASKS {
            thread::sleep(Duration::from_millis(1));
        }
        drop(gate);
    });
    let (mut done, mut said) = (0, 0);
    for task in tasks {
        match catch_unwind(AssertUnwindSafe(|| runtime.block_on(task))) {
            Ok(()) => done += 1,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().expect("a sentence");
                assert!(text.contains("nested"), "{text}");
                said += 1;
            }
        }
    }
    opens.join().unwrap();
    assert!(done > 0 && said > 0, "{done} {said}");
}

/// Whoever polls a task when its runtime is dropped cancels it when that poll is over. (Fails in one of some hundred rounds if nobody
/// does: the task is polled for ever after.)
#[test]
fn no_task_survives_the_end_where_another_thread_polls_it() {
    for _ in 0..300 {
        let runtime = runtime();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let handle = runtime.handle();
                thread::spawn(move || {
                    handle.block_on(async { spawn(future::pending::<()>()).fallible().await });
                })
            })
            .collect();
        while runtime.metrics().tasks < Some(2) {
            thread::yield_now();
        }
        drop(runtime);
        others.into_iter().for_each(|other| other.join().unwrap());
    }
}

/// What blocks on purpose is not one of its threads. (Fails if the pool that calls it counts.)
#[test]
fn a_closure_that_blocks_polls_none_of_its_tasks() {
    let runtime = runtime();
    let here = thread::current().id();
    let polled = runtime.block_on(async {
        let task = spawn(async {
            let mut threads = Vec::new();
            for _ in 0..20 {
                threads.push(thread::current().id());
                Timer::after(Duration::from_micros(500)).await;
            }
            threads
        });
        unblock(|| paceline::block_on(Timer::after(Duration::from_millis(5)))).await;
        task.await
    });
    assert!(polled.iter().all(|thread| *thread == here));
}
