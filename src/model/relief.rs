//! Reliefs, which are threads that only lead: a waker blocks one, and another thread takes leadership.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use super::stage::{SOON, writes_in};
use super::{Latch, Pace, Reader, explore, foreign_block_on, sleep, spawn, ticks};
use crate::reactor::Pipe;
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
