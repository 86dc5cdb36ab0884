//! A clock that tests can stop. Each test would take hours, or hang, if time did not leap; and see other moments if it leapt too early.

use std::future::pending;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{StreamExt, future};
use paceline::blocking::Job;
use paceline::{Async, Runtime, Timer, clock, spawn, timeout, unblock};

const HOUR: Duration = Duration::from_secs(3600);

/// Runs a test in a runtime whose clock stands, for each way to wait.
fn paused<F: Future<Output = ()>>(test: impl Fn(Instant) -> F) {
    for portable in [false, true] {
        let began = Instant::now();
        let runtime = Runtime::builder().current_thread().portable(portable).build().unwrap();
        runtime.block_on(async {
            clock::pause();
            test(clock::now()).await;
        });
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}

#[test]
fn timers_fire_in_order_each_at_its_moment() {
    paused(async |start| {
        let (tell, told) = mpsc::channel();
        let after =
            [5, 1, 3, 2, 4].map(|number| (number, HOUR * number + Duration::from_nanos(u64::from(number))));
        let tasks = after.map(|(number, after)| {
            let tell = tell.clone();
            spawn(async move {
                Timer::after(after).await;
                tell.send((number, clock::now() - start)).unwrap();
            })
        });
        for task in tasks {
            task.await;
        }
        let mut expected = after;
        expected.sort();
        assert!(told.try_iter().eq(expected));

        let ticks: Vec<_> = Timer::interval(HOUR).take(3).collect().await;
        assert_eq!(ticks.map_each(start), [6, 7, 8].map(|number| HOUR * number + Duration::from_nanos(5)));
        assert!(timeout(HOUR, pending::<()>()).await.is_err());
    });
}

trait Since {
    fn map_each(&self, start: Instant) -> Vec<Duration>;
}

impl Since for Vec<Instant> {
    fn map_each(&self, start: Instant) -> Vec<Duration> {
        self.iter().map(|at| *at - start).collect()
    }
}

/// What is there to be done comes before the next timer: tasks, events, and what blocks. (The last fails if nothing is held.)
#[test]
fn it_leaps_only_where_nothing_else_is_to_be_done() {
    paused(async |start| {
        let late = Arc::new(AtomicBool::new(false));
        let told = late.clone();
        let timer = spawn(async move {
            Timer::after(HOUR).await;
            told.store(true, SeqCst);
        });
        for _ in 0..1000 {
            future::yield_now().await;
        }
        assert!(!late.load(SeqCst), "tasks are to be polled");

        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let ours = Async::new(ours).unwrap();
        for _ in 0..100 {
            theirs.write_all(b"a").unwrap();
            let reads = spawn(async { future::yield_now().await });
            ours.read_with(|mut stream| stream.read(&mut [0])).await.unwrap();
            reads.await;
        }
        assert!(!late.load(SeqCst), "events are there");

        let real = Instant::now();
        unblock(|| thread::sleep(Duration::from_millis(30))).await;
        Job::new(|| thread::sleep(Duration::from_millis(30))).submit().await.unwrap();
        assert!(!late.load(SeqCst), "somebody blocks");
        assert!(real.elapsed() >= Duration::from_millis(60));
        assert_eq!(clock::now(), start);
        timer.await;
        assert_eq!(clock::now(), start + HOUR);
    });
}

/// (Fails if who leaves off blocking tells nobody: the leader sleeps for ever.)
#[test]
fn what_blocks_for_nobody_holds_it_until_it_ends() {
    paused(async |start| {
        unblock(|| thread::sleep(Duration::from_millis(20))).detach();
        let real = Instant::now();
        Timer::after(HOUR).await;
        assert!(real.elapsed() >= Duration::from_millis(20));
        assert_eq!(clock::now(), start + HOUR);
    });
}

/// A task that computes, or blocks its thread, has something to do, although others lead for it meanwhile.
#[test]
fn who_leads_for_a_task_that_blocks_does_not_leap() {
    paused(async |start| {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let waits = spawn(async move { Async::new(ours).unwrap().readable().await });
        let timer = spawn(Timer::after(HOUR));
        while paceline::Handle::current().metrics().timers == 0 {
            future::yield_now().await;
        }
        thread::sleep(Duration::from_millis(50));
        assert_eq!(clock::now(), start);
        timer.await;
        assert_eq!(clock::now(), start + HOUR);
        drop(waits);
    });
}

#[test]
fn it_is_moved_by_hand_and_goes_on() {
    paused(async |start| {
        let timer = spawn(Timer::after(HOUR));
        clock::advance(HOUR - Duration::from_nanos(1)).await;
        future::yield_now().await;
        assert!(!timer.is_finished());
        clock::advance(Duration::from_nanos(1)).await;
        assert_eq!(timer.await, start + HOUR);

        clock::resume();
        let real = Instant::now();
        Timer::after(Duration::from_millis(20)).await;
        assert!(real.elapsed() >= Duration::from_millis(20));
        let passed = clock::now() - start - HOUR;
        assert!(passed >= Duration::from_millis(20) && passed < HOUR, "{passed:?}");

        // It stands again where it was, and what was announced meanwhile counts no more.
        let timer = spawn(Timer::after(Duration::from_millis(30)));
        future::yield_now().await;
        clock::pause();
        timer.await;
        Timer::after(HOUR).await;
    });
}

/// It wakes its task just before it lets the clock go: where that comes after the thread has looked for tasks, it has to look again.
#[test]
fn what_a_closure_wakes_comes_before_the_leap() {
    paused(async |start| {
        for _ in 0..10_000 {
            let task = spawn(async { unblock(|| 7).await });
            assert_eq!(timeout(HOUR, task).await.unwrap(), 7);
            assert_eq!(clock::now(), start);
        }
    });
}

/// (Fails if the earliest deadline there was is taken for one that there is.)
#[test]
fn it_leaps_to_no_timer_that_was_cancelled() {
    paused(async |start| {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let ours = Async::new(ours).unwrap();
        assert!(future::poll_once(Timer::after(HOUR)).await.is_none());
        let other = thread::spawn(move || {
            thread::sleep(Duration::from_millis(10));
            theirs.write_all(b"a").unwrap();
        });
        ours.read_with(|mut stream| stream.read(&mut [0])).await.unwrap();
        assert_eq!(clock::now(), start);
        other.join().unwrap();
    });
}

/// Nothing is gathered any more. (Fails if what was to be gathered before is.)
#[test]
fn timers_are_on_time_from_the_moment_when_it_stands() {
    let runtime = Runtime::builder().current_thread().timer_slack(Duration::from_secs(1)).build().unwrap();
    runtime.block_on(async {
        Timer::after(Duration::from_millis(1)).await;
        let timer = spawn(async {
            Timer::after(Duration::from_millis(100)).await;
            clock::now()
        });
        future::yield_now().await;
        clock::pause();
        let paused = clock::now();
        let late = timer.await - paused;
        assert!(late <= Duration::from_millis(100), "{late:?}");
    });
}

/// Whoever leaves off blocking between the look for that and the sleep interrupts nobody. (Hangs after some hundred rounds if the sleep
/// does not look once more.)
#[test]
fn the_end_of_what_blocks_is_not_missed() {
    paused(async |_| {
        for _ in 0..2000 {
            unblock(|| ()).detach();
            Timer::after(Duration::from_millis(1)).await;
        }
    });
}

/// Its deadline is one of the clock's, which stands while it runs.
#[test]
fn a_job_is_late_by_the_clock_only() {
    paused(async |start| {
        let sleeps = || thread::sleep(Duration::from_millis(20));
        Job::new(sleeps).deadline(Duration::from_millis(1)).submit().await.unwrap();
        Timer::after(HOUR).await;
        Job::new(sleeps).deadline(Duration::from_secs(1)).submit().await.unwrap();
        assert_eq!(clock::now(), start + HOUR);
    });
}

#[test]
fn each_runtime_has_its_own() {
    paused(async |start| {
        let other = thread::spawn(|| {
            let runtime = Runtime::builder().current_thread().build().unwrap();
            runtime.block_on(async {
                let (real, shown) = (Instant::now(), clock::now());
                Timer::after(Duration::from_millis(5)).await;
                assert!(real.elapsed() >= Duration::from_millis(5) && clock::now() - shown < HOUR);
            });
        });
        Timer::after(HOUR).await;
        assert_eq!(clock::now(), start + HOUR);
        unblock(move || other.join().unwrap()).await;
    });
}

#[test]
fn where_it_cannot_be_stopped_it_says_so() {
    let said = |call: fn()| {
        let panic = thread::spawn(call).join().unwrap_err();
        panic
            .downcast_ref::<&str>()
            .map(|said| (*said).to_owned())
            .or_else(|| panic.downcast_ref().cloned())
            .unwrap()
    };
    assert!(said(clock::pause).contains("Builder::current_thread"));
    assert!(
        said(|| Runtime::builder().threads(1).build().unwrap().block_on(async { clock::pause() }))
            .contains("current thread")
    );
    let twice = || {
        Runtime::builder().current_thread().build().unwrap().block_on(async {
            clock::pause();
            clock::pause();
        });
    };
    assert!(said(twice).contains("stands already"));
    let goes = || Runtime::builder().current_thread().build().unwrap().block_on(async { clock::resume() });
    assert!(said(goes).contains("does not stand"));
}
