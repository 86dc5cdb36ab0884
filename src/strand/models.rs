//! Loom models of a strand: the real door, the real operations, and futures polled by hand.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

use super::door::Operation;
use super::request::Request;
use super::serial::Serial;
use super::*;
use crate::sync::models::{model, waker};
use crate::sync::{ProtocolCell, thread::park};
use loom::thread;

/// A state in loom's own cell, which finds two threads inside at once, and a thread that does not see what
/// another has done.
struct Seen(ProtocolCell<Vec<u8>>);

impl Seen {
    fn new() -> Self {
        Self(ProtocolCell::new(Vec::new()))
    }

    fn add(&mut self, number: u8) {
        // SAFETY: as the strand promises; loom checks it.
        unsafe { self.0.with_mut(|seen| seen.push(number)) };
    }

    fn all(&mut self) -> Vec<u8> {
        // SAFETY: as above.
        unsafe { self.0.with_mut(|seen| seen.clone()) }
    }
}

// SAFETY: loom checks what the strand promises.
unsafe impl Send for Seen {}

/// Returns what the state has seen. No other thread may be using the strand.
fn seen(strand: &Strand<Seen>) -> Vec<u8> {
    let mut inside = strand.0.door.enter().expect("all threads have left, and nothing waits");
    let all = inside.with(Seen::all);
    assert!(inside.leave().is_ok());
    all
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = waker();
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => park(),
        }
    }
}

/// One thread posts twice and another awaits: each operation runs once and sees what the earlier ones did.
/// The operations of one thread keep their order.
#[test]
fn each_operation_runs_once_and_none_beside_another() {
    model(|| {
        let strand = Strand::new(Seen::new());
        let other = {
            let strand = strand.clone();
            thread::spawn(move || {
                strand.post(|seen| seen.add(1));
                strand.post(|seen| seen.add(2));
            })
        };
        assert_eq!(
            block_on(strand.with(|seen| {
                seen.add(3);
                33
            })),
            33
        );
        other.join().unwrap();
        let seen = seen(&strand);
        assert!(matches!(seen[..], [1, 2, 3] | [1, 3, 2] | [3, 1, 2]), "{seen:?}");
    });
}

/// Three threads queue at once.
#[test]
fn three_operations_queued_at_once_all_run() {
    model(|| {
        let strand = Strand::new(Seen::new());
        let others = [1, 2].map(|number| {
            let strand = strand.clone();
            thread::spawn(move || strand.post(move |seen| seen.add(number)))
        });
        strand.post(|seen| seen.add(3));
        others.into_iter().for_each(|other| other.join().unwrap());
        let mut seen = seen(&strand);
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3]);
    });
}

fn drain<O: Operation<Seen>>(
    strand: &Strand<Seen>,
    operation: StdArc<Linked<Seen, O>>,
    limit: usize,
) -> DoorExit {
    strand.0.door.queue(operation).map_or(DoorExit::Free, |inside| inside.drain(limit))
}

/// A thread leaves after one operation, with or without a backlog, while another one queues and a relay is on
/// its way: the last of them leaves nothing behind.
#[test]
fn what_is_left_open_is_run_by_the_next_to_enter() {
    model(|| {
        let strand = Strand::new(Seen::new());
        let post = |number| Linked::new(Post::new(move |seen: &mut Seen| seen.add(number)));
        let relay = |strand: &Strand<Seen>, left| {
            if left == DoorExit::Open {
                if let Some(inside) = strand.0.door.take_over() {
                    assert_eq!(inside.drain(usize::MAX), DoorExit::Free);
                }
            }
        };
        let other = {
            let strand = strand.clone();
            thread::spawn(move || {
                for number in [1, 2] {
                    let left = drain(&strand, post(number), 1);
                    relay(&strand, left);
                }
            })
        };
        let left = drain(&strand, post(3), 1);
        thread::yield_now();
        relay(&strand, left);
        other.join().unwrap();
        let seen = seen(&strand);
        assert!(matches!(seen[..], [1, 2, 3] | [1, 3, 2] | [3, 1, 2]), "{seen:?}");
    });
}

/// The strand is left open with a backlog, an operation enters and leaves it open again while others were
/// queued: the operations run in the order in which they were queued.
#[test]
fn what_is_left_open_keeps_its_order() {
    model(|| {
        let strand = Strand::new(Seen::new());
        let queue =
            |number| strand.0.door.queue(Linked::new(Post::new(move |seen: &mut Seen| seen.add(number))));
        let inside = strand.0.door.enter().expect("no thread is inside");
        assert!((1..=3).all(|number| queue(number).is_none()));
        assert_eq!(inside.drain(1), DoorExit::Open);
        assert!(strand.0.door.enter().is_none());
        let inside = queue(4).expect("it is open");
        assert!(strand.0.door.take_over().is_none());
        assert!(queue(5).is_none());
        assert_eq!(inside.drain(1), DoorExit::Open);
        let inside = strand.0.door.take_over().expect("it is open");
        assert_eq!(inside.drain(3), DoorExit::Free);
        assert_eq!(seen(&strand), [1, 2, 3, 4, 5]);
    });
}

/// A `with` is dropped while another thread is at the strand: its operation ran or was dropped by then, and
/// never runs later.
#[test]
fn a_with_that_is_dropped_runs_at_once_or_never() {
    model(|| {
        let strand = Strand::new(Seen::new());
        let other = {
            let strand = strand.clone();
            thread::spawn(move || strand.post(|seen| seen.add(1)))
        };
        let alive = StdArc::new(());
        {
            let kept = alive.clone();
            let mut with = pin!(strand.with(move |seen| {
                seen.add(2);
                drop(kept)
            }));
            let _ = with.as_mut().poll(&mut Context::from_waker(&waker()));
        }
        other.join().unwrap();
        assert_eq!(StdArc::strong_count(&alive), 1);
        let seen = seen(&strand);
        assert!(matches!(seen[..], [1] | [1, 2] | [2, 1]), "{seen:?}");
    });
}

/// The waker changes while another thread runs the operation: one of the two wakers is called, or the poll
/// sees the result.
#[test]
fn a_result_that_comes_while_its_waker_changes_is_found() {
    model(|| {
        let strand = Strand::new(Seen::new());
        let inside = strand.0.door.enter().expect("no thread is inside");
        let request = Linked::new(Request::new(|seen: &mut Seen| seen.add(1), Waker::noop().clone()));
        assert!(strand.0.door.queue(request.clone()).is_none());
        let poller = {
            let request = request.clone();
            thread::spawn(move || {
                let waker = waker();
                while request.operation.poll(&waker).is_pending() {
                    park();
                }
            })
        };
        assert_eq!(inside.drain(usize::MAX), DoorExit::Free);
        poller.join().unwrap();
    });
}

/// A future that is woken once from outside, and uses a cell in its polls.
struct Touches {
    cell: ProtocolCell<usize>,
    polls: AtomicUsize,
}

// SAFETY: the strand keeps the users of the cell apart; loom checks it.
unsafe impl Sync for Touches {}
// SAFETY: as above.
unsafe impl Send for Touches {}

impl Touches {
    fn new() -> StdArc<Self> {
        StdArc::new(Self { cell: ProtocolCell::new(0), polls: AtomicUsize::new(0) })
    }

    fn touch(&self) {
        // SAFETY: as for `Sync`.
        unsafe { self.cell.with_mut(|n| *n += 1) };
        self.polls.fetch_add(1, Relaxed);
    }
}

/// A wake while a turn is queued, polled elsewhere, or over is not lost. Polls and operations do not overlap,
/// and a poll sees what was written before the wake. This thread polls the task; the turns run on this thread
/// or on the one that posts. Fails if `queued` is cleared only after the poll.
#[test]
fn a_wake_during_a_turn_brings_another_turn() {
    model(|| {
        let strand = Strand::new(Seen::new());
        let touches = Touches::new();
        let ready = StdArc::new(loom::sync::atomic::AtomicBool::new(false));
        let mut serial = {
            let (touches, ready) = (touches.clone(), ready.clone());
            Serial::new(
                strand.clone(),
                std::future::poll_fn(move |_| {
                    touches.touch();
                    if ready.load(Relaxed) { Poll::Ready(7) } else { Poll::Pending }
                }),
            )
        };
        let waker = waker();
        let poster = {
            let strand = strand.clone();
            thread::spawn(move || strand.post(move |_| touches.touch()))
        };
        let waking = {
            let waker = waker.clone();
            thread::spawn(move || {
                ready.store(true, Relaxed);
                waker.wake();
            })
        };
        let output = loop {
            match Pin::new(&mut serial).poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(output) => break output,
                Poll::Pending => park(),
            }
        };
        [poster, waking].into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(output, 7);
        drop(serial);
        let _ = seen(&strand);
    });
}

/// A task ends while another thread runs its turn: the future is dropped inside, once, and nothing is leaked.
/// Fails if the task drops the future.
#[test]
fn the_future_of_a_task_that_ends_is_dropped_inside() {
    struct TouchesInDrop(StdArc<Touches>);
    impl Drop for TouchesInDrop {
        fn drop(&mut self) {
            self.0.touch();
        }
    }
    model(|| {
        let strand = Strand::new(Seen::new());
        let touches = Touches::new();
        let mut serial = {
            let guard = TouchesInDrop(touches.clone());
            Serial::new(
                strand.clone(),
                std::future::poll_fn(move |_| {
                    guard.0.touch();
                    Poll::<()>::Pending
                }),
            )
        };
        let other = {
            let (strand, touches) = (strand.clone(), touches.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    let touches = touches.clone();
                    strand.post(move |_| touches.touch());
                }
            })
        };
        let polled = Pin::new(&mut serial).poll(&mut Context::from_waker(&waker()));
        assert!(polled.is_pending());
        drop(serial);
        other.join().unwrap();
        let _ = seen(&strand);
        assert_eq!((StdArc::strong_count(&touches), strand.handles()), (1, 1));
        assert!(matches!(touches.polls.load(Relaxed), 3 | 4));
    });
}

/// The tasks of two futures run in the wrong order: both futures start, in the right order.
#[test]
fn futures_start_in_the_order_of_their_spawns() {
    model(|| {
        let strand = Strand::new(Seen::new());
        let order = StdArc::new(std::sync::Mutex::new(Vec::new()));
        let serial = |number| {
            let order = order.clone();
            Serial::new(strand.clone(), async move { order.lock().unwrap().push(number) })
        };
        let (first, second) = (serial(1), serial(2));
        let other = thread::spawn(move || block_on(second));
        block_on(first);
        other.join().unwrap();
        assert_eq!(*order.lock().unwrap(), [1, 2]);
        let _ = seen(&strand);
    });
}

/// The first of two futures ends before it has started: the second starts.
#[test]
fn a_future_that_never_starts_holds_no_other_up() {
    model(|| {
        let strand = Strand::new(Seen::new());
        let [first, second] = [1, 2].map(|number| Serial::new(strand.clone(), async move { number }));
        let other = thread::spawn(move || drop(first));
        assert_eq!(block_on(second), 2);
        other.join().unwrap();
        let _ = seen(&strand);
        assert_eq!(strand.handles(), 1);
    });
}

/// A second future starts the first, whose task is polled at the same time, or later. Neither its output nor
/// a wake is lost. Fails if `call` queues a turn that is queued already, and if the turn of a task that was
/// not polled does nothing.
#[test]
fn a_future_is_started_by_a_later_one() {
    model(|| {
        let strand = Strand::new(Seen::new());
        // Whether the first future is ready, and its waker.
        let event = StdArc::new(Mutex::new((false, None)));
        let first = {
            let event = event.clone();
            let future = std::future::poll_fn(move |cx| {
                let mut event = sync::lock(&event);
                event.1 = Some(cx.waker().clone());
                if event.0 { Poll::Ready(1) } else { Poll::Pending }
            });
            Serial::new(strand.clone(), future)
        };
        let second = Serial::new(strand.clone(), async { 2 });
        let other = thread::spawn(move || {
            assert_eq!(block_on(second), 2);
            let waker: Option<Waker> = {
                let mut event = sync::lock(&event);
                event.0 = true;
                event.1.take()
            };
            waker.expect("the first future was polled").wake();
        });
        assert_eq!(block_on(first), 1);
        other.join().unwrap();
        let _ = seen(&strand);
        assert_eq!(strand.handles(), 1);
    });
}

/// The tasks of three futures run in the wrong order, and the second task never does: the other futures
/// start. Fails if the end of the second is not noted, or keeps the strand.
#[test]
fn a_future_that_ends_before_its_turn_is_passed_over() {
    model(|| {
        let strand = Strand::new(Seen::new());
        let [first, second, mut third] =
            [1, 2, 3].map(|number| Serial::new(strand.clone(), async move { number }));
        drop(second);
        assert_eq!(Pin::new(&mut third).poll(&mut Context::from_waker(&waker())), Poll::Ready(3));
        assert_eq!(block_on(first), 1);
        drop(third);
        assert_eq!(strand.handles(), 1);
        // Without a later one.
        let [first, second] = [1, 2].map(|number| Serial::new(strand.clone(), async move { number }));
        drop(second);
        assert_eq!(block_on(first), 1);
        assert_eq!(strand.handles(), 1);
    });
}
