//! Of reserves there is one, and no second one but for a moment; and a pool that is busy tries both ways.

use std::sync::mpsc;
use std::thread;

use super::*;
use crate::Runtime;

const SOON: Duration = Duration::from_secs(10);

/// Waits until it holds.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < SOON, "{what}: not within {SOON:?}");
        thread::sleep(Duration::from_micros(200));
    }
}

/// The runners of the crew's that are there; and those of them that are reserves.
fn runners_and_reserves(pool: &Pool) -> (usize, usize) {
    let stations = pool.stations();
    let are_reserves: Vec<_> =
        hands::crew_runners(pool, &stations).map(|(_, runner)| runner.is_reserve()).collect();
    (are_reserves.len(), are_reserves.into_iter().filter(|is_reserve| *is_reserve).count())
}

/// However many came: where one was late to start, another one may have been started. Fails if a second one stays what it is.
#[test]
fn of_several_reserves_one_is_left() {
    // Who has nothing to do goes after a second, and so do reserves. Then it is tried again.
    let are_drafted = || {
        let runtime = Runtime::builder().threads(1).build().unwrap();
        let pool = runtime.pool();
        let (end, ended) = mpsc::channel::<()>();
        // The deputy looks as long as somebody is at something.
        let computes = runtime.spawn(async move {
            while ended.try_recv() == Err(mpsc::TryRecvError::Empty) {
                std::hint::spin_loop();
            }
        });
        assert!((0..3).all(|_| hands::add_thread(pool, true)));
        let mut most = 0;
        eventually("one is left", || {
            let (runners, reserves) = runners_and_reserves(pool);
            most = most.max(runners);
            most == 4 && (reserves == 1 || runners < 4)
        });
        let found = runners_and_reserves(pool);
        drop(end);
        pollster::block_on(computes);
        found == (4, 1)
    };
    assert!((0..5).any(|_| are_drafted()), "reserves stay until they go");
}

/// Who was hired as the reserve is missed at no moment: not while it starts, unless it takes too long, and not afterwards.
#[test]
fn a_reserve_that_starts_is_one_until_it_is_late() {
    const NEVER: Duration = Duration::from_secs(3600);
    let (start, starts) = mpsc::channel::<()>();
    let starts = std::sync::Mutex::new(starts);
    let hook = move || _ = starts.lock().unwrap().recv_timeout(SOON);
    start.send(()).unwrap();
    let runtime = Runtime::builder().threads(1).max_blind(NEVER).on_thread_start(hook).build().unwrap();
    let (pool, crew) = (runtime.pool(), runtime.pool().crew().expect("a runtime has one"));
    let staff = |limit| {
        let staff = crew.staff(Instant::now(), limit);
        (staff.live, staff.late, staff.reserve)
    };
    eventually("the worker has started", || staff(Duration::ZERO) == (1, 0, false));
    assert!(hands::add_thread(pool, true));
    assert_eq!(staff(NEVER), (2, 0, true));
    assert_eq!(staff(Duration::ZERO), (2, 1, false));
    start.send(()).unwrap();
    eventually("it has started", || staff(Duration::ZERO) == (2, 0, true));
}

/// Two tasks that send a byte to and fro: events as fast as one thread can.
#[cfg(unix)]
async fn rally(end: std::os::unix::net::UnixStream, serves: bool) -> std::io::Result<()> {
    use futures_lite::{AsyncReadExt, AsyncWriteExt};
    let mut end = crate::Async::new(end)?;
    if serves {
        end.write_all(&[0]).await?;
    }
    loop {
        end.read_exact(&mut [0]).await?;
        end.write_all(&[0]).await?;
    }
}

/// The deputy has a pool try both ways that is busy all the time; and one that sleeps for long in between does as it has learned.
#[test]
#[cfg(unix)]
fn who_is_busy_all_the_time_tries_both_ways() {
    let runtime = Runtime::builder().threads(2).build().unwrap();
    let gain = &runtime.pool().leadership.gain;
    let rallies: Vec<_> = (0..64)
        .flat_map(|_| {
            let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
            [runtime.spawn(rally(ours, true)), runtime.spawn(rally(theirs, false))]
        })
        .collect();
    eventually("the other way is tried", || gain.is_lavish());
    drop(rallies);
    eventually("it is busy no more", || {
        pollster::block_on(runtime.spawn(crate::Timer::after(Duration::from_millis(5))));
        !gain.is_lavish()
    });
}
