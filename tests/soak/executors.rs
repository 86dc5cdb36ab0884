//! Executors that are made, run on two threads in all possible ways, and dropped.

use std::cell::Cell;
use std::future::{Future, pending};
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread;

use async_channel::Receiver;
use futures_lite::future;
use paceline::{Executor, LocalExecutor};

use crate::scene::{Boxed, Dice, Scene, Tally, some_wait};

/// Runs an executor until `root` is done, in one of several ways.
fn run<T>(scene: &Scene, dice: &mut Dice, executor: &Executor<'_>, root: impl Future<Output = T>) -> T {
    match dice.roll(4) {
        0 | 1 => scene.block_on(dice, executor.run(root)),
        2 => {
            let ticks = async {
                loop {
                    executor.tick().await;
                }
            };
            scene.block_on(dice, future::or(root, ticks))
        }
        _ => {
            let mut root = pin!(root);
            loop {
                if let Some(output) = future::block_on(future::poll_once(&mut root)) {
                    return output;
                }
                if !executor.try_tick() {
                    thread::yield_now();
                }
            }
        }
    }
}

/// Tasks that wait, on two threads that run them; one of the tasks may block until another one has run. The
/// executor is dropped with unfinished tasks.
pub async fn on_two_threads(scene: Scene, mut dice: Dice) {
    let executor: Arc<Executor<'static>> = Arc::default();
    let count = 1 + dice.roll(8) as usize;
    let (ran, dropped) = (Tally::new(count), Tally::new(3));
    let (tell, told) = async_channel::bounded(count + 2);
    let spawn_one = |number: usize, dice: &mut Dice| {
        let (ran, tell, mut dice) = (ran.clone(), tell.clone(), dice.fork());
        let task = async move {
            some_wait(&mut dice).await;
            ran.count(number);
            tell.send(()).await.unwrap();
        };
        executor.spawn(task).detach();
    };
    (0..count / 2).for_each(|number| spawn_one(number, &mut dice));
    let (end, ended) = async_channel::bounded::<()>(1);
    let second = {
        let (executor, scene, mut dice) = (executor.clone(), scene.clone(), dice.fork());
        thread::spawn(move || {
            run(&scene, &mut dice, &executor, async { _ = ended.recv().await });
        })
    };
    (count / 2..count).for_each(|number| spawn_one(number, &mut dice));
    let mut expected = count;
    if dice.coin() {
        expected += 2;
        spawn_a_pair(&executor, &mut dice, &tell);
    }
    run(&scene, &mut dice, &executor, all_of(told, expected));
    ran.assert_each_once();
    for number in 0..3 {
        let guard = dropped.guard(number);
        let task = async move {
            let _guard = guard;
            pending::<()>().await;
        };
        executor.spawn(task).detach();
    }
    drop(end);
    second.join().expect("the second thread ends");
    assert!(!executor.is_empty());
    drop(executor);
    dropped.assert_each_once();
}

async fn all_of(told: Receiver<()>, count: usize) {
    for _ in 0..count {
        told.recv().await.unwrap();
    }
}

/// Spawns two tasks, one of which blocks its thread until the other one has run.
fn spawn_a_pair(executor: &Executor<'static>, dice: &mut Dice, tell: &async_channel::Sender<()>) {
    let (first, second) = mpsc::channel();
    let ends = [tell.clone(), tell.clone()];
    let [end, end2] = ends;
    let mut dice2 = dice.fork();
    let mut pair: [Boxed<()>; 2] = [
        Box::pin(async move {
            if dice2.coin() {
                some_wait(&mut dice2).await;
            }
            first.send(()).unwrap();
            end.send(()).await.unwrap();
        }),
        Box::pin(async move {
            second.recv().unwrap();
            end2.send(()).await.unwrap();
        }),
    ];
    if dice.coin() {
        pair.reverse();
    }
    pair.into_iter().for_each(|task| executor.spawn(task).detach());
}

/// A local executor, run on this thread or on a thread of its own.
pub async fn local(scene: Scene, mut dice: Dice) {
    let mut dice2 = dice.fork();
    if dice.coin() {
        run_local(&scene, &mut dice2);
    } else {
        thread::spawn(move || run_local(&scene, &mut dice2)).join().expect("the executor's thread ends");
    }
}

fn run_local(scene: &Scene, dice: &mut Dice) {
    let executor = LocalExecutor::new();
    let (count, ran, dropped) = (1 + dice.roll(5), Rc::new(Cell::new(0)), Tally::new(1));
    let tasks: Vec<_> = (0..count)
        .map(|_| {
            let (ran, mut dice) = (ran.clone(), dice.fork());
            executor.spawn(async move {
                some_wait(&mut dice).await;
                ran.set(ran.get() + 1);
            })
        })
        .collect();
    let guard = dropped.guard(0);
    executor
        .spawn(async move {
            let _guard = guard;
            pending::<()>().await;
        })
        .detach();
    let root = async {
        for task in tasks {
            task.await;
        }
    };
    if dice.coin() {
        scene.block_on(dice, executor.run(root));
    } else {
        let ticks = async {
            loop {
                executor.tick().await;
            }
        };
        scene.block_on(dice, future::or(root, ticks));
    }
    assert_eq!(ran.get(), count);
    drop(executor);
    dropped.assert_each_once();
}
