//! All workers block, so a guest, main's `block_on`, leads: except for the first event, it gets its events as
//! promptly as with free workers. When the workers are back, they lead.

use super::stage::{SOON, settles, writes_in};
use super::{Latch, Pace, Reader, explore, foreign_block_on, runtime, sleep, spawn, ticks};
use crate::Timer;
use crate::reactor::Pipe;

/// Events after the first.
const EVENTS: usize = 5;

/// Reads bytes, each of which is written when the one before was read.
async fn reads_promptly() {
    let pipe = Pipe::new();
    let reader = Reader::new(&pipe);
    let asked: Vec<_> = (0..=EVENTS).map(|_| Latch::new()).collect();
    let writer = spawn("writer", {
        let asked = asked.clone();
        move || {
            for asked in asked {
                asked.wait();
                pipe.write();
            }
        }
    });
    let mut pace = Pace::new();
    for (at, asked) in asked.iter().enumerate() {
        asked.open();
        reader.byte().await.expect("somebody leads");
        if at == 0 {
            pace.at_most(SOON, "the guest leads");
            pace = Pace::new();
        }
    }
    // Less time than two rescues take.
    pace.at_most(3, "the guest's other events");
    writer.join().expect("it only writes");
}

#[test]
fn while_all_workers_block() {
    explore(1_500, || {
        let runtime = runtime(2, 2);
        let latch = Latch::new();
        let tasks = [0, 1].map(|_| {
            let latch = latch.clone();
            runtime.spawn(async move {
                latch.wait();
                Timer::after(ticks(1)).await;
            })
        });
        // The workers are stuck by now.
        sleep(3);
        runtime.block_on(reads_promptly());
        latch.open();
        let pace = Pace::new();
        tasks.into_iter().for_each(foreign_block_on);
        pace.at_most(1 + SOON, "the workers lead");
        settles(&runtime);
    });
}

/// Beside a host of the default instance that blocks.
#[test]
fn while_another_thread_s_task_blocks() {
    explore(1_500, || {
        let latch = Latch::new();
        let host = spawn("host", {
            let latch = latch.clone();
            move || {
                let executor = crate::Executor::new();
                let task = executor.spawn(async move {
                    Timer::after(ticks(1)).await;
                    latch.wait();
                    let pace = Pace::new();
                    Timer::after(ticks(1)).await;
                    pace.at_most(1 + SOON, "the host leads again");
                });
                crate::block_on(executor.run(task));
            }
        });
        sleep(3);
        crate::block_on(reads_promptly());
        latch.open();
        host.join().expect("it only runs tasks");
    });
}

/// The guest is there first, and the workers come back while it waits.
#[test]
fn while_workers_come_and_go() {
    explore(1_500, || {
        let runtime = runtime(1, 1);
        let task = runtime.spawn(async {
            for _ in 0..3 {
                Timer::after(ticks(1)).await;
                sleep(2);
            }
        });
        let pipe = Pipe::new();
        runtime.block_on(async {
            let reader = Reader::new(&pipe);
            for _ in 0..3 {
                let writer = writes_in(2, &pipe);
                reader.byte().await.expect("somebody leads");
                writer.join().expect("it only writes").at_most(SOON, "a byte for the guest");
            }
        });
        runtime.block_on(task);
        settles(&runtime);
    });
}
