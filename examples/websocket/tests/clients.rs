//! The server, talked to by clients that are not ours: `websockets` of Python, the fuzzing client of Autobahn, and bytes by hand.
#![cfg(unix)]

#[path = "clients/autobahn.rs"]
mod autobahn;
#[path = "clients/frames.rs"]
mod frames;

use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use example_testing::{Server, printed, run, skip};
use rustix::process::Signal;

fn server() -> Server {
    Server::start(env!("CARGO_BIN_EXE_example-websocket"), &["127.0.0.1:0"])
}

/// A folder for what is installed for tests, and what they write.
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

#[test]
fn a_signal_tells_those_who_are_here() {
    for signal in [Signal::INT, Signal::TERM] {
        let mut server = server();
        let mut client = frames::open(&server, "/");
        server.signal(signal);
        // A close that says "going away", then the end; and a client that does not answer holds nobody up for long.
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
        // Who has an answer to a ping is in.
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
    let addr = server.addr().to_string();
    let second =
        Command::new(env!("CARGO_BIN_EXE_example-websocket")).arg(&addr).output().expect("it starts");
    assert!(!second.status.success());
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains(&addr) && said.contains("in use"), "{said}");
}

#[test]
fn who_says_nothing_or_nonsense_is_told_and_holds_up_nobody() {
    let server = server();
    let mut silent = server.connect();
    let mut nonsense = server.connect();
    nonsense.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").expect("it is connected");
    let mut answer = Vec::new();
    // What it answers to a request without an upgrade is the library's; that it ends is ours.
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
