//! Tasks that block: for one another, in `block_on`s of all libraries, in another runtime's.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{StreamExt, future};
use paceline::{Async, Timer, spawn};

use crate::scene::{Boxed, Dice, Scene, foreign, read_byte, send_soon, socket_soon, some_task, some_wait};

/// A row of tasks, each of which blocks on a channel until the previous one has sent a message. The first one
/// sends on its own, perhaps at the moment when the others wake up. The dice decide the order and the place
/// of the spawns.
pub async fn tasks_wait_for_tasks(scene: Scene, mut dice: Dice) {
    let length = 1 + dice.roll(3);
    let answer = dice.roll(1_000);
    let at = Instant::now() + dice.micros(1_000);
    let (tell, mut told) = mpsc::channel();
    let mut row: Vec<Boxed<()>> = Vec::new();
    let at_once = dice.coin();
    row.push(Box::pin(async move {
        if !at_once {
            Timer::at(at).await;
        }
        tell.send(answer).unwrap();
    }));
    for _ in 0..length {
        let (tell, next) = mpsc::channel();
        let before = std::mem::replace(&mut told, next);
        let at_once = dice.coin();
        row.push(Box::pin(async move {
            if !at_once {
                Timer::at(at).await;
            }
            tell.send(before.recv().unwrap() + 1).unwrap();
            before.recv().expect_err("it is told once");
        }));
    }
    if dice.coin() {
        row.reverse();
    }
    row.into_iter().for_each(|task| scene.run_elsewhere(&mut dice, task));
    if dice.coin() {
        future::yield_now().await;
    }
    // This thread waits, too.
    assert_eq!(told.recv(), Ok(answer + length));
    told.recv().expect_err("it is told once");
}

/// Calls another library's `block_on` in the action itself, before and after a wait of its own, and in tasks.
pub async fn foreign_block_ons(_: Scene, mut dice: Dice) {
    let mut tasks = Vec::new();
    for _ in 0..dice.roll(4) {
        let mut dice = dice.fork();
        tasks.push(spawn(async move {
            some_wait(&mut dice).await;
            foreign(dice.roll(3), some_wait(&mut dice));
            foreign(dice.roll(3), some_task(&mut dice));
        }));
    }
    foreign(dice.roll(3), some_wait(&mut dice));
    some_wait(&mut dice).await;
    foreign(dice.roll(3), async {
        for task in tasks {
            task.await;
        }
        foreign(dice.roll(3), some_wait(&mut dice));
    });
}

/// The state that is passed from one level of nesting to the next.
struct Carried {
    near: Async<UnixStream>,
    far: UnixStream,
    ticks: Timer,
}

/// Nests two and three levels, each in some runtime or in none. Inside, a source and a timer from outside are
/// awaited.
pub async fn nested_block_ons(scene: Scene, mut dice: Dice) {
    let (near, far) = UnixStream::pair().unwrap();
    let mut carried = Carried {
        near: Async::new(near).unwrap(),
        far,
        ticks: Timer::interval(Duration::from_micros(100 + dice.roll(1_000))),
    };
    assert!(carried.ticks.next().await.is_some());
    let depth = 2 + dice.roll(2);
    assert_eq!(nest(&scene, &mut dice, &mut carried, depth), depth);
    read_soon(&mut dice, &mut carried).await;
}

fn nest(scene: &Scene, dice: &mut Dice, carried: &mut Carried, depth: u64) -> u64 {
    let mut way = dice.fork();
    scene.block_on(&mut way, async {
        if depth == 0 {
            return 0;
        }
        match dice.roll(3) {
            0 => some_wait(dice).await,
            1 => read_soon(dice, carried).await,
            _ => assert!(carried.ticks.next().await.is_some()),
        }
        let sum = 1 + nest(scene, dice, carried, depth - 1);
        if dice.coin() {
            some_wait(dice).await;
        }
        sum
    })
}

async fn read_soon(dice: &mut Dice, carried: &mut Carried) {
    send_soon(dice, carried.far.try_clone().unwrap());
    read_byte(&mut carried.near).await;
}

/// Awaits a runtime's sources and timers in another runtime's `block_on`, in one of its tasks, and by
/// strangers; some of them in several places at once.
pub async fn across_runtimes(scene: Scene, mut dice: Dice) {
    let home = if dice.coin() { scene.runtime.clone() } else { scene.other.clone() };
    let (tell, told) = mpsc::channel();
    let waiters = 1 + dice.roll(3);
    let near = socket_soon(&mut dice);
    let shared = home.block_on(async { Arc::new(Async::new(near).unwrap()) });
    for number in 0..waiters {
        let near = socket_soon(&mut dice);
        let mut timer = Timer::after(dice.micros(2_000));
        let mut own = home.block_on(async {
            // The timer may already be due when it is polled.
            let _ = future::poll_once(&mut timer).await;
            Async::new(near).unwrap()
        });
        let is_due = !timer.will_fire();
        let (tell, shared) = (tell.clone(), shared.clone());
        scene.run_elsewhere(&mut dice, async move {
            read_byte(&mut own).await;
            shared.readable().await.unwrap();
            if !is_due {
                timer.await;
            }
            tell.send(number).unwrap();
        });
    }
    drop(tell);
    let mut way = dice.fork();
    scene.block_on(&mut way, async { shared.readable().await.unwrap() });
    if dice.coin() {
        thread::sleep(dice.micros(500));
    }
    let mut answers: Vec<_> = told.iter().collect();
    answers.sort_unstable();
    assert!(answers.into_iter().eq(0..waiters), "each waiter answers once");
}
