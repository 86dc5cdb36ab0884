//! The end, while clients are busy.

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use crate::served::{Peer, serve};

/// Each command that was run is answered: the number that the last reply says is the number of replies, over all clients. Clients that
/// wait for each reply, and clients that send without looking.
#[test]
fn no_reply_is_lost_at_the_end() {
    for round in 0..3 {
        let server = serve(100);
        let clients: Vec<_> = (0..8).map(|number| (number % 2 == 0, server.connect())).collect();
        let clients: Vec<_> =
            clients.into_iter().map(|(waits, peer)| thread::spawn(move || add(peer, waits))).collect();
        thread::sleep(Duration::from_millis(100 + 50 * round));
        server.terminate();
        let replies: Vec<_> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
        let said = server.end();
        let last = replies.iter().filter_map(|reply| reply.strip_prefix(':')?.parse().ok()).max();
        assert_eq!(last, Some(replies.len()), "{said}");
        assert!(said.contains(&format!("{} commands were answered", replies.len())), "{said}");
        assert!(said.contains("drained in "), "{said}");
    }
}

/// Asks until the server ends the connection, and gives the replies.
fn add(mut peer: Peer, waits: bool) -> Vec<String> {
    let mut replies = Vec::new();
    if waits {
        // The last of these may fail: the server has ended it.
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

/// Idle clients and subscribers are told by the end of their connections; who holds on to his is cut off.
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

/// Who always has more to ask is no reason to stay. Fails, now and then, if all that comes is answered.
#[test]
fn one_who_never_pauses_ends() {
    let server = serve(100);
    let mut peer = server.connect();
    let mut writes = peer.0.get_ref().try_clone().unwrap();
    let much = "PING\r\n".repeat(100_000);
    let writer = thread::spawn(move || while writes.write_all(much.as_bytes()).is_ok() {});
    let reader = thread::spawn(move || io::copy(&mut peer.0, &mut io::sink()));
    thread::sleep(Duration::from_millis(100));
    server.terminate();
    let said = server.end();
    writer.join().unwrap();
    _ = reader.join().unwrap();
    assert!(said.contains("none was cancelled"), "{said}");
}

/// Who does not read his replies keeps the server no longer than it grants.
#[test]
fn one_who_never_reads_is_cut_off() {
    let server = serve(100);
    let mut peer = server.connect();
    let value = "x".repeat(1 << 20);
    assert_eq!(peer.ask(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n{value}\r\n", value.len())), "+OK");
    peer.send("GET k\r\n".repeat(100));
    // It is at it.
    assert_eq!(peer.line(), "$1048576");
    server.terminate();
    let said = server.end();
    assert!(said.contains("1 was cancelled"), "{said}");
}
