//! Second runtimes: made, used, shut down, drained and dropped in all ways, while other threads wait for
//! their sources and tasks.

use std::future::pending;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{StreamExt, future};
use paceline::blocking::Job;
use paceline::{Async, Promotion, Runtime, Timer, Tuning, spawn};

use crate::scene::{Dice, Scene, Tally, foreign, some_wait};

/// Longer than any task of the test blocks, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn build(dice: &mut Dice) -> Arc<Runtime> {
    let promotion = if dice.coin() { Promotion::Adaptive } else { Promotion::Eager };
    let threads = 1 + dice.roll(2) as usize;
    let tuning = Tuning::default().promotion(promotion).portable(dice.coin());
    let builder = Runtime::builder().threads(threads).tuning(tuning);
    Arc::new(builder.thread_name("second").build().unwrap())
}

/// Ends the runtime; other owners drop it soon.
pub fn end(dice: &mut Dice, runtime: Arc<Runtime>) {
    match dice.roll(10) {
        0 => drop(runtime),
        1 => runtime.shutdown(PATIENCE).expect("nothing blocks for long"),
        2 => {
            runtime.shutdown(PATIENCE).expect("nothing blocks for long");
            runtime.shutdown(PATIENCE).expect("it is down already");
        }
        3 => {
            let second = runtime.clone();
            let twin = thread::spawn(move || second.shutdown(PATIENCE).is_ok());
            runtime.shutdown(PATIENCE).expect("nothing blocks for long");
            assert!(twin.join().unwrap());
        }
        // A task may still block.
        4 => _ = runtime.shutdown(Duration::ZERO),
        // In a task of its own, which may have the last handle.
        5 => {
            let (own, (tell, told)) = (runtime.clone(), mpsc::channel());
            let task = async move {
                own.shutdown(PATIENCE).expect("nothing else blocks for long");
                drop(own);
                tell.send(()).unwrap();
            };
            runtime.spawn(task).detach();
            drop(runtime);
            // The channel is closed if the last handle was dropped before the task ran.
            let _ = told.recv();
        }
        6 => runtime.block_on(async { runtime.shutdown(PATIENCE).expect("nothing blocks for long") }),
        // The report is ignored: on a busy machine a slow task may count as stuck.
        7 => _ = foreign(dice.roll(3), runtime.drain(dice.micros(10_000))),
        8 => {
            let (first, second) = (dice.micros(10_000), dice.micros(10_000));
            let both = future::zip(runtime.drain(first), runtime.drain(second));
            _ = runtime.block_on(both);
        }
        // In a task of its own, while another thread cuts the drain short.
        _ => {
            let handle = runtime.handle();
            let length = dice.micros(10_000);
            runtime.spawn(async move { _ = handle.drain(length).await }).detach();
            thread::sleep(dice.micros(1_000));
            drop(runtime);
        }
    }
}

/// Strangers wait for the runtime's sources, timers and tasks while it ends. Every wait ends: a timer fires,
/// a wait for a source may end in an error, and a task has finished or was cancelled.
pub async fn second_runtime(scene: Scene, mut dice: Dice) {
    let runtime = build(&mut dice);
    if dice.coin() {
        let mut dice = dice.fork();
        let used = runtime.spawn(async move {
            some_wait(&mut dice).await;
            5
        });
        assert_eq!(runtime.block_on(used), 5);
    }
    let dropped = Tally::new(2);
    for number in 0..2 {
        let guard = dropped.guard(number);
        let task = async move {
            let _guard = guard;
            Timer::after(Duration::from_secs(3600)).await;
            pending::<()>().await;
        };
        runtime.spawn(task).detach();
    }
    if dice.roll(3) == 0 {
        let blocks = dice.micros(8_000);
        runtime.spawn(async move { thread::sleep(blocks) }).detach();
    }
    let (tell, told) = mpsc::channel();
    let strangers = 1 + dice.roll(3);
    let mut far_ends = Vec::new();
    for number in 0..strangers {
        let (near, far) = UnixStream::pair().unwrap();
        far_ends.push(far);
        let at = Instant::now() + dice.micros(6_000);
        let mut timer = Timer::at(at);
        let near = runtime.block_on(async {
            let _ = future::poll_once(&mut timer).await;
            Async::new(near).unwrap()
        });
        let mut timer = timer.will_fire().then_some(timer);
        let task = runtime.spawn(async { 7 }).fallible();
        let blocks = dice.micros(3_000);
        let job = {
            let _entered = runtime.handle().enter();
            Job::new(move || thread::sleep(blocks)).timeout(Duration::from_millis(2)).submit()
        };
        let tell = tell.clone();
        scene.run_elsewhere(&mut dice, async move {
            let _ = near.readable().await;
            if let Some(timer) = &mut timer {
                timer.await;
                assert!(Instant::now() >= at, "a timer was early");
            }
            assert!(matches!(task.await, None | Some(7)));
            // Done, late, or cancelled: the job has a result.
            let _ = job.await;
            tell.send(number).unwrap();
        });
    }
    drop(tell);
    let after = far_ends.split_off(dice.roll(strangers + 1) as usize);
    let write = |mut far: UnixStream| {
        // The near end may be closed, because its wait has ended in an error.
        let _ = far.write_all(b"x");
    };
    thread::sleep(dice.micros(1_000));
    far_ends.into_iter().for_each(write);
    end(&mut dice, runtime);
    thread::sleep(dice.micros(1_000));
    after.into_iter().for_each(write);
    let mut answers: Vec<_> = told.iter().collect();
    answers.sort_unstable();
    assert!(answers.into_iter().eq(0..strangers), "each stranger answers once");
    dropped.wait_until_complete();
}

/// Timers and sockets that were polled in a runtime, and are awaited only after its end.
pub async fn outlived(scene: Scene, mut dice: Dice) {
    let runtime = build(&mut dice);
    let (start, length) = (Instant::now(), dice.micros(4_000));
    let mut timer = Timer::after(length);
    let mut ticks = Timer::interval(Duration::from_micros(200 + dice.roll(1_000)));
    let mut moved = Timer::after(Duration::from_secs(3600));
    let (near, mut far) = UnixStream::pair().unwrap();
    let near = runtime.block_on(async {
        let near = Async::new(near).unwrap();
        let _ = future::poll_once(near.readable()).await;
        let _ = future::poll_once(&mut timer).await;
        let _ = future::poll_once(&mut moved).await;
        let _ = future::poll_once(ticks.next()).await;
        near
    });
    end(&mut dice, runtime);
    moved.set_after(dice.micros(1_000));
    let wait = async move {
        moved.await;
        if timer.will_fire() {
            timer.await;
            assert!(start.elapsed() >= length, "a timer was early");
        }
        assert!(ticks.next().await.is_some() && ticks.next().await.is_some());
        let _ = far.write_all(b"x");
        let _ = near.readable().await;
    };
    match dice.roll(4) {
        0 => wait.await,
        1 => scene.block_on(&mut dice, wait),
        2 => spawn(wait).await,
        _ => {
            let which = dice.roll(3);
            thread::spawn(move || foreign(which, wait)).join().expect("a stranger's wait ends");
        }
    }
}
