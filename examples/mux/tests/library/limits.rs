//! Peers that are silent, do not read, or break rules: hand-made bytes.

use std::io::ErrorKind;
use std::time::Instant;

use futures::future::join;
use paceline::Timer;
use paceline::prelude::*;

use super::*;

/// The HELLO of a peer that allows nearly everything.
const HELLO: [u8; 24] = *b"\x01\0\0\x10\0\0\0\0plmx\0\0\0\x01\x7f\xff\xff\xff\0\0\0\x0a";

fn frame(kind: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u16).to_be_bytes();
    [&[kind, 0], &len[..], &stream.to_be_bytes(), payload].concat()
}

/// Returns a server, and its peer's transport.
fn by_hand(config: Config) -> (Connection, Task<Result<(), Error>>, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("the system has sockets");
    let (connection, driver) = server(ours, config);
    (connection, spawn(driver), theirs)
}

/// The same with a peer that has already sent HELLO. Tests poll the driver beside their own waits, in one
/// task: then a pause of the thread stops both, and does not change the order of their timers.
async fn greeted(config: Config) -> (Connection, Driver<UnixStream>, UnixStream) {
    let (ours, mut theirs) = UnixStream::pair().expect("the system has sockets");
    theirs.write_all(&HELLO).await.expect("there is room");
    let (connection, driver) = server(ours, config);
    (connection, driver, theirs)
}

/// Returns the frames that a peer receives to the end, without the server's HELLO.
async fn heard(mut peer: &UnixStream) -> Vec<u8> {
    let mut all = Vec::new();
    peer.read_to_end(&mut all).await.expect("no reset");
    assert_eq!(all[..16], HELLO[..16]);
    all.split_off(24)
}

#[test]
fn a_silent_peer_is_asked_and_given_up() {
    const PERIOD: Duration = Duration::from_millis(150);
    soon(async {
        let start = Instant::now();
        let (connection, driver, peer) = greeted(Config { keep_alive: PERIOD, ..Config::default() }).await;
        let waits = async {
            let mut stream = connection.open().await.expect("there is room");
            stream.read(&mut [0; 10]).await.expect_err("nothing comes")
        };
        let (ended, told) = join(driver, waits).await;
        assert!(start.elapsed() >= 2 * PERIOD, "{:?}", start.elapsed());
        assert!(matches!(ended, Err(Error::Silent(time)) if time == 2 * PERIOD), "{ended:?}");
        assert_eq!(told.kind(), ErrorKind::TimedOut);
        // One ping was sent.
        let ping = frame(7, 0, &1_u64.to_be_bytes());
        assert_eq!(heard(&peer).await, [frame(2, 2, b""), ping].concat());
    });
}

#[test]
fn a_peer_that_answers_may_say_nothing_else() {
    const PERIOD: Duration = Duration::from_secs(1);
    let config = Config { keep_alive: PERIOD, ..small() };
    let [(here, _driving), (there, _other)] = pair(&config, &mut Random::new(1));
    soon(async {
        let (mut ours, mut theirs) = stream(&here, &there).await;
        Timer::after(PERIOD * 7 / 2).await;
        ours.write_all(b"still here").await.expect("it lives");
        theirs.read_exact(&mut [0; 10]).await.expect("it lives");
    });
}

#[test]
fn a_peer_without_a_hello_is_given_up_whatever_else_it_sends() {
    const PERIOD: Duration = Duration::from_millis(150);
    soon(async {
        let (ours, mut peer) = UnixStream::pair().expect("the system has sockets");
        let (connection, driver) = server(ours, Config { keep_alive: PERIOD, ..Config::default() });
        // Five periods, in the task of the driver (see `greeted`).
        let drip = async {
            for byte in HELLO.iter().take(20) {
                peer.write_all(&[*byte]).await?;
                Timer::after(PERIOD / 4).await;
            }
            Ok::<_, std::io::Error>(())
        };
        let (ended, dripped) = join(driver, drip).await;
        assert!(matches!(ended, Err(Error::Silent(PERIOD))), "{ended:?}");
        assert!(dripped.is_err(), "the server has closed the connection");
        assert!(matches!(connection.open().await, Err(Error::Silent(_))));
    });
    // A peer without HELLO gets no ping.
    let (_connection, driving, peer) = by_hand(Config { keep_alive: PERIOD, ..Config::default() });
    soon(async {
        assert!(matches!(driving.await, Err(Error::Silent(PERIOD))));
        assert_eq!(heard(&peer).await, []);
    });
}

#[test]
fn a_peer_that_takes_nothing_is_given_up_although_it_talks() {
    const PERIOD: Duration = Duration::from_millis(200);
    soon(async {
        let (connection, driver, mut peer) =
            greeted(Config { keep_alive: PERIOD, ..Config::default() }).await;
        let floods = async {
            let mut stream = connection.open().await.expect("there is room");
            // The peer's window has room for all of it; the transport has not.
            while stream.write_all(&[0; 10_000]).await.is_ok() {
                assert!(connection.memory() < 2 << 20, "{} bytes", connection.memory());
            }
        };
        let talks = async {
            while peer.write_all(&frame(4, 0, &[0, 0, 0, 1])).await.is_ok() {
                Timer::after(PERIOD / 10).await;
            }
        };
        let ((ended, ()), ()) = join(join(driver, floods), talks).await;
        assert!(matches!(ended, Err(Error::Deaf(PERIOD))), "{ended:?}");
    });
}

#[test]
fn a_peer_that_breaks_a_rule_hears_which_and_so_do_local_tasks() {
    let cases = [
        (frame(3, 1, b"x"), 1, "stream 1 was never opened"),
        ([frame(2, 1, b""), frame(3, 1, &[0; 1001])].concat(), 2, "room for 1000"),
        ((0..5).flat_map(|n| frame(2, 2 * n + 1, b"")).collect(), 3, "may have 4 at once"),
        (vec![3, 0, 0x40, 1, 0, 0, 0, 1], 4, "16385"),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), 1, "kind 71"),
    ];
    for (bytes, code, words) in cases {
        let (connection, driving, mut peer) = by_hand(small());
        soon(async {
            peer.write_all(&[&HELLO[..], &bytes].concat()).await.expect("there is room");
            // More than the server reads: the reason arrives nevertheless.
            let _ = peer.write_all(&[0; 30_000]).await;
            let _ = peer.close().await;
            let last = heard(&peer).await;
            assert_eq!(last[..2], [9, 0]);
            assert_eq!(last[8..12], u32::to_be_bytes(code));
            let reason = String::from_utf8_lossy(&last[12..]);
            assert!(reason.contains(words), "{reason}");
            let error = driving.await.expect_err("the peer was wrong").to_string();
            assert!(error.contains(words), "{error}");
            assert_eq!(connection.open().await.expect_err("it has ended").to_string(), error);
        });
    }
    // Another protocol from the start, and a peer that waits for an answer: the server waits a moment for it
    // to read the reason, not for ever.
    let (_connection, driving, mut peer) = by_hand(small());
    soon(async {
        peer.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("there is room");
        assert!(matches!(driving.await, Err(Error::Violation(_))));
        assert_eq!(heard(&peer).await[..1], [9]);
    });
}

/// All bytes behind a broken rule are read, wherever the rule was broken: with unread bytes, a system would
/// reset the transport, and the reason might be lost.
#[test]
fn all_that_comes_after_a_broken_rule_is_read() {
    for before in [&b""[..], &HELLO] {
        let said = [before, &[0; 1 << 20]].concat();
        let mut transport = Memory { said: &said, heard: Vec::new(), reads: 0 };
        let (_connection, driver) = server(&mut transport, small());
        assert!(matches!(soon(driver), Err(Error::Violation(_))));
        assert_eq!(transport.said.len(), 0, "so many bytes are unread");
        // A few large reads, and the end.
        assert!(transport.reads < 20, "{} reads", transport.reads);
        assert_eq!(transport.heard[24..26], [9, 0]);
    }
}

#[test]
fn an_error_of_the_peer_is_passed_on() {
    let (connection, driving, mut peer) = by_hand(small());
    soon(async {
        let goodbye = frame(9, 0, b"\0\0\0\x63no mood");
        peer.write_all(&[&HELLO[..], &goodbye].concat()).await.expect("there is room");
        let told =
            |error: Error| matches!(&error, Error::Told { code: 99, reason } if &**reason == "no mood");
        assert!(told(driving.await.expect_err("an error")));
        assert!(told(connection.accept().await.expect_err("the same")));
    });
}

#[test]
fn streams_that_come_after_our_goodbye_are_refused() {
    let (connection, driving, mut peer) = by_hand(small());
    soon(async {
        peer.write_all(&[&HELLO[..], &frame(2, 1, b"")].concat()).await.expect("there is room");
        let stream = connection.accept().await.expect("it lives").expect("it was opened");
        let close = connection.close();
        let late = async {
            let mut head = [0; 24 + 12];
            peer.read_exact(&mut head).await.expect("HELLO and GOODBYE");
            assert_eq!(head[24..], frame(9, 0, &[0; 4]));
            let frames = [frame(2, 3, b""), frame(3, 3, b"late"), frame(5, 3, b"")].concat();
            peer.write_all(&frames).await.expect("there is room");
            let mut refused = [0; 12];
            peer.read_exact(&mut refused).await.expect("an answer");
            assert_eq!(refused[..], frame(6, 3, &[0, 0, 0, 1]));
            drop(stream);
            let mut last = Vec::new();
            peer.read_to_end(&mut last).await.expect("the end");
            assert_eq!(last, frame(6, 1, &[0; 4]));
            peer.close().await.expect("it is ours");
        };
        join(close, late).await.0.expect("it has ended well");
        driving.await.expect("as well");
    });
}

#[test]
fn a_transport_that_ends_without_goodbye_was_cut() {
    let (connection, driving, mut peer) = by_hand(small());
    soon(async {
        let frames =
            [frame(2, 1, b""), frame(3, 1, b"all"), frame(5, 1, b""), frame(2, 3, b""), frame(3, 3, b"some")];
        peer.write_all(&[&HELLO[..], &frames.concat()].concat()).await.expect("there is room");
        let mut whole = connection.accept().await.expect("it lives").expect("it was opened");
        let mut part = connection.accept().await.expect("it lives").expect("it was opened");
        drop(peer);
        assert!(matches!(driving.await, Err(Error::Cut | Error::Io(_))));
        let mut all = String::new();
        whole.read_to_string(&mut all).await.expect("it had come");
        assert_eq!(all, "all");
        all.clear();
        assert!(part.read_to_string(&mut all).await.is_err(), "its end had not");
    });
}

#[test]
fn nonsense_ends_a_connection_and_takes_no_memory() {
    rounds(40, |random| {
        let (connection, driving, mut peer) = by_hand(small());
        let mut bytes = if random.chance(2) { HELLO.to_vec() } else { Vec::new() };
        let len = random.below(100_000);
        bytes.extend(random.bytes(len));
        soon(async {
            let _ = peer.write_all(&bytes).await;
            let _ = peer.close().await;
            assert!(driving.await.is_err());
            assert!(connection.memory() <= 4 * 20_000 + 64 * 17_000, "{} bytes", connection.memory());
        });
    });
}
