//! Hand-made frames that no correct client sends.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use example_testing::Server;

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// Opens a connection, with the handshake done.
pub(crate) fn open(server: &Server, path: &str) -> TcpStream {
    let mut stream = server.connect();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        server.addr()
    );
    stream.write_all(request.as_bytes()).expect("it is connected");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a whole answer");
        answer.extend(byte);
    }
    let answer = String::from_utf8(answer).expect("text").to_lowercase();
    assert!(answer.starts_with("http/1.1 101 "), "{answer}");
    // RFC 6455, section 1.3, has this key and its answer.
    assert!(answer.contains("s3pplmbitxaq9kygzzhzrbk+xoo="), "{answer}");
    stream
}

/// Returns a frame of a client, with this first byte.
pub(crate) fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        len @ 0..126 => frame.push(0x80 | len as u8),
        len @ 126..65536 => frame.extend([0x80 | 126, (len >> 8) as u8, len as u8]),
        len => frame.extend([0x80 | 127].into_iter().chain((len as u64).to_be_bytes())),
    }
    frame.extend(MASK);
    frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// Reads a frame of the server: its first byte and its payload.
pub(crate) fn read(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    stream.read_exact(&mut head).expect("a frame");
    let len = match head[1] {
        126 => {
            let mut len = [0; 2];
            stream.read_exact(&mut len).expect("a length");
            usize::from(u16::from_be_bytes(len))
        }
        127 => {
            let mut len = [0; 8];
            stream.read_exact(&mut len).expect("a length");
            u64::from_be_bytes(len) as usize
        }
        len => usize::from(len),
    };
    let mut payload = vec![0; len];
    stream.read_exact(&mut payload).expect("a whole frame");
    (head[0], payload)
}

const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
/// The bit of a message's last frame.
const FIN: u8 = 0x80;

fn close(code: u16) -> (u8, Vec<u8>) {
    (FIN | CLOSE, code.to_be_bytes().to_vec())
}

/// Reads frames up to one with this first byte, or to a close; returns the last of them.
fn read_last(stream: &mut TcpStream, first: u8) -> (u8, Vec<u8>) {
    loop {
        let frame = read(stream);
        if frame.0 == first || frame.0 == FIN | CLOSE {
            return frame;
        }
    }
}

/// The sent bytes, and the last frame that comes back.
#[test]
fn wrong_frames_are_answered_with_the_code_for_them() {
    let server = crate::server();
    let cases = [
        ("reserved bit 1", masked(0x40 | FIN | TEXT, b"x"), close(1002)),
        ("reserved bit 3", masked(0x10 | FIN | BINARY, b"x"), close(1002)),
        ("reserved kind of data", masked(FIN | 3, b"x"), close(1002)),
        ("reserved kind of control", masked(FIN | 11, b"x"), close(1002)),
        ("not masked", vec![FIN | TEXT, 1, b'x'], close(1002)),
        ("a ping in fragments", masked(PING, b"x"), close(1002)),
        ("a ping that is too long", masked(FIN | PING, &[0; 126]), close(1002)),
        ("a continuation of nothing", masked(FIN, b"x"), close(1002)),
        ("a message within a message", [masked(TEXT, b"x"), masked(FIN | TEXT, b"y")].concat(), close(1002)),
        ("no text", masked(FIN | TEXT, b"\xff"), close(1007)),
        (
            "no text, in the second fragment",
            [masked(TEXT, b"\xce"), masked(FIN, b"\xce")].concat(),
            close(1007),
        ),
        ("a close of one byte", masked(FIN | CLOSE, b"\x03"), close(1002)),
        (
            "a close with a code that must not be sent",
            masked(FIN | CLOSE, &1005_u16.to_be_bytes()),
            close(1002),
        ),
        ("a close with a reason that is no text", masked(FIN | CLOSE, b"\x03\xe8\xff"), close(1007)),
        (
            "a frame that says that it is huge",
            [&[FIN | BINARY, 0xff, 0, 0, 1, 0, 0, 0, 0, 0], &MASK[..]].concat(),
            close(1009),
        ),
        ("a close", masked(FIN | CLOSE, &1000_u16.to_be_bytes()), close(1000)),
        ("the longest ping", masked(FIN | PING, &[7; 125]), (FIN | PONG, vec![7; 125])),
        (
            "a character across fragments, with a ping between them",
            [masked(TEXT, b"\xce"), masked(FIN | PING, b"!"), masked(FIN, b"\xba")].concat(),
            (FIN | TEXT, b"\xce\xba".to_vec()),
        ),
    ];
    let mut wrong = Vec::new();
    for (name, frames, (first, payload)) in &cases {
        let mut stream = open(&server, "/");
        stream.write_all(frames).expect("it is connected");
        let (answer, mut said) = read_last(&mut stream, *first);
        // A close may have a reason in words, too.
        if *first == FIN | CLOSE {
            said.truncate(2);
        }
        if (answer, &said) != (*first, payload) {
            wrong.push(format!("{name}: {answer:x} {said:x?}, not {first:x} {payload:x?}"));
        }
        // Then the connection ends, without a reset.
        stream.shutdown(Shutdown::Write).expect("it is connected");
        if let Err(error) = stream.read_to_end(&mut Vec::new()) {
            wrong.push(format!("{name}: {error}"));
        }
    }
    println!("{} of {} passed", cases.len() - wrong.len(), cases.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_reset_in_the_middle_of_a_message_affects_no_other_client() {
    let server = crate::server();
    let mut other = open(&server, "/");
    for _ in 0..50 {
        let mut stream = open(&server, "/");
        stream.write_all(&masked(FIN | BINARY, &[0; 100_000])[..60_000]).expect("it is connected");
        socket2::SockRef::from(&stream)
            .set_linger(Some(std::time::Duration::ZERO))
            .expect("a socket takes it");
    }
    other.write_all(&masked(FIN | TEXT, b"still there?")).expect("it is connected");
    assert_eq!(read(&mut other), (FIN | TEXT, b"still there?".to_vec()));
    server.says("reset");
}

#[test]
fn a_peer_that_reads_nothing_is_given_up() {
    let server = crate::server();
    let mut stream = open(&server, "/");
    let from = stream.local_addr().expect("it has one").to_string();
    // Until both sides' buffers are full, and then until the server has disconnected.
    let frame = masked(FIN | BINARY, &[0; 1 << 20]);
    while stream.write_all(&frame).is_ok() {}
    assert!(server.says(&from).contains("has taken nothing for 10s"));
}
