//! Waits under another library's `block_on`, before, beside and after shutdowns of the runtime and its end.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use shuttle::rand::{Rng, thread_rng};

use super::stage::SOON;
use super::{Pace, Reader, explore, foreign_block_on, runtime, sleep, spawn, ticks};
use crate::reactor::Pipe;
use crate::{Runtime, Timer};

fn a_moment() {
    sleep(thread_rng().gen_range(0..3));
}

fn shuts_down(runtime: &Runtime) {
    runtime.shutdown(ticks(50)).expect("nothing blocks");
}

fn registered_in(runtime: &Runtime, pipe: &Pipe) -> Reader {
    runtime.block_on(async { Reader::new(pipe) })
}

#[test]
fn a_source_of_a_runtime_that_is_shut_down() {
    explore(2_500, || {
        let runtime = Arc::new(runtime(1, 1));
        let pipe = Pipe::new();
        let reader = registered_in(&runtime, &pipe);
        let waiter = spawn("waiter", move || {
            a_moment();
            (0..2).for_each(|_| foreign_block_on(reader.byte()).expect("the runtime is there"));
        });
        let ender = spawn("ender", {
            let runtime = runtime.clone();
            move || {
                for _ in 0..thread_rng().gen_range(1..3) {
                    a_moment();
                    shuts_down(&runtime);
                }
            }
        });
        a_moment();
        pipe.write();
        if thread_rng().gen_bool(0.5) {
            ender.join().expect("it only shuts down");
        }
        sleep(5);
        let pace = Pace::new();
        pipe.write();
        waiter.join().expect("it only waits");
        pace.at_most(SOON, "a byte of a runtime that was shut down");
    });
}

#[test]
fn a_source_of_a_runtime_that_ends() {
    explore(2_500, || {
        let runtime = runtime(1, 1);
        let pipe = Pipe::new();
        let reader = registered_in(&runtime, &pipe);
        let waiter = spawn("waiter", move || {
            a_moment();
            let came = foreign_block_on(reader.byte());
            let again = foreign_block_on(reader.byte());
            (came.is_ok(), again.is_ok())
        });
        let written = thread_rng().gen_bool(0.5);
        if written {
            pipe.write();
        }
        a_moment();
        if thread_rng().gen_bool(0.5) {
            shuts_down(&runtime);
            a_moment();
        }
        drop(runtime);
        let pace = Pace::new();
        let (came, again) = waiter.join().expect("it only waits");
        pace.at_most(2 + SOON, "the wait ends with the runtime");
        if came && !written || again {
            crate::sync::fault("a byte came that was not written");
        }
    });
}

#[test]
fn a_timer_of_a_runtime_that_ends() {
    explore(2_500, || {
        let runtime = runtime(1, 1);
        let mut timer = Timer::after(ticks(6));
        let pace = Pace::new();
        let armed = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut timer).poll(cx).is_pending()));
        assert!(runtime.block_on(armed));
        let waiter = spawn("waiter", move || {
            a_moment();
            foreign_block_on(timer);
        });
        a_moment();
        if thread_rng().gen_bool(0.5) {
            shuts_down(&runtime);
            a_moment();
        }
        let left = if thread_rng().gen_bool(0.5) { Some(runtime) } else { None };
        waiter.join().expect("it only waits");
        pace.at_most(6 + SOON, "the timer fires");
        drop(left);
    });
}

#[test]
fn a_timer_in_our_own_block_on() {
    explore(2_500, || {
        let runtime = runtime(1, 1);
        let mut timer = Timer::after(ticks(6));
        let pace = Pace::new();
        let armed = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut timer).poll(cx).is_pending()));
        assert!(runtime.block_on(armed));
        let waiter = spawn("waiter", move || crate::block_on(timer));
        a_moment();
        drop(runtime);
        waiter.join().expect("it only waits");
        pace.at_most(6 + SOON, "the timer fires");
    });
}
