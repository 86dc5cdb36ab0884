//! What tokio's own tests do not look at: what a cell does with wakers and outputs, and that a task which is always ready can be aborted.

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::{Cell, JoinError, JoinHandle, id, try_id, yield_now};
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
    // Nobody keeps a waker.
    assert_eq!([Arc::strong_count(&first), Arc::strong_count(&last)], [1, 1]);
}

#[test]
fn an_output_is_dropped_once_whoever_comes_last() {
    let (output, count) = (Arc::new(()), |output: &Arc<()>| Arc::strong_count(output) - 1);
    let (_, waker) = counts();
    // The handle goes first, with a waker.
    let cell = Cell::new();
    let mut handle = JoinHandle::of(cell.clone());
    assert!(poll(&mut handle, &waker).is_pending());
    drop(handle);
    cell.complete(Ok(output.clone()));
    assert_eq!(count(&output), 0);
    // The task does.
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

/// Says in its destructor whether it is in the runtime and the task where it was.
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
        // A task has its own, whatever was entered on the thread that polls it.
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
