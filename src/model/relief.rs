//! Reliefs, which are threads that only lead: a waker blocks one, and another thread takes leadership.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::stage::{SOON, writes_in};
use super::{Latch, Pace, Reader, explore, foreign_block_on, sleep, spawn, ticks, yields};
use crate::probe::SceneActivity;
use crate::reactor::Pipe;
use crate::sync::thread;
use crate::{Timer, block_on};

/// A waker that blocks the thread that calls it.
struct Blocks {
    called: Latch,
    until: Latch,
}

impl Wake for Blocks {
    fn wake(self: Arc<Self>) {
        self.called.open();
        self.until.wait();
    }
}

/// Waits for a byte with a waker that blocks its caller until `until` is open. Returns when the waker was
/// called.
fn blocks_who_leads(pipe: &Pipe, until: &Latch) -> impl Future<Output = std::io::Result<()>> + use<> {
    let reader = Reader::new(pipe);
    let mut wait: Pin<Box<dyn Future<Output = _>>> = Box::pin(async move { reader.byte().await });
    let called = Latch::new();
    let waker = Waker::from(Arc::new(Blocks { called: called.clone(), until: until.clone() }));
    assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let pace = Pace::new();
    pipe.write();
    called.wait();
    pace.at_most(SOON, "a byte under a foreign block_on");
    wait
}

fn waits_for_a_byte() {
    let pipe = Pipe::new();
    let reader = Reader::new(&pipe);
    let writer = writes_in(1, &pipe);
    foreign_block_on(reader.byte()).expect("somebody leads");
    writer.join().expect("it only writes").at_most(SOON, "a byte while the waker blocks");
}

#[test]
fn its_waker_blocks() {
    explore(2_500, || {
        let (pipe, until) = (Pipe::new(), Latch::new());
        let wait = blocks_who_leads(&pipe, &until);
        (0..2).for_each(|_| waits_for_a_byte());
        // A second one.
        let other = Pipe::new();
        let another = blocks_who_leads(&other, &until);
        waits_for_a_byte();
        foreign_block_on(Timer::after(ticks(1)));
        until.open();
        foreign_block_on(async {
            wait.await.expect("it was read already");
            another.await.expect("it was read already");
        });
    });
}

#[test]
fn somebody_comes_to_lead() {
    explore(2_500, || {
        let (pipe, until) = (Pipe::new(), Latch::new());
        let reader = Reader::new(&pipe);
        waits_for_a_byte();
        // The relief waits in the poller, or sleeps already.
        let writer = spawn("writer", {
            let pipe = pipe.clone();
            move || {
                for _ in 0..3 {
                    sleep(1);
                    pipe.write();
                }
            }
        });
        let pace = Pace::new();
        block_on(async {
            for _ in 0..3 {
                reader.byte().await.expect("somebody leads");
            }
        });
        pace.at_most(3 + SOON, "bytes for who came to lead");
        writer.join().expect("it only writes");
        // And it is a relief's turn again.
        let wait = blocks_who_leads(&Pipe::new(), &until);
        let pace = Pace::new();
        block_on(Timer::after(ticks(1)));
        pace.at_most(1 + SOON, "a timer for who came to lead");
        until.open();
        drop(wait);
    });
}

/// Ticks for which the threads of a pool without workers may run before a relief leads: `BUSY_BEFORE_RELIEF`
/// of `watch/decide.rs`.
const BUSY: u32 = 10;

/// Calls `meanwhile` in a `block_on`, while a timer is awaited and leadership is vacant.
fn beside_a_timer(meanwhile: impl Fn()) {
    block_on(async {
        // From its second poll on, the pool knows the thread.
        yields().await;
        let mut far = Timer::after(ticks(1_000));
        assert!(poll_fn(|cx| Poll::Ready(Pin::new(&mut far).poll(cx).is_pending())).await);
        meanwhile();
        Timer::after(ticks(1)).await;
    });
}

/// A program only calls `block_on`, and its thread has no core for half of [`BUSY`] in each of ten rounds.
/// Fails if it has more threads than that one and the deputy; and if no relief leads where the thread has no
/// core for longer.
#[test]
fn a_thread_that_waits_for_a_core_gets_a_relief_only_if_it_waits_for_long() {
    explore(4_500, || {
        let _part = SceneActivity::WaitsForCore.begin();
        for _ in 0..10 {
            beside_a_timer(|| sleep(BUSY / 2));
            assert_eq!(thread::alive(), 2, "this thread and the deputy");
        }
        beside_a_timer(|| {
            let pace = Pace::new();
            while thread::alive() == 2 {
                pace.at_most(BUSY + SOON, "a relief leads");
                sleep(1);
            }
        });
    });
}
