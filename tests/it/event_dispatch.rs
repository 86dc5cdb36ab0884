//! Events reach their source, once, and no other source.

use std::future::{Future, poll_fn};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use paceline::{Async, Promotion, Runtime, Tuning};

use crate::given_time::RecvSoon;
use crate::held_events::{self, read_a_byte, ready_at_once};
use crate::setups::{
    Latch, OpenOnDrop, Ping, eventually, for_each_setup, waker_that, without_deputy, without_looks,
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

/// One wait, one event, one call of the waker, regardless of the number of threads that look and of further
/// bytes (LF6).
#[test]
fn an_event_is_dispatched_once() {
    for_each_setup(|runtime| {
        let mut ping = Ping::new(runtime);
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let socket = runtime.block_on(async { Async::new(theirs) }).unwrap();
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        for _ in 0..20 {
            // An event of the last flood may be late, on a thread that the system descheduled. Then the
            // source is polled again; the same if the event is being delivered at this moment, when a poll
            // itself calls its waker.
            let before = loop {
                let before = count.0.load(SeqCst);
                let ready = socket.poll_readable(&mut Context::from_waker(&waker)).is_ready();
                if !ready && count.0.load(SeqCst) == before {
                    break before;
                }
            };
            ours.write_all(b"x").unwrap();
            eventually("the waker is called", || count.0.load(SeqCst) == before + 1);
            // A flood that no task waits for.
            (0..20).for_each(|_| ours.write_all(b"x").unwrap());
            ping.ping();
            assert_eq!(count.0.load(SeqCst), before + 1, "the source was not polled again");
            assert!(socket.poll_readable(&mut Context::from_waker(&waker)).is_ready());
            let mut left = [0; 64];
            assert_eq!(socket.get_ref().read(&mut left).unwrap(), 21);
        }
    });
}

/// The first handler of a batch closes all other sockets and opens new ones with the same numbers: events
/// that are still in the batch must not reach them. Fails if keys have no generation
/// (`ReadinessWord::event`).
#[test]
fn descriptors_reused_inside_a_handler_get_no_event_of_the_old_ones() {
    const SOCKETS: usize = 40;
    without_deputy(|_, runtime| {
        let (mut ours, theirs) = sockets(SOCKETS);
        let (tell, told) = mpsc::channel();
        let (waits, is_waiting) = mpsc::channel();
        let handler = runtime.spawn(async move {
            let olds: Vec<_> = theirs.into_iter().map(|socket| Async::new(socket).unwrap()).collect();
            waits.send(()).unwrap();
            // One task arms the wakers of all, and goes on with the first that is ready.
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
        is_waiting.recv_soon().unwrap();
        ready_at_once(runtime, &mut ours, b"x", || {});
        told.recv_soon().expect("the handler ends");
        runtime.block_on(handler);
        Ping::new(runtime).ping();
    });
}

/// Fails if no thread steals: the handlers that the blocked one waits for never run.
#[test]
fn events_that_a_blocked_thread_holds_are_stolen_and_counted() {
    for promotion in [Promotion::Adaptive, Promotion::Eager] {
        for portable in [false, true] {
            let tuning = without_looks().promotion(promotion).portable(portable);
            let runtime = held_events::builder().tuning(tuning).build().unwrap();
            held_events::block_beside(&runtime);
            assert!(runtime.metrics().events_stolen > 0, "{promotion:?}, portable: {portable}");
        }
    }
}

/// One worker blocks with the event of a guest in its share, while another one takes an event out of its own
/// share between any two looks of the deputy, and does not lead before that share is empty. Fails if the
/// deputy takes that for progress: then the guest's event waits until then.
#[test]
fn a_worker_that_fires_its_own_events_hides_no_blocked_one() {
    const SOCKETS: usize = 50;
    let tick = Duration::from_millis(20);
    let spin = |time| {
        let begun = Instant::now();
        while begun.elapsed() < time {
            std::hint::spin_loop();
        }
    };
    let runtime = Runtime::builder().threads(2).tuning(Tuning::default().max_blind(tick)).build().unwrap();
    let (mut ours, mut theirs) = sockets(SOCKETS + 2);
    let of_guest = theirs.pop().unwrap();
    let (latch, fired) = (Latch::new(), Arc::new(AtomicUsize::new(0)));
    let free = OpenOnDrop(latch.clone());
    let (waits, is_waiting) = mpsc::channel();
    let read = |(at, socket)| {
        let (latch, fired, waits) = (latch.clone(), fired.clone(), waits.clone());
        runtime.spawn(async move {
            read_a_byte(socket, waits).await;
            if at == 0 {
                latch.wait()
            } else {
                spin(tick * 2 / 3)
            }
            fired.fetch_add(1, SeqCst);
        })
    };
    let tasks: Vec<_> = theirs.into_iter().enumerate().map(read).collect();
    let (tell, told) = mpsc::channel();
    let (handle, before, guest_waits) = (runtime.handle().clone(), fired.clone(), waits.clone());
    let guest = thread::spawn(move || {
        handle.block_on(async {
            read_a_byte(of_guest, guest_waits).await;
            tell.send(before.load(SeqCst)).unwrap();
        });
    });
    (0..SOCKETS + 2).for_each(|_| is_waiting.recv_soon().unwrap());
    // Both workers are busy while the bytes arrive.
    let busy = [(); 2].map(|()| {
        let begins = waits.clone();
        runtime.spawn(async move {
            begins.send(()).unwrap();
            spin(tick / 2);
        })
    });
    (0..busy.len()).for_each(|_| is_waiting.recv_soon().unwrap());
    ours.iter_mut().for_each(|socket| socket.write_all(b"x").unwrap());
    busy.into_iter().for_each(|task| runtime.block_on(task));
    let fired = told.recv_soon().unwrap();
    assert!(fired < SOCKETS * 4 / 5, "the guest came after {fired} of {SOCKETS} others");
    drop(free);
    guest.join().unwrap();
    tasks.into_iter().for_each(|task| runtime.block_on(task));
}

/// Sources are dropped on another thread while their events are in the batch.
#[test]
fn a_source_may_be_dropped_elsewhere_while_its_event_is_in_the_batch() {
    const SOCKETS: usize = 30;
    without_deputy(|_, runtime| {
        let (mut ours, theirs) = sockets(SOCKETS);
        let wait_in_batch = |theirs: Vec<UnixStream>| {
            let (waits, is_waiting) = mpsc::channel();
            let read = |socket| runtime.spawn(read_a_byte(socket, waits.clone()));
            let tasks: Vec<_> = theirs.into_iter().map(read).collect();
            (0..tasks.len()).for_each(|_| is_waiting.recv_soon().unwrap());
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

/// Readers and writers of one source on different threads, and other threads that only poll its readiness.
#[test]
fn readers_and_writers_of_one_source_do_not_disturb_each_other() {
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
fn every_ready_source_gets_its_turn() {
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
                // How many bytes the other sources had read when this one was done.
                let starved = read.iter().filter(|count| count.load(SeqCst) == 0).count();
                first.send(starved).unwrap();
            })
        };
        let tasks: Vec<_> = sockets.into_iter().enumerate().map(drain).collect();
        (0..SOCKETS).for_each(|_| is_waiting.recv_soon().unwrap());
        ready_at_once(runtime, &mut ours, &[0; BYTES], || {});
        let starved = is_first.recv_soon().expect("a reader is done");
        assert!(starved < SOCKETS / 2, "{starved} sockets had got nothing when the first was done");
        tasks.into_iter().for_each(|task| runtime.block_on(task));
    });
}

/// A partial read that the reactor does not see, then another wait, which must not last for ever.
#[test]
fn one_byte_at_a_time_can_be_read_after_readable() {
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
        (0..100).for_each(|_| has_got.recv_soon().expect("a byte that is there is reported"));
        ours.write_all(&bytes).unwrap();
        runtime.block_on(read);
    });
}

/// Two descriptors of one socket, each with a registration; one of them is dropped.
#[test]
fn of_two_handles_over_one_socket_each_gets_its_events() {
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

/// A duplicate that is not registered keeps the open file alive: bytes that arrive after the registration was
/// removed are reported to no task.
#[test]
fn a_duplicate_that_outlives_the_registration_gets_no_event() {
    const ROUNDS: u64 = 40;
    for portable in [false, true] {
        // Only this thread leads, and nothing interrupts it.
        let tuning = without_looks().portable(portable);
        let runtime = Runtime::builder().current_thread().tuning(tuning).build().unwrap();
        runtime.block_on(async {
            let [(mut closed_peer, closed), (mut peer, open)] = [(); 2].map(|()| UnixStream::pair().unwrap());
            let twin = closed.try_clone().unwrap();
            let handle = Async::new(closed).unwrap();
            let open = Async::new(open).unwrap();
            assert_eq!(runtime.metrics().sources, 2);
            drop(handle);
            assert_eq!(runtime.metrics().sources, 1);
            let before = runtime.metrics().events;
            for _ in 0..ROUNDS {
                // A wait for each write, so that no two are reported as one.
                let writes = async {
                    closed_peer.write_all(b"x")?;
                    peer.write_all(b"x")
                };
                future::try_zip(open.readable(), writes).await.unwrap();
                assert_eq!(open.get_ref().read(&mut [0; 8]).unwrap(), 1);
            }
            assert_eq!(runtime.metrics().events - before, ROUNDS, "only of the open handle");
            drop(twin);
        });
    }
}

/// A wait of one of the two kinds, as a function that polls it.
type Wait = Box<dyn FnMut(&mut Context<'_>) -> Poll<io::Result<()>> + Send>;

fn wait_for(socket: &Arc<Async<UnixStream>>, by_future: bool) -> Wait {
    let socket = socket.clone();
    if !by_future {
        return Box::new(move |cx| socket.poll_readable(cx));
    }
    let mut readable = socket.readable_owned();
    Box::new(move |cx| Pin::new(&mut readable).poll(cx))
}

/// An event that was fetched before a blind wait began does not end the wait. One batch has the events of two
/// sockets; the waker of the first socket drains the second one and begins to wait for it, before the event
/// of the second socket is fired. Fails if a wait does not ask the system before it ends.
#[cfg_attr(polling_test_poll_backend, ignore = "the order of a batch is another one there")]
#[cfg_attr(miri, ignore = "its poller is not asked whether a socket is ready")]
#[test]
fn an_event_from_before_a_blind_wait_does_not_end_it() {
    for (portable, by_future) in [(false, false), (false, true), (true, false), (true, true)] {
        // Only this thread leads.
        let tuning = without_looks().portable(portable);
        let runtime = Runtime::builder().current_thread().tuning(tuning).build().unwrap();
        runtime.block_on(async {
            let [(first_peer, first), (second_peer, second)] = [(); 2].map(|()| UnixStream::pair().unwrap());
            let (first, second) = (Async::new(first).unwrap(), Arc::new(Async::new(second).unwrap()));
            let begun = Arc::new(Mutex::new(None));
            let (tell, is_fired) = async_channel::unbounded();
            let waker = waker_that({
                let (second, begun) = (second.clone(), begun.clone());
                move || {
                    second.get_ref().read_exact(&mut [0]).unwrap();
                    let tell = tell.clone();
                    let fired = waker_that(move || _ = tell.try_send(()));
                    let mut wait = wait_for(&second, by_future);
                    let is_pending = wait(&mut Context::from_waker(&fired)).is_pending();
                    *begun.lock().unwrap() = is_pending.then_some(wait);
                }
            });
            assert!(first.poll_readable(&mut Context::from_waker(&waker)).is_pending());
            // The portable path reports only events of awaited sources.
            let mut earlier = second.clone().readable_owned();
            assert!(future::poll_once(&mut earlier).await.is_none());
            (&first_peer).write_all(b"x").unwrap();
            (&second_peer).write_all(b"x").unwrap();
            is_fired.recv().await.expect("the second event is fired");

            let mut wait = begun.lock().unwrap().take().expect("the wait began");
            let is_pending = poll_fn(|cx| Poll::Ready(wait(cx).is_pending())).await;
            assert!(is_pending, "there is nothing to be read (portable: {portable}, future: {by_future})");
            (&second_peer).write_all(b"x").unwrap();
            poll_fn(|cx| wait(cx)).await.expect("there is something to be read");
        });
    }
}
