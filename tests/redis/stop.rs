//! The end of the server while clients are busy.

use std::io::{ErrorKind, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use crate::served::{Peer, serve, serve_and_listen};

/// Each command that was run is answered: the number in the last reply equals the number of replies, over all
/// clients. Some clients wait for each reply, others send without waiting.
#[test]
fn no_reply_is_lost_at_the_end() {
    for round in 0..3 {
        let server = serve(100);
        let clients: Vec<_> = (0..8).map(|number| (number % 2 == 0, server.connect())).collect();
        let clients: Vec<_> =
            clients.into_iter().map(|(waits, peer)| thread::spawn(move || add(peer, waits))).collect();
        // The clients are busy: together they have added this number.
        let mut own = server.connect();
        let mut replies: Vec<String> = Vec::new();
        while replies.len() < 100 || number_of(replies.last().unwrap()) < Some(1000 * (round + 1)) {
            replies.push(own.ask("INCR sum\r\n"));
        }
        server.terminate();
        drop(own);
        replies.extend(clients.into_iter().flat_map(|client| client.join().unwrap()));
        let said = server.end();
        let last = replies.iter().filter_map(|reply| number_of(reply)).max();
        assert_eq!(last, Some(replies.len()), "{said}");
        assert!(said.contains(&format!("{} commands were answered", replies.len())), "{said}");
        assert!(said.contains("drained in "), "{said}");
    }
}

fn number_of(reply: &str) -> Option<usize> {
    reply.strip_prefix(':')?.parse().ok()
}

/// Sends commands until the server ends the connection, and returns the replies.
fn add(mut peer: Peer, waits: bool) -> Vec<String> {
    let mut replies = Vec::new();
    if waits {
        // The last write may fail, because the server has closed the connection.
        while peer.0.get_mut().write_all(b"INCR sum\r\n").is_ok() {
            replies.push(peer.line());
        }
        replies.retain(|reply| !reply.is_empty());
        return replies;
    }
    let mut writes = peer.0.get_ref().try_clone().unwrap();
    let writer =
        thread::spawn(move || while writes.write_all("INCR sum\r\n".repeat(16).as_bytes()).is_ok() {});
    replies.extend(peer.rest().lines().map(String::from));
    writer.join().unwrap();
    replies
}

/// The connections of idle clients and subscribers end; a client that keeps its connection is disconnected.
#[test]
fn idle_ones_end() {
    let server = serve(100);
    let mut idle: Vec<_> = (0..5).map(|_| server.connect()).collect();
    idle.iter_mut().for_each(|peer| assert_eq!(peer.ask("PING\r\n"), "+PONG"));
    assert_eq!(idle[0].ask("SUBSCRIBE news\r\n"), "*3");
    (0..5).for_each(|_| drop(idle[0].line()));
    idle[1].send("*2\r\n$3\r\nGET");
    server.terminate();
    idle.iter_mut().for_each(|peer| assert_eq!(peer.rest(), ""));
    let said = server.end();
    assert!(said.contains("none was cancelled"), "{said}");
    assert!(said.contains("5 connections were served, 0 refused; 6 commands were answered"), "{said}");
}

/// A client that always sends more commands does not keep the server running. Fails if the server answers all
/// that arrive.
#[test]
fn a_client_that_never_pauses_is_ended() {
    let server = serve(100);
    let (mut idle, mut peer) = (server.connect(), server.connect());
    assert_eq!(idle.ask("PING\r\n"), "+PONG");
    [&idle, &peer].iter().for_each(|peer| peer.0.get_ref().set_nonblocking(true).unwrap());
    // The client reads no reply, so the server pauses and the buffers to the server fill; then the server is
    // told to stop. The end of the idle connection shows that it has begun to.
    let (much, mut written) = ("PING\r\n".repeat(10_000), 0);
    let (mut progress, mut is_told) = (Instant::now(), false);
    loop {
        match peer.0.get_mut().write(&much.as_bytes()[written % 6..]) {
            Ok(bytes) => (written, progress) = (written + bytes, Instant::now()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(1)),
            Err(error) => panic!("{error}"),
        }
        if !is_told && progress.elapsed() > Duration::from_millis(100) {
            is_told = true;
            server.terminate();
        }
        if is_told && matches!(idle.0.get_mut().read(&mut [0]), Ok(0)) {
            break;
        }
    }
    peer.0.get_ref().set_nonblocking(false).unwrap();
    peer.rest();
    let said = server.end();
    let answered: usize = said
        .split_once(" commands were answered")
        .and_then(|(before, _)| before.rsplit(' ').next()?.parse().ok())
        .expect(&said);
    // One command is the idle client's.
    assert!((answered - 1) * 6 < written - 6, "it has answered all of {written} bytes: {said}");
    assert!(said.contains("none was cancelled"), "{said}");
}

/// A client that does not read its replies keeps the server no longer than the grace time.
#[test]
fn a_client_that_never_reads_is_cut_off() {
    let server = serve(100);
    let mut peer = server.connect();
    let value = "x".repeat(1 << 20);
    assert_eq!(peer.ask(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n{value}\r\n", value.len())), "+OK");
    peer.send("GET k\r\n".repeat(100));
    // The server has begun to reply.
    assert_eq!(peer.line(), "$1048576");
    server.terminate();
    let said = server.end();
    assert!(said.contains("1 was cancelled"), "{said}");
}

/// A client that does not read its replies would keep the server for its grace.
#[test]
fn a_second_ctrl_c_ends_it_at_once() {
    let mut server = serve_and_listen(100);
    let mut peer = server.connect();
    let value = "x".repeat(1 << 20);
    assert_eq!(peer.ask(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n{value}\r\n", value.len())), "+OK");
    peer.send("GET k\r\n".repeat(100));
    assert_eq!(peer.line(), "$1048576");
    server.interrupt();
    assert_eq!(server.complains(), "stopping; a second Ctrl-C ends the program at once");
    server.interrupt();
    assert_eq!(server.complains(), "ended at once by a second signal");
    assert_eq!(server.code(), Some(130));
}
