//! A limit for a future: which of the two wins, when the clock starts, and what happens to the other.

use std::error::Error;
use std::future::{pending, poll_fn, ready};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use futures::channel::oneshot;
use futures_lite::future;
use paceline::{Elapsed, Timer, spawn, timeout};

use crate::setups::for_each_setup;

const SHORT: Duration = Duration::from_millis(5);
const HOUR: Duration = Duration::from_secs(3600);

/// In tasks and in `block_on`.
#[test]
fn a_future_has_as_long_as_it_is_given_and_no_longer() {
    for_each_setup(|runtime| {
        let limited = || async {
            let start = Instant::now();
            let late = timeout(SHORT, pending::<()>()).await.unwrap_err();
            assert!(start.elapsed() >= SHORT);
            assert_eq!(late.duration(), SHORT);
            assert_eq!(timeout(HOUR, Timer::after(SHORT)).await.map(drop), Ok(()));
        };
        runtime.block_on(limited());
        runtime.block_on(runtime.spawn(limited()));
    });
}

/// A future that is ready when the time is over is not late. Fails if the clock is asked first.
#[test]
fn a_ready_future_wins_against_a_deadline_that_has_passed() {
    for_each_setup(|runtime| {
        runtime.block_on(async {
            assert_eq!(timeout(Duration::ZERO, ready(1)).await, Ok(1));
            let limited = loop {
                let mut is_polled = false;
                let second = poll_fn(move |_| {
                    if std::mem::replace(&mut is_polled, true) { Poll::Ready(2) } else { Poll::Pending }
                });
                let mut limited = Box::pin(timeout(SHORT, second));
                // Unless this thread had no core before the first poll.
                if future::poll_once(&mut limited).await.is_none() {
                    break limited;
                }
            };
            thread::sleep(2 * SHORT);
            assert_eq!(limited.await, Ok(2));
            assert!(timeout(Duration::ZERO, pending::<()>()).await.is_err());
        });
    });
}

#[test]
fn a_limit_that_is_too_long_for_the_clock_is_none() {
    for_each_setup(|runtime| {
        runtime.block_on(async {
            let mut limited = Box::pin(timeout(Duration::MAX, pending::<()>()));
            assert_eq!(future::poll_once(&mut limited).await, None);
            assert_eq!(timeout(Duration::MAX, Timer::after(SHORT)).await.map(drop), Ok(()));
        });
    });
}

/// Fails if the timer is polled before the future, or regardless of the future's answer.
#[test]
fn a_timer_is_armed_only_for_a_future_that_waits() {
    for_each_setup(|runtime| {
        runtime.block_on(async {
            let before = runtime.metrics().timers;
            let mut quick = Box::pin(timeout(HOUR, ready(())));
            assert_eq!(future::poll_once(&mut quick).await, Some(Ok(())));
            assert_eq!(runtime.metrics().timers, before);
            let mut slow = Box::pin(timeout(HOUR, pending::<()>()));
            assert_eq!(future::poll_once(&mut slow).await, None);
            assert_eq!(runtime.metrics().timers, before + 1);
            drop(slow);
            assert_eq!(runtime.metrics().timers, before, "it is cancelled with its future");
        });
    });
}

/// The time counts from the call, so a future that is polled late has used its time.
#[test]
fn the_time_counts_from_the_call() {
    for_each_setup(|runtime| {
        let limited = timeout(SHORT, pending::<()>());
        thread::sleep(2 * SHORT);
        assert_eq!(runtime.block_on(future::poll_once(limited)).map(|late| late.is_err()), Some(true));
    });
}

/// A task with a deadline is cancelled while it waits, and named by its spawn line.
#[test]
fn a_task_that_is_late_is_named_by_its_place() {
    for_each_setup(|runtime| {
        let task = runtime.spawn(timeout(SHORT, async { timeout(HOUR, pending::<()>()).await }));
        let line = line!() - 1;
        let late = runtime.block_on(task).unwrap_err();
        assert_eq!((late.given_at().file(), late.given_at().line()), (file!(), line));
        assert!(late.to_string().starts_with(&format!("not done within 5ms, given at {}:{line}:", file!())));
    });
}

/// A late future is dropped with the await; a borrowed one goes on.
#[test]
fn a_future_that_is_late_is_dropped_unless_it_was_lent() {
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    for_each_setup(|runtime| {
        let drops = Arc::new(AtomicUsize::new(0));
        let one = Dropped(drops.clone());
        let task = runtime.spawn(timeout(SHORT, async move {
            pending::<()>().await;
            drop(one);
        }));
        assert!(runtime.block_on(task).is_err());
        assert_eq!(drops.load(SeqCst), 1);
        runtime.block_on(async {
            let (tell, told) = oneshot::channel();
            let mut lent = spawn(told);
            assert!(timeout(SHORT, &mut lent).await.is_err());
            tell.send("it goes on").unwrap();
            assert_eq!(lent.await, Ok("it goes on"));
        });
    });
}

#[test]
fn timed_out_is_an_error_of_io_too() {
    let late: Elapsed = paceline::block_on(timeout(Duration::ZERO, pending::<()>())).unwrap_err();
    let error = io::Error::from(late);
    assert_eq!((error.kind(), error.to_string()), (io::ErrorKind::TimedOut, late.to_string()));
    let source =
        error.get_ref().and_then(|inner| (inner as &(dyn Error + 'static)).downcast_ref::<Elapsed>());
    assert_eq!(source, Some(&late.clone()));
}
