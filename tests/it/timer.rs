//! Timers that are set while something waits for them, and when a poll says that they are due.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{StreamExt, future};
use paceline::{Timer, block_on};

/// A deadline a minute away, moved to now while its task waits. (Fails if a timer that stays armed is taken to be ahead
/// of the clock at its next poll: the alarm is spent by then, so it never fires.)
fn moved_while_waited_for(wait: fn(Arc<Mutex<Timer>>), earlier: fn(&mut Timer)) {
    let timer = Arc::new(Mutex::new(Timer::after(Duration::from_secs(60))));
    let setter = thread::spawn({
        let timer = timer.clone();
        move || {
            // Its reference is the third: the waiter has polled when there is one.
            while Arc::strong_count(&timer) < 3 {
                thread::yield_now();
            }
            earlier(&mut timer.lock().unwrap());
        }
    });
    let start = Instant::now();
    wait(timer);
    setter.join().unwrap();
    assert!(start.elapsed() < Duration::from_secs(30), "the timer kept its first deadline");
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
fn an_earlier_deadline_is_kept_whoever_waits() {
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

/// The first poll tells the time: whoever polls once, and late, gets an answer.
#[test]
fn a_first_poll_after_the_deadline_is_ready() {
    let timers = [Timer::after(Duration::from_millis(1)), Timer::interval(Duration::from_millis(1))];
    thread::sleep(Duration::from_millis(5));
    for timer in timers {
        assert!(block_on(future::poll_once(timer)).is_some());
    }
}
