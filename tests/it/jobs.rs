//! Jobs: closures that block, with deadlines.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::FutureExt;
use paceline::blocking::{Job, JobError, JobHandle};
use paceline::{Runtime, Task, block_on, unblock};

use crate::blocking::{runtime, within};
use crate::given_time::RecvSoon;
use crate::setups::{Latch, OpenOnDrop, Ping, eventually, for_each_setup};

const FAR: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(20);

/// Counts the dropped values.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Returns a runtime with one thread for closures that block. That thread is in a closure that ends when the
/// latch is open.
fn busy() -> (Runtime, Latch, OpenOnDrop, Task<()>) {
    let (runtime, gate) = (runtime(1), Latch::new());
    let open = OpenOnDrop(gate.clone());
    let wait = gate.clone();
    let first = within(&runtime, || unblock(move || wait.wait()));
    eventually("it runs", || runtime.metrics().blocking_queued == 0);
    (runtime, gate, open, first)
}

/// Submits a job that calls the function it gets and then blocks past its deadline. A job whose thread has no
/// core in time never begins, and is submitted again.
pub fn begun<T: Send + 'static, F>(
    runtime: &Runtime,
    timeout: Duration,
    job: impl Fn(Box<dyn FnOnce() + Send>) -> F,
) -> JobHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
{
    loop {
        let (tell, told) = mpsc::channel();
        let job = Job::new(job(Box::new(move || tell.send(()).unwrap()))).name("stuck").timeout(timeout);
        let handle = within(runtime, || job.submit());
        // A job that never begins is dropped at once, and its sender with it.
        if told.recv_soon().is_ok() {
            return handle;
        }
    }
}

/// The same for a job that waits for the latch.
fn stuck(runtime: &Runtime, timeout: Duration, gate: &Latch) -> JobHandle<()> {
    begun(runtime, timeout, |begins| {
        let wait = gate.clone();
        move || {
            begins();
            wait.wait();
        }
    })
}

/// No task polls the handle, and only the runtime's own workers wait in its reactor.
#[test]
fn a_lost_thread_is_replaced_although_no_task_polls() {
    for_each_setup(|_| {
        let runtime = runtime(1);
        let gate = Latch::new();
        let _open = OpenOnDrop(gate.clone());
        let (tell, told) = mpsc::channel();
        let stuck = stuck(&runtime, SHORT, &gate);
        within(&runtime, || unblock(move || tell.send(()).unwrap())).detach();
        told.recv_soon().expect("another thread replaces the lost one");
        assert_eq!(runtime.metrics().blocking_lost, 1);
        assert!(matches!(block_on(stuck), Err(JobError::TimedOut { .. })));
        gate.open();
        eventually("it is back", || runtime.metrics().blocking_lost == 0);
    });
}

/// All threads of the runtime block: the deputy makes another thread handle the deadline.
#[test]
fn a_deadline_is_noticed_though_all_workers_are_stuck() {
    let runtime = Runtime::builder().threads(2).max_threads(2).blocking_threads(1).build().unwrap();
    let gate = Latch::new();
    let _open = OpenOnDrop(gate.clone());
    let (tell, told) = mpsc::channel();
    for _ in 0..2 {
        let (tell, wait) = (tell.clone(), gate.clone());
        let blocks = async move {
            tell.send(()).unwrap();
            wait.wait();
        };
        runtime.spawn(blocks).detach();
    }
    (0..2).for_each(|_| told.recv_soon().unwrap());
    let start = Instant::now();
    let stuck = stuck(&runtime, SHORT, &gate);
    eventually("it is lost", || runtime.metrics().blocking_lost == 1);
    assert!(start.elapsed() >= SHORT);
    let error = pollster::block_on(stuck).unwrap_err();
    assert!(error.to_string().contains("\"stuck\""), "{error}");
}

/// Reports on which thread it is dropped.
struct Late(mpsc::Sender<thread::ThreadId>);

impl Drop for Late {
    fn drop(&mut self) {
        self.0.send(thread::current().id()).unwrap();
    }
}

/// The thread that made a result drops it; the same holds for a panic's payload.
#[test]
fn a_late_result_is_dropped_where_it_was_made() {
    let runtime = runtime(1);
    for panics in [false, true] {
        let gate = Latch::new();
        let (tell, told) = mpsc::channel();
        let (here, where_it_ran) = mpsc::channel();
        let job = begun(&runtime, SHORT, |begins| {
            let (tell, here, wait) = (tell.clone(), here.clone(), gate.clone());
            move || {
                here.send(thread::current().id()).unwrap();
                begins();
                wait.wait();
                let late = Late(tell);
                if panics {
                    std::panic::panic_any(late);
                }
                late
            }
        });
        let error = runtime.block_on(job).err();
        assert!(matches!(error, Some(JobError::TimedOut { .. })));
        assert!(told.try_recv().is_err());
        gate.open();
        assert_eq!(told.recv_soon().ok(), where_it_ran.recv().ok());
        eventually("its thread is gone", || runtime.metrics().blocking_lost == 0);
    }
    assert_eq!(runtime.block_on(async { unblock(|| 1).await }), 1);
}

/// Dropped at once, although the job itself is kept alive: by its token here; the timer of its deadline kept
/// it alive for a while, too. Fails if the result goes with the last reference.
#[test]
fn the_result_of_a_detached_job_is_dropped_where_it_was_made() {
    let runtime = runtime(1);
    for begun in [false, true] {
        let [starts, ends] = [(); 2].map(|()| Latch::new());
        let (starting, ending) = (starts.clone(), ends.clone());
        let first = within(&runtime, || unblock(move || starting.wait()));
        let ((tell, told), (show, shown)) = (mpsc::channel(), mpsc::channel());
        let job = Job::with_token(move |token| {
            show.send((token, thread::current().id())).unwrap();
            ending.wait();
            Late(tell)
        });
        let handle = within(&runtime, || job.timeout(FAR).submit());
        if !begun {
            handle.detach();
            starts.open();
            ends.open();
            assert_eq!(told.recv_soon().ok(), shown.recv().ok().map(|(_token, id)| id));
        } else {
            starts.open();
            let (token, id) = shown.recv_soon().unwrap();
            handle.detach();
            assert!(!token.is_cancelled(), "it is to go on");
            ends.open();
            assert_eq!(told.recv_soon(), Ok(id));
            drop(token);
        }
        runtime.block_on(first);
    }
}

/// No handle is left, and the pool gets another thread all the same.
#[test]
fn the_deadline_of_a_job_without_a_handle_holds() {
    for detaches in [false, true] {
        let runtime = runtime(1);
        let gate = Latch::new();
        let _open = OpenOnDrop(gate.clone());
        let handle = stuck(&runtime, SHORT, &gate);
        if detaches {
            handle.detach()
        } else {
            drop(handle)
        }
        eventually("its thread is lost", || runtime.metrics().blocking_lost == 1);
        assert_eq!(runtime.block_on(async { unblock(|| 1).await }), 1);
        gate.open();
        eventually("it is back", || runtime.metrics().blocking_lost == 0);
    }
}

/// Not when a thread reaches the job, which may be late. Fails if that thread drops it.
#[test]
fn a_job_that_never_begins_is_dropped_at_once() {
    const ALL: usize = if cfg!(miri) { 100 } else { 10_000 };
    let (runtime, gate, _open, first) = busy();
    let dropped = Arc::<AtomicUsize>::default();
    let jobs = |timeout| -> Vec<_> {
        let job = |_| {
            let mark = Dropped(dropped.clone());
            Job::new(move || drop(mark)).timeout(timeout).submit()
        };
        within(&runtime, || (0..ALL / 2).map(job).collect())
    };
    let mut cancelled = jobs(FAR);
    cancelled.truncate(ALL / 4);
    cancelled.iter().for_each(|handle| handle.cancel());
    assert_eq!(dropped.load(SeqCst), ALL / 2);
    assert_eq!(runtime.metrics().timers, 0, "no timer waits for their deadlines");
    let late = jobs(Duration::from_millis(300));
    eventually("the deadlines have passed", || dropped.load(SeqCst) == ALL);
    assert!(runtime.metrics().blocking_queued >= ALL / 2, "the thread has come to them");
    for handle in cancelled {
        assert!(matches!(runtime.block_on(handle), Err(JobError::Cancelled { .. })));
    }
    for handle in late {
        assert!(matches!(runtime.block_on(handle), Err(JobError::TimedOut { .. })));
    }
    gate.open();
    runtime.block_on(first);
    runtime.block_on(async { unblock(|| ()).await });
    assert_eq!(dropped.load(SeqCst), ALL, "it is dropped once");
}

/// A panic in the destructor affects neither the cancelling thread nor the thread that fires timers.
#[test]
fn a_destructor_of_what_never_begins_may_panic() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }
    let (runtime, gate, _open, first) = busy();
    let mut ping = Ping::new(&runtime);
    let job = |timeout| {
        let panics = Panics;
        within(&runtime, || Job::new(move || drop(panics)).timeout(timeout).submit())
    };
    let (cancelled, late, past) = (job(FAR), job(Duration::from_millis(50)), job(Duration::ZERO));
    cancelled.cancel();
    assert!(matches!(runtime.block_on(cancelled), Err(JobError::Cancelled { .. })));
    assert!(matches!(runtime.block_on(late), Err(JobError::TimedOut { .. })));
    assert!(matches!(runtime.block_on(past), Err(JobError::TimedOut { .. })));
    ping.ping();
    gate.open();
    runtime.block_on(first);
}

/// The job has its answer, and no thread has to reach it.
#[test]
fn a_job_whose_deadline_has_passed_is_not_queued() {
    let (runtime, gate, _open, first) = busy();
    let dropped = Arc::<AtomicUsize>::default();
    let job = || {
        let mark = Dropped(dropped.clone());
        Job::new(move || drop(mark))
    };
    let now = Instant::now();
    let past = [now, now.checked_sub(FAR).unwrap_or(now)].map(|past| job().deadline(past));
    for (number, late) in past.into_iter().chain([job().timeout(Duration::ZERO)]).enumerate() {
        let handle = within(&runtime, || late.submit());
        assert_eq!((runtime.metrics().blocking_queued, dropped.load(SeqCst)), (0, number + 1));
        assert!(matches!(pollster::block_on(handle), Err(JobError::TimedOut { .. })));
    }
    assert_eq!(runtime.metrics().timers, 0);
    gate.open();
    runtime.block_on(first);
}

#[test]
fn a_job_that_has_not_begun_by_its_deadline_never_begins() {
    let (runtime, gate, _open, first) = busy();
    let ran = Arc::<AtomicUsize>::default();
    let jobs: Vec<_> = runtime.block_on(async {
        let job = |number: u64| {
            let ran = ran.clone();
            let job = Job::new(move || ran.fetch_add(1, SeqCst));
            job.timeout(Duration::from_millis(10 + number % 10)).submit()
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
        for over in [job().timeout(Duration::ZERO), job().deadline(past)] {
            let handle = over.submit();
            assert!(handle.is_finished());
            assert!(matches!(handle.await, Err(JobError::TimedOut { .. })));
        }
        unblock(|| ()).await;
        assert_eq!(ran.load(SeqCst), 0);
        assert_eq!(job().timeout(Duration::MAX).submit().await, Ok(0));
        assert_eq!(job().timeout(Duration::from_secs(u64::MAX / 4)).submit().await, Ok(1));
    });
    eventually("no timer is left", || runtime.metrics().timers == 0);
}

/// A dropped handle cancels its job, as a dropped task does; a detached one does not.
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
        let token = told.recv_soon().unwrap();
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

/// No task took the result: it is dropped with the handle.
#[test]
fn a_result_that_is_not_taken_is_dropped() {
    let runtime = runtime(1);
    let dropped = Arc::<AtomicUsize>::default();
    let job = || {
        let mark = Dropped(dropped.clone());
        within(&runtime, || Job::new(move || mark).timeout(FAR).submit())
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

/// Waiting jobs are cancelled, running ones go on and give their result; later ones are cancelled at once.
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
        told.recv_soon().unwrap();
        let opens = late.clone();
        (runs, Job::new(move || opens.open()).timeout(FAR).submit(), unblock(|| 1).fallible())
    });
    // Hangs if it waits for what blocks.
    drop(runtime);
    assert!(matches!(pollster::block_on(waits), Err(JobError::Cancelled { .. })));
    assert_eq!(pollster::block_on(task), None);
    gate.open();
    let (told, after, task) = pollster::block_on(runs).unwrap();
    assert!(told && matches!(after, Err(JobError::Cancelled { .. })), "{after:?}");
    assert_eq!(task, None);
}

/// The reactor that watches the deadline is dropped before it passes, unless this thread gets no core.
#[test]
fn a_deadline_outlives_its_runtime() {
    let runtime = runtime(1);
    let gate = Latch::new();
    let _open = OpenOnDrop(gate.clone());
    let stuck = stuck(&runtime, 10 * SHORT, &gate);
    drop(runtime);
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
            job.timeout(FAR).submit()
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
fn a_panic_of_a_job_after_its_deadline_has_no_effect() {
    let runtime = runtime(1);
    let gate = Latch::new();
    let wait = gate.clone();
    let job = Job::new(move || {
        wait.wait();
        panic!("too late");
    });
    let error: Result<(), _> =
        runtime.block_on(async { job.timeout(Duration::from_millis(10)).submit().await });
    assert!(matches!(error, Err(JobError::TimedOut { .. })));
    gate.open();
    eventually("it is gone", || runtime.metrics().blocking_lost == 0);
    assert_eq!(runtime.block_on(async { unblock(|| 1).await }), 1);
}

/// A handle is a future like any other: it may be moved to another task, and the last task that polled is
/// woken.
#[test]
fn the_last_task_that_polled_is_woken() {
    let (gate, runtime) = (Latch::new(), runtime(1));
    let wait = gate.clone();
    let mut handle = within(&runtime, || Job::new(move || wait.wait()).submit());
    assert!(handle.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let waiter = thread::spawn(move || pollster::block_on(handle));
    gate.open();
    assert_eq!(waiter.join().unwrap(), Ok(()));
}
