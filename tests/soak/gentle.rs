//! Well-behaved tasks, and one that takes its time.

use std::future::pending;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use async_channel::{Receiver, Sender, bounded};
use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use paceline::{Async, Timer, spawn};

use crate::scene::{Dice, Scene, some_timer};

pub async fn fan_out(_: Scene, mut dice: Dice) {
    let width = dice.roll(20) as usize + 1;
    let tasks: Vec<_> = (0..width)
        .map(|n| {
            spawn(async move {
                future::yield_now().await;
                n
            })
        })
        .collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await;
    }
    assert_eq!(sum, width * (width - 1) / 2);
}

pub async fn pass_around(_: Scene, mut dice: Dice) {
    async fn pass(told: Receiver<u64>, tell: Sender<u64>) {
        while let Ok(n) = told.recv().await {
            if tell.send(n).await.is_err() {
                break;
            }
        }
    }
    let (first, mut last) = bounded(1);
    for _ in 0..3 {
        let (tell, told) = bounded(1);
        spawn(pass(std::mem::replace(&mut last, told), tell)).detach();
    }
    for round in 0..dice.roll(200) {
        first.send(round).await.unwrap();
        assert_eq!(last.recv().await, Ok(round));
    }
}

pub async fn timers(_: Scene, mut dice: Dice) {
    let mut far: Vec<_> = (0..10).map(|n| Timer::after(Duration::from_secs(60 + n))).collect();
    for timer in &mut far {
        assert!(future::poll_once(timer).await.is_none());
    }
    for _ in 0..5 {
        some_timer(&mut dice).await;
    }
}

pub async fn cancel(_: Scene, mut dice: Dice) {
    let (mut one, other) = Async::<UnixStream>::pair().unwrap();
    let reader = spawn(async move {
        let mut other = other;
        other.read(&mut [0; 8]).await
    });
    let never = spawn(pending::<()>());
    let timer = spawn(Timer::after(Duration::from_secs(600)));
    if dice.roll(2) == 0 {
        let _ = one.write(b"late").await;
    }
    future::yield_now().await;
    reader.cancel().await;
    timer.cancel().await;
    drop(never);
}

/// A task that blocks its thread.
pub async fn block(_: Scene, mut dice: Dice) {
    thread::sleep(dice.micros(5_000));
}
