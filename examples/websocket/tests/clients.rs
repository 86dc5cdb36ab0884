//! The server with third-party clients: `websockets` of Python, the fuzzing client of Autobahn, and hand-made
//! bytes.
#![cfg(unix)]

#[path = "clients/autobahn.rs"]
mod autobahn;
#[path = "clients/frames.rs"]
mod frames;

use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use example_testing::{Server, explains_itself, names_an_address_in_use, printed, run, skip};
use rustix::process::Signal;

fn server() -> Server {
    Server::start(env!("CARGO_BIN_EXE_example-websocket"), &["127.0.0.1:0"])
}

/// Returns a folder for installed packages and the tests' output.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn python() {
    let venv = folder("websockets");
    let python = venv.join("bin/python");
    let python = python.to_str().expect("a path that is text");
    let has_it =
        |python| run(python, &["-c", "import websockets.sync.client"]).is_some_and(|it| it.status.success());
    if !venv.join("bin/python").exists() || !has_it(python) {
        let Some(made) = run("python3", &["-m", "venv", venv.to_str().expect("as above")]) else { return };
        let install = ["-m", "pip", "install", "--quiet", "websockets>=15,<18"];
        if !made.status.success() || !run(python, &install).is_some_and(|it| it.status.success()) {
            return skip("Python's package websockets cannot be installed");
        }
    }
    let server = server();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client.py");
    let printed = printed(&run(python, &[script, &server.addr().to_string()]).expect("it was found above"));
    assert_eq!(printed.matches("passed").count(), 5, "{printed}");
}

/// Fails if the limit applies to a whole message, for which a slow reader needs more time.
#[test]
fn a_slow_reader_has_the_time_that_a_long_message_takes() {
    const PIECE: usize = 1 << 20;
    let server = server();
    let mut client = frames::open(&server, "/");
    // Otherwise the sockets' buffers might hold most of the message.
    socket2::SockRef::from(&client).set_recv_buffer_size(64 << 10).expect("a socket takes it");
    let message: Vec<u8> = (0..16 << 20).map(|n: u32| (n.wrapping_mul(2_654_435_769) >> 24) as u8).collect();
    client.write_all(&frames::masked(0x82, &message)).expect("it is connected");
    let mut echo = vec![0; 10];
    client.read_exact(&mut echo).expect("the header of a long frame");
    assert_eq!((echo[0], echo[1]), (0x82, 127));
    echo.clear();
    // Four pauses: together more than the 10 s within which a client has to read something, and each far
    // less.
    for pause in [3, 3, 3, 3, 0].map(Duration::from_secs) {
        (&mut client).take(PIECE as u64).read_to_end(&mut echo).expect("no reset");
        thread::sleep(pause);
    }
    let rest = (message.len() - echo.len()) as u64;
    (&mut client).take(rest).read_to_end(&mut echo).expect("no reset");
    assert!(echo == message, "{} of {} bytes came back, or others", echo.len(), message.len());
}

#[test]
fn a_signal_tells_connected_clients() {
    for signal in [Signal::INT, Signal::TERM] {
        let mut server = server();
        let mut client = frames::open(&server, "/");
        server.signal(signal);
        // A close that says "going away", then the end; a client that does not answer delays the end only
        // briefly.
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).expect("no reset");
        assert_eq!(heard, [0x88, 2, 0x03, 0xe9]);
        assert!(server.ended().success());
        server.says("drained in");
    }
}

#[test]
fn what_is_too_long_for_all_to_hear_is_not_heard() {
    let server = server();
    let enter = || {
        let mut stream = frames::open(&server, "/chat");
        // A client that got an answer to a ping is connected.
        stream.write_all(&frames::masked(0x89, b"")).expect("it is connected");
        assert_eq!(frames::read(&mut stream), (0x8a, Vec::new()));
        stream
    };
    let (mut hearer, mut speaker) = (enter(), enter());
    for len in [64 << 10, (64 << 10) + 1] {
        speaker.write_all(&frames::masked(0x81, &vec![b'w'; len])).expect("it is connected");
    }
    assert_eq!(frames::read(&mut speaker), (0x88, 1009_u16.to_be_bytes().to_vec()));
    let mut other = enter();
    other.write_all(&frames::masked(0x81, b"hello")).expect("it is connected");
    assert_eq!(frames::read(&mut hearer).1.len(), (64 << 10) + 3);
    assert_eq!(frames::read(&mut hearer).1, b"3: hello");
}

#[test]
fn an_address_in_use_is_an_error_that_names_it() {
    let server = server();
    names_an_address_in_use(env!("CARGO_BIN_EXE_example-websocket"), &[], &server.addr().to_string());
}

#[test]
fn it_explains_itself_and_what_it_cannot_use_it_refuses() {
    explains_itself(env!("CARGO_BIN_EXE_example-websocket"), &[&["nonsense"], &["127.0.0.1:0", "more"]]);
}

#[test]
fn a_silent_or_invalid_client_gets_an_answer_and_delays_no_other() {
    let server = server();
    let mut silent = server.connect();
    let mut nonsense = server.connect();
    nonsense.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").expect("it is connected");
    let mut answer = Vec::new();
    // The library answers a request without an upgrade; the server ends the connection.
    let _ = nonsense.read_to_end(&mut answer);
    server.says(&nonsense.local_addr().expect("it has one").to_string());

    let mut client = frames::open(&server, "/");
    client.write_all(&frames::masked(0x81, b"hello")).expect("it is connected");
    assert_eq!(frames::read(&mut client), (0x81, b"hello".to_vec()));

    match silent.read(&mut [0; 64]) {
        Ok(0) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        other => panic!("{other:?}"),
    }
    server.says("not done within 5s");
}
