//! Properties behind `tokio_unstable` that tokio's own tests do not check.

use std::future::pending;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
#[cfg(feature = "schedule-latency")]
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use real::runtime::UnhandledPanic;

use crate::context::{self, Worker};
use crate::runtime::workers::processor_time_here;
use crate::runtime::{Builder, LocalOptions, Runtime, TaskMeta};
use crate::task::{self, Id, LocalSet, spawn_local, yield_now};

type Event = (&'static str, Id, &'static Location<'static>);

/// The calls of all hooks, in order.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Vec<Event>>>);

impl Trace {
    fn hook(&self, name: &'static str) -> impl Fn(&TaskMeta<'_>) + Send + Sync + 'static {
        let events = self.0.clone();
        move |task| {
            if name != "spawn" {
                // Panics if the hook is called outside of the runtime or of the task.
                let _ = crate::runtime::Handle::current();
                assert_eq!(task::id(), task.id());
            }
            events.lock().unwrap().push((name, task.id(), task.spawned_at()));
        }
    }

    fn add_to(&self, mut builder: Builder) -> Builder {
        builder
            .on_task_spawn(self.hook("spawn"))
            .on_before_task_poll(self.hook("before"))
            .on_after_task_poll(self.hook("after"))
            .on_task_terminate(self.hook("terminate"));
        builder
    }

    fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn names(&self) -> Vec<&'static str> {
        self.take().into_iter().map(|(name, ..)| name).collect()
    }
}

fn builders() -> [Builder; 2] {
    let mut builders = [Builder::new_current_thread(), Builder::new_multi_thread()];
    builders[1].worker_threads(2);
    for builder in &mut builders {
        builder.enable_all();
    }
    builders
}

/// Fails if a hook is called twice, is told of another task, or is called after the handle is ready.
#[test]
fn the_hooks_of_a_task_are_called_in_order_and_before_its_handle_is_ready() {
    for builder in builders() {
        let trace = Trace::default();
        let runtime = trace.add_to(builder).build().unwrap();
        let entered = runtime.enter();
        let line = line!() + 1;
        let task = crate::spawn(yield_now());
        drop(entered);
        let id = task.id();
        runtime.block_on(task).unwrap();
        let events = trace.take();
        assert!(events.iter().all(|(_, other, at)| (*other, at.line()) == (id, line)), "{events:?}");
        let names: Vec<_> = events.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, ["spawn", "before", "after", "before", "after", "terminate"]);
    }
}

#[test]
fn a_task_that_is_cancelled_or_panics_terminates_once() {
    for builder in builders() {
        let trace = Trace::default();
        let runtime = trace.add_to(builder).build().unwrap();
        let aborted = runtime.spawn(pending::<()>());
        aborted.abort();
        let panics = runtime.spawn(async { panic!("on purpose") });
        runtime.block_on(async {
            assert!(aborted.await.unwrap_err().is_cancelled());
            assert!(panics.await.unwrap_err().is_panic());
        });
        let ends = |trace: &Trace| trace.names().iter().filter(|name| **name == "terminate").count();
        assert_eq!(ends(&trace), 2);
        let left = runtime.spawn(pending::<()>());
        drop(runtime);
        assert!(left.is_finished());
        assert_eq!(ends(&trace), 1);
    }
}

#[test]
fn a_panic_in_a_hook_stays_in_the_hook() {
    for mut builder in builders() {
        builder.on_task_spawn(|_| panic!("on purpose")).on_before_task_poll(|_| panic!("on purpose"));
        let runtime = builder.build().unwrap();
        assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
    }
}

#[test]
fn a_local_runtime_calls_the_hooks_for_tasks_that_stay() {
    let trace = Trace::default();
    let mut builder = trace.add_to(Builder::new_current_thread());
    let runtime = builder.build_local(LocalOptions::default()).unwrap();
    runtime.block_on(async { spawn_local(async {}).await.unwrap() });
    assert_eq!(trace.names(), ["spawn", "before", "after", "terminate"]);
}

/// Fails if the panic is raised by the first `block_on` only, or if a task goes on.
#[test]
fn a_panic_ends_a_local_runtime_and_a_current_thread_runtime() {
    let ends = |block_on: &dyn Fn()| {
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(block_on)).unwrap_err();
        assert!(
            panic.downcast_ref::<String>().unwrap().starts_with("a spawned task panicked and the runtime")
        );
    };
    let mut builder = Builder::new_current_thread();
    builder.unhandled_panic(UnhandledPanic::ShutdownRuntime);
    let runtime = builder.build().unwrap();
    let (other, handle) = (runtime.spawn(pending::<()>()), runtime.handle().clone());
    drop(runtime.spawn(async { panic!("on purpose") }));
    ends(&|| runtime.block_on(pending()));
    assert!(other.is_finished());
    assert!(handle.spawn(async {}).is_finished());
    // As in the real tokio, a future that is ready at its first poll does not need the runtime.
    runtime.block_on(async {});
    ends(&|| runtime.block_on(pending()));

    let runtime = builder.build_local(LocalOptions::default()).unwrap();
    let other = runtime.spawn_local(pending::<()>());
    drop(runtime.spawn_local(async { panic!("on purpose") }));
    ends(&|| runtime.block_on(pending()));
    assert!(other.is_finished());
}

/// Fails if the waker of a `block_on` is kept after its end.
#[test]
fn a_runtime_that_ends_at_a_panic_keeps_no_waker() {
    let mut builder = Builder::new_current_thread();
    let runtime = builder.unhandled_panic(UnhandledPanic::ShutdownRuntime).build().unwrap();
    for _ in 0..3 {
        runtime.block_on(yield_now());
        assert_eq!(runtime.handle().shared.extras.panics.waiting().len(), 0);
    }
}

/// Fails if a ready task is still polled after the panic of another one, or if only one of the two kinds of
/// tasks in a local runtime ends.
#[test]
fn a_panic_cancels_what_is_ready_and_both_kinds_of_tasks() {
    let mut builder = Builder::new_current_thread();
    builder.unhandled_panic(UnhandledPanic::ShutdownRuntime);
    let is_cancelled = |task: task::JoinHandle<()>| {
        let waiter = Builder::new_current_thread().build().unwrap();
        task.is_finished() && waiter.block_on(task).is_err_and(|error| error.is_cancelled())
    };
    let runtime = builder.build().unwrap();
    drop(runtime.spawn(async { panic!("as intended") }));
    let second = runtime.spawn(async {});
    assert!(catch_unwind(AssertUnwindSafe(|| runtime.block_on(pending::<()>()))).is_err());
    assert!(is_cancelled(second));

    for stays in [false, true] {
        let runtime = builder.build_local(LocalOptions::default()).unwrap();
        let fails = async { panic!("as intended") };
        let waits = [runtime.spawn_local(pending()), runtime.handle().spawn(pending())];
        if stays {
            runtime.spawn_local(fails)
        } else {
            runtime.handle().spawn(fails)
        };
        assert!(catch_unwind(AssertUnwindSafe(|| runtime.block_on(pending::<()>()))).is_err());
        assert!(waits.into_iter().all(is_cancelled), "stays: {stays}");
        assert!(is_cancelled(runtime.spawn_local(pending())));
    }
}

/// Fails if the `block_on` of a handle ends with the runtime, as that of the runtime does.
#[test]
fn a_panic_ends_no_block_on_of_a_handle() {
    let mut builder = Builder::new_current_thread();
    let runtime = builder.unhandled_panic(UnhandledPanic::ShutdownRuntime).build().unwrap();
    let handle = runtime.handle();
    let failed = handle.block_on(async { crate::spawn(async { panic!("as intended") }).await });
    assert!(failed.unwrap_err().is_panic());
    assert!(catch_unwind(AssertUnwindSafe(|| runtime.block_on(pending::<()>()))).is_err());
}

#[test]
#[cfg(feature = "tracing")]
fn a_builder_of_tasks_reports_that_a_runtime_takes_no_closures() {
    for mut builder in builders() {
        let runtime = builder.build().unwrap();
        let handle = runtime.handle().clone();
        drop(runtime);
        let refused = task::Builder::new().spawn_blocking_on(|| (), &handle).unwrap_err();
        assert_eq!(refused.to_string(), "blocking pool shutting down");
    }
}

/// One closure after the other runs until the panic is out, or for some seconds. Fails if the end waits for
/// threads that make progress.
#[test]
fn a_panic_that_ends_a_runtime_waits_for_no_closures() {
    fn goes_on(left: u32, is_out: Arc<AtomicBool>, tell: mpsc::Sender<u32>) {
        thread::sleep(Duration::from_millis(1));
        if left == 0 || is_out.load(Ordering::SeqCst) {
            tell.send(left).unwrap();
        } else {
            task::spawn_blocking(move || goes_on(left - 1, is_out, tell));
        }
    }
    let mut builder = Builder::new_current_thread();
    let runtime = builder.unhandled_panic(UnhandledPanic::ShutdownRuntime).build().unwrap();
    let ((tell, told), is_out) = (mpsc::channel(), Arc::new(AtomicBool::new(false)));
    let sees = is_out.clone();
    runtime.spawn_blocking(move || goes_on(4000, sees, tell));
    runtime.spawn(async { panic!("as intended") });
    assert!(catch_unwind(AssertUnwindSafe(|| runtime.block_on(pending::<()>()))).is_err());
    is_out.store(true, Ordering::SeqCst);
    assert_ne!(told.recv(), Ok(0));
}

/// Fails if the behavior can be changed while tasks exist.
#[test]
fn a_local_set_with_tasks_keeps_what_a_panic_does() {
    let mut set = LocalSet::new();
    set.unhandled_panic(UnhandledPanic::ShutdownRuntime);
    set.spawn_local(async {});
    let changed = catch_unwind(AssertUnwindSafe(|| _ = set.unhandled_panic(UnhandledPanic::Ignore)));
    assert!(changed.is_err());
}

/// Fails if the worker of another runtime is taken to be that of this one: the histogram has one row.
#[test]
fn a_worker_that_serves_another_runtime_counts_as_its_first_worker() {
    let mut builder = Builder::new_current_thread();
    let served = builder.enable_metrics_poll_time_histogram().build().unwrap();
    let (handle, metrics) = (served.handle(), served.metrics());
    let outer = multi(4);
    let before = context::set_worker(Some(Worker::of(&outer.handle().shared, 3)));
    handle.block_on(handle.spawn(async {})).unwrap();
    context::set_worker(before);
    let buckets = 0..metrics.poll_time_histogram_num_buckets();
    let polls: u64 = buckets.map(|bucket| metrics.poll_time_histogram_bucket_count(0, bucket)).sum();
    assert_eq!((polls, metrics.remote_schedule_count()), (1, 1));
}

/// Fails if tasks that others schedule lower the number of local schedules.
#[test]
fn the_number_of_local_schedules_never_falls() {
    let runtime = Builder::new_current_thread().build().unwrap();
    let metrics = runtime.metrics();
    runtime.block_on(async {
        for _ in 0..10 {
            crate::spawn(async {}).await.unwrap();
        }
        let before = metrics.worker_local_schedule_count(0);
        assert_eq!(before, 10);
        let handle = runtime.handle().clone();
        std::thread::spawn(move || (0..5).for_each(|_| drop(handle.spawn(async {})))).join().unwrap();
        assert_eq!(metrics.worker_local_schedule_count(0), before);
    });
}

/// Fails if a worker that takes several tasks at once lowers the number of remote schedules.
#[test]
fn the_number_of_remote_schedules_never_falls() {
    let runtime = multi(1);
    let (handle, metrics) = (runtime.handle().clone(), runtime.metrics());
    // No other worker takes the tasks, unless the worker is replaced meanwhile.
    let first = runtime.spawn(async move {
        let spawns = || (0..40).map(|_| handle.spawn(async {})).collect::<Vec<_>>();
        let tasks = std::thread::scope(|scope| scope.spawn(spawns).join().unwrap());
        (tasks, handle.metrics().remote_schedule_count())
    });
    let (tasks, before) = runtime.block_on(first).unwrap();
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    assert!(metrics.remote_schedule_count() >= before);
}

fn multi(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap()
}

/// Computes until the thread has used that much processor time. Does nothing if the system does not tell it.
fn spin(duration: Duration) {
    if processor_time_here().is_none() {
        return;
    }
    let now = || processor_time_here().unwrap_or_default();
    let began = now();
    while now() - began < duration {}
}
/// Each worker polls as many tasks as the other, and one of them computes. Fails if polls or time are
/// assigned to another worker, or are lost when the threads end.
#[test]
fn polls_and_time_are_those_of_the_worker() {
    let runtime = multi(2);
    let metrics = runtime.metrics();
    let (numbers, meets) = (Arc::new(Mutex::new([0; 2])), Arc::new(std::sync::Barrier::new(2)));
    let polls = |computes: Duration| {
        let (numbers, meets) = (numbers.clone(), meets.clone());
        runtime.spawn(async move {
            meets.wait();
            let number = crate::runtime::worker_index().unwrap();
            spin(computes);
            numbers.lock().unwrap()[number] += 1;
            number
        })
    };
    let (long, short) = (polls(Duration::from_millis(50)), polls(Duration::ZERO));
    let number = runtime.block_on(long).unwrap();
    runtime.block_on(short).unwrap();
    let busy = |number| metrics.worker_total_busy_duration(number);
    if cfg!(target_os = "linux") {
        assert!(busy(number) >= Duration::from_millis(50), "{:?}", busy(number));
    }
    let counted = [0, 1].map(|worker| metrics.worker_poll_count(worker));
    drop(runtime);
    assert_eq!(counted, *numbers.lock().unwrap());
    assert_eq!([0, 1].map(|worker| metrics.worker_poll_count(worker)), counted);
    assert!(metrics.worker_mean_poll_time(number) > Duration::ZERO);
}

/// Fails if time before the first call of `metrics`, or outside of `block_on`, is counted.
#[test]
#[cfg(target_os = "linux")]
fn a_current_thread_runtime_is_busy_inside_of_block_on_only() {
    let computes = Duration::from_millis(20);
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { spin(computes) });
    let metrics = runtime.metrics();
    let busy = || metrics.worker_total_busy_duration(0);
    spin(computes);
    assert_eq!(busy(), Duration::ZERO);
    runtime.block_on(async { spin(computes) });
    let once = busy();
    assert!(once >= computes, "{once:?}");
    spin(computes);
    assert_eq!(busy(), once);
    drop(runtime);
    assert_eq!(busy(), once);
}

/// Fails if a thread that replaces one that blocks is not known as the worker whose number it has.
#[test]
#[cfg(target_os = "linux")]
fn a_replacement_has_the_number_of_a_worker_that_blocks() {
    let runtime = multi(2);
    let metrics = runtime.metrics();
    let here = || (crate::runtime::worker_index().unwrap(), std::thread::current().id());
    let (goes_on, waits): (Vec<_>, Vec<_>) = (0..2).map(|_| mpsc::channel::<()>()).unzip();
    let blocks = waits.into_iter().map(|waits| {
        let (started, has_started) = mpsc::channel();
        let task = runtime.spawn(async move {
            started.send(here()).unwrap();
            waits.recv().unwrap();
        });
        (task, has_started.recv().unwrap())
    });
    let (tasks, blocked): (Vec<_>, Vec<_>) = blocks.unzip();
    assert_ne!(blocked[0].0, blocked[1].0);
    let (number, thread) = runtime.block_on(runtime.spawn(async move { here() })).unwrap();
    assert!(blocked.iter().all(|(_, other)| *other != thread));
    assert_eq!(metrics.worker_thread_id(number), Some(thread));
    drop(goes_on);
    runtime.block_on(async {
        for task in tasks {
            assert!(task.await.unwrap_err().is_panic());
        }
    });
}

/// Fails if a poll is counted in a neighbouring bucket.
#[test]
fn a_poll_is_counted_in_the_bucket_of_its_time() {
    use crate::runtime::HistogramConfiguration;
    for mut builder in builders() {
        let linear = HistogramConfiguration::linear(Duration::from_millis(40), 3);
        builder.enable_metrics_poll_time_histogram().metrics_poll_time_histogram_configuration(linear);
        let runtime = builder.build().unwrap();
        let metrics = runtime.metrics();
        for millis in [0, 45, 130] {
            let polls = async move { std::thread::sleep(Duration::from_millis(millis)) };
            runtime.block_on(runtime.spawn(polls)).unwrap();
        }
        let count = |bucket| {
            let workers = 0..metrics.num_workers();
            workers.map(|worker| metrics.poll_time_histogram_bucket_count(worker, bucket)).sum::<u64>()
        };
        let counts = [0, 1, 2].map(count);
        // A thread that waits for a core may be late.
        assert_eq!(counts.iter().sum::<u64>(), 3);
        assert!(counts[2] >= 1 && counts[0] <= 1, "{counts:?}");
    }
}

/// tokio-metrics reads a histogram only if the count of polls has risen, so the count must not rise before.
#[test]
fn a_poll_is_counted_when_the_histogram_has_it() {
    for mut builder in builders() {
        let runtime = builder.enable_metrics_poll_time_histogram().build().unwrap();
        let counts = move |metrics: crate::runtime::RuntimeMetrics| {
            let workers = 0..metrics.num_workers();
            let polls: u64 = workers.clone().map(|worker| metrics.worker_poll_count(worker)).sum();
            let buckets = 0..metrics.poll_time_histogram_num_buckets();
            let in_buckets = |worker| {
                buckets
                    .clone()
                    .map(|bucket| metrics.poll_time_histogram_bucket_count(worker, bucket))
                    .sum::<u64>()
            };
            (polls, workers.map(in_buckets).sum::<u64>())
        };
        let handle = runtime.handle().clone();
        let within = runtime.block_on(runtime.spawn(async move { counts(handle.metrics()) })).unwrap();
        assert_eq!(within, (0, 0));
        let handle = runtime.handle().clone();
        let after = runtime.block_on(runtime.spawn(async move { counts(handle.metrics()) })).unwrap();
        assert_eq!(after, (1, 1));
    }
}

#[test]
fn numbers_of_blocking_closures_are_those_of_the_moment() {
    let runtime = Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
    let metrics = runtime.metrics();
    let (goes_on, waits) = mpsc::channel::<()>();
    let first = runtime.spawn_blocking(move || waits.recv().unwrap());
    let second = runtime.spawn_blocking(|| ());
    assert_eq!((metrics.num_blocking_threads(), metrics.blocking_queue_depth() > 0), (1, true));
    goes_on.send(()).unwrap();
    runtime.block_on(async { (first.await.unwrap(), second.await.unwrap()) });
    assert_eq!(metrics.blocking_queue_depth(), 0);
    drop(runtime);
    assert_eq!((metrics.num_blocking_threads(), metrics.num_idle_blocking_threads()), (0, 0));
}

/// A program whose `block_on` gets a seed and whose tasks use a channel with a timeout. Fails if the timers
/// of the real tokio are not available there.
#[test]
fn a_seeded_runtime_has_the_timers_of_channels() {
    for mut builder in builders() {
        let runtime = builder.rng_seed(real::runtime::RngSeed::from_bytes(b"seed")).build().unwrap();
        let sends = || async {
            let (sends, _receives) = real::sync::mpsc::channel(1);
            sends.send(1).await.unwrap();
            sends.send_timeout(2, Duration::from_millis(1)).await.unwrap_err();
        };
        runtime.block_on(sends());
        runtime.block_on(runtime.spawn(sends())).unwrap();
    }
}

/// Fails if a task is polled with a stale waker, or if an abort does not reach it.
#[test]
#[cfg(feature = "schedule-latency")]
fn the_time_between_wake_and_poll_is_measured_for_each_poll() {
    for mut builder in builders() {
        let (polls, late) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (counts, counts_late) = (polls.clone(), late.clone());
        let runtime = builder
            .track_task_schedule_latency()
            .on_before_task_poll(move |task| {
                let latency = task.schedule_latency().unwrap();
                counts.fetch_add(1, Ordering::Relaxed);
                counts_late.fetch_add(usize::from(latency > Duration::from_secs(5)), Ordering::Relaxed);
            })
            .build()
            .unwrap();
        let (sends, receives) = crate::sync::oneshot::channel();
        let waits = runtime.spawn(async move {
            receives.await.unwrap();
            yield_now().await;
            task::id()
        });
        let id = waits.id();
        runtime.block_on(async {
            yield_now().await;
            sends.send(()).unwrap();
            assert_eq!(waits.await.unwrap(), id);
            let stays = crate::spawn(pending::<()>());
            yield_now().await;
            stays.abort();
            assert!(stays.await.unwrap_err().is_cancelled());
        });
        drop(runtime);
        assert!(polls.load(Ordering::Relaxed) >= 2);
        assert_eq!(late.load(Ordering::Relaxed), 0);
    }
}
