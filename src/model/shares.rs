//! Threads that hold events in their shares, and do not fire them: because they block, end, or begin
//! something else.

use std::future::{Future, poll_fn};
use std::mem;
use std::sync::Arc;
use std::task::Poll;

use super::stage::{SOON, settles};
use super::{Latch, Pace, Reader, explore, foreign_block_on, runtime, sleep, spawn, within, yields};
use crate::pool::{Pool, with_current_pool};
use crate::reactor::Pipe;
use crate::{Runtime, Task, block_on};

/// Number of pipes whose bytes come together.
const MANY: usize = 5;

fn pipes() -> Vec<Pipe> {
    (0..MANY).map(|_| Pipe::new()).collect()
}

/// A reader for each pipe, registered in the runtime.
fn readers(runtime: &Runtime, pipes: &[Pipe]) -> Vec<Reader> {
    runtime.block_on(async { pipes.iter().map(Reader::new).collect() })
}

/// Takes a byte from each reader, one after the other.
async fn read_all(readers: impl IntoIterator<Item = Reader>) {
    for reader in readers {
        reader.byte().await.expect("a thread leads");
    }
}

/// Returns the pool of a `block_on`, which joins one when its future waits.
async fn pool_here() -> Arc<Pool> {
    yields().await;
    with_current_pool(Arc::clone).expect("it has joined")
}

/// Opens `begun` after the first poll of `future`.
fn opens_when_polled<F: Future>(begun: &Latch, future: F) -> impl Future<Output = F::Output> + use<F> {
    let begun = begun.clone();
    let mut future = Box::pin(future);
    poll_fn(move |cx| {
        let polled = future.as_mut().poll(cx);
        begun.open();
        polled
    })
}

/// A byte for each pipe, from a thread of its own.
fn write_all(pipes: &[Pipe]) -> crate::sync::thread::JoinHandle<()> {
    let pipes = pipes.to_vec();
    spawn("writer", move || pipes.iter().for_each(Pipe::write))
}

/// Starts two tasks, which wait when this returns. The first byte blocks the thread of one of them until
/// `done` is open. The other one opens that when it has the bytes of all other pipes, whose events the
/// blocked thread may hold.
fn block_with_events(runtime: &Runtime, pipes: &[Pipe], done: &Latch, limit: u32) -> [Task<()>; 2] {
    let begun = [(); 2].map(|()| Latch::new());
    let mut readers = readers(runtime, pipes).into_iter();
    let first = readers.next().expect("there are many");
    let blocks = done.clone();
    let blocks = runtime.spawn(opens_when_polled(&begun[0], async move {
        first.byte().await.expect("a thread leads");
        within(limit, "what a blocked thread holds is fired by one that never sleeps", || blocks.wait());
    }));
    let done = done.clone();
    let opens = runtime.spawn(opens_when_polled(&begun[1], async move {
        read_all(readers).await;
        done.open();
    }));
    begun.iter().for_each(Latch::wait);
    [blocks, opens]
}

/// The first event blocks its thread until the others have been fired, by threads that sleep or have to be
/// started.
#[test]
fn a_thread_blocks_with_a_full_share() {
    for (threads, most) in [(2, 2), (1, 2)] {
        explore(2_500, move || {
            let runtime = runtime(threads, most);
            let pipes = pipes();
            let others: Vec<_> = (1..MANY).map(|_| Latch::new()).collect();
            let mut tasks = Vec::new();
            for (at, reader) in readers(&runtime, &pipes).into_iter().enumerate() {
                let others = others.clone();
                tasks.push(runtime.spawn(async move {
                    reader.byte().await.expect("a thread leads");
                    match at.checked_sub(1) {
                        Some(other) => others[other].open(),
                        None => within(SOON, "what a blocked thread holds is fired by another one", || {
                            others.iter().for_each(Latch::wait);
                        }),
                    }
                }));
            }
            let writer = write_all(&pipes);
            tasks.into_iter().for_each(foreign_block_on);
            writer.join().expect("it only writes");
            settles(&runtime);
        });
    }
}

/// A thread blocks beside another one that always finds an event: two tasks pass a byte back and forth. Fails
/// if such a thread does not look whether a share is stuck.
#[test]
fn a_thread_blocks_beside_one_that_is_never_idle() {
    explore(2_500, || {
        let runtime = runtime(2, 2);
        let (pipes, ball) = (pipes(), [(); 2].map(|()| Pipe::new()));
        let done = Latch::new();
        let mut busy = Vec::new();
        for (at, reader) in readers(&runtime, &ball).into_iter().enumerate() {
            let (done, back) = (done.clone(), ball[1 - at].clone());
            busy.push(runtime.spawn(async move {
                while !done.is_open() {
                    reader.byte().await.expect("a thread leads");
                    back.write();
                }
            }));
        }
        ball[0].write();
        let tasks = block_with_events(&runtime, &pipes, &done, SOON);
        let writer = write_all(&pipes);
        tasks.into_iter().chain(busy).for_each(foreign_block_on);
        writer.join().expect("it only writes");
        settles(&runtime);
    });
}

/// Both workers have tasks that come back at once, so none of them ever sleeps. Fails if a thread that has
/// tasks neither steals as the leader, nor looks whether a share is stuck.
#[test]
fn a_thread_blocks_beside_one_that_always_has_tasks() {
    explore(2_500, || {
        let runtime = runtime(2, 2);
        let pipes = pipes();
        let (done, over) = (Latch::new(), Latch::new());
        let busy = [(); 2].map(|()| {
            let over = over.clone();
            runtime.spawn(async move {
                while !over.is_open() {
                    yields().await;
                }
            })
        });
        let tasks = block_with_events(&runtime, &pipes, &done, 2 * SOON);
        let writer = write_all(&pipes);
        tasks.into_iter().for_each(foreign_block_on);
        over.open();
        busy.into_iter().for_each(foreign_block_on);
        writer.join().expect("it only writes");
        settles(&runtime);
    });
}

/// The future of a thread is woken all the time. Fails if only an idle leader steals: then the thread looks
/// at one share after the other, and gets to the last one later.
#[test]
fn a_leader_that_is_never_idle_steals_at_once() {
    explore(2_500, || {
        block_on(async {
            let pool = pool_here().await;
            let reader = Reader::new(&Pipe::new());
            let hold_nothing = [(); MANY].map(|()| pool.reactor.shares.join());
            let holds = pool.reactor.shares.join();
            holds.hold(reader.source());
            for _ in 0..MANY / 2 {
                yields().await;
            }
            assert_eq!(holds.left(), 0, "it was not stolen, beside {} other shares", hold_nothing.len());
        });
    });
}

/// A thread waits for any of several sources, drops all of them and leaves: it may leave events of sources
/// that are gone. Fails if they keep the deputy awake.
#[test]
fn a_thread_leaves_events_of_sources_that_are_gone() {
    explore(2_500, || {
        let pipes = pipes();
        let pool = block_on(async {
            let readers: Vec<_> = pipes.iter().map(Reader::new).collect();
            let mut bytes: Vec<_> = readers.iter().map(|reader| Box::pin(reader.byte())).collect();
            let mut are_written = false;
            poll_fn(|cx| {
                let ready = bytes.iter_mut().map(|byte| byte.as_mut().poll(cx).is_ready());
                if ready.fold(false, |any, is_ready| any | is_ready) {
                    return Poll::Ready(());
                }
                if !mem::replace(&mut are_written, true) {
                    pipes.iter().for_each(Pipe::write);
                }
                Poll::Pending
            })
            .await;
            with_current_pool(Arc::clone).expect("it has waited")
        });
        let pace = Pace::new();
        while !pool.is_quiet() {
            pace.at_most(6, "a pool without sources is quiet");
            sleep(1);
        }
    });
}

/// A share has an event of a source that is gone, and a thread stays in one poll, so that the deputy looks.
/// Fails if the deputy has that event fired.
#[test]
fn no_thread_is_woken_for_an_event_of_a_source_that_is_gone() {
    explore(2_500, || {
        block_on(async {
            let pool = pool_here().await;
            let holds = pool.reactor.shares.join();
            holds.hold(Reader::new(&Pipe::new()).source());
            sleep(2 * SOON);
            assert_eq!(pool.deputy.rescues.get(), 0, "{} events wait", holds.left());
        });
    });
}

/// A thread holds an event and does nothing, while the leader sleeps: as a thief does that was interrupted
/// before it filled its share, and then blocks. Fails if the deputy sleeps beside such a share, does not look
/// at the shares, or does not interrupt the leader.
#[test]
fn a_thread_holds_an_event_beside_a_leader_that_sleeps() {
    explore(2_500, || {
        let runtime = runtime(1, 1);
        let pipe = Pipe::new();
        let reader = Arc::new(runtime.block_on(async { Reader::new(&pipe) }));
        let reads = reader.clone();
        let task = runtime.spawn(async move { reads.byte().await.expect("a thread leads") });
        sleep(3);
        let pool = &runtime.pool;
        let holds = pool.reactor.shares.join();
        holds.hold(reader.source());
        pool.deputy.notify();
        let pace = Pace::new();
        while holds.left() > 0 {
            pace.at_most(SOON, "the leader steals");
            sleep(1);
        }
        drop(holds);
        pipe.write();
        foreign_block_on(task);
        settles(&runtime);
    });
}

/// A thread gets its own byte, and leaves while it may hold the events of the other one. Nothing else runs in
/// the default instance, so only one of the two, or a relief, can lead.
#[test]
fn a_thread_ends_with_a_share() {
    explore(2_500, || {
        let pipes = pipes();
        let reads = |pipes: Vec<Pipe>| {
            move || {
                block_on(async {
                    let readers: Vec<_> = pipes.iter().map(Reader::new).collect();
                    read_all(readers).await;
                });
            }
        };
        let leaves = spawn("leaves", reads(vec![pipes[0].clone()]));
        let stays = spawn("stays", reads(pipes[1..].to_vec()));
        let pace = Pace::new();
        let writer = write_all(&pipes);
        leaves.join().expect("it only reads");
        stays.join().expect("it only reads");
        writer.join().expect("it only writes");
        pace.at_most(2 * SOON, "the bytes of both threads");
    });
}

/// A task waits in a nested `block_on` for what its own thread may hold.
#[test]
fn a_nested_block_on_waits_for_what_its_thread_holds() {
    explore(2_500, || {
        let runtime = runtime(1, 2);
        let pipes = pipes();
        let mut readers = readers(&runtime, &pipes).into_iter();
        let first = readers.next().expect("there are many");
        let others: Vec<_> = readers.collect();
        let tasks: Vec<_> = others
            .into_iter()
            .map(|reader| runtime.spawn(async move { reader.byte().await.expect("a thread leads") }))
            .collect();
        let waits = runtime.spawn(async move {
            first.byte().await.expect("a thread leads");
            within(2 * SOON, "what is held below a nested block_on", || {
                tasks.into_iter().for_each(|task| block_on(task));
            });
        });
        let writer = write_all(&pipes);
        foreign_block_on(waits);
        writer.join().expect("it only writes");
        settles(&runtime);
    });
}

/// The runtime ends while its threads hold events: the tasks are dropped, and no thread waits for another.
#[test]
fn a_runtime_ends_beside_full_shares() {
    explore(2_500, || {
        let runtime = runtime(2, 2);
        let pipes = pipes();
        for reader in readers(&runtime, &pipes) {
            runtime.spawn(async move { while reader.byte().await.is_ok() {} }).detach();
        }
        let writer = write_all(&pipes);
        drop(runtime);
        writer.join().expect("it only writes");
    });
}

/// A source is closed while its event may be in a share, and the next one has its record: that one must not
/// get the event, and must get its own.
#[test]
fn a_source_is_closed_while_its_event_is_held() {
    explore(2_500, || {
        let runtime = runtime(2, 2);
        let [first, closed, next] = [(); 3].map(|()| Pipe::new());
        let [reader, doomed] = runtime.block_on(async { [&first, &closed].map(Reader::new) });
        let has_next = Latch::new();
        let task = runtime.spawn({
            let (next, has_next) = (next.clone(), has_next.clone());
            async move {
                reader.byte().await.expect("a thread leads");
                drop(doomed);
                let reader = Reader::new(&next);
                has_next.open();
                reader.byte().await.expect("a thread leads");
            }
        });
        let writer = spawn("writer", move || {
            first.write();
            closed.write();
            has_next.wait();
            sleep(1);
            next.write();
        });
        foreign_block_on(task);
        writer.join().expect("it only writes");
        settles(&runtime);
    });
}

/// Three workers, of which some sleep or are about to when others take events along, fire them all.
#[test]
fn threads_that_fall_asleep_beside_shares_that_fill() {
    explore(2_500, || {
        let runtime = runtime(3, 3);
        let pipes = pipes();
        let read = |reader: Reader| async move {
            for _ in 0..2 {
                reader.byte().await.expect("a thread leads");
            }
        };
        let tasks: Vec<_> =
            readers(&runtime, &pipes).into_iter().map(|reader| runtime.spawn(read(reader))).collect();
        let writers = [(); 2].map(|()| write_all(&pipes));
        writers.into_iter().for_each(|writer| writer.join().expect("it only writes"));
        within(SOON, "the bytes that were written", || tasks.into_iter().for_each(foreign_block_on));
        settles(&runtime);
    });
}
