//! Strands: no operation overlaps another one, none is lost, all run in order; and no thread is kept for
//! ever.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use futures_lite::future;
use paceline::{Runtime, Strand, block_on};

use crate::given_time::RecvSoon;
use crate::setups::{Latch, OpenOnDrop, Ping, SOON, eventually, for_each_setup, text_of};

/// Operations that a thread does for others before it leaves the rest to another thread.
const SHARE: usize = 64;

/// A thread that stays inside of the strand until this is dropped.
pub struct Occupied {
    free: Option<OpenOnDrop>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Occupied {
    pub fn new<T: Send + 'static>(strand: &Strand<T>) -> Self {
        let (strand, latch, (tell, told)) = (strand.clone(), Latch::new(), mpsc::channel());
        let free = Some(OpenOnDrop(latch.clone()));
        let thread = thread::spawn(move || {
            strand.post(move |_| {
                tell.send(()).unwrap();
                latch.wait();
            });
        });
        told.recv_soon().unwrap();
        Self { free, thread: Some(thread) }
    }

    pub fn id(&self) -> ThreadId {
        self.thread.as_ref().unwrap().thread().id()
    }
}

impl Drop for Occupied {
    /// The thread leaves, and is waited for.
    fn drop(&mut self) {
        drop(self.free.take());
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || thread::panicking());
    }
}

pub fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Tasks, threads and posts at once, more than a thread's share of each.
#[test]
fn no_operation_is_lost() {
    const TASKS: usize = 8;
    const EACH: usize = if cfg!(miri) { 20 } else { 2_000 };
    for_each_setup(|runtime| {
        let strand = Strand::new(0);
        let count = |strand: Strand<usize>| async move {
            for number in 0..EACH {
                if number % 2 == 0 {
                    strand.with(|sum| *sum += 1).await;
                } else {
                    strand.post(|sum| *sum += 1);
                }
            }
        };
        let tasks: Vec<_> = (0..TASKS).map(|_| runtime.spawn(count(strand.clone()))).collect();
        let outside = thread::spawn({
            let strand = strand.clone();
            move || future::block_on(count(strand))
        });
        tasks.into_iter().for_each(|task| runtime.block_on(task));
        outside.join().unwrap();
        assert_eq!(runtime.block_on(strand.with(|sum| *sum)), (TASKS + 1) * EACH);
    });
}

#[test]
fn an_operation_runs_in_place_if_the_strand_is_free() {
    let strand = Strand::new(None);
    strand.post(|id| *id = Some(thread::current().id()));
    let posted = pin!(strand.with(|id| id.take()));
    assert_eq!(poll_once(posted), Poll::Ready(Some(thread::current().id())));
}

#[test]
fn an_operation_is_handed_on_to_the_thread_that_is_inside() {
    let strand = Strand::new(());
    let occupied = Occupied::new(&strand);
    let id = occupied.id();
    let mut with = pin!(strand.with(|()| thread::current().id()));
    assert!(poll_once(with.as_mut()).is_pending());
    let (tell, told) = mpsc::channel();
    strand.post(move |()| tell.send(thread::current().id()).unwrap());
    drop(occupied);
    assert_eq!(block_on(with), id);
    assert_eq!(told.recv_soon(), Ok(id));
}

#[test]
fn first_come_first_served() {
    let strand = Strand::new(Vec::new());
    let occupied = Occupied::new(&strand);
    let mut waiting = Vec::new();
    for number in 0..10 {
        if number % 3 == 0 {
            strand.post(move |seen| seen.push(number));
        } else {
            let mut with = Box::pin(strand.with(move |seen| seen.push(number)));
            assert!(poll_once(with.as_mut()).is_pending());
            waiting.push(with);
        }
    }
    drop(occupied);
    assert_eq!(block_on(strand.with(|seen| seen.clone())), (0..10).collect::<Vec<_>>());
    waiting.into_iter().for_each(|with| block_on(with));
}

/// In place and handed over: the awaiting task gets the panic, and later operations run.
#[test]
fn a_panic_reaches_the_awaiting_task_and_poisons_nothing() {
    for_each_setup(|runtime| {
        let strand = Strand::new(0);
        let fails =
            || async { catch_unwind(AssertUnwindSafe(|| block_on(strand.with(|_| panic!("on purpose"))))) };
        let panic = runtime.block_on(fails()).expect_err("it is raised");
        assert_eq!(text_of(&*panic), "on purpose");

        let occupied = Occupied::new(&strand);
        let (strand2, (tell, told)) = (strand.clone(), mpsc::channel());
        let awaits = runtime.spawn(async move {
            let mut with = pin!(strand2.with(|_| panic!("on purpose, elsewhere")));
            assert!(future::poll_once(&mut with).await.is_none());
            tell.send(()).unwrap();
            with.await
        });
        told.recv_soon().unwrap();
        strand.post(|n| *n += 1);
        drop(occupied);
        let panic = catch_unwind(AssertUnwindSafe(|| runtime.block_on(awaits))).expect_err("it is raised");
        assert_eq!(text_of(&*panic), "on purpose, elsewhere");
        assert_eq!(runtime.block_on(strand.with(|n| *n)), 1);
    });
}

/// An operation panics in place while others are queued: these run, none of them on a thread that unwinds.
#[test]
fn what_was_queued_behind_a_panic_runs() {
    let strand = Strand::new(Vec::new());
    let (strand2, (tell, told), latch) = (strand.clone(), mpsc::channel(), Latch::new());
    let latch2 = latch.clone();
    let panics = thread::spawn(move || {
        block_on(strand2.with(move |_| {
            tell.send(()).unwrap();
            latch2.wait();
            panic!("on purpose");
        }));
    });
    told.recv_soon().unwrap();
    for _ in 0..3 {
        strand.post(|seen| seen.push(thread::panicking()));
    }
    latch.open();
    assert!(panics.join().is_err());
    assert_eq!(block_on(strand.with(|seen| seen.clone())), [false; 3]);
}

/// A panic is handled like that of a detached task.
#[test]
fn a_panic_in_a_posted_operation_reaches_no_task() {
    let strand = Strand::new(0);
    strand.post(|_| panic!("on purpose, in place"));
    let occupied = Occupied::new(&strand);
    strand.post(|_| panic!("on purpose, elsewhere"));
    strand.post(|n| *n += 1);
    drop(occupied);
    assert_eq!(block_on(strand.with(|n| *n)), 1);
}

/// (Fails if the drop does nothing.)
#[test]
fn an_operation_whose_future_is_dropped_before_its_turn_never_runs() {
    let strand = Strand::new(0);
    let occupied = Occupied::new(&strand);
    let alive = Arc::new(());
    let kept = alive.clone();
    {
        let with = pin!(strand.with(move |n| {
            *n += 1;
            drop(kept);
        }));
        assert!(poll_once(with).is_pending());
        assert_eq!(Arc::strong_count(&alive), 2);
    }
    assert_eq!(Arc::strong_count(&alive), 1, "what it captured is dropped with the future");
    drop(occupied);
    assert_eq!(block_on(strand.with(|n| *n)), 0);
}

#[test]
fn an_operation_that_has_begun_runs_to_its_end() {
    let strand = Strand::new(0);
    let occupied = Occupied::new(&strand);
    let ((tell, told), latch) = (mpsc::channel(), Latch::new());
    let latch2 = latch.clone();
    let mut with = Box::pin(strand.with(move |n| {
        tell.send(()).unwrap();
        latch2.wait();
        *n += 1;
    }));
    assert!(poll_once(with.as_mut()).is_pending());
    occupied.free.as_ref().unwrap().0.open();
    told.recv_soon().unwrap();
    drop(with);
    latch.open();
    drop(occupied);
    assert_eq!(block_on(strand.with(|n| *n)), 1);
}

#[test]
fn what_is_queued_runs_after_the_last_handle_is_gone() {
    let state = Arc::new(AtomicUsize::new(0));
    let strand = Strand::new(state.clone());
    let occupied = Occupied::new(&strand);
    (0..3 * SHARE).for_each(|_| strand.post(|n| _ = n.fetch_add(1, SeqCst)));
    drop(strand);
    drop(occupied);
    eventually("all have run, and the state is dropped", || Arc::strong_count(&state) == 1);
    assert_eq!(state.load(SeqCst), 3 * SHARE);
}

/// The thread does its share, and the rest goes to a task of the runtime: no other thread comes. (Fails
/// without a limit, and if no relay is spawned.)
#[test]
fn a_thread_is_not_captured_by_what_others_queue() {
    let strand = Strand::new(());
    let occupied = Occupied::new(&strand);
    let id = occupied.id();
    let seen = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..5 * SHARE {
        let seen = seen.clone();
        strand.post(move |()| seen.lock().unwrap().push(thread::current().id()));
    }
    drop(occupied);
    eventually("the relay does the rest", || seen.lock().unwrap().len() == 5 * SHARE);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.iter().filter(|other| **other == id).count(), SHARE);
}

/// The runtime has ended, so its relays are dropped: the default instance runs the rest.
#[test]
fn operations_left_to_a_runtime_that_has_ended_run() {
    for_each_setup(|runtime| {
        runtime.shutdown(SOON).unwrap();
        let strand = Strand::new(0);
        runtime.block_on(async {
            let strand2 = strand.clone();
            strand.post(move |_| (0..5 * SHARE).for_each(|_| strand2.post(|n| *n += 1)));
            assert_eq!(strand.with(|n| *n).await, 5 * SHARE);
        });
    });
}

/// An operation that blocks costs its own thread, and delays those that wait for the strand; no other task.
#[test]
fn an_operation_that_blocks_keeps_only_its_own_strand() {
    for_each_setup(|runtime| {
        let mut ping = Ping::new(runtime);
        let (strand, latch, (tell, told)) = (Strand::new(0), Latch::new(), mpsc::channel());
        let free = OpenOnDrop(latch.clone());
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let (strand, latch, tell) = (strand.clone(), latch.clone(), tell.clone());
                runtime.spawn(async move {
                    let blocks = move |n: &mut usize| {
                        let _ = tell.send(());
                        latch.wait();
                        *n += 1;
                    };
                    strand.with(blocks).await;
                })
            })
            .collect();
        told.recv_soon().unwrap();
        (0..3).for_each(|_| _ = ping.ping());
        drop(free);
        tasks.into_iter().for_each(|task| runtime.block_on(task));
        assert_eq!(runtime.block_on(strand.with(|n| *n)), 4);
    });
}

/// Formatting takes no lock, and shows nothing of the state, which need not be `Debug`.
#[test]
fn a_strand_can_be_formatted_from_inside() {
    struct Plain;
    let strand = Strand::new(Plain);
    let inner = strand.clone();
    let text = block_on(strand.with(move |_| format!("{inner:?}")));
    assert!(text.contains("held"), "{text}");
    let text = format!("{strand:?}");
    assert!(text.contains("free") && text.contains("strand.rs"), "{text}");
}

#[test]
fn auto_traits() {
    fn is_shared<T: Send + Sync + Unpin + Clone + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    is_shared::<Strand<std::cell::Cell<u8>>>();
    fn sends<T: Send>(_: T) {}
    let strand = Strand::new(std::cell::Cell::new(1));
    sends(strand.with(|n| n.get()));
}

/// An operation that always queues another one does not delay the end of the runtime whose task runs them.
/// Fails if that task, when it is dropped, runs all queued operations.
#[test]
fn operations_without_end_do_not_hold_up_the_end_of_a_runtime() {
    fn again(strand: &Strand<u64>, stop: &Arc<AtomicBool>) {
        let (inner, stop) = (strand.clone(), stop.clone());
        strand.post(move |n| {
            *n += 1;
            if !stop.load(SeqCst) {
                again(&inner, &stop);
            }
        });
    }
    for drains in [false, true] {
        let runtime = Runtime::builder().threads(1).build().unwrap();
        let (strand, stop) = (Strand::new(0), Arc::new(AtomicBool::new(false)));
        let begins = (strand.clone(), stop.clone());
        runtime.block_on(runtime.spawn(async move { again(&begins.0, &begins.1) }));
        let (tell, told) = mpsc::channel();
        let ends = thread::spawn(move || {
            if drains {
                runtime.block_on(runtime.drain(Duration::from_millis(10)));
            }
            drop(runtime);
            tell.send(()).unwrap();
        });
        let ended = told.recv_soon();
        stop.store(true, SeqCst);
        ended.expect("the runtime ends");
        ends.join().unwrap();
        assert!(block_on(strand.with(|n| *n)) > SHARE as u64);
    }
}
