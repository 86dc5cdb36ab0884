//! The deputy beside threads that stay in one poll for long: it looks some times a second, and still notices
//! each broken promise.
//!
//! These tests measure how often the system switches to the deputy.

use std::future::Future;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use paceline::{Runtime, Timer, block_on, spawn};

use crate::given_time::RecvSoon;
use crate::idle_threads::switches;
use crate::setups::{eventually, is_child};

/// The deputy looks 16 times a second then; a look may switch to it more than once, if it waits for a lock or
/// loses its core.
const SWITCHES_A_SECOND: u64 = 60;

/// Returns how often all deputies of the process were switched to; `None` if there is no deputy, or none has
/// its name yet.
fn switches_of_deputies() -> Option<u64> {
    let all = switches();
    let deputies = all.iter().filter(|(name, _)| name.contains("paceline-deput"));
    deputies.map(|(_, count)| *count).reduce(|sum, count| sum + count)
}

/// Waits for a second in which the deputies looked no more often than allowed. Fails if they look each tick.
fn assert_deputies_rest() {
    eventually("the deputies rest", || {
        let before = switches_of_deputies();
        thread::sleep(Duration::from_secs(1));
        let (Some(before), Some(after)) = (before, switches_of_deputies()) else { return false };
        after.abs_diff(before) <= SWITCHES_A_SECOND
    });
}

/// Blocks its thread until the sender is dropped: without a limit, unlike a latch.
#[derive(Clone)]
struct Gate(Arc<Mutex<mpsc::Receiver<()>>>);

impl Gate {
    fn new() -> (mpsc::Sender<()>, Self) {
        let (free, gate) = mpsc::channel();
        (free, Self(Arc::new(Mutex::new(gate))))
    }

    fn wait(&self) {
        let _closed = self.0.lock().unwrap().recv();
    }
}

/// Starts a thread that stays in a `block_on` of `runtime`, or of the default instance, until the value is
/// dropped.
fn blocks_in_block_on(
    runtime: Option<Arc<Runtime>>,
    beside: impl Future<Output = ()> + Send + 'static,
) -> mpsc::Sender<()> {
    let (free, gate) = Gate::new();
    let (begun, has_begun) = mpsc::channel();
    let root = async move {
        let mut beside = Box::pin(beside);
        let _ = futures_lite::future::poll_once(&mut beside).await;
        // The first poll is in no pool yet.
        futures_lite::future::yield_now().await;
        begun.send(()).unwrap();
        gate.wait();
    };
    thread::spawn(move || match runtime {
        Some(runtime) => runtime.block_on(root),
        None => block_on(root),
    });
    has_begun.recv_soon().unwrap();
    free
}

fn nothing() -> impl Future<Output = ()> + Send + 'static {
    std::future::ready(())
}

/// Measures the deputy's looks beside a guest.
#[test]
#[ignore = "timed: how often the deputy looks in a second"]
fn beside_a_root_future_that_blocks() {
    if !is_child("deputy_in_long_polls::beside_a_root_future_that_blocks", ":") {
        return;
    }
    block_on(spawn(Timer::after(Duration::from_millis(1))));
    let _blocked = blocks_in_block_on(None, nothing());
    assert_deputies_rest();
}

/// Measures the same in a runtime without workers.
#[test]
#[ignore = "timed: how often the deputy looks in a second"]
fn beside_a_root_future_that_blocks_where_there_are_no_workers() {
    if !is_child("deputy_in_long_polls::beside_a_root_future_that_blocks_where_there_are_no_workers", ":") {
        return;
    }
    let runtime = Arc::new(Runtime::builder().current_thread().build().unwrap());
    let hour = async { _ = Timer::after(Duration::from_secs(3600)).await };
    let _blocked = blocks_in_block_on(Some(runtime.clone()), hour);
    assert_deputies_rest();
}

/// A task that has blocked for long wakes another one in the same poll, and waits for it there. Its own
/// thread would poll the other task next, and other workers sleep.
///
/// Measures first that the deputy rests, and then that it moves what the poll wakes to another thread.
#[test]
#[ignore = "timed: how often the deputy looks in a second"]
fn what_a_poll_wakes_after_a_long_time_is_polled() {
    if !is_child("deputy_in_long_polls::what_a_poll_wakes_after_a_long_time_is_polled", ":") {
        return;
    }
    for threads in [1, 2] {
        let runtime = Runtime::builder().threads(threads).build().unwrap();
        let (wake, woken) = async_channel::unbounded::<()>();
        let (answer, answered) = mpsc::channel();
        runtime
            .spawn(async move {
                while woken.recv().await.is_ok() {
                    answer.send(()).unwrap()
                }
            })
            .detach();
        let (go, may_go) = mpsc::channel::<()>();
        let blocks = runtime.spawn(async move {
            may_go.recv().unwrap();
            for _ in 0..10 {
                wake.try_send(()).unwrap();
                answered.recv_soon().unwrap();
            }
        });
        assert_deputies_rest();
        go.send(()).unwrap();
        runtime.block_on(blocks);
    }
}
