//! Guarantees for programs: bytes, ends, resets, and that every waiting task is woken.

use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use futures::future::{join, join_all};
use paceline::prelude::*;

use super::*;
use example_mux::Stream;

#[test]
fn many_streams_in_both_directions_bring_back_what_they_took() {
    rounds(8, |random| {
        let [(here, driving), (there, other)] = pair(&small(), random);
        let echoes = spawn(async move {
            let mut tasks = Vec::new();
            while let Some(stream) = there.accept().await.expect("it lives") {
                tasks.push(spawn(async move {
                    futures::io::copy(&stream, &mut &stream).await.expect("it is not reset");
                    (&stream).close().await.expect("it is not reset");
                }));
            }
            join_all(tasks).await.len()
        });
        // More than may be open at once: they wait for one another.
        let talks = (0..10).map(|_| {
            let (len, cut) = (random.below(20_000), 1 + random.below(3000));
            let (here, sent) = (here.clone(), random.bytes(len));
            spawn(async move {
                let stream = here.open().await.expect("sooner or later");
                let write = async {
                    for piece in sent.chunks(cut) {
                        (&stream).write_all(piece).await.expect("it lives");
                    }
                    (&stream).close().await.expect("it lives");
                };
                let mut back = Vec::new();
                let (_, read) = join(write, (&mut &stream).read_to_end(&mut back)).await;
                read.expect("it comes to its end");
                assert!(back == sent, "the same bytes");
            })
        });
        let talks: Vec<_> = talks.collect();
        soon(async {
            join_all(talks).await;
            here.close().await.expect("no rule was broken");
            assert_eq!(echoes.await, 10);
            driving.await.expect("as close");
            other.await.expect("it has heard GOODBYE");
        });
    });
}

#[test]
fn each_direction_ends_on_its_own() {
    rounds(4, |random| {
        let [(here, _driving), (there, _other)] = pair(&small(), random);
        soon(async {
            let (mut ours, mut theirs) = stream(&here, &there).await;
            ours.close().await.expect("it lives");
            let error = ours.write(b"more").await.expect_err("it is closed");
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
            assert_eq!(theirs.read(&mut [0; 10]).await.expect("an end"), 0);
            assert_eq!(theirs.read(&mut [0; 10]).await.expect("and again"), 0);
            theirs.write_all(b"still here").await.expect("the other direction is open");
            theirs.close().await.expect("it lives");
            let mut all = String::new();
            ours.read_to_string(&mut all).await.expect("an end");
            assert_eq!(all, "still here");
        });
    });
}

#[test]
fn a_reset_wakes_the_reader_and_the_writer() {
    rounds(4, |random| {
        let [(here, _driving), (there, _other)] = pair(&small(), random);
        soon(async {
            let (ours, theirs) = stream(&here, &there).await;
            let read = async { (&ours).read(&mut [0; 10]).await.expect_err("it is reset") };
            let write = async { (&ours).write_all(&[0; 5000]).await.expect_err("it is reset") };
            let reset = async {
                // The writer waits for room by then.
                (&theirs).read_exact(&mut [0; 300]).await.expect("some");
                theirs.reset(77);
            };
            let ((read, write), ()) = join(join(read, write), reset).await;
            for error in [read, write] {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                assert!(error.to_string().contains("77"), "{error}");
            }
            // The stream counts among few, and makes room for others.
            drop(ours);
            for _ in 0..10 {
                drop(stream(&here, &there).await);
            }
        });
    });
}

#[test]
fn one_message_is_enough_and_needs_no_answer() {
    rounds(4, |random| {
        let [(here, driving), (there, _other)] = pair(&small(), random);
        soon(async {
            let mut ours = here.open().await.expect("there is room");
            ours.write_all(b"that was it").await.expect("it lives");
            ours.close().await.expect("it lives");
            drop((ours, here));
            // This side has nothing more to do, and ends. Its bytes have arrived.
            let mut theirs = there.accept().await.expect("as well as it can").expect("it is there");
            let mut all = String::new();
            theirs.read_to_string(&mut all).await.expect("an end");
            assert_eq!(all, "that was it");
            assert!(there.accept().await.expect("no error").is_none(), "there will be no more");
            drop(theirs);
            driving.await.expect("it has ended well");
        });
    });
}

#[test]
fn a_slow_reader_stops_its_own_stream_only() {
    let config = Config { window: 100_000, streams: 10, ..small() };
    let [(here, _driving), (there, _other)] = pair(&config, &mut Random::new(1));
    soon(async {
        let (mut slow, mut unread) = stream(&here, &there).await;
        slow.write_all(&[7; 100_000]).await.expect("that is the window");
        let more = timeout(Duration::from_millis(500), slow.write(&[7])).await;
        assert!(more.is_err(), "no more than the window");

        for _ in 0..30 {
            let (mut ours, mut theirs) = stream(&here, &there).await;
            let send = async {
                ours.write_all(&[8; 150_000]).await.expect("it lives");
                ours.close().await.expect("it lives");
            };
            let mut all = Vec::new();
            let (_, read) = join(send, theirs.read_to_end(&mut all)).await;
            assert_eq!(read.expect("an end"), 150_000);
            assert!(there.memory() < 100_000 + 150_000 + (64 << 14), "{} bytes", there.memory());
        }

        // Nothing of it is lost.
        let rest = async {
            slow.write_all(&[7; 50_000]).await.expect("there is room again");
            slow.close().await.expect("it lives");
        };
        let mut all = Vec::new();
        join(rest, unread.read_to_end(&mut all)).await.1.expect("an end");
        assert_eq!(all, vec![7; 150_000]);
    });
}

#[test]
fn opening_waits_for_room_until_a_stream_is_dropped() {
    let config = Config { streams: 2, ..small() };
    let [(here, _driving), (there, _other)] = pair(&config, &mut Random::new(1));
    soon(async {
        let first = stream(&here, &there).await;
        let (mut ours, mut theirs) = stream(&here, &there).await;
        ours.close().await.expect("it lives");
        theirs.close().await.expect("it lives");
        assert_eq!(ours.read(&mut [0]).await.expect("an end"), 0);
        drop(ours);
        // The stream has ended, and the other side has not dropped it.
        assert!(timeout(Duration::from_millis(100), here.open()).await.is_err(), "there are two");
        let (third, ()) = join(here.open(), async { drop(theirs) }).await;
        third.expect("there is room");
        drop(first);
    });
}

#[test]
fn goodbye_lets_streams_end_and_none_begin() {
    rounds(4, |random| {
        let [(here, driving), (there, other)] = pair(&small(), random);
        soon(async {
            let (mut ours, mut theirs) = stream(&here, &there).await;
            let closes = spawn({
                let there = there.clone();
                async move { there.close().await }
            });
            assert!(here.accept().await.expect("no error").is_none(), "it has said so");
            assert!(matches!(here.open().await, Err(Error::Goodbye)));
            assert!(matches!(there.open().await, Err(Error::Goodbye)));
            ours.write_all(b"ping").await.expect("those that there are go on");
            let mut four = [0; 4];
            theirs.read_exact(&mut four).await.expect("it comes");
            theirs.write_all(&four).await.expect("those that there are go on");
            ours.read_exact(&mut four).await.expect("it comes");
            drop((ours, theirs));
            closes.await.expect("all is done");
            driving.await.expect("here, too");
            other.await.expect("and there");
        });
    });
}

/// The error of every task that waits for the connection when that ends.
#[test]
fn when_a_driver_is_dropped_all_waiting_tasks_are_told() {
    let config = Config { streams: 1, ..small() };
    let [(here, driving), (there, _other)] = pair(&config, &mut Random::new(1));
    soon(async {
        let (ours, _theirs) = stream(&here, &there).await;
        let (reads, opens, accepts) = (Arc::new(ours), here.clone(), here.clone());
        // Each in a task of its own: a wake of one does not hide a missing wake of another.
        let waits = [
            spawn({
                let ours = reads.clone();
                async move { (&*ours).read(&mut [0; 10]).await.expect_err("no end").to_string() }
            }),
            spawn(async move { (&*reads).write_all(&[0; 5000]).await.expect_err("no room").to_string() }),
            spawn(async move { opens.open().await.expect_err("no room").to_string() }),
            spawn(async move { accepts.accept().await.expect_err("no end").to_string() }),
        ];
        // The window is full by then, and all tasks wait.
        while there.memory() < 1000 {
            paceline::Timer::after(Duration::from_millis(1)).await;
        }
        drop(driving);
        assert_eq!(join_all(waits).await, vec![Error::Abandoned.to_string(); 4]);
        assert!(matches!(here.close().await, Err(Error::Abandoned)));
        // The other side notices by the transport.
        let error = there.close().await.expect_err("it was cut");
        assert!(matches!(error, Error::Cut | Error::Io(_)), "{error}");
    });
}

/// A waker may be the last reference to a task, and the task may have streams of the same connection.
#[test]
fn a_waker_that_is_dropped_may_take_a_stream_with_it() {
    struct Holds(#[expect(dead_code, reason = "it is dropped")] Stream);
    impl Wake for Holds {
        fn wake(self: Arc<Self>) {}
    }
    let (tell, told) = std::sync::mpsc::channel();
    let test = std::thread::spawn(move || {
        let [(here, _driving), (there, _other)] = pair(&small(), &mut Random::new(1));
        soon(async {
            let (ours, _theirs) = stream(&here, &there).await;
            for replaced in [true, false] {
                let (held, mut gone) = stream(&here, &there).await;
                let waker = Waker::from(Arc::new(Holds(held)));
                let reads =
                    |waker: &Waker| Pin::new(&mut &ours).poll_read(&mut Context::from_waker(waker), &mut [0]);
                assert!(reads(&waker).is_pending());
                drop(waker);
                if replaced {
                    assert!(reads(Waker::noop()).is_pending());
                    assert!(gone.read(&mut [0]).await.is_err(), "the waker is gone, and with it the stream");
                }
            }
            drop(ours);
        });
        tell.send(()).expect("the receiver waits");
    });
    told.recv_timeout(PATIENCE).expect("no task is stuck");
    test.join().expect("it has said so");
}
