//! A clock that tests can pause. Each test would take hours, or hang, if a paused clock did not leap, and
//! would see other times if it leapt too early.

use std::cell::Cell;
use std::future::pending;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{StreamExt, future};
use paceline::blocking::Job;
use paceline::{Async, Runtime, Timer, Tuning, clock, spawn, timeout, unblock};

thread_local! {
    /// The file that the last panic of this thread names.
    static PLACE: Cell<Option<String>> = const { Cell::new(None) };
}

const HOUR: Duration = Duration::from_secs(3600);

/// Runs a test in a runtime with a paused clock, for each way to wait.
fn paused<F: Future<Output = ()>>(test: impl Fn(Instant) -> F) {
    for portable in [false, true] {
        let tuning = Tuning::default().portable(portable);
        let runtime = Runtime::builder().current_thread().tuning(tuning).build().unwrap();
        runtime.block_on(async {
            clock::pause();
            test(clock::now()).await;
        });
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

/// The clock leaps to the next timer only if nothing else can run: tasks, events, and closures that block.
/// (The last part fails if closures do not hold the clock.)
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
        assert!(!late.load(SeqCst), "a closure blocks");
        assert!(real.elapsed() >= Duration::from_millis(60));
        assert_eq!(clock::now(), start);
        timer.await;
        assert_eq!(clock::now(), start + HOUR);
    });
}

/// (Fails if the end of a closure notifies no thread: the leader sleeps for ever.)
#[test]
fn a_detached_closure_holds_the_clock_until_it_ends() {
    paused(async |start| {
        let real = Instant::now();
        unblock(|| thread::sleep(Duration::from_millis(20))).detach();
        Timer::after(HOUR).await;
        assert!(real.elapsed() >= Duration::from_millis(20));
        assert_eq!(clock::now(), start + HOUR);
    });
}

/// A task that computes, or blocks its thread, is not idle, although another thread leads meanwhile.
#[test]
fn a_thread_that_leads_for_a_blocked_task_does_not_leap() {
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

        // After a second pause the clock leaps to the timers again; the real deadline that was armed
        // meanwhile does not count.
        let timer = spawn(Timer::after(Duration::from_millis(30)));
        future::yield_now().await;
        clock::pause();
        timer.await;
        Timer::after(HOUR).await;
    });
}

/// A closure wakes its task just before it releases the clock: if that happens after the thread has looked
/// for tasks, the thread has to look again.
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

/// (Fails if the deadline of a cancelled timer is used.)
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

/// A closure that ends between the thread's check of closures and its sleep interrupts no thread. (Hangs
/// after some hundred rounds if the thread does not check again before it sleeps.)
#[test]
fn the_end_of_what_blocks_is_not_missed() {
    paused(async |_| {
        for _ in 0..2000 {
            unblock(|| ()).detach();
            Timer::after(Duration::from_millis(1)).await;
        }
    });
}

/// The job's deadline is one of the paused clock, which stands still while the job runs.
#[test]
fn a_job_is_late_by_the_clock_only() {
    paused(async |start| {
        let sleeps = || thread::sleep(Duration::from_millis(20));
        Job::new(sleeps).timeout(Duration::from_millis(1)).submit().await.unwrap();
        Timer::after(HOUR).await;
        Job::new(sleeps).timeout(Duration::from_secs(1)).submit().await.unwrap();
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
    let hook = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PLACE.set(info.location().map(|place| place.file().to_owned()));
        hook(info);
    }));
    // Returns the text of a panic, and the file that it names.
    let panics = |call: fn()| {
        let call = move || (panic::catch_unwind(call).unwrap_err(), PLACE.take().unwrap());
        let (panic, file) = thread::spawn(call).join().unwrap();
        let text = panic.downcast_ref::<&str>().map(|said| (*said).to_owned());
        (text.or_else(|| panic.downcast_ref().cloned()).unwrap(), file)
    };
    let said = |call| {
        let (text, file) = panics(call);
        assert_eq!(file, file!(), "{text}");
        text
    };
    let text = said(|| clock::pause());
    assert!(
        text.contains("Builder::current_thread") && text.contains("#[paceline::test(start_paused)]"),
        "{text}"
    );
    assert!(said(|| clock::resume()).contains("Builder::current_thread"));
    for call in [
        || Runtime::builder().threads(1).build().unwrap().block_on(clock::advance(HOUR)),
        || Runtime::builder().current_thread().build().unwrap().block_on(clock::advance(HOUR)),
    ] {
        // The future panics when it is polled, so the text names the call.
        let (text, _) = panics(call);
        assert!(text.starts_with("`clock::advance`") && text.contains(&format!("at {}:", file!())), "{text}");
    }
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
    assert!(said(twice).contains("is paused already"));
    let goes = || Runtime::builder().current_thread().build().unwrap().block_on(async { clock::resume() });
    assert!(said(goes).contains("is not paused"));
}

/// Timers that are due together wake their tasks before one of them is polled. Fails if each task is polled
/// with those that it spawns before the next timer fires.
#[test]
fn timers_that_are_due_together_wake_their_tasks_before_one_of_them_is_polled() {
    const TASKS: u32 = 20;
    paused(async |start| {
        let (tell, told) = mpsc::channel();
        let tasks: Vec<_> = (0..TASKS)
            .map(|number| {
                let tell = tell.clone();
                spawn(async move {
                    Timer::at(start + HOUR).await;
                    tell.send(number).unwrap();
                    spawn(async move { tell.send(TASKS + number).unwrap() }).await;
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        assert_eq!(clock::now(), start + HOUR);
        let order: Vec<_> = told.try_iter().collect();
        assert!(order[..TASKS as usize].iter().all(|number| *number < TASKS), "{order:?}");
    });
}
