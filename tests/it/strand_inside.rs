//! Futures of strands, whose polls do not overlap; and strands that are used from inside themselves.

use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use futures_lite::future;
use paceline::{Runtime, Strand, Task, Timer, block_on, timeout};

use crate::given_time::RecvSoon;
use crate::setups::{SOON, eventually, for_each_setup, text_of};
use crate::strand::{Occupied, poll_once};

/// Spawns a future on the strand, on this runtime.
fn spawn_in<T: Send + 'static, R: Send + 'static>(
    runtime: &Runtime,
    strand: &Strand<T>,
    future: impl Future<Output = R> + Send + 'static,
) -> Task<R> {
    let mut future = Some(future);
    runtime.block_on(poll_fn(|_| Poll::Ready(strand.spawn(future.take().expect("it is polled once")))))
}

/// Records whether code is inside, and whether two ever were.
#[derive(Debug, Default)]
struct Alone {
    occupied: AtomicBool,
    met: AtomicBool,
}

impl Alone {
    fn visit(&self) {
        let met = self.occupied.swap(true, SeqCst);
        thread::yield_now();
        self.occupied.store(false, SeqCst);
        if met {
            self.met.store(true, SeqCst);
        }
    }
}

/// Polls, operations and the drops of futures. (Fails if a task polls its future without entering the
/// strand.)
#[test]
fn polls_overlap_neither_each_other_nor_operations() {
    struct VisitsInDrop(Arc<Alone>);
    impl Drop for VisitsInDrop {
        fn drop(&mut self) {
            self.0.visit();
        }
    }
    for_each_setup(|runtime| {
        let strand = Strand::new(());
        let alone = Arc::new(Alone::default());
        let tasks: Vec<_> = (0..8)
            .map(|number| {
                let visits = VisitsInDrop(alone.clone());
                let future = async move {
                    for _ in 0..50 {
                        visits.0.visit();
                        future::yield_now().await;
                        if number % 4 == 0 {
                            Timer::after(Duration::from_micros(10)).await;
                        }
                    }
                };
                spawn_in(runtime, &strand, future)
            })
            .collect();
        for _ in 0..200 {
            let alone = alone.clone();
            runtime.block_on(strand.with(move |()| alone.visit()));
        }
        for (number, task) in tasks.into_iter().enumerate() {
            if number % 2 == 0 { runtime.block_on(task) } else { drop(task) }
        }
        eventually("all futures are dropped", || Arc::strong_count(&alone) == 1);
        assert!(!alone.met.load(SeqCst), "two were inside at once");
    });
}

/// (Fails if an early turn is not held back.)
#[test]
fn futures_start_in_the_order_of_their_spawns() {
    const FUTURES: usize = if cfg!(miri) { 20 } else { 500 };
    for_each_setup(|runtime| {
        let strand = Strand::new(());
        let started = Arc::new(Mutex::new(Vec::new()));
        let started2 = started.clone();
        let spawn_all = async move {
            let spawn = |number| {
                let started = started2.clone();
                strand.spawn(async move { started.lock().unwrap().push(number) })
            };
            let tasks: Vec<_> = (0..FUTURES).map(spawn).collect();
            // A future that ends before it has started delays no other.
            strand.spawn(pending::<()>()).cancel().await;
            for task in tasks {
                task.await;
            }
            strand.spawn(async {}).await;
        };
        let spawning = runtime.spawn(spawn_all);
        runtime.block_on(spawning);
        assert_eq!(*started.lock().unwrap(), (0..FUTURES).collect::<Vec<_>>());
    });
}

/// No thread drives the runtime of the first two futures. Fails if a later future waits for their tasks.
#[test]
fn a_future_on_a_runtime_that_no_thread_drives_keeps_no_other_from_starting() {
    for_each_setup(|runtime| {
        let undriven = Runtime::builder().current_thread().build().unwrap();
        let strand = Strand::new(());
        let started = Arc::new(Mutex::new(Vec::new()));
        let future = |number| {
            let started = started.clone();
            async move {
                started.lock().unwrap().push(number);
                future::yield_now().await;
                number
            }
        };
        let entered = undriven.enter();
        let (first, second) = (strand.spawn(future(1)), strand.spawn(future(2)));
        drop(entered);
        let third = spawn_in(runtime, &strand, future(3));
        assert_eq!(runtime.block_on(timeout(SOON, third)).expect("it starts"), 3);
        assert_eq!(*started.lock().unwrap(), [1, 2, 3]);
        drop(second);
        assert_eq!(undriven.block_on(first), 1);
    });
}

/// The thread that wakes a future polls it, if the strand is free; otherwise the thread inside of the strand
/// does.
#[test]
fn a_future_is_polled_by_the_thread_that_is_inside() {
    for_each_setup(|runtime| {
        let strand = Strand::new(());
        let wanted = Arc::new(Mutex::new(None));
        let (tell, told) = mpsc::channel();
        let wanted2 = wanted.clone();
        let future = poll_fn(move |cx| {
            tell.send(thread::current().id()).unwrap();
            let mut wanted = wanted2.lock().unwrap();
            let first: Option<Waker> = wanted.replace(cx.waker().clone());
            if first.is_none() { Poll::Pending } else { Poll::Ready(()) }
        });
        let task = spawn_in(runtime, &strand, future);
        told.recv_soon().unwrap();
        // Otherwise the polling thread would run the operation that occupies the strand, and the task could
        // not come.
        eventually("it has been polled", || format!("{strand:?}").contains("free"));
        let occupied = Occupied::new(&strand);
        let id = occupied.id();
        let waker = wanted.lock().unwrap().clone().unwrap();
        waker.wake();
        // The future's task comes, and finds the strand occupied.
        eventually("its turn is queued", || format!("{strand:?}").contains("others wait"));
        drop(occupied);
        assert_eq!(told.recv_soon(), Ok(id));
        runtime.block_on(task);
    });
}

#[test]
fn a_panic_in_a_spawned_future_reaches_the_awaiting_task() {
    for_each_setup(|runtime| {
        let strand = Strand::new(0);
        let task = spawn_in(runtime, &strand, async {
            future::yield_now().await;
            panic!("on purpose");
        });
        let panic = catch_unwind(AssertUnwindSafe(|| runtime.block_on(task))).expect_err("it is raised");
        assert_eq!(text_of(&*panic), "on purpose");
        let task = spawn_in(runtime, &strand, async { 1 });
        assert_eq!(runtime.block_on(task), 1);
    });
}

/// The tasks of a strand belong to the runtime, and end with it.
#[test]
fn a_shutdown_cancels_the_futures_of_a_strand() {
    for_each_setup(|runtime| {
        let strand = Strand::new(());
        let alive = Arc::new(());
        let (kept, (tell, told)) = (alive.clone(), mpsc::channel());
        let task = spawn_in(runtime, &strand, async move {
            tell.send(()).unwrap();
            pending::<()>().await;
            drop(kept);
        });
        told.recv_soon().unwrap();
        runtime.shutdown(SOON).unwrap();
        assert_eq!(Arc::strong_count(&alive), 1);
        assert_eq!(future::block_on(task.fallible()), None);
        assert_eq!(block_on(strand.with(|()| 1)), 1);
    });
}

/// An operation or a future that uses its own strand queues behind itself.
#[test]
fn used_from_inside_itself_it_keeps_its_order() {
    for_each_setup(|runtime| {
        let strand = Strand::new(Vec::new());
        let inner = strand.clone();
        strand.post(move |seen| {
            inner.post(|seen| seen.push(2));
            seen.push(1);
            assert!(poll_once(pin!(inner.with(|seen: &mut Vec<i32>| seen.push(9)))).is_pending());
        });
        let inner = strand.clone();
        let task = spawn_in(runtime, &strand, async move {
            inner.with(|seen| seen.push(3)).await;
            let nested = inner.clone();
            let task = inner.spawn(async move { nested.with(|seen| seen.push(4)).await });
            task.await;
            inner.with(|seen| seen.clone()).await
        });
        assert_eq!(runtime.block_on(task), [1, 2, 3, 4]);
    });
}

/// The operation would wait for itself: wherever it runs, it panics with a message, and the strand continues.
/// (Hangs without the check.)
#[test]
fn a_block_on_inside_of_an_operation_that_awaits_the_same_strand_panics() {
    fn waits_for_itself(strand: &Strand<usize>) -> impl FnOnce(&mut usize) -> String + Send + 'static {
        let inner = strand.clone();
        move |n| {
            *n += 1;
            let waits = || block_on(inner.with(|n| *n));
            let panic = catch_unwind(AssertUnwindSafe(waits)).expect_err("it is noticed");
            let two = || block_on(future::zip(inner.with(|n| *n), inner.with(|n| *n)));
            assert!(catch_unwind(AssertUnwindSafe(two)).is_err(), "it is not noticed in company");
            text_of(&*panic).to_owned()
        }
    }
    fn assert_said(said: &str) {
        assert!(said.contains("same strand (made at") && said.contains("strand_inside.rs"), "{said}");
    }
    for_each_setup(|runtime: &Arc<Runtime>| {
        let strand = Strand::new(0);
        // In a task, in a `block_on`, and on a thread in neither.
        let strand2 = strand.clone();
        let task = runtime.spawn(async move { strand2.with(waits_for_itself(&strand2)).await });
        assert_said(&runtime.block_on(task));
        assert_said(&runtime.block_on(strand.with(waits_for_itself(&strand))));
        assert_said(&future::block_on(strand.with(waits_for_itself(&strand))));
        // Handed over.
        let (strand2, (tell, told)) = (strand.clone(), mpsc::channel());
        let occupied = Occupied::new(&strand);
        let operation = waits_for_itself(&strand2);
        strand.post(move |n| tell.send(operation(n)).unwrap());
        drop(occupied);
        assert_said(&told.recv_soon().unwrap());
        // In a future that was spawned on the strand.
        let strand2 = strand.clone();
        let task = spawn_in(runtime, &strand, async move { waits_for_itself(&strand2)(&mut 0) });
        assert_said(&runtime.block_on(task));
        assert_eq!(runtime.block_on(strand.with(|n| *n)), 4);
    });
}

/// A `block_on` inside of an operation may await another strand, or its own strand before an operation is
/// inside of it.
#[test]
fn a_block_on_inside_of_an_operation_may_await_another_strand() {
    for_each_setup(|runtime| {
        let (strand, other) = (Strand::new(1), Strand::new(2));
        let sum = runtime.block_on(async {
            let sum = strand.with(move |n| *n + block_on(other.with(|n| *n))).await;
            sum + block_on(strand.with(|n| *n))
        });
        assert_eq!(sum, 4);
    });
}
