//! Each rule of the protocol, and the error after it is broken.

use super::*;

/// The frames of a peer.
type Script<'a> = &'a [(u32, Frame<'a>)];

/// Returns the error for a peer that sends these frames after its HELLO, to a server with a window of 100
/// bytes and 2 streams, which has opened stream 2.
fn told(frames: Script<'_>) -> Option<(Code, String)> {
    let mut end = End::greeted(Role::Server, 100, 2);
    assert_eq!(end.open(), 2);
    end.says();
    match end.hears(frames) {
        Ok(()) => None,
        Err(Error::Violation(Violation { code, what })) => Some((code, what.to_string())),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_peer_that_breaks_a_rule_is_told_which() {
    use Frame::{Credit, Data, Fin, Goodbye, Hello, Open, Ping, Pong, Reset};
    let (long, full) = ([0; 101], [0; 100]);
    let bye = Goodbye { code: 0, reason: "" };
    let cases: &[(Script<'_>, Code, &str)] = &[
        (&[(0, Hello { window: 1, streams: 1 })], Code::Protocol, "HELLO twice"),
        (&[(3, Open)], Code::Protocol, "its next one is 1"),
        (&[(1, Open), (1, Open)], Code::Protocol, "its next one is 3"),
        (&[(1, Open), (1, Reset(0)), (1, Open)], Code::Protocol, "its next one is 3"),
        (&[(2, Open)], Code::Protocol, "its next one is 1"),
        (&[(1, Open), (3, Open), (5, Open)], Code::Streams, "may have 2 at once"),
        (&[(1, Open), (1, Reset(0)), (3, Open), (3, Reset(0)), (5, Open)], Code::Streams, "may have 2"),
        (&[(0, bye), (1, Open)], Code::Protocol, "after its GOODBYE"),
        (&[(0, bye), (0, bye)], Code::Protocol, "GOODBYE twice"),
        (&[(1, Data(b"x"))], Code::Protocol, "stream 1 was never opened"),
        (&[(4, Data(b"x"))], Code::Protocol, "stream 4 was never opened"),
        (&[(1, Open), (1, Data(&long))], Code::Window, "101 bytes of data, and room for 100"),
        (&[(2, Data(&full)), (2, Data(b"x"))], Code::Window, "1 bytes of data, and room for 0"),
        (&[(1, Open), (1, Fin), (1, Data(b"x"))], Code::Protocol, "data after its end"),
        (&[(1, Open), (1, Fin), (1, Fin)], Code::Protocol, "ended twice"),
        (&[(1, Open), (1, Credit(i32::MAX as u32 - 999))], Code::Window, "on top of 1000"),
        (&[(1, Open), (1, Credit(u32::MAX))], Code::Window, "on top of 1000"),
        (&[(1, Open), (1, Credit(0))], Code::Window, "0 bytes of credit"),
        (&[(0, Credit(i32::MAX as u32 - 8))], Code::Window, "streams on top of 9"),
        (&[(0, Credit(0))], Code::Window, "0 streams"),
        (&[(0, Ping(1)), (0, Ping(2))], Code::Protocol, "before it had the answer"),
        (&[(0, Pong(1))], Code::Protocol, "answers no PING"),
    ];
    for (frames, code, words) in cases {
        let (found, what) = told(frames).unwrap_or_else(|| panic!("{frames:?} is let pass"));
        assert!(found == *code && what.contains(words), "{frames:?}: {found:?}, {what}");
        // All but the last frame follow the rules.
        assert_eq!(told(&frames[..frames.len() - 1]), None);
    }
    // A stream of this side that the peer cannot know yet.
    let mut end = End::greeted(Role::Server, 100, 2);
    assert_eq!(end.open(), 2);
    assert!(end.hears(&[(2, Data(b"x"))]).is_err());

    // These follow the rules.
    let late: Script<'_> = &[
        (1, Open),
        (1, Data(&full)),
        (1, Credit(i32::MAX as u32 - 1000)),
        (1, Reset(0)),
        (1, Data(&full)),
        (1, Fin),
        (1, Credit(1)),
        (1, Reset(5)),
        (0, Ping(1)),
        (0, bye),
        (2, Data(b"x")),
    ];
    assert_eq!(told(late), None);
}

#[test]
fn before_a_hello_nothing_else_is_said_or_heard() {
    let mut end = End::new(Role::Client, 100, 2);
    assert!(end.session.poll_open(&mut 0, &cx(), &mut end.wakes).is_pending());
    end.session.say_goodbye(&mut end.wakes);
    assert_eq!(end.says(), []);
    for window in [0, MAX_CREDIT + 1] {
        let mut end = End::new(Role::Client, 100, 2);
        assert!(end.hears(&[(0, Frame::Hello { window, streams: 1 })]).is_err());
    }
    assert!(End::new(Role::Client, 1, 1).hears(&[(0, Frame::Ping(1))]).is_err());
}

#[test]
fn a_peer_that_opens_and_resets_without_end_has_no_more_streams_than_others() {
    let mut end = End::greeted(Role::Server, 100, 2);
    // Without an accept there is no credit for a third stream, and none has to be sent.
    end.hears(&[(1, Frame::Open), (1, Frame::Reset(0)), (3, Frame::Open), (3, Frame::Reset(0))])
        .expect("right");
    assert_eq!(end.says(), []);
    // Both are lost before they are accepted, and make room.
    assert_eq!(end.accept(), None);
    let mut credit = Vec::new();
    Frame::Credit(2).encode(0, &mut credit);
    assert_eq!(end.says(), credit);
    end.hears(&[(5, Frame::Open)]).expect("there is room");
}

#[test]
fn what_came_before_fin_is_read_whatever_comes_after() {
    let mut end = End::greeted(Role::Server, 100, 4);
    let whole = [(1, Frame::Open), (1, Frame::Data(b"all")), (1, Frame::Fin), (1, Frame::Reset(7))];
    let part = [(3, Frame::Open), (3, Frame::Data(b"some")), (3, Frame::Reset(7))];
    end.hears(&whole).expect("right");
    end.hears(&part).expect("right");
    assert_eq!(end.accept(), Some(1), "although it is over");
    assert_eq!(end.accept(), None, "the other one never came as a whole");
    assert!(matches!(end.write(1, b"answer"), Poll::Ready(Err(Error::Reset(7)))));
    assert!(matches!(end.session.poll_close(1, &mut cx(), &mut end.wakes), Poll::Ready(Ok(()))));
    assert!(matches!(end.read(1, 10), Poll::Ready(Ok(bytes)) if bytes == b"all"));
    assert!(matches!(end.read(1, 10), Poll::Ready(Ok(bytes)) if bytes.is_empty()));
    // The same when the connection has ended meanwhile.
    end.hears(&[(5, Frame::Open), (5, Frame::Data(b"all")), (5, Frame::Fin)]).expect("right");
    end.session.end(Error::Cut, &mut end.wakes);
    assert_eq!(end.accept(), Some(5));
    assert!(matches!(end.read(5, 10), Poll::Ready(Ok(bytes)) if bytes == b"all"));
    assert!(matches!(end.read(5, 10), Poll::Ready(Ok(bytes)) if bytes.is_empty()));
    assert!(matches!(end.write(5, b"answer"), Poll::Ready(Err(Error::Cut))));
    assert!(matches!(end.session.poll_accept(&mut 0, &cx(), &mut end.wakes), Poll::Ready(Err(Error::Cut))));
}

#[test]
fn a_stream_that_is_dropped_after_its_close_is_sent_to_its_end() {
    let mut end = End::greeted(Role::Client, 100, 0);
    let id = end.open();
    assert!(matches!(end.write(id, b"all"), Poll::Ready(Ok(3))));
    end.close(id);
    end.drop(id);
    let mut all = Vec::new();
    for frame in [Frame::Open, Frame::Data(b"all"), Frame::Fin, Frame::Reset(DROPPED)] {
        frame.encode(1, &mut all);
    }
    assert_eq!(end.says(), all);
    // A stream that was not closed is given up as a whole.
    let id = end.open();
    assert!(matches!(end.write(id, b"some"), Poll::Ready(Ok(4))));
    end.drop(id);
    let mut none = Vec::new();
    for frame in [Frame::Open, Frame::Reset(DROPPED)] {
        frame.encode(3, &mut none);
    }
    assert_eq!(end.says(), none);
    assert!(end.session.lanes.is_empty());
}

#[test]
fn numbers_are_used_up_and_not_again() {
    let mut end = End::greeted(Role::Client, 100, 2);
    end.session.ours.next = u64::from(u32::MAX);
    assert_eq!(end.open(), u32::MAX);
    assert!(matches!(end.session.poll_open(&mut 0, &cx(), &mut end.wakes), Poll::Ready(Err(Error::Spent))));
    end.says();
    end.hears(&[(u32::MAX, Frame::Fin), (1, Frame::Credit(1))]).expect("one that is there, one that is over");
}

#[test]
fn after_goodbye_there_is_no_credit_for_streams() {
    let mut end = End::greeted(Role::Server, 100, 2);
    end.hears(&[(1, Frame::Open)]).expect("right");
    assert_eq!(end.accept(), Some(1));
    end.session.say_goodbye(&mut end.wakes);
    end.says();
    end.hears(&[(1, Frame::Reset(0)), (3, Frame::Open)]).expect("right");
    end.drop(1);
    let mut refused = Vec::new();
    Frame::Reset(REFUSED).encode(3, &mut refused);
    assert_eq!(end.says(), refused);
    // The peer has opened as many as it may.
    assert!(end.hears(&[(5, Frame::Open)]).is_err());
}

#[test]
fn each_stream_has_its_turn_and_a_turn_is_one_frame() {
    let mut end = End::new(Role::Client, 100, 0);
    end.hears(&[(0, Frame::Hello { window: 1 << 20, streams: 100 })]).expect("a HELLO");
    let ids: Vec<u32> = (0..100).map(|_| end.open()).collect();
    let mut wire = end.says();
    let mut turns = Vec::new();
    for _ in 0..12 {
        for id in &ids {
            // Streams that had their turn have room again.
            while let Poll::Ready(Ok(_)) = end.write(*id, &[7; 5000]) {}
        }
        let turn = end.says();
        // One write is limited, regardless of how much more there is.
        assert!(turn.len() <= 32 * (HEADER + MAX_PAYLOAD), "{} bytes", turn.len());
        wire.extend(turn);
    }
    let mut peer = End::greeted(Role::Server, 1 << 20, 100);
    let mut rest = &wire[..];
    while !rest.is_empty() {
        let space = peer.inbox.space();
        let len = space.len().min(rest.len());
        space[..len].copy_from_slice(&rest[..len]);
        peer.inbox.filled(len);
        rest = &rest[len..];
        while let Some((stream, frame)) = peer.inbox.next().expect("right") {
            if let Frame::Data(_) = frame {
                turns.push(stream);
            }
        }
    }
    assert_eq!(turns.len(), 12 * 32);
    // No stream has three turns more than another one: a queue, in the order of the writes.
    for so_far in 100..turns.len() {
        let had = |id: &u32| turns[..so_far].iter().filter(|turn| *turn == id).count();
        let (least, most) = (ids.iter().map(had).min(), ids.iter().map(had).max());
        assert!(most <= least.map(|least| least + 2), "{least:?} turns, and {most:?}");
    }
}
