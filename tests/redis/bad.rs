//! Input that breaks the protocol, incomplete commands, and unread replies: each affects its own connection
//! only.

use std::thread;
use std::time::Duration;

use crate::served::{Peer, serve};

#[test]
fn what_is_not_the_protocol_is_told_so_and_ends() {
    let server = serve(100);
    let mut other = server.connect();
    for (bytes, answer) in [
        ("*1\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
        ("*1\r\n$999999999\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
        ("*100000000\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
        ("*2\r\n+OK\r\n", "-ERR Protocol error: expected '$', got '+'\r\n"),
        // Complete commands before the error are answered.
        ("PING\r\n*1\r\n$x\r\n", "+PONG\r\n-ERR Protocol error: invalid bulk length\r\n"),
    ] {
        let mut peer = server.connect();
        peer.send(bytes);
        assert_eq!(peer.rest(), answer, "{bytes:?}");
        assert_eq!(other.ask("PING\r\n"), "+PONG", "others do not notice");
    }
    let mut peer = server.connect();
    // More than the server reads: the answer arrives although the server never reads the rest.
    peer.send(vec![0xff; 200 * 1024]);
    assert_eq!(peer.rest(), "-ERR Protocol error: too big inline request\r\n");
    // An endless name is refused, and binary data is accepted.
    let mut peer = server.connect();
    assert!(peer.ask(b"\xff\x00\xfe a\r\n").starts_with("-ERR unknown command '"));
    assert!(peer.ask(format!("{}\r\n", "x".repeat(60_000))).starts_with("-ERR unknown command 'xxx"));
    assert_eq!(peer.ask("PING\r\n"), "+PONG");
}

/// The last reply arrives although the client has sent unread bytes: closing a socket with unread bytes
/// resets the connection. Fails if the server does not wait for its peer before it closes.
#[test]
fn the_last_words_arrive() {
    let server = serve(10);
    let mut peer = server.connect();
    let value = "x".repeat(300_000);
    assert_eq!(peer.ask(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$300000\r\n{value}\r\n")), "+OK");
    peer.send(format!("GET k\r\nQUIT\r\n{}", "x".repeat(100_000)));
    thread::sleep(Duration::from_millis(200));
    assert_eq!(peer.rest().len(), "$300000\r\n\r\n+OK\r\n".len() + value.len());
}

#[test]
fn half_a_command_and_the_end() {
    let server = serve(10);
    let whole = "*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$1\r\nx\r\n";
    // More connections than allowed at a time: each gives its place back.
    for cut in 0..whole.len() {
        let mut peer = loop {
            let mut peer = server.connect();
            if peer.ask("PING\r\n") == "+PONG" {
                break peer;
            }
        };
        peer.send(&whole[..cut]);
    }
    assert_eq!(server.connect().ask("EXISTS half\r\n"), ":0");
}

#[test]
fn one_too_many_is_told_so() {
    let server = serve(3);
    let mut peers: Vec<_> = (0..3).map(|_| server.connect()).collect();
    peers.iter_mut().for_each(|peer| assert_eq!(peer.ask("PING\r\n"), "+PONG"));
    assert_eq!(server.connect().rest(), "-ERR max number of clients reached\r\n");
    assert_eq!(peers[0].ask("PING\r\n"), "+PONG");
    peers.pop();
    // The server notices the end a little later.
    while server.connect().ask("PING\r\n") != "+PONG" {
        thread::sleep(Duration::from_millis(1));
    }
}

/// An expired key that no client asks for is removed from memory, too. Without the sweep the test waits until
/// the server is killed.
#[test]
#[cfg(target_os = "linux")]
fn what_expires_is_gone() {
    let server = serve(10);
    let mut peer = server.connect();
    let large = "x".repeat(1 << 20);
    let set = |peer: &mut Peer, key: &str, options: &str| {
        let args = ["SET", key, &large].into_iter().chain(options.split_whitespace());
        let args: Vec<_> = args.map(|arg| format!("${}\r\n{arg}\r\n", arg.len())).collect();
        assert_eq!(peer.ask(format!("*{}\r\n{}", args.len(), args.concat())), "+OK");
    };
    set(&mut peer, "long", "EX 1000");
    set(&mut peer, "changed", "PX 50");
    set(&mut peer, "changed", "");
    let before = server.memory("VmRSS");
    for number in 0..150 {
        set(&mut peer, &format!("short-{number}"), "PX 20");
        // Waits until most of the last 50 MiB are free.
        while number % 50 == 49 && server.memory("VmRSS") > before + 20 * 1024 {
            thread::sleep(Duration::from_millis(1));
        }
    }
    assert_eq!(peer.ask("EXISTS short-0 short-1 long changed\r\n"), ":2");
}

/// A message that the publisher got a count for is delivered before the end of the subscription.
#[test]
fn what_was_published_before_arrives_before() {
    let server = serve(10);
    let (mut reader, mut publisher) = (server.connect(), server.connect());
    for _ in 0..100 {
        reader.send("SUBSCRIBE news\r\n");
        (0..6).for_each(|_| drop(reader.line()));
        publisher.send("PUBLISH news x\r\n".repeat(200));
        reader.send("UNSUBSCRIBE\r\n");
        let told = (0..200).filter(|_| publisher.line() == ":1").count();
        let mut messages = 0;
        loop {
            let lines: Vec<_> = (0..3).map(|_| reader.line()).collect();
            let is_end = lines[2] == "unsubscribe";
            // The rest of the reply: the channel, and its payload or the remaining count.
            (0..if is_end { 3 } else { 4 }).for_each(|_| drop(reader.line()));
            if is_end {
                break;
            }
            messages += 1;
        }
        assert_eq!(messages, told);
    }
}

/// A subscriber that never reads loses its connection, while one that reads gets all messages. Fails, by the
/// memory limit, without the bound of its queue.
#[test]
#[cfg(target_os = "linux")]
fn a_subscriber_that_never_reads_costs_no_memory() {
    const MESSAGES: usize = 3000;
    let server = serve(10);
    let (mut deaf, mut reader, mut publisher) = (server.connect(), server.connect(), server.connect());
    for peer in [&mut deaf, &mut reader] {
        assert_eq!(peer.ask("SUBSCRIBE news\r\n"), "*3");
        (0..5).for_each(|_| drop(peer.line()));
    }
    let before = server.memory("VmHWM");
    // 100 MiB and more, each message after the reader has the previous one.
    let payload = "x".repeat(40_000);
    let mut listeners = Vec::new();
    for _ in 0..MESSAGES {
        listeners
            .push(publisher.ask(format!("*3\r\n$7\r\nPUBLISH\r\n$4\r\nnews\r\n$40000\r\n{payload}\r\n")));
        let got: Vec<_> = (0..7).map(|_| reader.line()).collect();
        assert_eq!((&*got[2], got[6].len()), ("message", 40_000));
    }
    assert_eq!((&*listeners[0], &*listeners[MESSAGES - 1]), (":2", ":1"));
    let grown = server.memory("VmHWM").saturating_sub(before);
    assert!(grown < 20 * 1024, "it has grown by {grown} KiB");
    // The bytes that reached the client that does not read can still be read; then the connection ends.
    assert!(deaf.rest().len() < MESSAGES * payload.len());
    server.is_well();
}

/// Formats a command as an array of strings, as clients do.
fn command(args: &[&str]) -> String {
    let args: Vec<_> = args.iter().map(|arg| format!("${}\r\n{arg}\r\n", arg.len())).collect();
    format!("*{}\r\n{}", args.len(), args.concat())
}

/// Reads the next message or change of a subscription: its kind, its channel, and its payload or the number
/// of channels left.
fn pushed(peer: &mut Peer) -> [String; 3] {
    assert_eq!(peer.line(), "*3");
    let mut bulk = || {
        let line = peer.line();
        if line.starts_with('$') { peer.line() } else { line }
    };
    [bulk(), bulk(), bulk()]
}

/// Fails without the limits of `channels.rs`: the server then holds all names, 400 MiB of them.
#[test]
#[cfg(target_os = "linux")]
fn the_names_of_a_subscription_cost_bounded_memory() {
    let server = serve(10);
    let mut peer = server.connect();
    let before = server.memory("VmHWM");
    let long = "x".repeat(1 << 20);
    for number in 0..400 {
        let answer = peer.ask(command(&["SUBSCRIBE", &format!("{number}{long}")]));
        assert_eq!(answer, "-ERR the name of a channel has 1024 bytes at most");
    }
    let names: Vec<_> = (0..1024).map(|number| format!("{number:01024}")).collect();
    for (at, name) in names.iter().enumerate() {
        peer.send(command(&["SUBSCRIBE", name]));
        assert_eq!(pushed(&mut peer), ["subscribe", name, &format!(":{}", at + 1)]);
    }
    // A second subscription to the same name is not counted.
    peer.send(command(&["SUBSCRIBE", &names[7]]));
    assert_eq!(pushed(&mut peer), ["subscribe", &names[7], ":1024"]);
    let refused = "-ERR a connection subscribes to 1024 channels at most";
    assert_eq!(peer.ask(command(&["SUBSCRIBE", "another"])), refused);
    let many: Vec<_> = ["UNSUBSCRIBE"].into_iter().chain((0..1025).map(|_| "none")).collect();
    assert_eq!(peer.ask(command(&many)), "-ERR a command names 1024 channels at most");

    peer.send("UNSUBSCRIBE\r\n");
    for left in (0..1024).rev() {
        let [kind, _, count] = pushed(&mut peer);
        assert_eq!((&*kind, count), ("unsubscribe", format!(":{left}")));
    }
    let grown = server.memory("VmHWM").saturating_sub(before);
    assert!(grown < 20 * 1024, "it has grown by {grown} KiB");
    assert_eq!(peer.ask("GET key\r\n"), "$-1", "it subscribes to nothing");
}

/// Fails if a message counts for the limit that decides whether it fits.
#[test]
fn a_long_message_cuts_off_no_subscriber_that_reads() {
    let server = serve(10);
    let (mut reader, mut publisher) = (server.connect(), server.connect());
    reader.send("SUBSCRIBE news\r\n");
    assert_eq!(pushed(&mut reader), ["subscribe", "news", ":1"]);
    for len in [1 << 20, 4 << 20] {
        let long = "x".repeat(len);
        // In one write, so that the long message may find the short one in the queue.
        publisher.send(command(&["PUBLISH", "news", "short"]) + &command(&["PUBLISH", "news", &long]));
        assert_eq!([publisher.line(), publisher.line()], [":1", ":1"]);
        assert_eq!(pushed(&mut reader), ["message", "news", "short"]);
        assert!(pushed(&mut reader) == ["message", "news", &long], "another message, of {len} bytes");
    }
    assert_eq!(reader.ask("PING\r\n"), "*2");
}

/// The server stops reading from a client that requests much and reads nothing.
#[test]
#[cfg(target_os = "linux")]
fn unread_replies_cost_no_memory() {
    let server = serve(10);
    let mut peer = server.connect();
    let value = "x".repeat(1 << 20);
    assert_eq!(peer.ask(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n{value}\r\n", value.len())), "+OK");
    let before = server.memory("VmHWM");
    // Half a gigabyte of replies, requested at once.
    peer.send("GET k\r\n".repeat(500));
    // The server has begun to reply, and will not allocate more.
    assert_eq!(peer.line(), "$1048576");
    thread::sleep(Duration::from_millis(100));
    server.is_well();
    let grown = server.memory("VmHWM").saturating_sub(before);
    assert!(grown < 20 * 1024, "it has grown by {grown} KiB");
}
