//! Loom models of a strand: the real door, the real operations, futures polled by hand.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

use super::door::Operation;
use super::handed::Handed;
use super::serial::Serial;
use super::*;
use crate::sync::models::{model, waker};
use crate::sync::{ProtocolCell, thread::park};
use loom::thread;

/// Loom's own cell in it: two that are inside at once, or one that does not see what another did, are found.
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

/// What is inside now. Nobody else may be using the strand.
fn seen(strand: &Strand<Seen>) -> Vec<u8> {
    let mut inside = strand.door().enter().expect("all have left, and left nothing");
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

/// Two post and one awaits: each operation runs once, with what was inside before it seen. What one thread posts keeps its order.
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

/// Three at the door at once.
#[test]
fn three_that_come_at_once_are_all_seen_to() {
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
) -> Left {
    strand.door().queue(operation).map_or(Left::Free, |inside| inside.drain(limit))
}

/// Somebody leaves after one operation, with or without a backlog, while another one comes and a relay is on its way: whoever is
/// last leaves nothing.
#[test]
fn what_is_left_open_is_seen_to_by_who_comes_next() {
    model(|| {
        let strand = Strand::new(Seen::new());
        let post = |number| Linked::new(Posted::new(move |seen: &mut Seen| seen.add(number)));
        let relay = |strand: &Strand<Seen>, left| {
            if left == Left::Open {
                if let Some(inside) = strand.door().take_over() {
                    assert_eq!(inside.drain(usize::MAX), Left::Free);
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

/// Somebody opens with a backlog, and somebody else goes in with an operation of its own, opens again while yet another one has
/// come, and so on: the order is that in which they came.
#[test]
fn what_is_left_open_keeps_its_order() {
    model(|| {
        let strand = Strand::new(Seen::new());
        let queue =
            |number| strand.door().queue(Linked::new(Posted::new(move |seen: &mut Seen| seen.add(number))));
        let inside = strand.door().enter().expect("nobody is there");
        assert!((1..=3).all(|number| queue(number).is_none()));
        assert_eq!(inside.drain(1), Left::Open);
        assert!(strand.door().enter().is_none());
        let inside = queue(4).expect("it is open");
        assert!(strand.door().take_over().is_none());
        assert!(queue(5).is_none());
        assert_eq!(inside.drain(1), Left::Open);
        let inside = strand.door().take_over().expect("it is open");
        assert_eq!(inside.drain(3), Left::Free);
        assert_eq!(seen(&strand), [1, 2, 3, 4, 5]);
    });
}

/// A `with` is dropped while somebody comes to it: it ran, or its operation is dropped; and never later.
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

/// The waker changes while the operation runs elsewhere: one of the two is called, or the poll sees the result.
#[test]
fn a_result_that_comes_while_its_waker_changes_is_found() {
    model(|| {
        let strand = Strand::new(Seen::new());
        let inside = strand.door().enter().expect("nobody is there");
        let handed = Linked::new(Handed::new(|seen: &mut Seen| seen.add(1), Waker::noop().clone()));
        assert!(strand.door().queue(handed.clone()).is_none());
        let poller = {
            let handed = handed.clone();
            thread::spawn(move || {
                let waker = waker();
                while handed.operation.poll(&waker).is_pending() {
                    park();
                }
            })
        };
        assert_eq!(inside.drain(usize::MAX), Left::Free);
        poller.join().unwrap();
    });
}

/// A future that is woken once from outside, and touches a cell in its polls.
struct Touches {
    cell: ProtocolCell<usize>,
    polls: AtomicUsize,
}

// SAFETY: the strand keeps those apart who touch the cell; loom checks it.
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

/// A wake that comes while a turn is queued, polled elsewhere, or over, is not lost; polls and operations do not overlap, and
/// what was written before the wake is seen. The task is polled by this thread, its turns by this one or the one that posts. Fails
/// if a turn is said not to be queued any more only after the poll.
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

/// A task ends while its turn is run elsewhere: the future is dropped inside, once, and nothing is kept. Fails if the task drops
/// it.
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

/// The tasks of two futures come in the wrong order: the futures start in the right one, and both do.
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

/// The first of two ends before it has started: the second starts.
#[test]
fn one_that_never_starts_holds_nobody_up() {
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

/// The tasks of three come in the wrong order, and one of them never does: those that are left start. Fails if it is not noted that
/// the second one is gone.
#[test]
fn one_that_is_gone_before_its_time_is_passed_over() {
    model(|| {
        let strand = Strand::new(Seen::new());
        let [first, second, mut third] =
            [1, 2, 3].map(|number| Serial::new(strand.clone(), async move { number }));
        assert!(Pin::new(&mut third).poll(&mut Context::from_waker(&waker())).is_pending());
        drop(second);
        assert_eq!(block_on(first), 1);
        assert_eq!(block_on(third), 3);
        assert_eq!(strand.handles(), 1);
    });
}
