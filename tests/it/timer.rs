//! Timers that are set while a task waits for them, and when a poll reports that they are due.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{StreamExt, future};
use paceline::{Timer, block_on};

const HOUR: Duration = Duration::from_secs(3600);

/// A deadline an hour away is moved to now while its task waits. (Fails if a timer that stays armed is taken
/// to be ahead of the clock at its next poll: the alarm is spent by then, so it never fires.)
fn moved_while_waited_for(wait: fn(Arc<Mutex<Timer>>), earlier: fn(&mut Timer)) {
    let timer = Arc::new(Mutex::new(Timer::after(HOUR)));
    let setter = thread::spawn({
        let timer = timer.clone();
        move || {
            // The waiter holds the third reference: when there is one, it has polled.
            while Arc::strong_count(&timer) < 3 {
                thread::yield_now();
            }
            earlier(&mut timer.lock().unwrap());
        }
    });
    wait(timer);
    setter.join().unwrap();
}

async fn wait_for(timer: Arc<Mutex<Timer>>) {
    let mut polled = None;
    poll_fn(|cx| {
        let result = Pin::new(&mut *timer.lock().unwrap()).poll_next(cx);
        polled.get_or_insert_with(|| timer.clone());
        result
    })
    .await;
}

#[test]
fn an_earlier_deadline_is_kept_by_each_kind_of_wait() {
    let settings: [fn(&mut Timer); 4] = [
        |timer| timer.set_after(Duration::from_secs(1)),
        |timer| timer.set_after(Duration::from_millis(1)),
        |timer| timer.set_at(Instant::now()),
        |timer| timer.set_interval(Duration::from_secs(1)),
    ];
    for earlier in settings {
        moved_while_waited_for(|timer| block_on(wait_for(timer)), earlier);
        moved_while_waited_for(|timer| future::block_on(wait_for(timer)), earlier);
    }
}

/// A timer past its deadline is ready at its first poll, regardless of how far ahead the deadline was when it
/// was set. Fails if a deadline that was set a second ahead is taken to be in the future.
#[test]
fn a_first_poll_after_the_deadline_is_ready() {
    let mut deadlines = Vec::new();
    for ahead in [0, 1, 999, 1000, 1001].map(Duration::from_millis) {
        let mut after = Timer::never();
        after.set_after(ahead);
        let mut interval = Timer::never();
        interval.set_interval(ahead.max(Duration::from_millis(1)));
        deadlines.extend([
            Timer::after(ahead),
            Timer::interval(ahead.max(Duration::from_millis(1))),
            after,
            interval,
        ]);
    }
    // Armed for an earlier deadline that another task's poll has seen pass: the alarm is spent.
    let mut spent = Timer::after(Duration::from_millis(1));
    block_on(&mut spent);
    spent.set_after(Duration::from_secs(1));
    deadlines.push(spent);
    let last = deadlines.iter().filter_map(Timer::deadline).max().unwrap();
    thread::sleep(last.saturating_duration_since(Instant::now()));
    for (number, timer) in deadlines.into_iter().enumerate() {
        assert!(block_on(future::poll_once(timer)).is_some(), "the timer of number {number} is late");
    }
}

/// The same if the thread has polled nothing since it made the timer, and if it made the timer in the same
/// poll.
#[test]
fn a_deadline_that_passes_within_a_poll_is_seen_in_it() {
    block_on(async {
        let timer = Timer::after(Duration::from_secs(1));
        thread::sleep(Duration::from_secs(1));
        assert!(future::poll_once(timer).await.is_some());
    });
}

/// Thousands of timers are due at once, and a socket becomes readable while they fire: the socket does not
/// wait for all of them, and they keep their order. Fails if the timers of a batch come before its sources,
/// or if the poller is asked again only after the last timer.
#[cfg(unix)]
#[test]
fn a_source_does_not_wait_for_all_timers_that_are_due() {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::task::{Context, Poll};

    use crate::setups::{SOON, waker_that, without_deputy};

    const TIMERS: usize = 3000;
    const WRITES: usize = 100;
    /// The rest of one row of timers, one more, and some room.
    const SHORTLY: usize = 100;

    // A deputy would make another thread lead while this thread sleeps.
    without_deputy(|_, runtime| {
        // Only this thread leads.
        runtime.shutdown(SOON).unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let ours = Arc::new(ours);
        let fired = Arc::new(AtomicUsize::new(0));
        let seen = Arc::new(AtomicUsize::new(0));
        let disorder = Arc::new(AtomicUsize::new(0));
        runtime.block_on(async {
            let theirs = paceline::Async::new(theirs).unwrap();
            let mut timers: Vec<_> = (0..TIMERS).map(|_| Timer::after(HOUR)).collect();
            for (number, timer) in timers.iter_mut().enumerate() {
                let (fired, disorder, ours) = (fired.clone(), disorder.clone(), ours.clone());
                let waker = waker_that(move || {
                    if fired.fetch_add(1, SeqCst) != number {
                        disorder.fetch_add(1, SeqCst);
                    }
                    if number == WRITES {
                        (&*ours).write_all(b"x").unwrap();
                    }
                });
                let polled = Pin::new(timer).poll_next(&mut Context::from_waker(&waker));
                assert!(polled.is_pending());
            }
            let reader = waker_that({
                let (seen, fired) = (seen.clone(), fired.clone());
                move || seen.store(fired.load(SeqCst), SeqCst)
            });
            let waits = theirs.poll_readable(&mut Context::from_waker(&reader)).is_pending();
            assert!(waits);
            let mut last = Timer::after(HOUR);
            assert!(future::poll_once(&mut last).await.is_none());
            let soon = Instant::now() + Duration::from_millis(20);
            let at = |number: usize| soon + Duration::from_nanos(number as u64);
            last.set_at(at(TIMERS));
            // In another order than that of the deadlines.
            for (number, timer) in timers.iter_mut().enumerate().rev() {
                timer.set_at(at(number));
            }
            thread::sleep(at(TIMERS).saturating_duration_since(Instant::now()));
            // The first look for events finds all of them due. The last one wakes this task.
            let mut waits = true;
            poll_fn(|_| if std::mem::take(&mut waits) { Poll::Pending } else { Poll::Ready(()) }).await;
            assert_eq!(fired.load(SeqCst), TIMERS);
        });
        assert_eq!(disorder.load(SeqCst), 0, "timers fired out of order");
        let seen = seen.load(SeqCst);
        assert!((WRITES..WRITES + SHORTLY).contains(&seen), "{seen} timers came first");
    });
}

/// A thread sleeps about once per millisecond, and not for each timer. Fails if the runtime has no slack.
#[cfg(unix)]
#[test]
fn timers_in_a_row_share_wake_ups() {
    for portable in [false, true] {
        let tuning = paceline::Tuning::default().portable(portable);
        let runtime = paceline::Runtime::builder().threads(1).tuning(tuning).build().unwrap();
        let soon = Instant::now() + Duration::from_millis(100);
        let timers: Vec<_> = (0..1_000)
            .map(|number| runtime.spawn(Timer::at(soon + Duration::from_micros(20 * number))))
            .collect();
        for timer in timers {
            runtime.block_on(timer);
        }
        let sleeps = runtime.metrics().sleeps;
        assert!(sleeps < 100, "{sleeps} sleeps in 20 ms");
    }
}

/// A timer goes into `select!` directly: one that has fired is left out, one that is set again or fires
/// repeatedly is not.
#[test]
fn select_takes_timers_that_will_fire() {
    let (mut once, mut ticks) = (Timer::after(Duration::ZERO), Timer::interval(Duration::from_millis(1)));
    let (mut fired, mut ticked) = (0, 0);
    block_on(async {
        while fired < 2 || ticked < 5 {
            futures::select! {
                _ = once => fired += 1,
                _ = futures::StreamExt::next(&mut ticks) => ticked += 1,
            }
            if fired == 1 && ticked == 3 {
                once.set_after(Duration::ZERO);
            }
        }
        futures::select! {
            _ = once => unreachable!("it has fired"),
            complete => {}
        }
    });
    assert_eq!(fired, 2);
}
