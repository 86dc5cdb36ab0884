//! Runtimes that end while their deputies are called, start, or sleep; and threads that cannot be started.

use std::sync::Arc;

use shuttle::rand::{Rng, thread_rng};

use super::stage::{SOON, settles, writes_in};
use super::{Latch, Pace, Reader, explore, foreign_block_on, runtime, sleep, spawn, ticks, within};
use crate::reactor::Pipe;
use crate::sync::thread::fail_starts;
use crate::{Timer, block_on};

/// Waits under a foreign `block_on` for a byte of a runtime, or for its end; says whether it came.
fn waits(reader: &Reader) -> bool {
    foreign_block_on(reader.byte()).is_ok()
}

#[test]
fn called_while_they_end() {
    explore(2_500, || {
        let runtimes = [runtime(1, 1), runtime(1, 1)];
        let callers = [0, 1].map(|at| {
            let pipe = Pipe::new();
            let reader = runtimes[at].block_on(async { Reader::new(&pipe) });
            pipe.write();
            spawn("caller", move || {
                let came = waits(&reader);
                sleep(thread_rng().gen_range(0..2));
                (came, waits(&reader))
            })
        });
        sleep(thread_rng().gen_range(0..3));
        drop(runtimes);
        let pace = Pace::new();
        for caller in callers {
            let (_, again) = caller.join().expect("it only waits");
            if again {
                crate::sync::fault("a byte came that was not written");
            }
        }
        pace.at_most(2 + SOON, "waits end with their runtimes");
    });
}

#[test]
fn one_after_the_other() {
    explore(3_500, || {
        for _ in 0..2 {
            let runtime = runtime(1, 1);
            let pipe = Pipe::new();
            let reader = runtime.block_on(async { Reader::new(&pipe) });
            let writer = writes_in(thread_rng().gen_range(0..3), &pipe);
            assert!(waits(&reader));
            writer.join().expect("it only writes").at_most(SOON, "a byte of a runtime");
        }
    });
}

/// The first wait of the default instance, of two threads at once.
#[test]
fn started_by_two_at_once() {
    explore(2_500, || {
        let others = ["first", "second"].map(|name| {
            spawn(name, || {
                within(2 + SOON, "a timer", || {
                    let timer = Timer::after(ticks(2));
                    if thread_rng().gen_bool(0.5) { _ = foreign_block_on(timer) } else { _ = block_on(timer) }
                });
            })
        });
        others.into_iter().for_each(|other| other.join().expect("it only waits"));
    });
}

/// The system has no thread for a while: a wait returns an error, or a thread leads for it.
#[test]
fn no_thread_for_a_foreign_wait() {
    explore(2_500, || {
        fail_starts(thread_rng().gen_range(1..4));
        let pipe = Pipe::new();
        let reader = Reader::new(&pipe);
        let writer = writes_in(2, &pipe);
        let mut tries = 0;
        while let Err(error) = foreign_block_on(reader.byte()) {
            tries += 1;
            assert!(error.to_string().contains("no thread can be started"), "{error}");
            assert!(tries < 4, "threads start again");
        }
        writer.join().expect("it only writes").at_most(SOON, "a byte under a foreign block_on");
    });
}

/// The deputy is there, and gets no relief: events wait until it does.
#[test]
fn no_thread_for_a_relief() {
    explore(2_500, || {
        let pipe = Pipe::new();
        let reader = Reader::new(&pipe);
        let failures = thread_rng().gen_range(1..6);
        fail_starts(failures);
        for _ in 0..3 {
            let writer = writes_in(1, &pipe);
            while foreign_block_on(reader.byte()).is_err() {}
            let pace = writer.join().expect("it only writes");
            pace.at_most(failures + SOON, "a byte while no thread starts");
        }
    });
}

/// A replacement is tried again.
#[test]
fn no_thread_for_a_replacement() {
    explore(2_500, || {
        let runtime = runtime(1, 2);
        // The worker is there.
        foreign_block_on(runtime.spawn(async {}));
        let latch = Latch::new();
        let failures = thread_rng().gen_range(1..4);
        fail_starts(failures);
        let blocked = runtime.spawn({
            let latch = latch.clone();
            async move { latch.wait() }
        });
        let pace = Pace::new();
        runtime.spawn(async move { latch.open() }).detach();
        foreign_block_on(blocked);
        pace.at_most(failures + SOON, "a replacement runs it");
        settles(&runtime);
    });
}

/// The workers of a runtime: it is not built, and nothing is left.
#[test]
fn no_thread_for_a_worker() {
    explore(2_500, || {
        let failing = thread_rng().gen_range(1..4);
        fail_starts(failing);
        let mut built = 0;
        while built < 1 {
            let builder = crate::Runtime::builder().threads(2).max_threads(2);
            match builder.build() {
                Ok(runtime) => {
                    super::remember(&runtime.pool);
                    let runtime = Arc::new(runtime);
                    within(SOON, "a task", || foreign_block_on(runtime.spawn(async {})));
                    built += 1;
                }
                Err(error) => assert!(error.to_string().contains("cannot start a thread"), "{error}"),
            }
        }
    });
}
