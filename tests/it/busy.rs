//! Blocked is not busy: a thread that blocks is replaced; one that computes, or waits for its core, is not.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future;
use paceline::{Runtime, Timer};

use crate::setups::{Latch, OpenOnDrop, Ping, SOON, eventually, for_setups, is_child};

/// Computes until it is told to stop.
pub fn compute(stop: &AtomicBool) {
    while !stop.load(SeqCst) {
        std::hint::spin_loop();
    }
}

/// Threads that there may be on top of the workers after they have computed for so long: the reserve; and one more after a
/// tenth of a second, then after twice that time, and so on. On a machine that is busy, too, for one that is late to start:
/// by ten milliseconds, then twice that, and so on.
fn on_top(computed: Duration) -> usize {
    let doublings =
        |unit: u128| (computed.as_millis() / unit).checked_ilog2().map_or(0, |twice| 1 + twice as usize);
    1 + doublings(100) + doublings(10)
}

/// Computes for so long by the clock on the wall.
fn compute_for(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {}
}

/// Sets the flag when it is dropped, so that a failed assertion ends what computes, too.
pub struct Stop(pub Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Counts tasks that have begun to compute.
#[derive(Default)]
struct Begun(Arc<AtomicUsize>);

impl Begun {
    fn computing(&self, stop: &Stop) -> impl Future<Output = ()> + Send + 'static {
        let (begun, stop) = (self.0.clone(), stop.0.clone());
        async move {
            begun.fetch_add(1, SeqCst);
            compute(&stop);
        }
    }

    /// So many tasks compute, or wait for a worker that does; and then one that an event wakes.
    fn have_the_reserve_compute(&self, runtime: &Runtime, workers: usize, tasks: usize, stop: &Stop) {
        let last = self.computing(stop);
        let after_an_event = async {
            Timer::after(Duration::from_millis(50)).await;
            last.await;
        };
        runtime.spawn(after_an_event).detach();
        (0..tasks).for_each(|_| runtime.spawn(self.computing(stop)).detach());
        eventually("the reserve computes as well", || self.count() > workers);
    }

    fn count(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// All workers compute, and there are more tasks of that kind: one thread comes, which sees to events and leaves these tasks
/// alone. Fails without a reserve (nobody answers), and if a reserve takes surplus (the same).
#[test]
fn events_are_seen_to_by_one_thread_beside_those_that_compute() {
    for_setups(
        |setup| setup.threads <= 2,
        |setup, runtime| {
            let mut ping = Ping::new(runtime);
            let stop = Stop(Arc::default());
            let spawned = Instant::now();
            let begun = Begun::default();
            (0..4 * setup.threads).for_each(|_| runtime.spawn(begun.computing(&stop)).detach());
            eventually("all workers compute", || begun.count() >= setup.threads);
            // Not for longer than until they are asked to help out after all.
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(200) {
                assert!(ping.ping() < SOON);
                let most = setup.threads + on_top(spawned.elapsed());
                assert!(runtime.metrics().workers <= most, "{}", runtime.metrics());
            }
        },
    );
}

/// A task that all workers compute for, in vain, is run in the end, by the one thread that there may be beside them.
#[test]
fn who_computes_until_a_task_has_run_waits_for_a_while_and_not_for_ever() {
    for_setups(
        |setup| setup.threads <= 2,
        |setup, runtime| {
            let stop = Arc::new(AtomicBool::new(false));
            let begun = Arc::new(Barrier::new(setup.threads + 1));
            let spawned = Instant::now();
            let computing: Vec<_> = (0..setup.threads)
                .map(|_| {
                    let (stop, begun) = (stop.clone(), begun.clone());
                    runtime.spawn(async move {
                        begun.wait();
                        compute(&stop);
                    })
                })
                .collect();
            begun.wait();
            runtime.spawn(async move { stop.store(true, SeqCst) }).detach();
            computing.into_iter().for_each(pollster::block_on);
            let most = on_top(spawned.elapsed());
            assert!(runtime.metrics().replacements <= most as u64, "{}", runtime.metrics());
        },
    );
}

/// What an event wakes computes as well, on the one thread that there is beside those that do: events are seen to all the same, a
/// while later. Fails if that thread counts as the last one that may come.
#[test]
fn events_are_seen_to_although_the_reserve_computes_too() {
    for_setups(
        |setup| setup.threads <= 2,
        |setup, runtime| {
            let mut ping = Ping::new(runtime);
            let stop = Stop(Arc::default());
            let spawned = Instant::now();
            Begun::default().have_the_reserve_compute(runtime, setup.threads, setup.threads, &stop);
            (0..3).for_each(|_| _ = ping.ping());
            let most = setup.threads + 1 + on_top(spawned.elapsed());
            assert!(runtime.metrics().workers <= most, "{}", runtime.metrics());
        },
    );
}

/// The same beside a guest, who leads meanwhile, and leaves what events wake behind tasks that nobody comes to. Fails if a reserve
/// that computes stays the reserve until nobody leads.
#[test]
fn what_a_guest_wakes_is_seen_to_although_the_reserve_computes() {
    for_setups(
        |setup| setup.threads <= 2,
        |setup, runtime| {
            let mut ping = Ping::new(runtime);
            let stop = Stop(Arc::default());
            Begun::default().have_the_reserve_compute(runtime, setup.threads, setup.threads + 10, &stop);
            let ended = stop.0.clone();
            thread::scope(|scope| {
                scope.spawn(|| {
                    runtime.block_on(async {
                        while !ended.load(SeqCst) {
                            Timer::after(Duration::from_millis(5)).await;
                        }
                    });
                });
                let _stop = stop;
                (0..20).for_each(|_| _ = ping.ping());
            });
        },
    );
}

/// All workers compute, and what events wake blocks, again and again: each time one is missing, and no more than that. (One came
/// each time that it began to, once, and found tasks that compute.)
#[test]
fn a_handler_that_blocks_beside_those_that_compute_gets_few_threads() {
    let runtime = Runtime::builder().threads(2).build().unwrap();
    let stop = Stop(Arc::default());
    let stopped = stop.0.clone();
    let blocks = runtime.spawn(async move {
        while !stopped.load(SeqCst) {
            Timer::after(Duration::from_millis(1)).await;
            thread::sleep(Duration::from_millis(3));
        }
    });
    thread::sleep(Duration::from_millis(50));
    for _ in 0..20 {
        let stop = stop.0.clone();
        let computes = async move {
            while !stop.load(SeqCst) {
                compute_for(Duration::from_millis(20));
                future::yield_now().await;
            }
        };
        runtime.spawn(computes).detach();
    }
    let mut most = 0;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        most = most.max(runtime.metrics().workers);
        thread::sleep(Duration::from_millis(5));
    }
    drop(stop);
    pollster::block_on(blocks);
    // Two, one that blocks, a reserve; and that one's successors, who may be late to go.
    assert!(most <= 6, "{most} workers");
}

/// Rounds of many short tasks are no reason for a thread. (318 to 510 of them, once.)
#[test]
fn a_long_round_of_tasks_gets_no_thread() {
    let runtime = Runtime::builder().threads(2).build().unwrap();
    let mut ping = Ping::new(&runtime);
    let stop = Stop(Arc::default());
    for _ in 0..500 {
        let stop = stop.0.clone();
        let yields = async move {
            while !stop.load(SeqCst) {
                compute_for(Duration::from_micros(50));
                future::yield_now().await;
            }
        };
        runtime.spawn(yields).detach();
    }
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(500) {
        ping.ping();
    }
    // None, but for a moment at which a worker waits for a lock that another one has, which has lost its core.
    assert!(runtime.metrics().replacements <= 2, "{}", runtime.metrics());
}

/// Each of them blocks until all of them do.
#[test]
fn handlers_that_block_are_replaced_one_after_the_other() {
    const HANDLERS: usize = 16;
    let runtime = Runtime::builder().threads(2).build().unwrap();
    let mut took = Vec::new();
    for _ in 0..3 {
        let all = Arc::new(Barrier::new(HANDLERS));
        let start = Instant::now();
        let tasks: Vec<_> = (0..HANDLERS)
            .map(|_| {
                let all = all.clone();
                runtime.spawn(async move { _ = all.wait() })
            })
            .collect();
        tasks.into_iter().for_each(pollster::block_on);
        took.push(start.elapsed());
    }
    // Sixteen milliseconds or so the first time, and hardly any after that.
    assert!(took.iter().min().unwrap() < &Duration::from_secs(1), "{took:?}");
    assert!(runtime.metrics().workers <= HANDLERS + 3, "{}", runtime.metrics());
}

/// One core, and others that use it. A task of some microseconds that loses its core in the middle of a poll is neither a
/// stall nor a reason for a thread. (In a process of its own, all of which is on that core.)
#[test]
fn who_waits_for_a_core_gets_no_thread() {
    if !is_child("busy::who_waits_for_a_core_gets_no_thread", ":") {
        return;
    }
    let cores = rustix::thread::sched_getaffinity(None).unwrap();
    let mut one = rustix::thread::CpuSet::new();
    one.set((0..rustix::thread::CpuSet::MAX_CPU).find(|core| cores.is_set(*core)).unwrap());
    rustix::thread::sched_setaffinity(None, &one).unwrap();
    let runtime = Runtime::builder().threads(2).build().unwrap();
    let mut pings: Vec<_> = (0..4).map(|_| Ping::new(&runtime)).collect();
    let stop = Stop(Arc::default());
    let others: Vec<_> = (0..4)
        .map(|_| {
            let stop = stop.0.clone();
            thread::spawn(move || compute(&stop))
        })
        .collect();
    let computing: Vec<_> = (0..4)
        .map(|_| {
            let stop = stop.0.clone();
            runtime.spawn(async move {
                while !stop.load(SeqCst) {
                    compute_for(Duration::from_micros(20));
                    future::yield_now().await;
                }
            })
        })
        .collect();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        pings.iter_mut().for_each(|ping| _ = ping.ping());
    }
    drop(stop);
    others.into_iter().for_each(|other| other.join().unwrap());
    computing.into_iter().for_each(pollster::block_on);
    let metrics = runtime.metrics();
    if cfg!(polling_test_poll_backend) {
        // There `polling` has a lock that is held during each wait, and who is to be woken out of that has no core either.
        return;
    }
    assert_eq!(metrics.stalls, 0, "{metrics}");
    // None, but for a moment at which a worker waits for a lock that another one has, which has lost its core.
    assert!(metrics.replacements <= 2, "{metrics}");
}

/// What the kernel has given to a thread of this process so far.
fn processor_time(thread: rustix::thread::Pid) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).unwrap_or_default();
    Duration::from_nanos(text.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

/// One of two workers is in a task and has no core; the other one sleeps in a task, for a lock that the first one has, as far as
/// anybody knows. Another task waits. Nobody is added: both go on when the first one has a core. Fails without `Hands::waits`.
#[test]
fn nobody_stands_in_for_who_sleeps_beside_a_worker_without_a_core() {
    if !is_child("busy::nobody_stands_in_for_who_sleeps_beside_a_worker_without_a_core", ":") {
        return;
    }
    // Where the first one was given a core, after all, nothing is shown.
    let shown = (0..10).any(|_| sleeps_beside_a_worker_without_a_core());
    eprintln!("{}", if shown { "shown" } else { "not shown: the rivals left it a core each time" });
}

fn sleeps_beside_a_worker_without_a_core() -> bool {
    // Of these it would count as one that computes after a whole millisecond.
    const LITTLE: Duration = Duration::from_micros(700);
    let cores = rustix::thread::sched_getaffinity(None).unwrap();
    let mut one = rustix::thread::CpuSet::new();
    one.set((0..rustix::thread::CpuSet::MAX_CPU).find(|core| cores.is_set(*core)).unwrap());
    let end = Latch::new();
    let runtime = Runtime::builder().threads(2).build().unwrap();
    let stop = Stop(Arc::default());
    let rivals: Vec<_> = (0..4)
        .map(|_| {
            let stop = stop.0.clone();
            thread::spawn(move || {
                rustix::thread::sched_setaffinity(None, &one).unwrap();
                compute(&stop);
            })
        })
        .collect();
    let (tell, told) = mpsc::channel();
    let (stopped, tells) = (stop.0.clone(), tell.clone());
    let starves = runtime.spawn(async move {
        rustix::thread::sched_setaffinity(None, &one).unwrap();
        let me = rustix::thread::gettid();
        tells.send((me, processor_time(me))).unwrap();
        // Runs at any time, and never for long.
        while !stopped.load(SeqCst) {
            thread::yield_now();
        }
    });
    let (thread, before) = told.recv_timeout(SOON).unwrap();
    let is_starved = || processor_time(thread).saturating_sub(before) < LITTLE;
    eventually("it is noticed", || runtime.metrics().starved > 0 || !is_starved());
    let _end = OpenOnDrop(end.clone());
    let sleeps = runtime.spawn(async move {
        tell.send((thread, before)).unwrap();
        end.wait();
    });
    told.recv_timeout(SOON).unwrap();
    let waits = runtime.spawn(async {});
    let start = Instant::now();
    let mut replacements = 0;
    while start.elapsed() < Duration::from_millis(200) && replacements == 0 && is_starved() {
        thread::sleep(Duration::from_millis(1));
        replacements = runtime.metrics().replacements;
    }
    let shown = is_starved();
    assert!(!shown || replacements == 0, "{}", runtime.metrics());
    drop(stop);
    drop(_end);
    rivals.into_iter().for_each(|rival| rival.join().unwrap());
    [starves, sleeps, waits].into_iter().for_each(pollster::block_on);
    shown
}
