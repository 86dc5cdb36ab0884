//! Tasks, root futures and wakers that panic. The panic reaches the awaiting task, and no other.

use std::any::Any;
use std::future::Future;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::thread;

use futures_lite::FutureExt;
use paceline::{Async, Executor, Timer, spawn};

use crate::leftovers::is_on_purpose;
use crate::scene::{Dice, Scene, Tally, send_soon, some_wait, waker_that};

pub fn assert_on_purpose<T>(result: Result<T, Box<dyn Any + Send>>) {
    let panic = result.err().expect("the panic arrives");
    assert!(is_on_purpose(&*panic), "this panic is another one's");
}

async fn panics(mut dice: Dice) {
    if dice.coin() {
        some_wait(&mut dice).await;
    }
    panic!("on purpose");
}

pub async fn panicking_tasks(scene: Scene, mut dice: Dice) {
    for _ in 0..dice.roll(3) {
        spawn(panics(dice.fork())).detach();
    }
    let awaited = [spawn(panics(dice.fork())), scene.runtime.spawn(panics(dice.fork()))];
    for task in awaited {
        assert_on_purpose(AssertUnwindSafe(task).catch_unwind().await);
    }
    some_wait(&mut dice).await;
}

pub async fn panicking_roots(scene: Scene, mut dice: Dice) {
    for _ in 0..2 {
        let future = panics(dice.fork());
        assert_on_purpose(catch_unwind(AssertUnwindSafe(|| scene.block_on(&mut dice, future))));
        some_wait(&mut dice).await;
    }
}

/// An executor's task panics while two threads run the executor, which goes on.
pub async fn panicking_executors(scene: Scene, mut dice: Dice) {
    let executor: Arc<Executor<'static>> = Arc::default();
    let second = {
        let (executor, scene, mut dice) = (executor.clone(), scene.clone(), dice.fork());
        thread::spawn(move || {
            let task = executor.spawn(panics(dice.fork()));
            let root = AssertUnwindSafe(executor.run(task)).catch_unwind();
            assert_on_purpose(scene.block_on(&mut dice, root));
        })
    };
    let task = executor.spawn(panics(dice.fork()));
    let root = AssertUnwindSafe(executor.run(task)).catch_unwind();
    assert_on_purpose(scene.block_on(&mut dice.fork(), root));
    let task = executor.spawn(async move { some_wait(&mut dice).await });
    scene.block_on(&mut Dice::new(1), executor.run(task));
    second.join().expect("the second thread ends");
}

/// A stranger's waker panics when it is called for a source and for a timer, once each.
pub async fn panicking_wakers(scene: Scene, mut dice: Dice) {
    let called = Tally::new(2);
    let waker = |number| {
        let called = called.clone();
        waker_that(move || {
            called.count(number);
            panic!("on purpose, in a waker");
        })
    };
    let (near, far) = UnixStream::pair().unwrap();
    let mut timer = Timer::after(dice.micros(1_000));
    let (for_source, for_timer) = (waker(0), waker(1));
    let source = scene.block_on(&mut dice, async {
        let source = Async::new(near).unwrap();
        assert!(source.poll_readable(&mut Context::from_waker(&for_source)).is_pending());
        if Pin::new(&mut timer).poll(&mut Context::from_waker(&for_timer)).is_ready() {
            called.count(1);
        }
        source
    });
    send_soon(&mut dice, far);
    some_wait(&mut dice).await;
    called.wait_until_complete();
    source.readable().await.unwrap();
}
