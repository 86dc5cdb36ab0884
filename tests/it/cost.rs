//! Behaviour that would cost performance without failing, visible in the metrics.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use async_channel::bounded;
use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use paceline::{Async, Promotion, Role, Runtime, Timer, Tuning, block_on, spawn};

use crate::given_time::RecvSoon;
use crate::idle_threads::{assert_all_rest, statuses, switches, switches_in};
use crate::setups::{
    Latch, OpenOnDrop, Ping, SOON, Setup, eventually, for_each_setup, for_setups, is_child, without_deputy,
    without_looks,
};

/// Tasks that read one byte after the other, each from a socket of its own, and call `handler` for each byte.
struct Burst {
    runtime: Arc<Runtime>,
    trigger: UnixStream,
}

impl Burst {
    /// `events` tasks wait. One more task writes to all of their sockets when it is triggered, so that the
    /// wait that follows returns all of their events together.
    fn new(runtime: &Arc<Runtime>, events: usize, handler: impl Fn() + Clone + Send + 'static) -> Self {
        let (tell, told) = mpsc::channel();
        let wait_for_byte = move |mut socket: Async<UnixStream>, tell: mpsc::Sender<()>| async move {
            // Later bytes find no receiver.
            let _ = tell.send(());
            socket.read_exact(&mut [0]).await.is_ok().then_some(socket)
        };
        let (mut ours, theirs): (Vec<_>, Vec<_>) = (0..events).map(|_| UnixStream::pair().unwrap()).unzip();
        for socket in theirs {
            let (tell, handler) = (tell.clone(), handler.clone());
            let serve = async move {
                let mut socket = Async::new(socket).unwrap();
                while let Some(same) = wait_for_byte(socket, tell.clone()).await {
                    socket = same;
                    handler();
                }
            };
            runtime.spawn(serve).detach();
        }
        let (trigger, triggered) = UnixStream::pair().unwrap();
        let write = async move {
            let mut socket = Async::new(triggered).unwrap();
            while let Some(same) = wait_for_byte(socket, tell.clone()).await {
                socket = same;
                ours.iter_mut().for_each(|socket| socket.write_all(b"x").unwrap());
            }
        };
        runtime.spawn(write).detach();
        (0..=events).for_each(|_| told.recv_soon().unwrap());
        Self { runtime: runtime.clone(), trigger }
    }

    /// Triggers the burst while all workers sleep, so that a worker that is awake afterwards was woken for
    /// this burst, and no worker that was still awake takes some of its events. The test needs a process of
    /// its own.
    fn trigger(&mut self) {
        let sleep = [Role::Leads, Role::Follows];
        eventually("all workers sleep", || {
            let threads = self.runtime.threads();
            let have_roles = threads.iter().all(|thread| sleep.contains(&thread.role));
            have_roles && are_asleep("worker", self.runtime.metrics().workers)
        });
        self.trigger.write_all(b"x").unwrap();
    }
}

/// Returns whether exactly `number` threads of this process have names that begin with `name`, and all of
/// them sleep: two looks agree, with no context switch between them. A thread that was woken and waits for a
/// processor does not sleep, and one that has not started has no name.
fn are_asleep(name: &str, number: usize) -> bool {
    let look = || -> Option<Vec<u64>> {
        let threads = statuses().into_iter().filter(|(thread, _)| thread.contains(&format!("Name:\t{name}")));
        let sleeps = |status: &str| status.lines().any(|line| line.starts_with("State:\tS"));
        threads.map(|(_, status)| sleeps(&status).then(|| switches_in(&status))).collect()
    };
    let first = look();
    first.as_ref().is_some_and(|switches| switches.len() == number) && look() == first
}

/// What `Promotion::Adaptive` promises: a follower is woken if two events are left beside the first, and not
/// for fewer. Without the deputy, which wakes followers for reasons of its own.
///
/// Measures what one wait of the system returns: a thread that is late gets more events, or fewer. Its exact
/// twin is `a_wake_is_worth_it_only_where_a_follower_sleeps_and_two_events_are_left` in
/// `src/leadership/tests.rs`; only this test shows that the pool passes the number of events to that rule.
#[test]
#[ignore = "timed: how many followers are woken for a burst of events"]
fn two_events_that_are_left_wake_a_follower_and_one_does_not() {
    if !is_child("cost::two_events_that_are_left_wake_a_follower_and_one_does_not", ":") {
        return;
    }
    for (threads, portable) in [(2, false), (2, true), (4, false), (4, true)] {
        let setup = Setup { threads, promotion: Promotion::Adaptive, portable, deputy: false };
        let runtime = &Arc::new(setup.build());
        let mut bursts = [(1, 0), (2, 0), (3, 1)].map(|(events, wakes)| {
            let (done, is_done) = mpsc::channel();
            let begun = Arc::new(AtomicUsize::new(0));
            // A woken follower begins a handler before the burst ends, so it is not on its way at the next
            // burst.
            let handler = move || {
                let first = begun.fetch_add(1, SeqCst) / events * events;
                let start = Instant::now();
                while begun.load(SeqCst) <= first + wakes && start.elapsed() < SOON {
                    thread::yield_now();
                }
                done.send(()).unwrap();
            };
            (events, wakes as u64, Burst::new(runtime, events, handler), is_done)
        });
        // All bursts stay until the end, because their end is a burst, too.
        for (events, wakes, burst, is_done) in &mut bursts {
            let mut round = || {
                let before = runtime.metrics().promotions_paid;
                burst.trigger();
                (0..*events).for_each(|_| is_done.recv_soon().unwrap());
                runtime.metrics().promotions_paid - before
            };
            // In the first round each socket also reports that it is writable.
            round();
            for _ in 0..10 {
                assert_eq!(round(), *wakes, "followers woken for {events} events at once, {setup}");
            }
        }
    }
}

/// A follower is woken for a single event if the polls that events cause are long. Fails if the deputy does
/// not tell the leader so: with one connection two events are never left.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn single_events_that_cause_long_polls_wake_followers() {
    use crate::busy::own_processor_time;

    for_setups(
        |setup| setup.promotion == Promotion::Adaptive && setup.threads > 1,
        |_, runtime| {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            let serve = async move {
                let mut stream = Async::new(theirs).unwrap();
                let mut byte = [0];
                while let Ok(1) = stream.read(&mut byte).await {
                    let start = own_processor_time();
                    while own_processor_time() - start < Duration::from_micros(200) {}
                    stream.write_all(&byte).await.unwrap();
                }
            };
            runtime.spawn(serve).detach();
            let before = runtime.metrics().promotions_paid;
            eventually("followers are woken", || {
                for _ in 0..50 {
                    ours.write_all(b"x").unwrap();
                    ours.read_exact(&mut [0]).unwrap();
                }
                runtime.metrics().promotions_paid >= before + 10
            });
        },
    );
}

/// Each woken runner wakes the next one while tasks are left. Without the deputy, which moves waiting tasks.
/// No task ends before as many have begun as there are threads, so a thread that sleeps beside tasks is a
/// deadlock.
#[test]
fn long_tasks_of_one_parent_spread_over_all_threads() {
    without_deputy(|setup, runtime| {
        let (begun, all, threads) = (Arc::new(AtomicUsize::new(0)), Latch::new(), setup.threads);
        let seen = begun.clone();
        let parent = async move {
            for _ in 0..2 * threads {
                let (begun, all) = (begun.clone(), all.clone());
                let long = async move {
                    if begun.fetch_add(1, SeqCst) + 1 == threads {
                        all.open();
                    }
                    all.wait();
                };
                spawn(long).detach();
            }
        };
        runtime.spawn(parent).detach();
        eventually("all tasks have begun", || seen.load(SeqCst) == 2 * threads);
    });
}

/// The promotion of the paper, on request: a follower is woken before each event.
#[test]
fn eager_promotion_wakes_a_follower_per_event() {
    for_setups(
        |setup| setup.promotion == Promotion::Eager && setup.threads > 1,
        |_, runtime| {
            let mut ping = Ping::new(runtime);
            let before = runtime.metrics().promotions_paid;
            // Not before every event: a follower that is on its way is not woken again.
            eventually("events are paid for", || {
                ping.ping();
                runtime.metrics().promotions_paid >= before + 10
            });
        },
    );
}

/// Two tasks that wake each other in turn stay on one thread, regardless of other threads. Without the
/// deputy, which takes a descheduled thread for a stuck one, and lets other threads help.
#[test]
fn ping_pong_stays_on_one_thread() {
    const ROUNDS: usize = 2_000;
    without_deputy(|_, runtime| {
        let threads: Arc<Mutex<HashMap<thread::ThreadId, usize>>> = Arc::default();
        let (left, right) = (bounded::<()>(1), bounded::<()>(1));
        let play = |tell: async_channel::Sender<()>, told: async_channel::Receiver<()>| {
            let threads = threads.clone();
            async move {
                for _ in 0..ROUNDS {
                    let _ = tell.send(()).await;
                    if told.recv().await.is_err() {
                        break;
                    }
                    *threads.lock().unwrap().entry(thread::current().id()).or_default() += 1;
                }
            }
        };
        let (one, other) = (play(left.0, right.1), play(right.0, left.1));
        runtime.block_on(runtime.spawn(async move {
            let other = spawn(other);
            one.await;
            other.await;
        }));
        let threads = threads.lock().unwrap();
        let (all, most) = (threads.values().sum::<usize>(), *threads.values().max().unwrap());
        assert!(most * 4 >= all * 3, "turns by thread: {threads:?}");
    });
}

/// Four tasks share one lock: every wake runs them somewhere, with as few thefts as possible. (A benchmark
/// shows that two workers are no slower than one.)
#[test]
fn tasks_on_one_mutex_all_get_it() {
    for_each_setup(|runtime| {
        let (give, take) = bounded::<usize>(1);
        give.try_send(0).unwrap();
        let work = |_| {
            let (give, take) = (give.clone(), take.clone());
            runtime.spawn(async move {
                for _ in 0..200 {
                    let held = take.recv().await.unwrap();
                    future::yield_now().await;
                    give.send(held + 1).await.unwrap();
                }
            })
        };
        let tasks: Vec<_> = (0..4).map(work).collect();
        tasks.into_iter().for_each(|task| runtime.block_on(task));
        assert_eq!(take.try_recv(), Ok(800));
    });
}

/// Idle with sources and a far timer, no thread runs at all (LF9).
///
/// Measures two seconds in which no thread may run; no exact test says that of a whole process.
#[test]
#[ignore = "timed: no thread runs for two seconds"]
fn an_idle_process_does_nothing() {
    if !is_child("cost::an_idle_process_does_nothing", ":") {
        return;
    }
    let mut kept = Vec::new();
    for threads in [1, 2, 4] {
        for portable in [false, true] {
            for promotion in [Promotion::Adaptive, Promotion::Eager] {
                let tuning = Tuning::default().portable(portable).promotion(promotion);
                let builder = Runtime::builder().threads(threads).tuning(tuning);
                let runtime = builder.thread_name(format!("w{threads}{portable}")).build().unwrap();
                let mut ping = Ping::new(&runtime);
                let far = runtime.spawn(async { Timer::after(Duration::from_secs(3600)).await });
                (0..200).for_each(|_| assert!(ping.ping() < SOON));
                kept.push((runtime, threads, ping, far));
            }
        }
    }
    // The default instance, too, led by its own workers.
    block_on(spawn(Timer::after(Duration::from_millis(1))));
    // A worker that was late on a busy machine was replaced; a thread too many leaves after a second.
    for (runtime, threads, ..) in &kept {
        eventually("no thread is left that took the place of another", || {
            runtime.metrics().workers == *threads
        });
    }
    assert_all_rest();
    kept.iter_mut().for_each(|(_, _, ping, _)| assert!(ping.ping() < SOON));
}

/// Tasks are spawned from many threads at once: every task runs exactly once.
#[test]
fn tasks_spawned_from_many_threads_run_once() {
    const SPAWNERS: usize = 6;
    const TASKS: usize = 1_000;
    for_each_setup(|runtime| {
        let ran: Arc<Vec<AtomicUsize>> =
            Arc::new((0..SPAWNERS * TASKS).map(|_| AtomicUsize::new(0)).collect());
        thread::scope(|scope| {
            for spawner in 0..SPAWNERS {
                let ran = &ran;
                scope.spawn(move || {
                    let spawn = |task: usize| {
                        let ran = ran.clone();
                        runtime.spawn(async move { ran[spawner * TASKS + task].fetch_add(1, SeqCst) })
                    };
                    let tasks: Vec<_> = (0..TASKS).map(spawn).collect();
                    for (number, task) in tasks.into_iter().enumerate() {
                        if number % 2 == 0 { assert_eq!(runtime.block_on(task), 0) } else { task.detach() }
                    }
                });
            }
        });
        eventually("all tasks are done", || runtime.metrics().tasks == Some(0));
        assert!(ran.iter().all(|count| count.load(SeqCst) == 1));
    });
}

/// A steady stream of requests adds no registrations: no source and no timer is left behind.
#[test]
fn nothing_piles_up() {
    for_each_setup(|runtime| {
        let before = runtime.metrics();
        for _ in 0..30 {
            let mut ping = Ping::new(runtime);
            ping.ping();
        }
        runtime.block_on(async {
            for _ in 0..50 {
                let mut timer = Timer::after(Duration::from_secs(100));
                assert!(future::poll_once(&mut timer).await.is_none());
            }
        });
        eventually("what was closed is gone", || {
            let now = runtime.metrics();
            (now.sources, now.timers, now.tasks) == (before.sources, before.timers, before.tasks)
        });
    });
}

/// One wait returns many events, and the handler of the first one blocks: awake threads handle the rest.
#[test]
fn a_batch_hides_no_events_from_other_threads() {
    const SOCKETS: usize = 60;
    for_each_setup(|runtime| {
        let (mut ours, theirs): (Vec<_>, Vec<_>) = (0..SOCKETS).map(|_| UnixStream::pair().unwrap()).unzip();
        let latch = Latch::new();
        let free = OpenOnDrop(latch.clone());
        let first = Arc::new(AtomicUsize::new(0));
        let (tell, told) = mpsc::channel();
        let read = |socket| {
            let (latch, first, tell) = (latch.clone(), first.clone(), tell.clone());
            runtime.spawn(async move {
                let mut socket = Async::new(socket).unwrap();
                tell.send(()).unwrap();
                socket.read_exact(&mut [0]).await.unwrap();
                if first.fetch_add(1, SeqCst) == 0 {
                    latch.wait();
                } else {
                    tell.send(()).unwrap();
                }
            })
        };
        let tasks: Vec<_> = theirs.into_iter().map(read).collect();
        (0..SOCKETS).for_each(|_| told.recv_soon().unwrap());
        let start = Instant::now();
        ours.iter_mut().for_each(|socket| socket.write_all(b"x").unwrap());
        for number in 1..SOCKETS {
            told.recv_soon()
                .unwrap_or_else(|_| panic!("only {number} of {SOCKETS} after {:?}", start.elapsed()));
        }
        drop(free);
        tasks.into_iter().for_each(|task| runtime.block_on(task));
    });
}

/// An executor of the program, run by two of its threads in `block_on`, is polled as directly as workers poll
/// their tasks, and the polls are counted, also after the executor has ended. In a runtime without workers
/// and without a deputy, so that one of the two threads leads.
#[test]
fn polls_of_executors_that_run_here_are_counted() {
    const READS: u64 = 50;
    let builder = Runtime::builder().current_thread().tuning(without_looks());
    let runtime = Arc::new(builder.build().unwrap());
    let executor = Arc::new(paceline::Executor::new());
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let (tell, told) = mpsc::channel();
    let reader = executor.spawn(async move {
        let mut socket = Async::new(theirs).unwrap();
        for _ in 0..READS {
            tell.send(()).unwrap();
            socket.read_exact(&mut [0]).await.unwrap();
        }
    });
    let threads = [1, 2].map(|_| {
        let (runtime, executor, (stop, stopped)) = (runtime.clone(), executor.clone(), bounded::<()>(1));
        (stop, thread::spawn(move || runtime.block_on(executor.run(stopped.recv())).unwrap_err()))
    });
    for _ in 0..READS {
        told.recv_soon().unwrap();
        eventually("both threads wait", || {
            let mut roles: Vec<_> = runtime.threads().iter().map(|thread| thread.role).collect();
            roles.sort_by_key(|role| *role != Role::Leads);
            roles == [Role::Leads, Role::Follows]
        });
        ours.write_all(b"x").unwrap();
    }
    future::block_on(reader);
    for (stop, thread) in threads {
        drop(stop);
        thread.join().unwrap();
    }
    drop(executor);
    let metrics = runtime.metrics();
    assert_eq!(metrics.polls_direct, READS, "{metrics}");
}

/// A task that waits with `readable` and reads elsewhere gets one event for each message: a socket that is
/// still writable reports no event. (Fails if each wait arms the source again although nothing can be read.)
/// With one thread and without a deputy, because interrupts are events, too.
#[test]
fn a_wait_for_readability_is_one_event() {
    let builder = Runtime::builder().current_thread().tuning(without_looks());
    let runtime = builder.build().unwrap();
    let rounds = 200;
    runtime.block_on(async {
        let (ours, theirs) = Async::<UnixStream>::pair().unwrap();
        let echo = async {
            for _ in 0..rounds {
                read_after_wait(&theirs).await.unwrap();
                theirs.get_ref().write_all(b"x").unwrap();
            }
        };
        let client = async {
            for _ in 0..rounds {
                ours.get_ref().write_all(b"x").unwrap();
                read_after_wait(&ours).await.unwrap();
            }
        };
        future::zip(echo, client).await;
    });
    let metrics = runtime.metrics();
    assert!(metrics.events <= 2 * rounds + 2, "{} messages, {metrics}", 2 * rounds);
}

/// Reads as a program does that knows only `readable`.
async fn read_after_wait(socket: &Async<UnixStream>) -> std::io::Result<usize> {
    loop {
        match socket.get_ref().read(&mut [0; 16]) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => socket.readable().await?,
            result => return result,
        }
    }
}

/// If a short burst comes now and then, the deputy does not wake up for each: the last thread that goes to
/// sleep stands it down. The same holds for bursts in which a thread sleeps for a moment: the task's socket
/// becomes writable when the other side has read. (Not for the `poll` backend, where no thread stays awake,
/// and so none knows how long it sleeps.)
///
/// Measures how often the system switches to the deputy: some wake-ups are allowed, because a burst may last
/// longer than a tick. The models of `src/pool/deputy/duty/models.rs` show that no wake-up is lost, and not
/// that the deputy sleeps.
#[test]
#[ignore = "timed: how often the deputy wakes up for short bursts"]
fn the_deputy_sleeps_through_short_bursts() {
    const BURSTS: u64 = 40;
    if !is_child("cost::the_deputy_sleeps_through_short_bursts", ":") {
        return;
    }
    let runtime = Runtime::builder()
        .threads(2)
        .tuning(Tuning::default().max_blind(Duration::from_millis(20)))
        .build()
        .unwrap();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let echo = runtime.spawn(async move {
        let mut socket = Async::new(theirs).unwrap();
        let mut byte = [0];
        while socket.read_exact(&mut byte).await.is_ok() {
            socket.write_all(&byte).await.unwrap();
        }
    });
    let mut echoed = |before_reading| {
        ours.write_all(b"x").unwrap();
        thread::sleep(before_reading);
        ours.read_exact(&mut [0]).unwrap();
    };
    let deputy =
        || switches().into_iter().find(|(thread, _)| thread.ends_with("deputy")).map(|(_, count)| count);
    eventually("the deputy is there", || {
        echoed(Duration::ZERO);
        deputy().is_some()
    });
    for before_reading in [Duration::ZERO, Duration::from_millis(2)] {
        let before = deputy().unwrap();
        for _ in 0..BURSTS {
            thread::sleep(Duration::from_millis(50));
            echoed(before_reading);
        }
        let woken = deputy().unwrap() - before;
        assert!(woken < BURSTS / 2, "woken {woken} times for {BURSTS} bursts, {before_reading:?}");
    }
    drop(ours);
    runtime.block_on(echo);
}
