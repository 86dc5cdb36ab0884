//! A runtime without workers: threads in its `block_on` poll its tasks.

use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use futures::channel::oneshot;
use futures_lite::future;
use paceline::{Runtime, Timer, spawn, unblock};

use crate::given_time::RecvSoon;
use crate::io::tcp_pair;
use crate::setups::{Latch, SOON, eventually, without_looks};

fn runtime() -> Runtime {
    Runtime::builder().current_thread().build().unwrap()
}

#[test]
fn tasks_timers_and_sockets_are_served_by_the_waiting_thread() {
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

/// A task that another thread spawns wakes the waiting thread, which polls it.
#[test]
fn a_task_spawned_elsewhere_wakes_the_waiting_thread() {
    let runtime = runtime();
    let handle = runtime.handle();
    let (tell, told) = mpsc::channel();
    let other = thread::spawn(move || {
        for _ in 0..100 {
            let tell = tell.clone();
            handle.spawn(async move { tell.send(thread::current().id()).unwrap() }).detach();
            assert_ne!(told.recv_soon().unwrap(), thread::current().id());
        }
    });
    runtime.block_on(unblock(move || other.join().unwrap()));
}

/// No task is polled while no thread waits; afterwards the tasks go on. (Fails if a thread is added for
/// waiting tasks.)
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

/// A task waits in a `block_on` of its own for another one, which only its own thread can poll.
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
fn it_ends_as_other_runtimes_do() {
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
    drop(runtime);
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
fn the_default_instance_cannot_be_without_workers() {
    let error = Runtime::builder().current_thread().install().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

/// Fails if a relief counts as a thread of the runtime because there are no workers.
#[test]
fn a_relief_calls_no_hooks() {
    let names = Arc::new(Mutex::new(Vec::new()));
    let note = {
        let names = names.clone();
        move || names.lock().unwrap().push(thread::current().name().map(String::from))
    };
    let builder = Runtime::builder().current_thread();
    let runtime = builder.on_thread_park(note.clone()).on_thread_unpark(note).build().unwrap();
    let handle = runtime.handle();
    runtime.block_on(async {
        Timer::after(Duration::from_millis(1)).await;
        // The thread of the runtime blocks, and timers are awaited elsewhere: a relief leads, and sleeps.
        let is_relief = |info: &paceline::ThreadInfo| info.kind == paceline::ThreadKind::Relief;
        let elsewhere = thread::spawn(move || {
            let _inside = handle.enter();
            let mut armed = Timer::after(Duration::from_secs(3600));
            assert!(future::block_on(future::poll_once(&mut armed)).is_none());
            (0..10).for_each(|_| _ = future::block_on(Timer::after(Duration::from_millis(2))));
            eventually("a relief leads", || handle.threads().iter().any(is_relief));
        });
        elsewhere.join().unwrap();
    });
    let names = names.lock().unwrap();
    assert!(!names.iter().flatten().any(|name| name.starts_with("paceline-relief")), "{names:?}");
}

/// The hook is called when no task is left, and the tasks that it spawns run. (Fails if the hook is called
/// when the thread can no longer give up the sleep: then the thread sleeps for ever.)
#[test]
fn the_park_hook_is_called_when_no_task_is_left_and_its_tasks_run() {
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
        // A drop waits for a tenth of a second only.
        runtime.shutdown(SOON).unwrap();
        let most = threads.max(1) as u32 + runtime.metrics().replacements as u32;
        let (parks, unparks) = (parks.load(SeqCst), unparks.load(SeqCst));
        assert!(parks >= 3 && unparks <= parks, "{parks} {unparks}");
        assert!(unparks + most >= parks, "each that is told ends: {parks} {unparks}, {most} threads");
    }
}

/// Each task that waits in a `block_on` of its own polls the next one on top of it; too many levels panic
/// with a message. (Fails without a limit of the depth: then the stack overflows, and the process aborts.)
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

/// A thread that polls a task while its runtime is dropped cancels the task when the poll ends. (Fails in one
/// of some hundred rounds otherwise: the task is polled for ever.)
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

/// While the runtime is dropped, a thread polls a task again that is to be cancelled, and the future that it
/// awaits is done, or panics. (Fails, in a few rounds at most, if that thread leaves the task to others.)
#[test]
fn a_thread_whose_wait_is_over_leaves_no_task_that_it_polled() {
    for round in 0..20 {
        let runtime = runtime();
        let (handle, latch) = (runtime.handle(), Latch::new());
        let serves = thread::spawn(move || {
            let task = handle.spawn(future::pending::<()>());
            if round % 2 == 0 {
                assert_eq!(handle.block_on(task.fallible()), None);
            } else {
                assert!(catch_unwind(AssertUnwindSafe(|| handle.block_on(task))).is_err());
            }
        });
        let ((begin, begun), (tell, told), opens) = (mpsc::channel(), mpsc::channel(), latch.clone());
        let task = runtime.spawn(future::poll_fn(move |_| {
            let _ = begin.send(());
            latch.wait();
            Poll::<()>::Pending
        }));
        thread::spawn(move || tell.send(future::block_on(task.fallible())));
        begun.recv_soon().expect("the task is polled");
        let ends = thread::spawn(move || drop(runtime));
        // The end cancels the other task, and waits for this one for a tenth of a second.
        thread::sleep(Duration::from_millis(30));
        opens.open();
        serves.join().unwrap();
        ends.join().unwrap();
        assert_eq!(told.recv_soon(), Ok(None), "in round {round}");
    }
}

/// A thread for closures that block is no thread of this runtime. (Fails if the thread counts as one.)
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

/// The order of polls.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Vec<usize>>>);

impl Trace {
    fn push(&self, number: usize) {
        self.0.lock().unwrap().push(number);
    }

    fn take(&self) -> Vec<usize> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// Each task spawns another one. Fails if a task that was spawned later overtakes one that was ready before:
/// by a direct slot, or because a queue is full.
#[test]
fn tasks_are_polled_in_the_order_in_which_they_became_ready() {
    const TASKS: usize = 1000;
    let trace = Trace::default();
    runtime().block_on(async {
        let tasks: Vec<_> = (0..TASKS)
            .map(|number| {
                let trace = trace.clone();
                spawn(async move {
                    trace.push(number);
                    spawn(async move { trace.push(TASKS + number) }).await;
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
    });
    assert_eq!(trace.take(), (0..2 * TASKS).collect::<Vec<_>>());
}

/// Fails if a task that another one wakes is polled before tasks that were woken earlier.
#[test]
fn wakes_are_served_in_their_order() {
    let trace = Trace::default();
    runtime().block_on(async {
        let (wakes, waits): (Vec<_>, Vec<_>) = (0..5).map(|_| oneshot::channel::<()>()).unzip();
        let tasks: Vec<_> = (0..)
            .zip(waits)
            .map(|(number, wait)| {
                let trace = trace.clone();
                spawn(async move {
                    wait.await.unwrap();
                    trace.push(number);
                })
            })
            .collect();
        // All of them wait by then.
        spawn(async {}).await;
        let mut wakes: Vec<_> = wakes.into_iter().map(Some).collect();
        let ends = trace.clone();
        spawn(async move {
            for number in [3, 0, 4, 1, 2] {
                wakes[number].take().unwrap().send(()).unwrap();
            }
            ends.push(100);
        })
        .detach();
        for task in tasks {
            task.await;
        }
    });
    assert_eq!(trace.take(), [100, 3, 0, 4, 1, 2]);
}

/// Fails if the future of `block_on` is polled between two tasks as soon as one of them wakes it, or if more
/// than 61 tasks are polled before it.
#[test]
fn the_future_of_block_on_waits_for_a_round_of_tasks() {
    let trace = Trace::default();
    // A round also ends when the deputy looks.
    let runtime = Runtime::builder().current_thread().tuning(without_looks()).build().unwrap();
    let ready_at = runtime.block_on(async {
        let (tell, told) = oneshot::channel();
        let counts = trace.clone();
        spawn(async move {
            counts.push(0);
            tell.send(()).unwrap();
        })
        .detach();
        for number in 1..1000 {
            let trace = trace.clone();
            spawn(async move { trace.push(number) }).detach();
        }
        told.await.unwrap();
        trace.take()
    });
    assert_eq!(ready_at, (0..61).collect::<Vec<_>>());
}
