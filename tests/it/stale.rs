//! S: events reach the source they are of, once, and nobody else.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use paceline::{Async, Runtime, Timer};

use crate::setups::{
    Latch, OpenOnDrop, Ping, SOON, Setup, eventually, for_each_setup, for_setups, without_deputy,
};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn sockets(count: usize) -> (Vec<UnixStream>, Vec<UnixStream>) {
    (0..count).map(|_| UnixStream::pair().unwrap()).unzip()
}

/// One wait, one event, one call of the waker, however many threads look and however much more arrives (LF6).
#[test]
fn s1_an_event_is_dispatched_once() {
    for_each_setup(|runtime| {
        let mut ping = Ping::new(runtime);
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let socket = runtime.block_on(async { Async::new(theirs) }).unwrap();
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        for _ in 0..20 {
            // An event of the last flood may be late, with a thread that the system descheduled. Then it is asked again; and
            // also if the event is being delivered just now, when a poll calls its waker itself.
            let before = loop {
                let before = count.0.load(SeqCst);
                let ready = socket.poll_readable(&mut Context::from_waker(&waker)).is_ready();
                if !ready && count.0.load(SeqCst) == before {
                    break before;
                }
            };
            ours.write_all(b"x").unwrap();
            eventually("the waker is called", || count.0.load(SeqCst) == before + 1);
            // A flood that nobody waits for.
            (0..20).for_each(|_| ours.write_all(b"x").unwrap());
            ping.ping();
            assert_eq!(count.0.load(SeqCst), before + 1, "nobody had asked again");
            assert!(socket.poll_readable(&mut Context::from_waker(&waker)).is_ready());
            let mut left = [0; 64];
            assert_eq!(socket.get_ref().read(&mut left).unwrap(), 21);
        }
    });
}

/// All of `sockets` are ready in one batch: all workers are busy while the bytes arrive. Only without a deputy, who
/// would add a worker that is not.
fn ready_at_once(runtime: &Runtime, ours: &mut [UnixStream], bytes: &[u8], meanwhile: impl FnOnce()) {
    let latch = Latch::new();
    let free = OpenOnDrop(latch.clone());
    let (blocks, is_blocking) = mpsc::channel();
    let block = |_| {
        let (latch, blocks) = (latch.clone(), blocks.clone());
        let blocked = runtime.spawn(async move {
            blocks.send(()).unwrap();
            latch.wait();
        });
        is_blocking.recv_timeout(SOON).unwrap();
        blocked
    };
    let blocked: Vec<_> = (0..runtime.metrics().workers).map(block).collect();
    ours.iter_mut().for_each(|socket| socket.write_all(bytes).unwrap());
    meanwhile();
    drop(free);
    blocked.into_iter().for_each(|task| runtime.block_on(task));
}

/// The first handler of a batch closes all the others' sockets and opens new ones under the same numbers: the events
/// that are still in the batch must not reach them. Fails if keys have no generation (`Readiness::event`).
#[test]
fn s2_descriptors_reused_inside_a_handler() {
    const SOCKETS: usize = 40;
    without_deputy(|_, runtime| {
        let (mut ours, theirs) = sockets(SOCKETS);
        let (tell, told) = mpsc::channel();
        let (waits, is_waiting) = mpsc::channel();
        let handler = runtime.spawn(async move {
            let olds: Vec<_> = theirs.into_iter().map(|socket| Async::new(socket).unwrap()).collect();
            waits.send(()).unwrap();
            // One that arms the wakers of all, and goes on with the first that is ready.
            std::future::poll_fn(|cx| {
                let ready: Vec<_> = olds.iter().map(|old| old.poll_readable(cx).is_ready()).collect();
                if ready.contains(&true) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            drop(olds);
            let mut fresh: Vec<_> = (0..SOCKETS).map(|_| Async::<UnixStream>::pair().unwrap()).collect();
            let mut waits: Vec<_> = fresh.iter().map(|(one, _)| Box::pin(one.readable())).collect();
            for _ in 0..20 {
                future::yield_now().await;
                for wait in &mut waits {
                    assert!(future::poll_once(wait).await.is_none(), "an event of the old socket");
                }
            }
            drop(waits);
            for (one, other) in &mut fresh {
                future::try_zip(one.read_exact(&mut [0]), other.write_all(b"y")).await.unwrap();
            }
            tell.send(()).unwrap();
        });
        is_waiting.recv_timeout(SOON).unwrap();
        ready_at_once(runtime, &mut ours, b"x", || {});
        told.recv_timeout(SOON).expect("the handler ends");
        runtime.block_on(handler);
        Ping::new(runtime).ping();
    });
}

/// Sources go away on another thread while their events sit in the batch.
#[test]
fn s3_deregistered_elsewhere_while_in_the_batch() {
    const SOCKETS: usize = 30;
    without_deputy(|_, runtime| {
        let (mut ours, theirs) = sockets(SOCKETS);
        let wait_in_batch = |theirs: Vec<UnixStream>| {
            let (waits, is_waiting) = mpsc::channel();
            let read = |socket| {
                let waits = waits.clone();
                runtime.spawn(async move {
                    let mut socket = Async::new(socket).unwrap();
                    let mut read = Box::pin(async { socket.read_exact(&mut [0]).await.unwrap() });
                    assert!(future::poll_once(&mut read).await.is_none());
                    waits.send(()).unwrap();
                    read.await;
                })
            };
            let tasks: Vec<_> = theirs.into_iter().map(read).collect();
            (0..tasks.len()).for_each(|_| is_waiting.recv_timeout(SOON).unwrap());
            tasks
        };
        let mut tasks = wait_in_batch(theirs);
        let doomed = tasks.split_off(SOCKETS / 2);
        let (sources, fresh) = runtime.block_on(async {
            let sockets = sockets(SOCKETS / 2);
            (sockets.0, sockets.1.into_iter().map(|socket| Async::new(socket).unwrap()).collect::<Vec<_>>())
        });
        ready_at_once(runtime, &mut ours, b"x", || drop(doomed));
        tasks.into_iter().for_each(|task| runtime.block_on(task));
        let wakes = Arc::new(Count::default());
        let waker = Waker::from(wakes.clone());
        for socket in &fresh {
            assert!(socket.poll_readable(&mut Context::from_waker(&waker)).is_pending());
        }
        Ping::new(runtime).ping();
        assert_eq!(wakes.0.load(SeqCst), 0);
        drop((sources, fresh));
    });
}

/// Readers and writers of one source on different threads, and others who only ask whether it is ready.
#[test]
fn s4_readers_and_writers_of_one_source() {
    const SIZE: usize = 400_000;
    for_each_setup(|runtime| {
        let ends = runtime.block_on(async { Async::<UnixStream>::pair().unwrap() });
        let (one, other) = (Arc::new(ends.0), Arc::new(ends.1));
        let mut tasks = Vec::new();
        for (from, to) in [(&one, &other), (&other, &one)] {
            let (from, to) = (from.clone(), to.clone());
            tasks.push(runtime.spawn(async move {
                let block: Vec<u8> = (0..=255).cycle().take(10_000).collect();
                for _ in 0..SIZE / block.len() {
                    (&*from).write_all(&block).await.unwrap();
                }
            }));
            tasks.push(runtime.spawn(async move {
                let (mut at, mut buf) = (0, [0; 7_000]);
                while at < SIZE {
                    let n = (&*to).read(&mut buf).await.unwrap();
                    assert!(buf[..n].iter().all(|byte| {
                        at += 1;
                        *byte == ((at - 1) % 10_000 % 256) as u8
                    }));
                }
            }));
        }
        let nosy = |_| {
            let one = one.clone();
            runtime.spawn(async move {
                loop {
                    one.writable().await.unwrap();
                    future::yield_now().await;
                }
            })
        };
        let nosy: Vec<paceline::Task<()>> = (0..2).map(nosy).collect();
        tasks.into_iter().for_each(|task| runtime.block_on(task));
        drop(nosy);
    });
}

/// More sources than a batch holds, all of them always ready: each gets its turn.
#[test]
fn s5_every_ready_source_gets_its_turn() {
    const SOCKETS: usize = 180;
    const BYTES: usize = 12;
    without_deputy(|_, runtime| {
        let (mut ours, theirs) = sockets(SOCKETS);
        let read: Arc<Vec<AtomicUsize>> = Arc::new((0..SOCKETS).map(|_| AtomicUsize::new(0)).collect());
        let sockets = runtime.block_on(async {
            theirs.into_iter().map(|socket| Async::new(socket).unwrap()).collect::<Vec<_>>()
        });
        let (first, is_first) = mpsc::channel();
        let (waits, is_waiting) = mpsc::channel();
        let drain = |(number, socket): (usize, Async<UnixStream>)| {
            let (read, first) = (read.clone(), first.clone());
            let waits = waits.clone();
            runtime.spawn(async move {
                waits.send(()).unwrap();
                for _ in 0..BYTES {
                    socket.readable().await.unwrap();
                    socket.get_ref().read_exact(&mut [0]).unwrap();
                    read[number].fetch_add(1, SeqCst);
                }
                // What the others had got when this one was done.
                let starved = read.iter().filter(|count| count.load(SeqCst) == 0).count();
                first.send(starved).unwrap();
            })
        };
        let tasks: Vec<_> = sockets.into_iter().enumerate().map(drain).collect();
        (0..SOCKETS).for_each(|_| is_waiting.recv_timeout(SOON).unwrap());
        ready_at_once(runtime, &mut ours, &[0; BYTES], || {});
        let starved = is_first.recv_timeout(SOON).expect("somebody is done");
        assert!(starved < SOCKETS / 2, "{starved} sockets had got nothing when the first was done");
        tasks.into_iter().for_each(|task| runtime.block_on(task));
    });
}

/// A partial read behind the reactor's back, then another wait: it must not wait for ever.
#[test]
fn s6_one_byte_at_a_time_after_readable() {
    for_each_setup(|runtime| {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let (got, has_got) = mpsc::channel();
        let read = runtime.spawn(async move {
            let socket = Async::new(theirs).unwrap();
            for number in 0..200u32 {
                socket.readable().await.unwrap();
                let mut byte = [0];
                socket.get_ref().read_exact(&mut byte).unwrap();
                assert_eq!(u32::from(byte[0]), number % 100);
                got.send(()).unwrap();
            }
        });
        let bytes: Vec<u8> = (0..100).collect();
        ours.write_all(&bytes).unwrap();
        (0..100).for_each(|_| has_got.recv_timeout(SOON).expect("a byte that is there is reported"));
        ours.write_all(&bytes).unwrap();
        runtime.block_on(read);
    });
}

/// Two descriptors of one socket, each with a registration; one of them goes away.
#[test]
fn s8_two_handles_over_one_socket() {
    for_each_setup(|runtime| {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let (one, other) = runtime.block_on(async {
            let twin = Async::new(theirs.try_clone().unwrap()).unwrap();
            (Async::new(theirs).unwrap(), twin)
        });
        runtime.block_on(async {
            for _ in 0..5 {
                let waits = future::try_zip(one.readable(), other.readable());
                let write = async { ours.write_all(b"x") };
                future::try_zip(waits, write).await.unwrap();
                assert_eq!(one.get_ref().read(&mut [0; 8]).unwrap(), 1);
            }
        });
        drop(one);
        let mut other = other;
        runtime.block_on(async {
            let write = async { ours.write_all(b"y") };
            future::try_zip(other.read_exact(&mut [0]), write).await.unwrap();
        });
    });
}

/// A duplicate that is not registered keeps the open file alive: what arrives after the registration is gone is
/// reported to nobody.
#[test]
fn s8_a_duplicate_outlives_the_registration() {
    const ROUNDS: i64 = 40;
    let body = |setup: Setup, runtime: &Arc<Runtime>| {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let ours = Arc::new(ours);
        let polls = setup.portable || cfg!(polling_test_poll_backend);
        let events = || {
            let now = runtime.metrics();
            // With epoll, an interrupt of a leader that sleeps is an event, too.
            now.events as i64 - if polls { 0 } else { now.leader_interrupts as i64 }
        };
        // Each round is an event of its own, a timer's, so that no two writes are reported as one.
        let events_of = |writes: bool| {
            let ours = ours.clone();
            let before = events();
            runtime.block_on(runtime.spawn(async move {
                for _ in 0..ROUNDS {
                    if writes {
                        (&*ours).write_all(b"x").unwrap();
                    }
                    Timer::after(Duration::from_micros(100)).await;
                }
            }));
            events() - before
        };
        let twin = theirs.try_clone().unwrap();
        let handle = runtime.block_on(async { Async::new(theirs).unwrap() });
        let sources = runtime.metrics().sources;
        drop(handle);
        assert_eq!(runtime.metrics().sources, sources - 1);
        // The least of some, because two interrupts may be one event.
        let [usual, least] =
            [false, true].map(|writes| (0..4).map(|_| events_of(writes)).min().expect("four of them"));
        assert!(least < usual + ROUNDS / 2, "{least} events, {usual} without writes to a closed handle");
        drop(twin);
    };
    for_setups(|_| true, body);
}
