//! Tasks that are cancelled, dropped, detached and awaited at any point; timers that are moved; handles that
//! outlive their runtime.

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{StreamExt, future};
use paceline::{Handle, Timer, timeout};

use crate::endings::{build, end};
use crate::leftovers::{is_of_an_outlived_handle, is_on_purpose, text_of};
use crate::scene::{Dice, Scene, Tally, foreign, some_timer, some_wait};

/// In every case a task's captures are dropped once.
pub async fn cancelled_anywhere(scene: Scene, mut dice: Dice) {
    let count = 1 + dice.roll(20) as usize;
    let (dropped, mut kept) = (Tally::new(count), Vec::new());
    for number in 0..count {
        let (guard, mut own) = (dropped.guard(number), dice.fork());
        let waits = async move {
            let _guard = guard;
            for _ in 0..own.roll(3) {
                some_wait(&mut own).await;
            }
            number
        };
        let home = if dice.coin() { &scene.runtime } else { &scene.other };
        kept.push((number, home.spawn(waits)));
        if dice.roll(8) == 0 {
            some_wait(&mut dice).await;
        }
    }
    while !kept.is_empty() {
        let (number, task) = kept.swap_remove(dice.roll(kept.len() as u64) as usize);
        match dice.roll(6) {
            0 => task.detach(),
            1 => drop(task),
            2 => assert!(task.cancel().await.is_none_or(|output| output == number)),
            3 => assert!(task.fallible().await == Some(number), "the task was not cancelled"),
            4 => {
                let length = dice.micros(500);
                let start = Instant::now();
                match timeout(length, task).await {
                    Ok(output) => assert_eq!(output, number),
                    Err(_) => assert!(start.elapsed() >= length, "a timeout was early"),
                }
            }
            _ => assert_eq!(task.await, number),
        }
    }
    dropped.wait_until_complete();
}

/// Many tasks under one lock, which they hold for a while.
pub async fn locks(scene: Scene, mut dice: Dice) {
    let (count, lock) = (1 + dice.roll(5), Arc::new(Mutex::new(0)));
    let (tell, told) = mpsc::channel();
    for _ in 0..count {
        let (lock, tell, mut own) = (lock.clone(), tell.clone(), dice.fork());
        scene.run_elsewhere(&mut dice, async move {
            for _ in 0..3 {
                some_wait(&mut own).await;
                let mut lock = lock.lock().unwrap();
                thread::sleep(own.micros(300));
                *lock += 1;
            }
            tell.send(()).unwrap();
        });
    }
    drop(tell);
    assert_eq!(told.iter().count() as u64, count);
    assert_eq!(*lock.lock().unwrap(), 3 * count);
}

/// Timers are polled in one place, set anew in another, awaited or dropped elsewhere.
pub async fn moved_timers(scene: Scene, mut dice: Dice) {
    let (tell, told) = mpsc::channel();
    let count = 1 + dice.roll(6);
    for _ in 0..count {
        let mut timer = match dice.roll(4) {
            0 => Timer::never(),
            1 => Timer::after(Duration::from_secs(3600)),
            2 => Timer::at(Instant::now()),
            _ => Timer::after(dice.micros(2_000)),
        };
        let mut way = dice.fork();
        let _ = scene.block_on(&mut way, future::poll_once(&mut timer));
        let (tell, mut own, scene2) = (tell.clone(), dice.fork(), scene.clone());
        scene.run_elsewhere(&mut dice, async move {
            let length = own.micros(3_000);
            let at = Instant::now() + length;
            match own.roll(4) {
                0 => timer.set_at(at),
                1 => timer.set_after(length),
                2 => timer.set_interval(length),
                _ => {
                    drop(timer);
                    timer = Timer::interval_at(at, Duration::from_secs(3600));
                }
            }
            let mut way = own.fork();
            let fired = scene2.block_on(&mut way, async {
                assert!(timeout(Duration::from_micros(1), pending::<()>()).await.is_err());
                timer.next().await
            });
            assert!(fired.is_some() && Instant::now() >= at, "a timer was early");
            tell.send(()).unwrap();
        });
    }
    drop(tell);
    assert_eq!(told.iter().count() as u64, count);
}

/// Threads with a handle of a runtime use it while the runtime ends, and afterwards.
pub async fn handles_outlive(_: Scene, mut dice: Dice) {
    let runtime = build(&mut dice);
    let dropped = Tally::new(9);
    let threads: Vec<_> = (0..3)
        .map(|thread| {
            let (handle, dropped, mut dice) = (runtime.handle(), dropped.clone(), dice.fork());
            thread::spawn(move || {
                for turn in 0..3 {
                    let guard = dropped.guard(3 * thread + turn);
                    use_it(&handle, &mut dice, guard);
                    thread::sleep(dice.micros(500));
                }
            })
        })
        .collect();
    thread::sleep(dice.micros(1_500));
    end(&mut dice, runtime);
    threads.into_iter().for_each(|thread| thread.join().expect("a handle's user ends"));
    dropped.wait_until_complete();
}

fn use_it(handle: &Handle, dice: &mut Dice, guard: impl Send + 'static) {
    let (way, number, which) = (dice.roll(4), dice.roll(1_000), dice.roll(3));
    let mut own = dice.fork();
    let task = async move {
        let _guard = guard;
        // No wait with a task of its own, which would be cancelled.
        some_timer(&mut own).await;
        number
    };
    let result = catch_unwind(AssertUnwindSafe(|| match way {
        0 => foreign(which, handle.spawn(task).fallible()),
        1 => Some(handle.block_on(task)),
        2 => {
            let _entered = handle.enter();
            paceline::block_on(paceline::spawn(task).fallible())
        }
        _ => {
            handle.spawn(task).detach();
            assert!(handle.metrics().workers < 1_000);
            None
        }
    }));
    match result {
        Ok(output) => assert!(output.is_none_or(|output| output == number)),
        Err(panic) => {
            let is_expected = is_of_an_outlived_handle(&*panic) || is_on_purpose(&*panic);
            assert!(is_expected, "a handle's user panicked: {}", text_of(&*panic));
        }
    }
}
