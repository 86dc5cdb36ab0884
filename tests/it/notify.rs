//! Notifications and timers: none is lost, and none is needless.

use std::future::Future;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, AsyncWriteExt, StreamExt, future};
use paceline::{Async, Builder, Runtime, Timer, spawn};

use crate::given_time::RecvSoon;
use crate::setups::{
    Latch, OpenOnDrop, Ping, Setup, eventually, for_each_builder, for_each_setup, waker_that, without_deputy,
};

const HOUR: Duration = Duration::from_secs(3600);

/// Returns a builder for one worker without a deputy, so that sleeps and interrupts have one cause each.
fn with_one_worker(setup: Setup) -> Builder {
    Setup { threads: 1, deputy: false, ..setup }.builder().max_threads(1)
}

/// Waits until the leader sleeps, after this number of timers was armed.
fn leader_sleeps(runtime: &Runtime, timers: usize) {
    let mut sleeps = 0;
    eventually("the leader sleeps", || {
        let before = std::mem::replace(&mut sleeps, runtime.metrics().sleeps);
        sleeps > 0 && sleeps == before && runtime.metrics().timers == timers
    });
}

/// Wakes pile up while no thread can look: they cost no memory and no system call, and the next look sees
/// them.
#[test]
fn a_storm_of_wakes_is_seen_at_the_next_look_and_costs_few_interrupts() {
    const WAKES: usize = 100_000;
    for_each_setup(|runtime| {
        let latch = Latch::new();
        let free = OpenOnDrop(latch.clone());
        let (tell, told) = mpsc::channel::<Waker>();
        let woken = Arc::new(AtomicBool::new(false));
        let storm = thread::spawn({
            let woken = woken.clone();
            move || {
                let waker = told.recv_soon().unwrap();
                woken.store(true, SeqCst);
                (0..WAKES).for_each(|_| waker.wake_by_ref());
                drop(free);
                (0..WAKES).for_each(|_| waker.wake_by_ref());
            }
        });
        let mut first = true;
        let root = std::future::poll_fn(|cx| {
            if std::mem::take(&mut first) {
                tell.send(cx.waker().clone()).unwrap();
                latch.wait();
                return Poll::Pending;
            }
            if woken.load(SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        });
        let before = runtime.metrics().leader_interrupts;
        runtime.block_on(root);
        storm.join().unwrap();
        let interrupts = runtime.metrics().leader_interrupts - before;
        assert!(interrupts < 100, "{interrupts} interrupts for one thread that was awake");
    });
}

/// An echo server in its steady state writes to no eventfd.
#[test]
fn a_steady_echo_does_not_interrupt_the_leader() {
    without_deputy(|_, runtime| {
        let mut pings: Vec<_> = (0..4).map(|_| Ping::new(runtime)).collect();
        let before = runtime.metrics();
        for _ in 0..100 {
            pings.iter_mut().for_each(|ping| _ = ping.ping());
        }
        let after = runtime.metrics();
        assert_eq!(after.leader_interrupts - before.leader_interrupts, 0, "{after}");
        assert!(after.events - before.events >= 100);
    });
}

#[test]
fn timers_and_io_due_together_all_come() {
    for_each_setup(|runtime| {
        runtime.block_on(runtime.spawn(async {
            for _ in 0..40 {
                let (mut one, mut other) = Async::<UnixStream>::pair().unwrap();
                let at = Instant::now() + Duration::from_micros(500);
                let write = spawn(async move {
                    Timer::at(at).await;
                    one.write_all(b"x").await.unwrap();
                    one
                });
                let timer = spawn(Timer::at(at));
                other.read_exact(&mut [0]).await.unwrap();
                timer.await;
                write.await;
            }
        }));
    });
}

/// Sets timers that are armed to be due so many microseconds after the same moment, blocks the thread until
/// all are due, then yields until they have fired. Returns the order in which they fired.
async fn fired_together(after: [u64; 12]) -> Vec<usize> {
    let fired: Arc<Mutex<Vec<usize>>> = Arc::default();
    let mut timers = after.map(|_| Timer::after(HOUR));
    for (number, timer) in timers.iter_mut().enumerate() {
        let fired = fired.clone();
        let waker = waker_that(move || fired.lock().unwrap().push(number));
        assert!(Pin::new(timer).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    let start = Instant::now() + Duration::from_millis(5);
    let at = after.map(|after| start + Duration::from_micros(after));
    timers.iter_mut().zip(at).for_each(|(timer, at)| timer.set_at(at));
    thread::sleep(at.into_iter().max().unwrap().saturating_duration_since(Instant::now()));
    while fired.lock().unwrap().len() < after.len() {
        future::yield_now().await;
    }
    fired.lock().unwrap().clone()
}

/// Timers become due while no thread can look, nothing else is registered, and a task yields until all of
/// them have fired. Without the deputy, which would have made another thread look while the task blocked.
/// Fails if no thread leads for timers that were taken off the wheel and not fired yet: `Timers::any`.
#[test]
fn timers_due_together_all_fire_beside_a_task_that_yields() {
    without_deputy(|_, runtime| {
        let mut order = runtime.block_on(runtime.spawn(fired_together([0; 12])));
        order.sort();
        assert!(order.into_iter().eq(0..12));
    });
}

/// Timers that became due while no thread could look fire in the order of their deadlines, and equal ones in
/// the order of arming. On one thread, because other threads may look while the task blocks it. Fails without
/// the sort in `Timers::expire`.
#[test]
fn timers_due_together_fire_in_order() {
    const AFTER: [u64; 12] = [700, 40, 900, 40, 1, 700, 300, 65, 900, 0, 300, 40];
    without_deputy(|setup, runtime| {
        if setup.threads == 1 {
            let mut in_order: Vec<_> = (0..AFTER.len()).collect();
            in_order.sort_by_key(|number| AFTER[*number]);
            assert_eq!(runtime.block_on(runtime.spawn(fired_together(AFTER))), in_order);
        }
    });
}

/// Events never stop coming, and a timer must fire among them. Fails if the clock is read only when a wait
/// finds nothing.
#[test]
fn a_timer_fires_amid_events_that_never_stop() {
    for_each_setup(|runtime| {
        let stop = Arc::new(AtomicBool::new(false));
        let rally = |_| {
            let stop = stop.clone();
            runtime.spawn(async move {
                let (one, other) = Async::<UnixStream>::pair().unwrap();
                let side = |mut socket: Async<UnixStream>, stop: Arc<AtomicBool>| async move {
                    while !stop.load(SeqCst) {
                        socket.write_all(b"x").await.unwrap();
                        let _ = socket.read(&mut [0; 8]).await.unwrap();
                    }
                };
                let other = spawn(side(other, stop.clone()));
                side(one, stop).await;
                drop(other);
            })
        };
        let rallies: Vec<_> = (0..8).map(rally).collect();
        let (tell, told) = mpsc::channel();
        let timer = runtime.spawn(async move {
            for _ in 0..3 {
                Timer::after(Duration::from_millis(5)).await;
            }
            tell.send(()).unwrap();
        });
        told.recv_soon().expect("the timers fire while events come");
        stop.store(true, SeqCst);
        runtime.block_on(timer);
        drop(rallies);
    });
}

/// Only an earlier deadline interrupts the leader.
#[test]
fn later_timers_do_not_interrupt() {
    for_each_builder(|setup| {
        let runtime = with_one_worker(setup).build().unwrap();
        runtime.block_on(async {
            let mut near = Timer::after(HOUR / 2);
            assert!(future::poll_once(&mut near).await.is_none());
            leader_sleeps(&runtime, 1);
            let before = runtime.metrics().leader_interrupts;
            let mut far: Vec<_> = (0..500).map(|n| Timer::after(HOUR + Duration::from_secs(n))).collect();
            for timer in &mut far {
                assert!(future::poll_once(timer).await.is_none());
            }
            drop(far);
            assert_eq!(runtime.metrics().leader_interrupts, before, "for later timers");
            // An earlier timer must interrupt the leader: it is due long before the leader's wait ends.
            spawn(Timer::after(Duration::from_millis(5))).await;
        });
    });
}

/// From outside, while the leader sleeps for an hour: an earlier deadline has to wake it.
#[test]
fn an_earlier_timer_interrupts_a_leader_that_sleeps() {
    for_each_setup(|runtime| {
        let far = runtime.spawn(async { Timer::after(HOUR).await });
        leader_sleeps(runtime, 1);
        for millis in [20, 5, 1] {
            let start = Instant::now();
            runtime.block_on(async { Timer::after(Duration::from_millis(millis)).await });
            let took = start.elapsed();
            assert!(took >= Duration::from_millis(millis), "early: {took:?}");
        }
        drop(far);
    });
}

/// Such timers are not early, and no thread spins.
#[test]
fn timers_of_less_than_a_millisecond_are_not_early_and_do_not_spin() {
    const TIMERS: u64 = 30;
    for_each_builder(|setup| {
        let runtime = with_one_worker(setup).build().unwrap();
        for micros in [10, 100, 400, 900] {
            let before = runtime.metrics();
            runtime.block_on(runtime.spawn(async move {
                for _ in 0..TIMERS {
                    let start = Instant::now();
                    Timer::after(Duration::from_micros(micros)).await;
                    let took = start.elapsed();
                    assert!(took >= Duration::from_micros(micros), "{micros} us timer took {took:?}");
                }
            }));
            let after = runtime.metrics();
            let sleeps = after.sleeps - before.sleeps;
            assert!(sleeps <= 2 * TIMERS, "{sleeps} sleeps for {TIMERS} timers of {micros} us");
        }
    });
}

/// The same with a leader that does not stay awake, so that each poll of the reactor counts. Fails if the
/// leader polls for a timer that is due soon, instead of waiting for it: a timeout that is rounded down.
#[test]
fn what_is_due_within_a_millisecond_is_waited_for() {
    const TIMERS: u64 = 30;
    for_each_builder(|setup| {
        let tuning = Setup { deputy: false, ..setup }.tuning().spin(Duration::ZERO);
        let runtime = with_one_worker(setup).tuning(tuning).build().unwrap();
        let looks = || runtime.metrics().waits + runtime.metrics().empty_waits;
        let before = looks();
        runtime.block_on(runtime.spawn(async {
            for _ in 0..TIMERS {
                Timer::after(Duration::from_micros(900)).await;
            }
        }));
        let looks = looks() - before;
        assert!(looks <= 3 * TIMERS, "{looks} looks for {TIMERS} timers");
    });
}

/// Tasks respawn themselves, on every worker, beside a socket.
#[test]
fn work_that_reposts_itself_does_not_hold_the_loop() {
    fn repost(stop: Arc<AtomicBool>, turns: Arc<AtomicUsize>) {
        let again = async move {
            turns.fetch_add(1, SeqCst);
            if !stop.load(SeqCst) {
                repost(stop, turns);
            }
        };
        spawn(again).detach();
    }
    without_deputy(|setup, runtime| {
        let mut ping = Ping::new(runtime);
        let (stop, turns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..setup.threads {
            let (stop, turns) = (stop.clone(), turns.clone());
            runtime.spawn(async move { repost(stop, turns) }).detach();
        }
        let mut pings = 0;
        eventually("both go on", || {
            ping.ping();
            pings += 1;
            pings > 20 && turns.load(SeqCst) > 100
        });
        stop.store(true, SeqCst);
    });
}

/// Timers past the end of time do not fire, do not fail, and do not delay others.
#[test]
fn timers_past_the_end_of_time_never_fire() {
    for_each_setup(|runtime| {
        runtime.block_on(runtime.spawn(async {
            let forever = Timer::after(Duration::MAX);
            assert!(!forever.will_fire());
            let years = |years: u64| Duration::from_secs(years * 365 * 24 * 3600);
            let far: Vec<_> = [50, 500, 600, 5_000_000, 100_000_000_000]
                .into_iter()
                .filter_map(|n| Instant::now().checked_add(years(n)))
                .map(Timer::at)
                .collect();
            assert!(far.len() >= 3, "the clock reaches that far");
            let tasks: Vec<_> = far.into_iter().map(spawn).collect();
            let mut interval = Timer::interval(Duration::MAX);
            assert!(future::poll_once(interval.next()).await.is_none());
            let mut again = Timer::after(HOUR);
            again.set_after(Duration::MAX);
            assert!(!again.will_fire());
            for _ in 0..5 {
                Timer::after(Duration::from_millis(1)).await;
            }
            assert!(tasks.iter().all(|task| !task.is_finished()));
            assert_eq!(future::poll_once(forever).await, None);
        }));
    });
}

/// A timer with a past deadline is due at once, and so is an interval.
#[test]
fn a_timer_in_the_past_is_due_at_once() {
    for_each_setup(|runtime| {
        runtime.block_on(runtime.spawn(async {
            let start = Instant::now();
            Timer::at(start).await;
            Timer::after(Duration::ZERO).await;
            let ticks = Timer::interval_at(start, Duration::from_nanos(1)).take(100).count().await;
            assert_eq!(ticks, 100);
        }));
    });
}

/// A task waits for a readable socket and is woken by a write of its own process, over and over, while other
/// threads wake a guest: no wake is lost between the two kinds of sleep.
#[test]
fn wakes_of_guests_and_events_that_cross_are_not_lost() {
    for_each_setup(|runtime| {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let (tell, told) = async_channel::unbounded();
        let reader = runtime.spawn(async move {
            let mut socket = Async::new(theirs).unwrap();
            while let Ok(1..) = socket.read(&mut [0]).await {
                tell.send(()).await.unwrap();
            }
        });
        for _ in 0..200 {
            ours.write_all(b"x").unwrap();
            runtime.block_on(told.recv()).unwrap();
        }
        drop(ours);
        runtime.block_on(reader);
    });
}
