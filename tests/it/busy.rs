//! Blocked is not busy: a thread that blocks is replaced; a thread that computes, or waits for its core, is
//! not.

use std::collections::HashMap;
use std::ffi::{c_int, c_long};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future;
use paceline::{Builder, Runtime, Timer};
use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::given_time::RecvSoon;
use crate::setups::{Latch, OpenOnDrop, Ping, SOON, Setup, eventually, for_each_builder, is_child};

/// Computes until it is told to stop.
pub fn compute(stop: &AtomicBool) {
    while !stop.load(SeqCst) {
        std::hint::spin_loop();
    }
}

/// Computes for this time by the wall clock.
fn compute_for(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {}
}

/// Sets the flag when it is dropped, so that a failed assertion also ends the tasks that compute.
pub struct Stop(pub Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// How much processor time the calling thread has used.
pub fn own_processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap()
}

/// How often the calling thread has gone to sleep, including for a page or for a lock of a sanitizer.
fn own_sleeps() -> u64 {
    /// Two times, each of two numbers, and fourteen counts, of which the last but one is this one.
    type Usage = [c_long; 18];
    const THREAD: c_int = 1;
    unsafe extern "C" {
        fn getrusage(who: c_int, usage: *mut Usage) -> c_int;
    }
    let mut usage: Usage = [0; 18];
    // SAFETY: the array is as large as C's structure.
    assert_eq!(unsafe { getrusage(THREAD, &mut usage) }, 0);
    usage[16] as u64
}

/// How often another thread has gone to sleep: `None` if it is gone.
fn sleeps(thread: Pid) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/self/task/{}/status", thread.as_raw_nonzero())).ok()?;
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    Some(count.unwrap().trim().parse().unwrap())
}

/// A task that computes until it is told to stop. It takes no lock, so that it never sleeps in one.
#[derive(Default)]
struct Computing {
    /// When it began, on which thread, and how often that had slept before.
    begun: OnceLock<(Instant, Pid, u64)>,
    /// The microseconds of processor time that it has used since then.
    used: AtomicU64,
    /// How often the thread had slept when the task ended.
    slept_at_end: OnceLock<u64>,
}

impl Computing {
    fn until(&self, stop: &AtomicBool) {
        let slept = own_sleeps();
        let before = own_processor_time();
        let is_first = self.begun.set((Instant::now(), gettid(), slept)).is_ok();
        assert!(is_first);
        while !stop.load(SeqCst) {
            self.used.store((own_processor_time() - before).as_micros() as u64, SeqCst);
        }
        self.slept_at_end.set(own_sleeps()).unwrap();
    }

    /// How long it has computed. A tenth of the time on the wall counts, too. `None` before it begins.
    fn computed(&self) -> Option<Duration> {
        let used = Duration::from_micros(self.used.load(SeqCst));
        self.begun.get().map(|(begun, ..)| (begun.elapsed() / 10).max(used))
    }

    /// How often its thread has slept meanwhile.
    fn slept(&self) -> u64 {
        let slept = |(_, thread, before): &(_, Pid, u64)| {
            self.slept_at_end.get().copied().or_else(|| sleeps(*thread)).unwrap() - before
        };
        self.begun.get().map_or(0, slept)
    }
}

/// Counts what decides how many workers a runtime may have: tasks that compute, how often their threads sleep
/// nevertheless, and threads that start late.
#[derive(Clone, Default)]
struct Count {
    tasks: Arc<Mutex<Vec<Arc<Computing>>>>,
    /// For each thread that the runtime starts, until it runs: the time of the request.
    starting: Arc<Mutex<HashMap<String, Instant>>>,
    late: Arc<AtomicUsize>,
    /// How often threads have slept in the echo of a [`ping`](Self::ping) and in
    /// [`compute_for`](Self::compute_for).
    slept: Arc<AtomicU64>,
}

impl Count {
    /// The runtime treats a thread that takes ten milliseconds to start as one that blocks. (Its clock starts
    /// a moment earlier than the one of this count.)
    const LATE: Duration = Duration::from_millis(9);

    /// Builds a runtime whose threads are counted.
    fn build(&self, builder: Builder) -> Runtime {
        let (starting, started, late) = (self.starting.clone(), self.starting.clone(), self.late.clone());
        let builder = builder.thread_names(move |number| {
            let name = format!("worker-{number}");
            starting.lock().unwrap().insert(name.clone(), Instant::now());
            name
        });
        let builder = builder.on_thread_start(move || {
            let asked = started.lock().unwrap().remove(thread::current().name().unwrap()).unwrap();
            late.fetch_add(usize::from(asked.elapsed() >= Self::LATE), SeqCst);
        });
        builder.build().unwrap()
    }

    /// Returns a ping of which the echo is counted, too.
    fn ping(&self, runtime: &Runtime) -> Ping {
        let slept = self.slept.clone();
        Ping::echoed_by(runtime, |mut echo| {
            future::poll_fn(move |context| {
                let before = own_sleeps();
                let result = echo.as_mut().poll(context);
                slept.fetch_add(own_sleeps() - before, SeqCst);
                result
            })
        })
    }

    /// The threads that took, or have taken so far, ten milliseconds to start.
    fn late(&self) -> usize {
        let starting = self.starting.lock().unwrap();
        starting.values().filter(|asked| asked.elapsed() >= Self::LATE).count() + self.late.load(SeqCst)
    }

    /// Returns a future that computes until it is told to stop.
    fn computing(&self, stop: &Stop) -> impl Future<Output = ()> + Send + 'static {
        let (task, stop) = (Arc::<Computing>::default(), stop.0.clone());
        self.tasks.lock().unwrap().push(task.clone());
        async move { task.until(&stop) }
    }

    /// Spawns so many tasks that compute, and one more that an event wakes; waits until the spare worker
    /// computes in that one.
    fn have_the_spare_worker_compute(&self, runtime: &Runtime, workers: usize, tasks: usize, stop: &Stop) {
        let last = self.computing(stop);
        let after_an_event = async {
            Timer::after(Duration::from_millis(50)).await;
            last.await;
        };
        runtime.spawn(after_an_event).detach();
        (0..tasks).for_each(|_| runtime.spawn(self.computing(stop)).detach());
        eventually("the spare worker computes as well", || self.tasks() > workers);
    }

    /// Computes for this time by the wall clock.
    fn compute_for(&self, time: Duration) {
        let before = own_sleeps();
        compute_for(time);
        self.slept.fetch_add(own_sleeps() - before, SeqCst);
    }

    /// How often threads have slept while they computed. The runtime replaces a thread that sleeps, because
    /// it cannot know for what.
    fn slept(&self) -> usize {
        let slept = self.tasks.lock().unwrap().iter().map(|task| task.slept()).sum::<u64>();
        (slept + self.slept.load(SeqCst)) as usize
    }

    /// How many threads the runtime may have replaced, because they started late or slept.
    fn replaced(&self) -> usize {
        self.late() + self.slept()
    }

    /// How many tasks have begun to compute.
    fn tasks(&self) -> usize {
        self.computed().len()
    }

    /// The times for which tasks have computed, the longest first.
    fn computed(&self) -> Vec<Duration> {
        let mut all: Vec<_> = self.tasks.lock().unwrap().iter().filter_map(|task| task.computed()).collect();
        all.sort_by(|a, b| b.cmp(a));
        all
    }

    /// The largest number of workers that do not block: one more than `threads`, and another one each time
    /// that all of these have computed for long, which is a tenth of a second, then twice as long, and so on.
    fn most(&self, threads: usize) -> usize {
        let computed = self.computed();
        let extra = Self::extra(|extra| computed.get(threads - 1 + extra).copied());
        threads + 1 + extra + self.replaced()
    }

    /// The same if the spare worker computes, too: another one is added after the same time.
    fn most_beside_spare(&self, threads: usize) -> usize {
        let longest = self.computed().first().copied();
        threads + 1 + Self::extra(|_| longest) + self.replaced()
    }

    fn extra(computed: impl Fn(usize) -> Option<Duration>) -> usize {
        const LONG: Duration = Duration::from_millis(100);
        let is_long = |extra: &usize| computed(*extra).is_some_and(|time| time >= LONG * (1 << extra));
        (0..16).take_while(is_long).count()
    }

    /// Asserts that the runtime has no more workers than `most` says after they were counted.
    #[track_caller]
    fn assert_few_workers(&self, runtime: &Runtime, most: impl Fn(&Self) -> usize) {
        let metrics = runtime.metrics();
        let (slept, mut most) = (self.slept(), most(self));
        if metrics.workers > most {
            // Sleeps outside of the tasks that compute are counted when they are over.
            thread::sleep(Duration::from_millis(100));
            most += self.slept() - slept;
        }
        assert!(
            metrics.workers <= most,
            "more than {most}, {} were late, {} slept: {:?}\n{metrics}",
            self.late(),
            self.slept(),
            self.computed()
        );
    }
}

/// Runs `body` for runtimes of one and two workers, with a fresh count.
fn for_few_threads(body: impl Fn(Setup, &Arc<Runtime>, Count) + Send + Sync + 'static) {
    for_each_builder(move |setup| {
        if setup.threads <= 2 {
            let count = Count::default();
            body(setup, &Arc::new(count.build(setup.builder())), count);
        }
    });
}

/// All workers compute, and there are more tasks of that kind: the runtime adds one thread, which serves
/// events and leaves these tasks alone. Fails without a spare worker (no thread answers), and if that worker
/// takes surplus (the same).
#[test]
fn events_are_seen_to_by_one_thread_beside_those_that_compute() {
    for_few_threads(|setup, runtime, count| {
        let mut ping = count.ping(runtime);
        let stop = Stop(Arc::default());
        (0..4 * setup.threads).for_each(|_| runtime.spawn(count.computing(&stop)).detach());
        eventually("all workers compute", || count.tasks() >= setup.threads);
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(200) {
            assert!(ping.ping() < SOON);
            count.assert_few_workers(runtime, |count| count.most(setup.threads));
        }
    });
}

/// A task waits while all workers compute: the runtime adds a thread for it, but only after they have
/// computed for long.
#[test]
fn a_task_for_which_all_workers_compute_runs_after_a_while() {
    for_few_threads(|setup, runtime, count| {
        let stop = Stop(Arc::default());
        let spawn = |_| runtime.spawn(count.computing(&stop));
        let computing: Vec<_> = (0..setup.threads).map(spawn).collect();
        eventually("all workers compute", || count.tasks() == setup.threads);
        let stops = stop.0.clone();
        runtime.spawn(async move { stops.store(true, SeqCst) }).detach();
        computing.into_iter().for_each(pollster::block_on);
        count.assert_few_workers(runtime, |count| count.most(setup.threads));
        let (most, metrics) = (count.most(setup.threads), runtime.metrics());
        assert!(most > setup.threads + 1, "too soon, after {:?}\n{metrics}", count.computed());
    });
}

/// An event wakes a task that computes, too, on the one thread beside those that compute. Another thread
/// serves events a while later. Fails if that one thread counts as the last one that may be added.
#[test]
fn events_are_seen_to_although_the_spare_worker_computes_too() {
    for_few_threads(|setup, runtime, count| {
        let mut ping = count.ping(runtime);
        let stop = Stop(Arc::default());
        count.have_the_spare_worker_compute(runtime, setup.threads, setup.threads, &stop);
        (0..3).for_each(|_| _ = ping.ping());
        count.assert_few_workers(runtime, |count| count.most_beside_spare(setup.threads));
    });
}

/// The same beside a guest, which leads meanwhile and puts the tasks that events wake behind tasks that no
/// thread takes. Fails if no other worker is added until no thread leads.
#[test]
fn what_a_guest_wakes_is_seen_to_although_the_spare_worker_computes() {
    for_few_threads(|setup, runtime, count| {
        let mut ping = count.ping(runtime);
        let stop = Stop(Arc::default());
        count.have_the_spare_worker_compute(runtime, setup.threads, setup.threads + 10, &stop);
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
    });
}

/// All workers compute, and the task that events wake blocks again and again: each time one thread is
/// missing, and no more. Fails if the runtime adds a thread each time the handler blocks.
#[test]
fn a_handler_that_blocks_beside_those_that_compute_gets_few_threads() {
    let count = Count::default();
    let runtime = count.build(Runtime::builder().threads(2));
    let stop = Stop(Arc::default());
    let (stopped, times) = (stop.0.clone(), Arc::new(AtomicUsize::new(0)));
    let blocked = times.clone();
    let blocks = runtime.spawn(async move {
        while !stopped.load(SeqCst) {
            Timer::after(Duration::from_millis(1)).await;
            thread::sleep(Duration::from_millis(3));
            blocked.fetch_add(1, SeqCst);
        }
    });
    eventually("it is known to block", || times.load(SeqCst) >= 10);
    for _ in 0..20 {
        let (count, stop) = (count.clone(), stop.0.clone());
        let computes = async move {
            while !stop.load(SeqCst) {
                count.compute_for(Duration::from_millis(20));
                future::yield_now().await;
            }
        };
        runtime.spawn(computes).detach();
    }
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        count.assert_few_workers(&runtime, |count| count.most(2) + 1);
        thread::sleep(Duration::from_millis(5));
    }
    drop(stop);
    pollster::block_on(blocks);
}

/// Rounds of many short tasks add no threads.
#[test]
fn a_long_round_of_tasks_gets_no_threads() {
    let count = Count::default();
    let runtime = count.build(Runtime::builder().threads(2));
    let mut ping = Ping::new(&runtime);
    let stop = Stop(Arc::default());
    for _ in 0..500 {
        let (count, stop) = (count.clone(), stop.0.clone());
        let yields = async move {
            while !stop.load(SeqCst) {
                count.compute_for(Duration::from_micros(50));
                future::yield_now().await;
            }
        };
        runtime.spawn(yields).detach();
    }
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(500) {
        ping.ping();
        // One thread may be added if a worker has lost its core.
        count.assert_few_workers(&runtime, |count| count.most(2));
    }
}

/// Each handler blocks until all of them do.
#[test]
fn handlers_that_block_are_replaced_one_after_the_other() {
    const HANDLERS: usize = 16;
    let count = Count::default();
    let runtime = count.build(Runtime::builder().threads(2));
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
    // About sixteen milliseconds the first time, and hardly any later.
    assert!(took.iter().max().unwrap() < &SOON, "{took:?}");
    count.assert_few_workers(&runtime, |count| count.most(2) + HANDLERS);
}

/// Other programs use the only core. A task of some microseconds that loses its core in the middle of a poll
/// is neither a stall nor a reason to add a thread. (In a process of its own, with all threads on that core.)
#[test]
fn a_worker_that_waits_for_a_core_is_not_replaced() {
    if !is_child("busy::a_worker_that_waits_for_a_core_is_not_replaced", ":") {
        return;
    }
    sched_setaffinity(None, &one_core()).unwrap();
    let count = Count::default();
    let runtime = count.build(Runtime::builder().threads(2));
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
        // On the portable path `polling` holds a lock during each wait, and the thread to be woken from it
        // has no core either.
        return;
    }
    assert_eq!(metrics.stalls, 0, "{metrics}");
    assert!(metrics.replacements <= count.late() as u64, "{} were late: {metrics}", count.late());
}

/// Returns a core that this process may use.
fn one_core() -> CpuSet {
    let cores = sched_getaffinity(None).unwrap();
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|core| cores.is_set(*core)).unwrap());
    one
}

unsafe extern "C" {
    fn sched_setscheduler(thread: c_int, policy: c_int, priority: *const c_int) -> c_int;
}

/// Sets the scheduling policy of the calling thread: 0 is the usual one, 5 leaves the core to all others.
/// Returns false if the system refuses it.
fn set_policy(policy: c_int) -> bool {
    // SAFETY: the kernel reads one number, the priority, which is 0 for both policies.
    unsafe { sched_setscheduler(0, policy, &0) == 0 }
}

/// Threads that compute on one core, and leave nearly nothing of it to [`starve`](Rivals::starve).
pub struct Rivals(Vec<thread::JoinHandle<()>>, Stop);

impl Rivals {
    pub fn new() -> Self {
        let stop = Stop(Arc::default());
        let rival = |_| {
            let stop = stop.0.clone();
            thread::spawn(move || {
                sched_setaffinity(None, &one_core()).unwrap();
                compute(&stop);
            })
        };
        Self((0..4).map(rival).collect(), stop)
    }

    /// Returns a future that is always runnable, on a thread that gets less than a thousandth of the rivals'
    /// core until they end; and the processor time that it has used, in microseconds.
    pub fn starve(&self) -> (impl Future<Output = ()> + Send + 'static, Arc<AtomicU64>) {
        let (stop, used) = (self.1.0.clone(), Arc::new(AtomicU64::new(0)));
        let tell = used.clone();
        let starves = async move {
            let before = own_processor_time();
            sched_setaffinity(None, &one_core()).unwrap();
            assert!(set_policy(5));
            while !stop.load(SeqCst) {
                let time = own_processor_time() - before;
                tell.store(1 + time.as_micros() as u64, SeqCst);
                thread::yield_now();
            }
            // Without the privilege to take it back, the thread keeps its policy until the runtime ends.
            set_policy(0);
        };
        (starves, used)
    }

    pub fn end(self) {
        drop(self.1);
        self.0.into_iter().for_each(|rival| rival.join().unwrap());
    }
}

/// One of two workers is in a task and has no core. The other one sleeps in a task, as far as the runtime
/// knows for a lock that the first one holds. Another task waits. No thread is added: both workers go on when
/// the first one has a core. Fails without `Workforce::waits`.
#[test]
fn a_worker_that_sleeps_beside_one_without_a_core_is_not_replaced() {
    if !is_child("busy::a_worker_that_sleeps_beside_one_without_a_core_is_not_replaced", ":") {
        return;
    }
    // A task that has used this much processor time may soon count as one that computes, which takes a
    // millisecond.
    const LITTLE: u64 = 700;
    let end = Latch::new();
    let _end = OpenOnDrop(end.clone());
    let runtime = Runtime::builder().threads(2).build().unwrap();
    let rivals = Rivals::new();
    let (starves, used) = rivals.starve();
    let starves = runtime.spawn(starves);
    eventually("it is noticed", || runtime.metrics().starved > 0);
    let before = runtime.metrics().replacements;
    let (tell, told) = mpsc::channel();
    let sleeps = runtime.spawn(async move {
        tell.send(()).unwrap();
        end.wait();
    });
    told.recv_soon().unwrap();
    let waits = runtime.spawn(async {});
    thread::sleep(Duration::from_millis(200));
    let metrics = runtime.metrics();
    assert!(used.load(SeqCst) < LITTLE, "it had a core for {used:?} us");
    assert_eq!(metrics.replacements, before, "{metrics}");
    rivals.end();
    drop(_end);
    [starves, sleeps, waits].into_iter().for_each(pollster::block_on);
}
