//! The program with a third-party client, with its own, and with signals.
#![cfg(unix)]

use std::io::{Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use example_testing::{
    PATIENCE, Server, command, explains_itself, names_an_address_in_use, output, printed, run,
};
use rustix::process::Signal;

const PROGRAM: &str = env!("CARGO_BIN_EXE_example-mux");

fn server() -> Server {
    Server::start(PROGRAM, &["127.0.0.1:0"])
}

#[test]
fn python() {
    let server = server();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client.py");
    let Some(output) = run("python3", &[script, &server.addr().to_string()]) else { return };
    let printed = printed(&output);
    assert_eq!(printed.matches("passed").count(), 8, "{printed}");
    // The server has reported the broken rules, and continues.
    server.says("bytes of data, and room for");
    server.says("may have 128 at once");
    assert!(server.resident() < 100 << 20, "{} bytes", server.resident());
}

/// Returns the output of the program's own client for a service, with this input.
fn connect(server: &Server, service: &str, input: &[u8]) -> std::process::Output {
    let mut child = command(PROGRAM)
        .args(["connect", &server.addr().to_string(), service])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    let input = input.to_vec();
    // An answer may come before all is written, and an unknown service reads nothing.
    std::thread::spawn(move || stdin.write_all(&input));
    output(child, PATIENCE)
}

#[test]
fn what_goes_in_comes_out() {
    let server = server();
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_769) >> 24) as u8).collect();
    let echo = connect(&server, "echo", &bytes);
    printed(&echo);
    assert!(echo.stdout == bytes, "{} bytes came back", echo.stdout.len());
    assert_eq!(printed(&connect(&server, "count", &bytes)), "1000000\n");
    let nonsense = connect(&server, "nonsense", b"");
    assert!(!nonsense.status.success());
    let said = String::from_utf8_lossy(&nonsense.stderr).into_owned();
    assert!(said.contains("reset the stream (code 16)"), "{said}");
}

#[test]
fn a_signal_tells_connected_clients() {
    for signal in [Signal::INT, Signal::TERM] {
        let mut server = server();
        let mut client = server.connect();
        client.write_all(b"\x01\0\0\x10\0\0\0\0plmx\0\0\0\x01\0\0\x01\0\0\0\0\0").expect("it is connected");
        let mut hello = [0; 24];
        client.read_exact(&mut hello).expect("a HELLO");
        server.signal(signal);
        // GOODBYE, then the end; a client that does not answer delays the end only briefly.
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).expect("no reset");
        assert_eq!(heard, [9, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert!(server.ended().success());
        server.says("drained in");
    }
}

/// The client has sent GOODBYE itself, and its stream still has only the grace time; the connection ends by
/// itself, before the drain would cancel it.
#[test]
fn a_signal_ends_a_client_that_only_waits_for_streams() {
    let mut server = server();
    let mut client = server.connect();
    let frames: &[&[u8]] = &[
        b"\x01\0\0\x10\0\0\0\0plmx\0\0\0\x01\0\0\x01\0\0\0\0\0",
        b"\x02\0\0\0\0\0\0\x01\x03\0\0\x07\0\0\0\x01echo\nhi",
        b"\x09\0\0\x04\0\0\0\0\0\0\0\0",
    ];
    client.write_all(&frames.concat()).expect("it is connected");
    // HELLO, and the echo; by then the driver has usually read the GOODBYE, too.
    client.read_exact(&mut [0; 24 + 8 + 2]).expect("it answers");
    server.terminate();
    assert!(server.ended().success());
    let report = server.says("drained in");
    assert!(report.contains("none was cancelled"), "{report}");
}

#[test]
fn another_protocol_is_told_so() {
    let server = server();
    let mut client = server.connect();
    client.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").expect("it is connected");
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).expect("no reset");
    assert!(String::from_utf8_lossy(&heard).ends_with("there is no frame of kind 71"));
    server.says("there is no frame of kind 71");
}

#[test]
fn an_address_in_use_is_an_error_that_names_it() {
    let server = server();
    names_an_address_in_use(PROGRAM, &[], &server.addr().to_string());
}

#[test]
fn it_explains_itself_and_what_it_cannot_use_it_refuses() {
    explains_itself(PROGRAM, &[&["nonsense"], &["connect"], &["measure", "more"], &["connect", "nonsense"]]);
}

#[test]
fn a_client_without_room_is_refused_and_the_next_one_is_accepted() {
    let server = server();
    let mut here: Vec<_> = (0..100).map(|_| server.connect()).collect();
    let hello = |client: &mut std::net::TcpStream| client.read_exact(&mut [0; 24]);
    here.iter_mut().for_each(|client| hello(client).expect("there is room"));
    assert!(hello(&mut server.connect()).is_err(), "there is no room");
    server.says("there is no room");
    drop(here.pop());
    // Until the server has noticed.
    let start = Instant::now();
    while hello(&mut server.connect()).is_err() {
        assert!(start.elapsed() < PATIENCE, "there is room again");
        std::thread::sleep(Duration::from_millis(5));
    }
}
