//! Threads that block on purpose: closures, streams, and jobs with deadlines.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt, FutureExt, StreamExt, future};
use paceline::blocking::{Job, JobError};
use paceline::{Runtime, Unblock, block_on, spawn, unblock};

use crate::setups::{Latch, OpenOnDrop, SOON, eventually, for_each_setup, is_child, text_of};

const FAR: Duration = Duration::from_secs(3600);

/// A runtime with so many threads that may block.
fn runtime(blocking_threads: usize) -> Runtime {
    Runtime::builder().threads(2).blocking_threads(blocking_threads).build().unwrap()
}

/// Calls this in the runtime, which is not awaited.
fn within<R>(runtime: &Runtime, call: impl FnOnce() -> R) -> R {
    runtime.block_on(async { call() })
}

/// Counts those that were dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn panic_of<T>(f: impl FnOnce() -> T) -> String {
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
        // Counted when the thread is back, which its awaiter need not wait for.
        eventually("it is counted", || runtime.metrics().blocking_jobs == 1);
    });
}

#[test]
fn a_panic_is_raised_in_who_awaits_and_costs_no_thread() {
    let runtime = runtime(1);
    for _ in 0..10 {
        assert_eq!(panic_of(|| runtime.block_on(async { unblock(|| panic!("ouch")).await })), "ouch");
        let job = || runtime.block_on(async { Job::new(|| panic!("oops")).submit().await });
        assert_eq!(panic_of(job), "oops");
    }
    eventually("all panics were counted", || runtime.metrics().blocking_jobs == 20);
    assert_eq!(runtime.metrics().blocking_threads, 1);
}

/// First come first served; and what was dropped before its turn never runs.
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

/// Each of these waits for all the others.
#[test]
fn as_many_threads_come_as_there_is_work_that_blocks() {
    const ALL: usize = if cfg!(miri) { 10 } else { 200 };
    let runtime = runtime(ALL);
    for _ in 0..2 {
        let barrier = Arc::new(std::sync::Barrier::new(ALL));
        let start = Instant::now();
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
        assert!(start.elapsed() < SOON);
        assert_eq!(runtime.metrics().blocking_threads, ALL);
    }
}

/// Closures that do next to nothing are not worth a thread each.
#[test]
fn a_heap_of_small_closures_needs_few_threads() {
    let runtime = runtime(500);
    runtime.block_on(async {
        let tasks: Vec<_> = (0..10_000).map(|number| unblock(move || number)).collect();
        for (number, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.await, number);
        }
    });
    let threads = runtime.metrics().blocking_threads;
    assert!(threads < 250, "{threads} threads");
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

/// The only thread goes home about when the next closure comes; and the other way round. Fails, by hanging, if a thread that was
/// called goes home all the same.
#[test]
#[cfg_attr(miri, ignore = "it waits for threads to go home, again and again")]
fn l13_work_that_comes_as_the_last_thread_goes() {
    let runtime = runtime(1);
    for round in 0..4 {
        runtime.block_on(async { unblock(|| ()).await });
        thread::sleep(Duration::from_millis(999) + Duration::from_micros(500 * round));
        let (tell, told) = mpsc::channel();
        runtime.block_on(async { unblock(move || tell.send(()).unwrap()).detach() });
        told.recv_timeout(SOON).expect("somebody runs it");
    }
}

/// From threads of nobody's, without a default pool; and in somebody else's `block_on`.
#[test]
fn without_a_runtime_the_process_has_threads() {
    assert_eq!(pollster::block_on(unblock(|| 6 * 7)), 42);
    assert_eq!(pollster::block_on(Job::new(|| 6 * 7).deadline(SOON).submit()), Ok(42));
    let error = pollster::block_on(
        Job::new(|| thread::sleep(Duration::from_millis(300))).deadline(Duration::from_millis(20)).submit(),
    );
    assert!(matches!(error, Err(JobError::TimedOut { .. })));
}

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

#[test]
fn a_limit_that_is_no_number_is_named() {
    if is_child("blocking::a_limit_that_is_no_number_is_named", "export PACELINE_BLOCKING_THREADS=many") {
        assert!(panic_of(|| drop(unblock(|| ()))).contains("\"many\""));
    }
}

/// No thread is to be had for a while; those that there are do all the work.
#[test]
#[cfg(target_os = "linux")]
fn without_a_thread_it_is_an_error_and_with_one_it_waits_for_that() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    if is_child("blocking::without_a_thread_it_is_an_error_and_with_one_it_waits_for_that", "true") {
        let before = getrlimit(Resource::As);
        // No stack fits any more.
        let used = fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = used.split(' ').next().unwrap().parse().unwrap();
        let none = Rlimit { current: Some(pages * 4096 + (1 << 20)), ..before };
        block_on(async {});
        setrlimit(Resource::As, none).unwrap();
        let said = panic_of(|| drop(unblock(|| ())));
        let job = pollster::block_on(Job::new(|| ()).name("alone").submit());
        setrlimit(Resource::As, before).unwrap();
        assert!(said.contains("cannot start a thread"), "{said}");
        assert!(matches!(job, Err(JobError::NoThread { .. })), "{job:?}");
        assert!(job.unwrap_err().to_string().contains("\"alone\""));

        let gate = Latch::new();
        let wait = gate.clone();
        let first = unblock(move || wait.wait());
        eventually("it runs", || {
            paceline::metrics().blocking_threads == 1 && paceline::metrics().blocking_queued == 0
        });
        let used = fs::read_to_string("/proc/self/statm").unwrap();
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

/// A child of `fork` has threads of its own.
#[test]
#[cfg(not(miri))]
fn p10_a_child_has_threads_of_its_own() {
    use rustix::process::{WaitOptions, waitpid};
    unsafe extern "C" {
        fn fork() -> std::ffi::c_int;
        fn _exit(status: std::ffi::c_int) -> !;
    }
    if is_child("blocking::p10_a_child_has_threads_of_its_own", "true") {
        assert_eq!(pollster::block_on(unblock(|| 1)), 1);
        // SAFETY: the child uses threads of its own and the allocator, as the C library allows.
        let child = unsafe { fork() };
        if child == 0 {
            let well = catch_unwind(|| pollster::block_on(unblock(|| 2)) == 2).unwrap_or(false);
            // SAFETY: it is a system call.
            unsafe { _exit(i32::from(!well)) };
        }
        let (_, status) =
            waitpid(rustix::process::Pid::from_raw(child), WaitOptions::empty()).unwrap().unwrap();
        assert_eq!(status.exit_status(), Some(0));
        assert_eq!(pollster::block_on(unblock(|| 3)), 3);
    }
}

/// Of 1 000 jobs every tenth never returns until the end. All others are served, each caller has his answer in time, and in
/// the end all is as it was. Without threads in the place of lost ones the twentieth stops the pool; without anybody who watches
/// the deadlines the first bad one stops its caller.
#[test]
#[cfg_attr(miri, ignore = "it measures time")]
fn a_hundred_jobs_that_never_return_cost_a_hundred_threads_and_nothing_else() {
    const CALLERS: usize = 20;
    const DEADLINE: Duration = Duration::from_millis(100);
    let runtime = runtime(CALLERS);
    let gate = Latch::new();
    let _open = OpenOnDrop(gate.clone());
    let ended = Arc::<AtomicUsize>::default();
    let late: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let calls: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (gate, ended, late) = (gate.clone(), ended.clone(), late.clone());
            runtime.spawn(async move {
                for number in 0..1000 / CALLERS {
                    let is_bad = (number + caller) % 10 == 0;
                    let (gate, ended) = (gate.clone(), Dropped(ended.clone()));
                    let start = Instant::now();
                    let job = Job::new(move || {
                        if is_bad {
                            gate.wait();
                        }
                        (number, ended)
                    });
                    let answer = job.deadline(DEADLINE).submit().await.map(|(number, _)| number);
                    late.lock().unwrap().push(start.elapsed());
                    match answer {
                        Ok(answer) => assert_eq!((answer, is_bad), (number, false)),
                        Err(JobError::TimedOut { .. }) => assert!(is_bad, "a good one is late"),
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    calls.into_iter().for_each(|call| runtime.block_on(call));
    let metrics = runtime.metrics();
    assert_eq!((metrics.blocking_lost, metrics.blocking_queued), (100, 0), "{metrics}");
    assert!(metrics.blocking_threads <= CALLERS, "{metrics}");
    assert_eq!(ended.load(SeqCst), 900, "what a lost one returns is not there yet");
    let mut late = late.lock().unwrap().clone();
    late.sort();
    assert!(late[990] < DEADLINE + Duration::from_millis(60), "p99 is {:?}", late[990]);
    assert!(late[850] < DEADLINE, "good ones wait: {:?}", late[850]);
    gate.open();
    eventually("the lost ones are back", || runtime.metrics().blocking_lost == 0);
    eventually("what they returned is dropped", || ended.load(SeqCst) == 1000);
    eventually("all threads are gone", || runtime.metrics().blocking_threads == 0);
    eventually("no timer is left", || runtime.metrics().timers == 0);
}

/// Nobody polls the handle, and no thread of the runtime is in the reactor but by turns of its own.
#[test]
fn a_lost_thread_is_replaced_though_nobody_polls() {
    for_each_setup(|_| {
        let runtime = runtime(1);
        let gate = Latch::new();
        let _open = OpenOnDrop(gate.clone());
        let (tell, told) = mpsc::channel();
        let wait = gate.clone();
        let (stuck, next) = runtime.block_on(async {
            let stuck = Job::new(move || wait.wait()).deadline(Duration::from_millis(20)).submit();
            (stuck, unblock(move || tell.send(()).unwrap()))
        });
        next.detach();
        told.recv_timeout(SOON).expect("somebody has the place of the lost one");
        assert_eq!(runtime.metrics().blocking_lost, 1);
        assert!(matches!(block_on(stuck), Err(JobError::TimedOut { .. })));
        gate.open();
        eventually("it is back", || runtime.metrics().blocking_lost == 0);
    });
}

/// All threads of the runtime block: the deputy has somebody see to the deadline.
#[test]
fn a_deadline_is_noticed_though_all_workers_are_stuck() {
    let runtime = Runtime::builder().threads(2).max_threads(2).blocking_threads(1).build().unwrap();
    let gate = Latch::new();
    let _open = OpenOnDrop(gate.clone());
    for _ in 0..2 {
        let wait = gate.clone();
        runtime.spawn(async move { wait.wait() }).detach();
    }
    let wait = gate.clone();
    let start = Instant::now();
    let stuck = within(&runtime, || {
        Job::new(move || wait.wait()).name("stuck").deadline(Duration::from_millis(50)).submit()
    });
    eventually("it is lost", || runtime.metrics().blocking_lost == 1);
    assert!(start.elapsed() >= Duration::from_millis(50));
    let error = pollster::block_on(stuck).unwrap_err();
    assert!(error.to_string().contains("\"stuck\""), "{error}");
}

/// The result is dropped by the thread that made it, and that of a panic, too.
#[test]
fn a_late_result_is_dropped_where_it_was_made() {
    struct Late(mpsc::Sender<thread::ThreadId>);
    impl Drop for Late {
        fn drop(&mut self) {
            self.0.send(thread::current().id()).unwrap();
        }
    }
    let runtime = runtime(1);
    for panics in [false, true] {
        let gate = Latch::new();
        let (tell, told) = mpsc::channel();
        let (here, where_it_ran) = mpsc::channel();
        let wait = gate.clone();
        let job = Job::new(move || {
            here.send(thread::current().id()).unwrap();
            wait.wait();
            let late = Late(tell);
            if panics {
                std::panic::panic_any(late);
            }
            late
        });
        let error = runtime.block_on(async { job.deadline(Duration::from_millis(20)).submit().await }).err();
        assert!(matches!(error, Some(JobError::TimedOut { .. })));
        assert!(told.try_recv().is_err());
        gate.open();
        assert_eq!(told.recv_timeout(SOON).ok(), where_it_ran.recv().ok());
        eventually("its thread is gone", || runtime.metrics().blocking_lost == 0);
    }
    assert_eq!(runtime.block_on(async { unblock(|| 1).await }), 1);
}

#[test]
fn a_job_that_has_not_begun_by_its_deadline_never_begins() {
    let runtime = runtime(1);
    let (gate, ran) = (Latch::new(), Arc::<AtomicUsize>::default());
    let _open = OpenOnDrop(gate.clone());
    let wait = gate.clone();
    let first = within(&runtime, || unblock(move || wait.wait()));
    let jobs: Vec<_> = runtime.block_on(async {
        let job = |number: u64| {
            let ran = ran.clone();
            let job = Job::new(move || ran.fetch_add(1, SeqCst));
            job.deadline(Duration::from_millis(10 + number % 10)).submit()
        };
        (0..100).map(job).collect()
    });
    for job in jobs {
        assert!(matches!(runtime.block_on(job), Err(JobError::TimedOut { .. })));
    }
    assert_eq!(runtime.metrics().blocking_lost, 0);
    gate.open();
    runtime.block_on(first);
    runtime.block_on(async { unblock(|| ()).await });
    assert_eq!(ran.load(SeqCst), 0);
}

#[test]
fn deadlines_of_zero_of_the_past_and_beyond_the_clock() {
    let runtime = runtime(1);
    let ran = Arc::<AtomicUsize>::default();
    let job = || {
        let ran = ran.clone();
        Job::new(move || ran.fetch_add(1, SeqCst))
    };
    runtime.block_on(async {
        let past = Instant::now();
        thread::sleep(Duration::from_millis(1));
        for over in [job().deadline(Duration::ZERO), job().deadline_at(past)] {
            let handle = over.submit();
            assert!(handle.is_finished());
            assert!(matches!(handle.await, Err(JobError::TimedOut { .. })));
        }
        unblock(|| ()).await;
        assert_eq!(ran.load(SeqCst), 0);
        assert_eq!(job().deadline(Duration::MAX).submit().await, Ok(0));
        assert_eq!(job().deadline(Duration::from_secs(u64::MAX / 4)).submit().await, Ok(1));
    });
    eventually("no timer is left", || runtime.metrics().timers == 0);
}

/// A handle that is dropped cancels, as a task does; one that is detached does not.
#[test]
fn cancelled_dropped_and_detached() {
    let runtime = runtime(1);
    let (gate, dropped, ran) = (Latch::new(), Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let _open = OpenOnDrop(gate.clone());
    runtime.block_on(async {
        let (tell, told) = mpsc::channel();
        let wait = gate.clone();
        let mark = Dropped(dropped.clone());
        let runs = Job::with_token(move |token| {
            tell.send(token.clone()).unwrap();
            wait.wait();
            mark
        });
        let runs = runs.name("runs").submit();
        let token = told.recv_timeout(SOON).unwrap();
        assert!(!token.is_cancelled());
        let job = || {
            let ran = ran.clone();
            Job::new(move || ran.fetch_add(1, SeqCst)).submit()
        };
        let [waits, leaves, goes_on] = [job(), job(), job()];
        waits.cancel();
        drop(leaves);
        goes_on.detach();
        assert!(matches!(waits.await, Err(JobError::Cancelled { .. })));
        runs.cancel();
        assert!(token.is_cancelled());
        let error = runs.await.err().unwrap();
        assert_eq!(error.to_string(), "the job \"runs\" was cancelled");
    });
    assert_eq!((runtime.metrics().blocking_lost, dropped.load(SeqCst)), (0, 0));
    gate.open();
    eventually("what it returned is dropped", || dropped.load(SeqCst) == 1);
    eventually("the detached one has run", || ran.load(SeqCst) == 1);
    runtime.block_on(async { unblock(|| ()).await });
    assert_eq!(ran.load(SeqCst), 1);
}

/// Nobody took it: it goes with the handle.
#[test]
fn a_result_that_nobody_takes_is_dropped() {
    let runtime = runtime(1);
    let dropped = Arc::<AtomicUsize>::default();
    let job = || {
        let mark = Dropped(dropped.clone());
        within(&runtime, || Job::new(move || mark).deadline(FAR).submit())
    };
    let handle = job();
    eventually("it is done", || handle.is_finished());
    assert_eq!(dropped.load(SeqCst), 0);
    drop(handle);
    assert_eq!(dropped.load(SeqCst), 1);
    job().detach();
    eventually("the other one, too", || dropped.load(SeqCst) == 2);
    eventually("no timer is left", || runtime.metrics().timers == 0);
}

/// What waits is cancelled, what runs goes on and gives its result; what comes later is cancelled at once.
#[test]
fn submitted_before_during_and_after_the_end_of_a_runtime() {
    let runtime = runtime(1);
    let (gate, late) = (Latch::new(), Latch::new());
    let _open = OpenOnDrop(gate.clone());
    let (tell, told) = mpsc::channel();
    let wait = gate.clone();
    let (runs, waits, task) = runtime.block_on(async {
        let runs = Job::with_token(move |token| {
            tell.send(()).unwrap();
            wait.wait();
            // Free functions act on the runtime that has ended.
            let after = Job::new(|| 1).name("after").submit();
            (token.is_cancelled(), pollster::block_on(after), pollster::block_on(unblock(|| 1).fallible()))
        });
        let runs = runs.submit();
        told.recv_timeout(SOON).unwrap();
        let opens = late.clone();
        (runs, Job::new(move || opens.open()).deadline(FAR).submit(), unblock(|| 1).fallible())
    });
    let start = Instant::now();
    drop(runtime);
    assert!(start.elapsed() < SOON, "it waited for what blocks");
    assert!(matches!(pollster::block_on(waits), Err(JobError::Cancelled { .. })));
    assert_eq!(pollster::block_on(task), None);
    gate.open();
    let (told, after, task) = pollster::block_on(runs).unwrap();
    assert!(told && matches!(after, Err(JobError::Cancelled { .. })), "{after:?}");
    assert_eq!(task, None);
}

/// The reactor that watches the deadline is gone before it passes.
#[test]
fn a_deadline_outlives_its_runtime() {
    let runtime = runtime(1);
    let gate = Latch::new();
    let _open = OpenOnDrop(gate.clone());
    let (tell, told) = mpsc::channel();
    let wait = gate.clone();
    let stuck = within(&runtime, || {
        let job = Job::new(move || {
            tell.send(()).unwrap();
            wait.wait();
        });
        job.deadline(Duration::from_millis(300)).submit()
    });
    told.recv_timeout(SOON).unwrap();
    drop(runtime);
    assert!(!stuck.is_finished());
    assert!(matches!(pollster::block_on(stuck), Err(JobError::TimedOut { .. })));
}

#[test]
fn ten_thousand_jobs_on_a_pool_of_one() {
    const ALL: usize = if cfg!(miri) { 100 } else { 10_000 };
    let runtime = runtime(1);
    let threads = Arc::new(Mutex::new(HashSet::new()));
    runtime.block_on(async {
        let job = |number| {
            let threads = threads.clone();
            let job = Job::new(move || {
                threads.lock().unwrap().insert(thread::current().id());
                number
            });
            job.deadline(FAR).submit()
        };
        let handles: Vec<_> = (0..ALL).map(job).collect();
        for (number, handle) in handles.into_iter().enumerate() {
            assert_eq!(handle.await, Ok(number));
        }
    });
    assert_eq!(threads.lock().unwrap().len(), 1);
    eventually("no timer is left", || runtime.metrics().timers == 0);
}

#[test]
fn a_job_that_panics_after_its_deadline_disturbs_nobody() {
    let runtime = runtime(1);
    let gate = Latch::new();
    let wait = gate.clone();
    let job = Job::new(move || {
        wait.wait();
        panic!("too late");
    });
    let error: Result<(), _> =
        runtime.block_on(async { job.deadline(Duration::from_millis(10)).submit().await });
    assert!(matches!(error, Err(JobError::TimedOut { .. })));
    gate.open();
    eventually("it is gone", || runtime.metrics().blocking_lost == 0);
    assert_eq!(runtime.block_on(async { unblock(|| 1).await }), 1);
}

/// Slowly, and through a buffer that is smaller than everything.
#[test]
fn bytes_pass_an_unblock_both_ways() {
    for_each_setup(|runtime| {
        let all: Vec<u8> = (0..100_000u32).map(|number| number as u8).collect();
        runtime.block_on(async move {
            for capacity in [0, 1, 7, 4096, 1 << 20] {
                let some = if capacity <= 7 { 500 } else { all.len() };
                let mut reads = Unblock::with_capacity(capacity, io::Cursor::new(all[..some].to_vec()));
                let mut read = Vec::new();
                reads.read_to_end(&mut read).await.unwrap();
                assert!(read == all[..some]);
                assert_eq!(reads.read(&mut []).await.unwrap(), 0);
                let mut writes = Unblock::with_capacity(capacity, io::Cursor::new(Vec::new()));
                writes.write_all(&all[..some]).await.unwrap();
                writes.flush().await.unwrap();
                assert_eq!(writes.seek(SeekFrom::Start(3)).await.unwrap(), 3);
                let mut byte = [0];
                writes.read_exact(&mut byte).await.unwrap();
                assert_eq!(byte, [3]);
                assert!(writes.into_inner().await.into_inner() == all[..some]);
            }
        });
    });
}

/// What cannot be read or written says so, once, and the value can be had again.
#[test]
fn errors_of_an_unblock() {
    #[derive(Debug)]
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("no bytes"))
        }
    }
    impl io::Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("no room"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    block_on(async {
        let mut broken = Unblock::new(Broken);
        assert_eq!(format!("{broken:?}"), "Unblock { io: Broken }");
        assert_eq!(broken.read(&mut [0]).await.unwrap_err().to_string(), "no bytes");
        broken.write_all(b"x").await.unwrap();
        assert_eq!(broken.flush().await.unwrap_err().to_string(), "no room");
        assert_eq!(broken.with_mut(|_| 7).await, 7);
        broken.close().await.unwrap();
        assert_eq!(format!("{broken:?}"), "Unblock { io: <closed> }");
        assert!(AssertUnwindSafe(broken.into_inner()).catch_unwind().await.is_err());
    });
}

/// A reader that is given up stops its thread, which gives it back.
#[test]
fn an_endless_iterator_stops_when_nobody_takes_from_it() {
    block_on(async {
        let mut numbers = Unblock::with_capacity(4, 0u64..);
        for number in 0..10 {
            assert_eq!(numbers.next().await, Some(number));
        }
        let next = numbers.get_mut().await.start;
        assert!((10..=15).contains(&next), "{next}");
        assert_eq!(numbers.next().await, Some(next));
        drop(numbers);
    });
}

/// Its panic reaches whoever reads.
#[test]
fn a_panic_of_what_is_read_is_raised_in_who_reads() {
    struct Panics;
    impl Read for Panics {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            panic!("nothing to read");
        }
    }
    assert_eq!(panic_of(|| block_on(Unblock::new(Panics).read(&mut [0]))), "nothing to read");
}

/// What is on a thread of a runtime that ends is lost, and says so.
#[test]
fn an_unblock_whose_runtime_has_ended() {
    struct Silent(Latch);
    impl Read for Silent {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            self.0.wait();
            buf[0] = 1;
            Ok(1)
        }
    }
    let runtime = runtime(1);
    let gate = Latch::new();
    let _open = OpenOnDrop(gate.clone());
    let wait = gate.clone();
    runtime.block_on(async move { unblock(move || wait.wait()).detach() });
    let mut silent = Unblock::new(Silent(gate.clone()));
    runtime.block_on(async { assert!(future::poll_once(silent.read(&mut [0])).await.is_none()) });
    drop(runtime);
    let error = pollster::block_on(silent.read(&mut [0])).unwrap_err();
    assert!(error.to_string().contains("shut down"), "{error}");
}

/// A handle is a future like any other: it may change hands, and the last one who polls is woken.
#[test]
fn the_last_one_who_polled_is_woken() {
    let (gate, runtime) = (Latch::new(), runtime(1));
    let wait = gate.clone();
    let mut handle = within(&runtime, || Job::new(move || wait.wait()).submit());
    assert!(handle.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let waiter = thread::spawn(move || pollster::block_on(handle));
    gate.open();
    assert_eq!(waiter.join().unwrap(), Ok(()));
}

/// Fails if the end of a runtime closes only threads that are there already.
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
