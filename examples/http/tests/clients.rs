//! Both servers with curl, wrk and h2load, and with hand-made bytes.
#![cfg(unix)]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use example_testing::{
    Server, allow_files, explains_itself, names_an_address_in_use, printed, run, say, skip,
};
use rustix::process::Signal;

const BY_HAND: &str = env!("CARGO_BIN_EXE_example-http");
const AXUM: &str = env!("CARGO_BIN_EXE_axum");

fn servers() -> [Server; 2] {
    [BY_HAND, AXUM].map(|program| Server::start(program, &["127.0.0.1:0"]))
}

/// curl, without the proxies of the environment.
fn curl(args: &[&str]) -> Option<Output> {
    run("curl", &[&["--noproxy", "*", "--silent", "--show-error", "--max-time", "30"], args].concat())
}

fn url(server: &Server, path: &str) -> String {
    format!("http://{}{path}", server.addr())
}

fn has_http2() -> bool {
    let has = printed(&run("curl", &["--version"]).expect("it was there")).contains("HTTP2");
    if !has {
        skip("this curl has no HTTP/2");
    }
    has
}

#[test]
fn curl_gets_answers_of_both_versions_on_a_connection_that_is_kept() {
    for server in servers() {
        let (root, nowhere) = (url(&server, "/"), url(&server, "/nowhere"));
        let Some(output) = curl(&[&root]) else { return };
        assert_eq!(printed(&output), "hello\n");
        assert!(printed(&curl(&["--head", &root]).expect("it was there")).contains("content-length: 6\r\n"));
        let code =
            curl(&["--output", "/dev/null", "--write-out", "%{http_code}", &nowhere]).expect("as before");
        assert_eq!(printed(&code), "404");

        // As often as it had to connect.
        let thrice = ["--write-out", "%{num_connects}%{http_version} ", &root, &root, &root];
        assert_eq!(printed(&curl(&thrice).expect("as before")), "hello\n11.1 hello\n01.1 hello\n01.1 ");
        if has_http2() {
            // Only once: curl 7.88 reports a second request on the same connection as an error, with any
            // server.
            let args = ["--http2-prior-knowledge", "--write-out", "%{http_version}", &root];
            assert_eq!(printed(&curl(&args).expect("as before")), "hello\n2");
        }
    }
}

#[test]
fn a_body_of_megabytes_comes_back_as_it_went() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (sent, back) = (folder.join("http-sent"), folder.join("http-back"));
    let bytes: Vec<u8> =
        (0..10_000_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_769).to_le_bytes()).collect();
    fs::write(&sent, &bytes).expect("the folder is ours");
    let (data, back_path) = (format!("@{}", sent.display()), back.to_str().expect("a path that is text"));
    for server in servers() {
        let echo = url(&server, "/echo");
        for version in ["--http1.1", "--http2-prior-knowledge"] {
            if version == "--http2-prior-knowledge" && !has_http2() {
                continue;
            }
            let args = [version, "--data-binary", &data, "--output", back_path, &echo];
            let Some(output) = curl(&args) else { return };
            printed(&output);
            assert!(fs::read(&back).expect("curl has written it") == bytes, "{version}");
        }
        // The body passed through, and did not stay: otherwise twice as much would be in use.
        assert!(server.resident() < 2 * bytes.len(), "{} bytes in use", server.resident());
    }
}

#[test]
fn a_router_finds_paths_and_states() {
    let [_, server] = servers();
    let Some(first) = curl(&[&url(&server, "/hello/you")]) else { return };
    assert_eq!(printed(&first), "hello, you: you are visitor 1\n");
    let second = curl(&[&url(&server, "/hello/me")]).expect("it was there");
    assert_eq!(printed(&second), "hello, me: you are visitor 2\n");
    let wrong = curl(&["--write-out", "%{http_code}", &url(&server, "/unblock/soon")]).expect("as before");
    assert!(printed(&wrong).ends_with("400"));
    assert_eq!(printed(&curl(&[&url(&server, "/unblock/1")]).expect("as before")), "done\n");
}

/// Sends a request on an open connection, and returns its whole answer.
fn ask(stream: &mut TcpStream, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is connected");
    let (mut answer, mut buffer) = (Vec::new(), [0; 1024]);
    while !answer.ends_with(b"hello\n") && !answer.ends_with(b"done\n") {
        let read = stream.read(&mut buffer).expect("an answer");
        assert!(read > 0, "the end, after {:?}", String::from_utf8_lossy(&answer));
        answer.extend(&buffer[..read]);
    }
    String::from_utf8(answer).expect("text")
}

#[test]
fn handlers_that_block_delay_no_other_request() {
    const BLOCK: Duration = Duration::from_secs(3);
    for server in servers() {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            // More than there are workers.
            let cores = thread::available_parallelism().map_or(2, usize::from);
            let blocked: Vec<_> = (0..2 * cores)
                .map(|_| scope.spawn(|| ask(&mut server.connect(), &format!("/block/{}", BLOCK.as_millis()))))
                .collect();
            let short = scope.spawn(|| {
                let (mut stream, mut worst, mut answers) = (server.connect(), Duration::ZERO, 0);
                while !done.load(Ordering::Relaxed) {
                    let start = Instant::now();
                    ask(&mut stream, "/");
                    worst = worst.max(start.elapsed());
                    answers += 1;
                }
                (worst, answers)
            });
            for one in blocked {
                assert!(one.join().expect("no client panics").ends_with("done\n"));
            }
            done.store(true, Ordering::Relaxed);
            let (worst, answers) = short.join().expect("no client panics");
            assert!(
                worst < BLOCK / 2 && answers > 100,
                "{answers} answers, the last of them after {worst:?}"
            );
        });
    }
}

#[test]
fn sigterm_lets_requests_finish_and_refuses_new_clients() {
    for mut server in servers() {
        let mut idle = server.connect();
        ask(&mut idle, "/");
        let mut busy = server.connect();
        // The answer begins as soon as the server has the request, and continues with its body.
        busy.write_all(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\n")
            .expect("as above");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            busy.read_exact(&mut byte).expect("a whole head");
            head.extend(byte);
        }
        assert!(head.starts_with(b"HTTP/1.1 200 OK\r\n"));

        server.terminate();
        assert_eq!(idle.read(&mut [0; 64]).expect("no reset"), 0, "a connection without a request ends");
        assert!(TcpStream::connect(server.addr()).is_err(), "no client is accepted");
        busy.write_all(b"hello\n").expect("it is connected");
        let mut body = String::new();
        busy.read_to_string(&mut body).expect("the rest of it, and the end");
        assert_eq!(body, "hello\n");
        assert!(server.ended().success());
        server.says("drained in");
    }
}

/// The start of HTTP/2: its preface, empty settings, and a request for /.
const HTTP2: &[u8] =
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x03\x01\x05\0\0\0\x01\x82\x86\x84";

#[test]
fn a_client_without_a_request_is_disconnected() {
    let begins: [(&str, &[u8]); 6] = [
        ("nothing", b""),
        ("what may become HTTP/2", b"PRI * "),
        ("half a head", b"GET / HTTP/1.1\r\nHost: "),
        ("HTTP/2 without a request", &HTTP2[..33]),
        ("a request, and no other", b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"),
        ("a request of HTTP/2, and no answer to a ping", HTTP2),
    ];
    let servers = servers();
    // A body that waits for longer than a head may: only its handler could limit that.
    let asks = servers.each_ref().map(|server| {
        let mut stream = server.connect();
        let head = b"POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 6\r\n\r\n";
        stream.write_all(head).expect("it is connected");
        stream
    });
    let open = servers.each_ref().map(|server| {
        begins.map(|(name, bytes)| {
            let mut stream = server.connect();
            stream.write_all(bytes).expect("it is connected");
            (name, stream)
        })
    });
    for (name, mut stream) in open.into_iter().flatten() {
        let mut answer = Vec::new();
        if let Err(error) = stream.read_to_end(&mut answer) {
            panic!("{name}: {error}");
        }
        let asked = name.starts_with("a request");
        assert_eq!(answer.windows(6).any(|part| part == b"hello\n"), asked, "{name}: {answer:x?}");
    }
    for (server, mut asks) in servers.iter().zip(asks) {
        server.says("not done within 10s");
        asks.write_all(b"hello\n").expect("it is connected");
        let mut answer = Vec::new();
        while !answer.ends_with(b"hello\n") {
            let mut byte = [0];
            asks.read_exact(&mut byte).expect("the rest of the answer");
            answer.extend(byte);
        }
    }
}

#[test]
fn no_request_blocks_a_thread_for_long() {
    for server in servers() {
        assert!(ask(&mut server.connect(), &format!("/block/{}", u64::MAX)).ends_with("done\n"));
    }
}

#[test]
fn an_address_in_use_is_an_error_that_names_it() {
    let server = Server::start(BY_HAND, &["127.0.0.1:0"]);
    for program in [BY_HAND, AXUM] {
        names_an_address_in_use(program, &[], &server.addr().to_string());
    }
}

#[test]
fn it_explains_itself_and_what_it_cannot_use_it_refuses() {
    for program in [BY_HAND, AXUM] {
        explains_itself(program, &[&["nonsense"], &["127.0.0.1:0", "more"]]);
    }
}

#[test]
fn a_second_ctrl_c_ends_it_although_a_request_is_not_finished() {
    for mut server in servers() {
        let mut busy = server.connect();
        busy.write_all(b"POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 6\r\n\r\n")
            .expect("it listens");
        // The answer begins as soon as the server has the request.
        busy.read_exact(&mut [0]).expect("an answer");
        server.signal(Signal::INT);
        server.says("stopping; a second Ctrl-C ends the program at once");
        server.signal(Signal::INT);
        assert_eq!(server.ended().code(), Some(130));
        server.says("ended at once by a second signal");
    }
}

#[test]
fn ten_thousand_connections_of_wrk_find_no_error() {
    const CONNECTIONS: usize = 10_000;
    if !allow_files(CONNECTIONS as u64 + 100) {
        return;
    }
    for server in servers() {
        let before = server.resident();
        let (count, url) = (CONNECTIONS.to_string(), url(&server, "/"));
        let (output, during) = thread::scope(|scope| {
            // A slow answer is no error here: this may be a slow build on a busy machine.
            let args = ["-c", &count, "-t", "2", "-d", "5", "--timeout", "60", &url];
            let wrk = scope.spawn(move || run("wrk", &args));
            let mut during = before;
            while !wrk.is_finished() {
                during = during.max(server.resident());
                thread::sleep(Duration::from_millis(20));
            }
            (wrk.join().expect("it does not panic"), during)
        });
        let Some(output) = output else { return };
        let printed = printed(&output);
        assert!(!printed.contains("Socket errors") && !printed.contains("Non-2xx"), "{printed}");
        let each = (during - before) / CONNECTIONS;
        say(&format!(
            "{CONNECTIONS} connections: {each} bytes each, the last figures of wrk: {}",
            last_two(&printed)
        ));
        assert!((1_000..40_000).contains(&each), "{each} bytes for each connection");
    }
}

fn last_two(printed: &str) -> String {
    let lines: Vec<_> =
        printed.lines().rev().take(2).map(|line| line.split_whitespace().collect::<String>()).collect();
    lines.join(", ")
}

#[test]
fn h2load_has_all_its_answers() {
    for server in servers() {
        let args = ["-n", "2000", "-c", "4", "-m", "50", "-t", "1", &url(&server, "/")];
        let Some(output) = run("h2load", &args) else { return };
        let printed = printed(&output);
        assert!(printed.contains("2000 done, 2000 succeeded, 0 failed"), "{printed}");
    }
}

#[test]
fn a_reset_in_the_middle_of_a_body_affects_no_other_client() {
    for server in servers() {
        let mut other = server.connect();
        let mut gone = Vec::new();
        for _ in 0..50 {
            let mut stream = server.connect();
            gone.push(stream.local_addr().expect("it has one").to_string());
            stream
                .write_all(
                    b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nsome of it",
                )
                .expect("it is connected");
            // By then the server is in the middle of its answer.
            stream.read_exact(&mut [0; 64]).expect("the head of an answer");
            // Closing a socket with unread bytes resets the connection.
            drop(stream);
        }
        assert!(ask(&mut other, "/").ends_with("hello\n"));
        for peer in gone {
            server.says(&peer);
        }
    }
}
