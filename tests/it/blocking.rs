//! The threads for closures that block: when they start and end, and the order of closures.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use futures_lite::future;
use paceline::blocking::{Job, JobError};
use paceline::{Runtime, block_on, spawn, unblock};

use crate::setups::is_child;
use crate::setups::{Latch, OpenOnDrop, SOON, eventually, for_each_setup, text_of};

/// Builds a runtime with so many threads for closures that block.
pub fn runtime(blocking_threads: usize) -> Runtime {
    Runtime::builder().threads(2).blocking_threads(blocking_threads).build().unwrap()
}

/// Calls a function inside of the runtime. The result is not awaited.
pub fn within<R>(runtime: &Runtime, call: impl FnOnce() -> R) -> R {
    runtime.block_on(async { call() })
}

pub fn panic_of<T>(f: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).err().expect("it panics");
    text_of(&*panic).to_owned()
}

#[test]
fn closures_run_on_other_threads_and_act_on_their_runtime() {
    for_each_setup(|runtime| {
        let me = thread::current().id();
        let (theirs, spawned) = runtime.block_on(async move {
            let here = unblock(move || {
                (thread::current().id(), spawn(async { thread::current().name().map(String::from) }))
            });
            let (theirs, task) = here.await;
            (theirs, task.await)
        });
        assert_ne!(theirs, me);
        assert!(spawned.unwrap().starts_with("worker-"), "it was spawned on another runtime");
        // Counted when the thread is free again, which the awaiting task does not wait for.
        eventually("it is counted", || runtime.metrics().blocking_jobs == 1);
    });
}

#[test]
fn a_panic_is_raised_at_the_await_and_costs_no_thread() {
    let runtime = runtime(1);
    for _ in 0..10 {
        assert_eq!(panic_of(|| runtime.block_on(async { unblock(|| panic!("ouch")).await })), "ouch");
        let job = || runtime.block_on(async { Job::new(|| panic!("oops")).submit().await });
        assert_eq!(panic_of(job), "oops");
    }
    eventually("all panics were counted", || runtime.metrics().blocking_jobs == 20);
    assert_eq!(runtime.metrics().blocking_threads, 1);
}

/// Closures run in the order of submission, and a closure that was dropped before its turn never runs.
#[test]
fn one_thread_takes_them_in_order_and_leaves_out_what_was_dropped() {
    let runtime = runtime(1);
    let (gate, order) = (Latch::new(), Arc::<Mutex<Vec<usize>>>::default());
    let _open = OpenOnDrop(gate.clone());
    let tasks: Vec<_> = runtime.block_on(async {
        let wait = gate.clone();
        let first = unblock(move || wait.wait());
        let rest = (0..100).map(|number| {
            let order = order.clone();
            unblock(move || order.lock().unwrap().push(number))
        });
        std::iter::once(first).chain(rest).collect()
    });
    let mut number = 0;
    let kept: Vec<_> = tasks
        .into_iter()
        .filter_map(|task| {
            number += 1;
            (number % 2 == 1).then_some(task)
        })
        .collect();
    eventually("the first one runs", || runtime.metrics().blocking_queued == 100);
    gate.open();
    kept.into_iter().for_each(|task| runtime.block_on(task));
    assert_eq!(*order.lock().unwrap(), (0..100).filter(|number| number % 2 == 1).collect::<Vec<_>>());
    assert_eq!(runtime.metrics().blocking_threads, 1);
}

/// Each of these closures waits for all the others.
#[test]
fn as_many_threads_come_as_there_is_work_that_blocks() {
    const ALL: usize = if cfg!(miri) { 10 } else { 200 };
    let runtime = runtime(ALL);
    for _ in 0..2 {
        let barrier = Arc::new(std::sync::Barrier::new(ALL));
        runtime.block_on(async {
            let tasks: Vec<_> = (0..ALL)
                .map(|_| {
                    let barrier = barrier.clone();
                    unblock(move || barrier.wait().is_leader())
                })
                .collect();
            for task in tasks {
                task.await;
            }
        });
        assert_eq!(runtime.metrics().blocking_threads, ALL);
    }
}

#[test]
fn threads_go_after_a_second_without_work() {
    let runtime = runtime(8);
    runtime.block_on(async { future::zip(unblock(|| ()), unblock(|| ())).await });
    let metrics = runtime.metrics();
    assert!(metrics.blocking_threads > 0);
    eventually("they are gone", || runtime.metrics().blocking_threads == 0);
    assert_eq!(runtime.metrics().blocking_idle, 0);
    assert_eq!(runtime.block_on(async { unblock(|| 1).await }), 1);
}

/// From threads outside of any runtime, without a default instance, and in another library's `block_on`.
#[test]
fn without_a_runtime_the_process_has_threads() {
    assert_eq!(pollster::block_on(unblock(|| 6 * 7)), 42);
    assert_eq!(pollster::block_on(Job::new(|| 6 * 7).timeout(Duration::from_secs(3600)).submit()), Ok(42));
    let gate = Latch::new();
    let wait = gate.clone();
    let late = Job::new(move || wait.wait()).timeout(Duration::from_millis(20)).submit();
    assert!(matches!(pollster::block_on(late), Err(JobError::TimedOut { .. })));
    gate.open();
}

#[cfg(unix)]
#[test]
fn the_environment_sets_the_limit_of_the_process() {
    if is_child(
        "blocking::the_environment_sets_the_limit_of_the_process",
        "export PACELINE_BLOCKING_THREADS=3",
    ) {
        let gate = Latch::new();
        let tasks: Vec<_> = (0..5)
            .map(|_| {
                let gate = gate.clone();
                unblock(move || gate.wait())
            })
            .collect();
        eventually("three run", || paceline::metrics().blocking_queued == 2);
        assert_eq!(paceline::metrics().blocking_threads, 3);
        gate.open();
        tasks.into_iter().for_each(block_on);
    }
}

#[cfg(unix)]
#[test]
fn a_limit_that_is_no_number_is_named() {
    if is_child("blocking::a_limit_that_is_no_number_is_named", "export PACELINE_BLOCKING_THREADS=many") {
        assert!(panic_of(|| drop(unblock(|| ()))).contains("\"many\""));
    }
}

/// For a while no thread can be started; the existing ones do all the work. A panic names the caller's file.
#[test]
#[cfg(target_os = "linux")]
fn unblock_without_a_thread_is_an_error_and_with_one_it_waits() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    if is_child("blocking::unblock_without_a_thread_is_an_error_and_with_one_it_waits", "true") {
        let before = getrlimit(Resource::As);
        // No room for another stack.
        let used = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = used.split(' ').next().unwrap().parse().unwrap();
        let none = Rlimit { current: Some(pages * 4096 + (1 << 20)), ..before };
        block_on(async {});
        let place = Arc::new(Mutex::new(String::new()));
        let notes = place.clone();
        std::panic::set_hook(Box::new(move |panic| {
            *notes.lock().unwrap() = panic.location().unwrap().file().into();
        }));
        setrlimit(Resource::As, none).unwrap();
        let said = panic_of(|| drop(unblock(|| ())));
        let job = pollster::block_on(Job::new(|| ()).name("alone").submit());
        setrlimit(Resource::As, before).unwrap();
        drop(std::panic::take_hook());
        assert_eq!(*place.lock().unwrap(), file!());
        assert!(said.contains("cannot start a thread"), "{said}");
        assert!(matches!(job, Err(JobError::NoThread { .. })), "{job:?}");
        assert!(job.unwrap_err().to_string().contains("\"alone\""));

        let gate = Latch::new();
        let wait = gate.clone();
        let first = unblock(move || wait.wait());
        eventually("it runs", || {
            paceline::metrics().blocking_threads == 1 && paceline::metrics().blocking_queued == 0
        });
        let used = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = used.split(' ').next().unwrap().parse().unwrap();
        setrlimit(Resource::As, Rlimit { current: Some(pages * 4096 + (1 << 20)), ..before }).unwrap();
        let rest: Vec<_> = (0..10).map(|number| unblock(move || number)).collect();
        gate.open();
        pollster::block_on(async {
            first.await;
            for (number, task) in rest.into_iter().enumerate() {
                assert_eq!(task.await, number);
            }
        });
        setrlimit(Resource::As, before).unwrap();
    }
}

/// Fails if the end of a runtime closes only a pool with threads.
#[test]
fn an_unblock_after_the_end_never_begins_although_none_came_before() {
    for drains in [false, true] {
        let runtime = runtime(1);
        if drains {
            runtime.block_on(runtime.drain(SOON));
        } else {
            runtime.shutdown(SOON).unwrap();
        }
        let begun = Arc::new(AtomicUsize::new(0));
        let begins = begun.clone();
        let task = within(&runtime, || unblock(move || begins.fetch_add(1, SeqCst)));
        assert_eq!(block_on(task.fallible()), None);
        let job = within(&runtime, || Job::new(|| ()).submit());
        assert!(matches!(block_on(job), Err(JobError::Cancelled { .. })));
        assert_eq!(begun.load(SeqCst), 0);
    }
}

/// (Aborts if only workers have the requested stack size.)
#[cfg_attr(miri, ignore = "miri has no stack to overflow")]
#[test]
fn blocking_threads_have_the_requested_stack() {
    fn deep(left: usize) -> usize {
        let frame = std::hint::black_box([left as u8; 64 * 1024]);
        if left == 0 { usize::from(frame[0]) } else { deep(left - 1) + usize::from(frame[1] == left as u8) }
    }
    let runtime = paceline::Runtime::builder().threads(1).stack_size(16 << 20).build().unwrap();
    // Five megabytes.
    let closure = within(&runtime, || unblock(|| deep(80)));
    assert_eq!(block_on(closure), 80);
}
