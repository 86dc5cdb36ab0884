//! Properties that tokio's own tests do not check: the wakers and outputs of a cell, and the abort of a task
//! that is always ready.

use std::cell::RefCell;
use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::{Cell, JoinError, JoinHandle, LocalSet, id, spawn_local, try_id, yield_now};
use crate::runtime::{Builder, Handle, Runtime};

#[derive(Default)]
struct Counts(AtomicUsize);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn counts() -> (Arc<Counts>, Waker) {
    let counts = Arc::new(Counts::default());
    (counts.clone(), Waker::from(counts))
}

fn poll<T>(handle: &mut JoinHandle<T>, waker: &Waker) -> Poll<Result<T, JoinError>> {
    Pin::new(handle).poll(&mut Context::from_waker(waker))
}

fn both() -> [Runtime; 2] {
    let threads = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    [threads, Builder::new_current_thread().enable_all().build().unwrap()]
}

#[test]
fn the_last_waker_is_called_and_no_other() {
    let cell = Cell::new();
    let mut handle = JoinHandle::of(cell.clone());
    let ((first, of_first), (last, of_last)) = (counts(), counts());
    assert!(poll(&mut handle, &of_first).is_pending());
    assert!(poll(&mut handle, &of_last).is_pending());
    assert!(poll(&mut handle, &of_last).is_pending());
    assert!(!handle.is_finished());
    cell.complete(Ok(1));
    assert!(handle.is_finished());
    assert_eq!([&first, &last].map(|counts| counts.0.load(Ordering::Relaxed)), [0, 1]);
    assert!(matches!(poll(&mut handle, &of_first), Poll::Ready(Ok(1))));
    drop((of_first, of_last));
    drop(handle);
    // No waker is kept.
    assert_eq!([Arc::strong_count(&first), Arc::strong_count(&last)], [1, 1]);
}

#[test]
fn an_output_is_dropped_once_by_the_last_owner() {
    let (output, count) = (Arc::new(()), |output: &Arc<()>| Arc::strong_count(output) - 1);
    let (_, waker) = counts();
    // The handle is dropped first, with a waker.
    let cell = Cell::new();
    let mut handle = JoinHandle::of(cell.clone());
    assert!(poll(&mut handle, &waker).is_pending());
    drop(handle);
    cell.complete(Ok(output.clone()));
    assert_eq!(count(&output), 0);
    // The task ends first.
    let cell = Cell::new();
    let handle = JoinHandle::of(cell.clone());
    let aborts = handle.abort_handle();
    cell.complete(Ok(output.clone()));
    assert_eq!(count(&output), 1);
    drop(handle);
    assert_eq!(count(&output), 0);
    assert!(aborts.is_finished());
}

#[test]
fn a_join_races_with_the_end_of_its_task() {
    for round in 0..if cfg!(miri) { 10 } else { 2_000 } {
        let cell = Cell::new();
        let mut handle = JoinHandle::of(cell.clone());
        let completes = std::thread::spawn(move || cell.complete(Ok(round)));
        let (told, waker) = counts();
        let (_, other) = counts();
        let _ = poll(&mut handle, &other).is_ready() || {
            let result = poll(&mut handle, &waker);
            completes.join().unwrap();
            assert!(result.is_ready() || told.0.load(Ordering::Relaxed) == 1);
            true
        };
    }
}

#[test]
fn a_task_that_is_always_ready_is_aborted() {
    for runtime in both() {
        runtime.block_on(async {
            let (sends, mut receives) = real::sync::mpsc::channel(1);
            let handle = super::spawn(async move {
                loop {
                    sends.send(()).await.unwrap();
                    receives.recv().await.unwrap();
                }
            });
            yield_now().await;
            handle.abort();
            assert!(handle.await.unwrap_err().is_cancelled());
        });
    }
}

/// Records in its destructor whether it is in its runtime and task.
struct Notes(Arc<AtomicBool>, Option<super::Id>);

impl Drop for Notes {
    fn drop(&mut self) {
        self.0.store(Handle::try_current().is_ok() && try_id() == self.1, Ordering::Relaxed);
    }
}

#[test]
fn a_future_is_dropped_in_its_runtime_and_task() {
    for runtime in both() {
        let is_there = Arc::new(AtomicBool::new(false));
        let notes = is_there.clone();
        let (tells, told) = std::sync::mpsc::channel();
        runtime.spawn(async move {
            let _notes = Notes(notes, Some(id()));
            tells.send(()).unwrap();
            pending::<()>().await;
        });
        runtime.block_on(async {
            while told.try_recv().is_err() {
                yield_now().await;
            }
        });
        drop(runtime);
        assert!(is_there.load(Ordering::Relaxed));
    }
}

#[test]
fn what_is_entered_in_a_poll_is_left_there() {
    let [inner, outer] = both();
    let ids = [outer.handle().id(), inner.handle().id()];
    outer.block_on(async {
        let entered = inner.enter();
        assert_eq!(Handle::current().id(), ids[1]);
        // A task has its own runtime, regardless of the one entered on the polling thread.
        assert_eq!(super::spawn(async { Handle::current().id() }).await.unwrap(), ids[1]);
        assert_eq!(outer.spawn(async { Handle::current().id() }).await.unwrap(), ids[0]);
        drop(entered);
        assert_eq!(Handle::current().id(), ids[0]);
    });
    assert!(Handle::try_current().is_err());
}

#[test]
fn a_handle_outlives_its_runtime() {
    for runtime in both() {
        let handle = runtime.handle().clone();
        drop(runtime);
        let _entered = handle.enter();
        let mut cx = Context::from_waker(Waker::noop());
        let cancelled = |result| matches!(result, Poll::Ready(Err(error)) if JoinError::is_cancelled(&error));
        assert!(cancelled(pin!(handle.spawn(async {})).poll(&mut cx)));
        assert!(cancelled(pin!(handle.spawn_blocking(|| ())).poll(&mut cx)));
        assert_eq!(handle.block_on(async { 1 }), 1);
    }
}

/// Panics when it is dropped, unless that happens in a panic.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("on purpose, in drop");
        }
    }
}

/// Hooks panic on a thread for blocking closures, as it starts and as it ends: the closure runs, and the
/// process continues.
#[test]
fn a_hook_that_panics_keeps_no_closure_from_running() {
    let panics = || std::panic::panic_any(Bomb);
    let mut builder = Builder::new_multi_thread();
    let builder = builder.worker_threads(1).enable_all().on_thread_start(panics).on_thread_stop(panics);
    let runtime = builder.build().unwrap();
    for number in 0..3 {
        assert_eq!(runtime.block_on(runtime.spawn_blocking(move || number)).unwrap(), number);
    }
    assert_eq!(runtime.block_on(runtime.spawn(async { 1 })).unwrap(), 1);
}

/// The output of a task without a handle is a panic with a payload that panics when it is dropped: that panic
/// is caught.
#[test]
fn a_payload_that_panics_is_dropped_with_its_output() {
    let cell = Cell::<()>::new();
    drop(JoinHandle::of(cell.clone()));
    let error = JoinError::panic(cell.id(), Box::new(Bomb));
    cell.complete(Err(error));
    let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    drop(runtime.spawn_blocking(|| std::panic::panic_any(Bomb)));
    assert_eq!(runtime.block_on(runtime.spawn_blocking(|| 1)).unwrap(), 1);
}

/// Fails if a woken task overtakes others, or if the future beside the tasks is polled between two of them.
#[test]
fn a_local_set_polls_its_tasks_in_order_and_its_future_after_a_round() {
    let runtime = Builder::new_current_thread().build().unwrap();
    let trace = Rc::new(RefCell::new(Vec::new()));
    let polled = LocalSet::new().block_on(&runtime, async {
        for number in 0..100 {
            let trace = trace.clone();
            spawn_local(async move {
                trace.borrow_mut().push(number);
                let child = trace.clone();
                spawn_local(async move { child.borrow_mut().push(100 + number) });
            });
        }
        yield_now().await;
        let polled = trace.borrow().len();
        while trace.borrow().len() < 200 {
            yield_now().await;
        }
        polled
    });
    assert_eq!(polled, 61);
    assert_eq!(*trace.borrow(), (0..200).collect::<Vec<_>>());
}

/// Some tasks have waited, others were never polled. Fails if they are dropped in the order of the queue.
#[test]
fn a_local_set_drops_its_tasks_in_the_order_in_which_they_were_spawned() {
    struct Tells(u32, Rc<RefCell<Vec<u32>>>);
    impl Drop for Tells {
        fn drop(&mut self) {
            self.1.borrow_mut().push(self.0);
        }
    }
    let trace = Rc::default();
    let set = LocalSet::new();
    let spawns = |number| {
        let tells = Tells(number, Rc::clone(&trace));
        set.spawn_local(async move {
            pending::<()>().await;
            drop(tells);
        })
    };
    (0..5).for_each(|number| drop(spawns(number)));
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(set.run_until(yield_now()));
    (5..8).for_each(|number| drop(spawns(number)));
    drop(set);
    assert_eq!(*trace.borrow(), (0..8).collect::<Vec<_>>());
}

/// Fails if a number is appended, or if threads for blocking closures have another name.
#[test]
fn threads_have_the_very_name_that_was_given() {
    let name = || std::thread::current().name().map(String::from);
    let runtime = Builder::new_multi_thread().worker_threads(2).thread_name("abc").build().unwrap();
    let [task, blocking] = [
        runtime.block_on(runtime.spawn(async move { name() })).unwrap(),
        runtime.block_on(runtime.spawn_blocking(name)).unwrap(),
    ];
    assert_eq!([task, blocking].map(Option::unwrap), ["abc", "abc"]);

    let next = AtomicUsize::new(1);
    let names = move || format!("thread {}", next.fetch_add(1, Ordering::Relaxed));
    let runtime = Builder::new_multi_thread().worker_threads(1).thread_name_fn(names).build().unwrap();
    assert_eq!(runtime.block_on(runtime.spawn(async move { name() })).unwrap().unwrap(), "thread 1");
    assert_eq!(runtime.block_on(runtime.spawn_blocking(name)).unwrap().unwrap(), "thread 2");
}

/// Is ready at once, and panics when it is dropped.
struct ReadyBomb(Bomb);

impl Future for ReadyBomb {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

/// Fails if such a task counts as one that has returned.
#[test]
fn a_destructor_that_panics_after_the_last_poll_is_the_panic_of_its_task() {
    for runtime in both() {
        let error = runtime.block_on(runtime.spawn(ReadyBomb(Bomb))).unwrap_err();
        assert!(error.is_panic());
        assert_eq!(runtime.handle().paceline().metrics().tasks_panicked, 1);
    }
}
