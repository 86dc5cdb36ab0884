//! Large futures: how much stack they need, where they are dropped, and which spawn line they have.
//!
//! A future is moved once into the frame of the public function, and from there passed down by reference, or
//! boxed. A debug build copies it at each move, so each layer that takes it by value shows here.

use std::future::poll_fn;
use std::hint::black_box;
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use futures_lite::future;
use paceline::{
    Executor, Handle, LocalExecutor, Runtime, StaticExecutor, Strand, Task, block_on, spawn, timeout,
};

use crate::setups::{Latch, OpenOnDrop, for_each_setup, is_child};

const STACK: usize = 2 << 20;

/// Runs a large future to its end, and returns its output.
type Way = fn() -> usize;

async fn large<const BYTES: usize>() -> usize {
    let bytes = [1u8; BYTES];
    future::yield_now().await;
    black_box(&bytes).iter().map(|byte| usize::from(*byte)).sum()
}

fn runtime() -> Runtime {
    Runtime::builder().threads(1).build().unwrap()
}

/// Runs `ways` on a thread with a stack of the usual size, in a process of its own, which an overflow ends.
fn on_a_usual_stack(test: &str, bytes: usize, ways: &'static [(&'static str, Way)]) {
    if !is_child(test, ":") {
        return;
    }
    for (name, way) in ways {
        // The last printed name did not fit.
        println!("{name}");
        let sum = thread::Builder::new().stack_size(STACK).spawn(way).unwrap().join().unwrap();
        assert_eq!(sum, bytes, "{name}");
    }
}

/// As large as async-io's `block_on` can run on such a stack in a debug build.
#[test]
#[cfg_attr(miri, ignore = "its stack is not of that kind")]
fn block_on_takes_a_future_of_384_kib() {
    const BYTES: usize = 384 << 10;
    on_a_usual_stack(
        "large_futures::block_on_takes_a_future_of_384_kib",
        BYTES,
        &[
            ("block_on", || block_on(large::<BYTES>())),
            ("Runtime::block_on", || runtime().block_on(large::<BYTES>())),
            ("Runtime::block_on without workers", || {
                Runtime::builder().current_thread().build().unwrap().block_on(large::<BYTES>())
            }),
            ("Handle::block_on", || runtime().handle().block_on(large::<BYTES>())),
            ("block_on in an entered runtime", || {
                let runtime = runtime();
                let _entered = runtime.handle().enter();
                block_on(large::<BYTES>())
            }),
        ],
    );
}

/// As large as async-executor's `spawn` can take on such a stack in a debug build, and twice as large as for
/// its `run`.
#[test]
#[cfg_attr(miri, ignore = "its stack is not of that kind")]
fn spawn_run_and_timeout_take_a_future_of_128_kib() {
    const BYTES: usize = 128 << 10;
    static EXECUTOR: StaticExecutor = StaticExecutor::new();
    on_a_usual_stack(
        "large_futures::spawn_run_and_timeout_take_a_future_of_128_kib",
        BYTES,
        &[
            ("spawn", || block_on(spawn(large::<BYTES>()))),
            ("spawn in a task", || block_on(spawn(async { spawn(large::<BYTES>()).await }))),
            ("Runtime::spawn", || block_on(runtime().spawn(large::<BYTES>()))),
            ("Handle::spawn", || block_on(runtime().handle().spawn(large::<BYTES>()))),
            ("Handle::spawn in vain", || {
                let handle = runtime().handle();
                block_on(handle.spawn(large::<BYTES>()).fallible()).map_or(BYTES, |_| 0)
            }),
            ("Executor::spawn", || {
                let executor = Executor::new();
                let task = executor.spawn(large::<BYTES>());
                block_on(executor.run(task))
            }),
            ("Executor::spawn_many", || {
                let (executor, mut tasks) = (Executor::new(), Vec::<Task<usize>>::new());
                executor.spawn_many([large::<BYTES>()], &mut tasks);
                block_on(executor.run(tasks.pop().unwrap()))
            }),
            ("LocalExecutor::spawn", || {
                let executor = LocalExecutor::new();
                let task = executor.spawn(large::<BYTES>());
                block_on(executor.run(task))
            }),
            ("StaticExecutor::spawn", || block_on(EXECUTOR.run(EXECUTOR.spawn(large::<BYTES>())))),
            ("Strand::spawn", || block_on(Strand::new(()).spawn(large::<BYTES>()))),
            ("Executor::run", || block_on(Executor::new().run(large::<BYTES>()))),
            ("timeout", || block_on(timeout(Duration::from_secs(60), large::<BYTES>())).unwrap()),
        ],
    );
}

/// The remains of a completed future are dropped inside of its `block_on`, where free functions act on its
/// runtime.
#[test]
fn a_future_is_dropped_in_its_block_on() {
    struct Asks(Arc<Runtime>, mpsc::Sender<usize>);
    impl Drop for Asks {
        fn drop(&mut self) {
            self.1.send(Handle::current().metrics().workers).unwrap();
        }
    }
    let runtime = Arc::new(Runtime::builder().threads(3).build().unwrap());
    let (tell, told) = mpsc::channel();
    let asks = || Asks(runtime.clone(), tell.clone());
    let is_kept = asks();
    runtime.block_on(poll_fn(move |_| Poll::Ready(black_box(&is_kept).0.metrics().workers)));
    assert_eq!(told.try_recv(), Ok(3));

    // Also if the future panics.
    let is_kept = asks();
    let panics =
        poll_fn(move |_| -> Poll<()> { panic!("{} workers", black_box(&is_kept).0.metrics().workers) });
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.block_on(panics))).unwrap_err();
    assert_eq!(told.try_recv(), Ok(3));
}

/// The future is not boxed where the task was spawned.
#[test]
fn a_large_task_is_named_by_the_line_that_spawned_it() {
    for_each_setup(|runtime| {
        let latch = Latch::new();
        let free = OpenOnDrop(latch.clone());
        let (begin, begun) = mpsc::channel();
        let line = line!() + 1;
        let task = runtime.spawn(async move {
            let bytes = black_box([1u8; 16 << 10]);
            begin.send(()).unwrap();
            latch.wait();
            future::yield_now().await;
            black_box(&bytes);
        });
        task.detach();
        begun.recv().unwrap();
        let report = block_on(runtime.drain(Duration::ZERO));
        let spawned_at = report.stuck[0].spawned_at.expect("it is in the task");
        assert_eq!((spawned_at.file(), spawned_at.line()), (file!(), line));
        drop(free);
    });
}
