//! The server with third-party clients: Python's sockets, http.client, `websockets` and `pika`, and curl.
#![cfg(unix)]

#[cfg(feature = "amqp")]
#[path = "clients/amqp.rs"]
mod amqp;
#[path = "clients/deadline.rs"]
mod deadline;
#[path = "clients/events.rs"]
mod events;
#[path = "clients/places.rs"]
mod places;
#[path = "clients/python.rs"]
mod python;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use example_jsonrpc::{Client, Dispatcher, Limits};
use example_testing::{PATIENCE, Server, command, explains_itself, names_an_address_in_use, printed, run};
use paceline::Timer;
use rustix::process::Signal;

use python::Python;

/// A server on all transports that need no other server.
struct Node {
    server: Server,
    socket: String,
}

impl Node {
    fn start(more: &[&str]) -> Self {
        let name = std::thread::current().name().map_or(String::new(), |name| name.replace(':', "-"));
        let socket = format!("{}/{name}.sock", env!("CARGO_TARGET_TMPDIR"));
        let args =
            ["--unix", &socket, "--tcp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ws", "127.0.0.1:0"];
        let server = Server::start(env!("CARGO_BIN_EXE_example-jsonrpc"), &[&args, more].concat());
        server.says("until Ctrl-C");
        Self { server, socket }
    }

    /// Returns the address of a transport.
    fn on(&self, transport: &str) -> String {
        let line = self.server.says(&format!("{transport} on "));
        line.rsplit(' ').next().expect("it has words").to_owned()
    }

    /// Returns the URLs of transports.py.
    fn urls(&self, python: &Python) -> Vec<String> {
        let (tcp, socket) = (self.on("tcp"), &self.socket);
        let mut urls = vec![
            format!("lines://{tcp}"),
            format!("lengths://{tcp}"),
            format!("lines:{socket}"),
            format!("lengths:{socket}"),
            format!("http://{}", self.on("http")),
        ];
        if python.has("websockets") {
            urls.push(format!("ws://{}", self.on("ws")));
        }
        urls
    }
}

#[test]
fn each_bad_input_gets_its_reply_over_each_transport() {
    let (node, Some(python)) = (Node::start(&["--max-message", "100000"]), Python::any()) else { return };
    let before = node.server.resident();
    for url in node.urls(&python) {
        assert!(python.scene(&["table", &url]).contains("bad inputs"));
    }
    let more = node.server.resident().saturating_sub(before);
    assert!(more < 50 << 20, "{more} bytes more than before");
}

#[test]
fn what_is_well_is_answered_over_each_transport() {
    let (node, Some(python)) = (Node::start(&[]), Python::any()) else { return };
    for url in node.urls(&python) {
        python.scene(&["basics", &url]);
        if !url.starts_with("http") {
            python.scene(&["duplicates", &url]);
        }
        if url.starts_with('l') {
            python.scene(&["cut", &url]);
        }
    }
}

#[test]
fn all_transports_hear_what_is_published_on_any() {
    let (node, Some(python)) = (Node::start(&[]), Python::any()) else { return };
    let urls = node.urls(&python);
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    python.scene(&[&["push"], urls.as_slice()].concat());
}

/// Fails if a message counts for the limit that decides whether it fits: `pushed` is less than this message.
#[test]
fn a_long_event_cuts_off_no_hearer_that_reads() {
    let server = Server::start(
        env!("CARGO_BIN_EXE_example-jsonrpc"),
        &["--tcp", "127.0.0.1:0", "--max-message", "4000000"],
    );
    let connect = || BufReader::new(server.connect());
    let (mut hearer, mut publisher) = (connect(), connect());
    let ask = |peer: &mut BufReader<TcpStream>, method: &str, params: &str| {
        let call = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params},\"id\":1}}\n");
        peer.get_mut().write_all(call.as_bytes()).expect("it is connected");
        line(peer)
    };
    assert!(ask(&mut hearer, "subscribe", "[\"news\"]").contains("\"result\":null"));
    for len in [2_000_000, 3_000_000] {
        let long = "x".repeat(len);
        let told = ask(&mut publisher, "publish", &format!("[\"news\",\"{long}\"]"));
        assert!(told.contains("\"result\":1,"), "{told}");
        let event = line(&mut hearer);
        assert!(event.contains(&long), "another event, of {} bytes", event.len());
    }
}

fn line(peer: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    peer.read_line(&mut line).expect("a line");
    line
}

/// The number of calls: `JSONRPC_CALLS=100000` for a real load.
fn calls() -> String {
    std::env::var("JSONRPC_CALLS").unwrap_or("3000".to_owned())
}

#[test]
fn a_load_is_answered_once_and_whole() {
    let (node, Some(python)) = (Node::start(&[]), Python::any()) else { return };
    let calls = calls();
    for url in node.urls(&python) {
        python.scene(&["load", &url, &calls]);
    }
}

#[test]
fn a_client_that_never_reads_is_given_up_and_costs_no_memory() {
    let (node, Some(python)) = (Node::start(&[]), Python::any()) else { return };
    let (before, urls) = (node.server.resident(), node.urls(&python));
    for url in &urls {
        python.scene(&["deaf_hearer", url, &urls[0]]);
    }
    std::thread::scope(|scope| {
        for url in &urls {
            let python = &python;
            scope.spawn(move || python.scene(&["deaf", url]));
        }
    });
    node.server.says("has taken nothing for 10s");
    // A dozen connections, of some megabytes each at most.
    let more = node.server.resident().saturating_sub(before);
    assert!(more < 80 << 20, "{more} bytes more than before");
}

/// curl, without the proxies of the environment.
fn curl(args: &[&str]) -> Option<String> {
    let output =
        run("curl", &[&["--noproxy", "*", "--silent", "--show-error", "--max-time", "30"], args].concat());
    output.map(|output| printed(&output))
}

#[test]
fn curl_posts_calls_and_hears_events() {
    let node = Node::start(&[]);
    let url = format!("http://{}/", node.on("http"));
    let json = ["-H", "content-type: application/json; charset=utf-8", "-d"];
    let post = |text: &str, more: &[&str]| curl(&[&json, &[text][..], more, &[&url]].concat());
    let Some(sum) = post(r#"{"jsonrpc":"2.0","method":"sum","params":[1,2],"id":1}"#, &[]) else { return };
    assert_eq!(sum, r#"{"jsonrpc":"2.0","result":3,"id":1}"#);
    let status = ["-w", "%{http_code}"];
    assert_eq!(post(r#"{"jsonrpc":"2.0","method":"echo"}"#, &status).expect("it was there"), "204");
    let plain = curl(&[&["-d", "{}", &url][..], &status].concat()).expect("as before");
    assert!(plain.ends_with("415"), "{plain}");
    assert!(curl(&[&["-X", "DELETE", &url][..], &status].concat()).expect("as before").ends_with("405"));
    let no_topic = curl(&[&[&url[..]], &status[..]].concat()).expect("as before");
    assert!(no_topic.contains("-32602") && no_topic.ends_with("400"), "{no_topic}");

    let events = format!("{url}?topic=news");
    let mut hears = Command::new("curl");
    hears.args(["--noproxy", "*", "--silent", "--no-buffer", "--max-time", "30", &events]);
    let mut hears = hears.stdout(std::process::Stdio::piped()).spawn().expect("it was there");
    let publish = r#"{"jsonrpc":"2.0","method":"publish","params":["news",{"a":1}],"id":1}"#;
    let told = |count: usize| {
        let (start, wanted) = (Instant::now(), format!(r#""result":{count},"#));
        while !post(publish, &[]).expect("as before").contains(&wanted) {
            assert!(start.elapsed() < PATIENCE, "it is not told to {count}");
        }
    };
    // Until curl listens.
    told(1);
    let mut lines = BufReader::new(hears.stdout.take().expect("it is piped")).lines();
    let first = lines.next().expect("a line").expect("text");
    hears.kill().and_then(|()| hears.wait()).expect("it is ours");
    assert_eq!(first, r#"data: {"jsonrpc":"2.0","method":"event","params":[{"a":1}]}"#);
    // The server notices that curl has disconnected.
    told(0);
}

#[test]
fn a_signal_lets_calls_finish_and_refuses_new_clients() {
    for signal in [Signal::INT, Signal::TERM] {
        let mut node = Node::start(&[]);
        let addr = node.on("tcp");
        let mut busy = std::net::TcpStream::connect(&addr).expect("it listens");
        // In one write, so that the server has both calls when the first is answered.
        let sum = r#"{"jsonrpc":"2.0","method":"sum","params":[1],"id":0}"#;
        let sleep = r#"{"jsonrpc":"2.0","method":"sleep","params":[500],"id":1}"#;
        busy.write_all(format!("{sleep}\n{sum}\n").as_bytes()).expect("it is connected");
        busy.read_exact(&mut [0; br#"{"jsonrpc":"2.0","result":1,"id":0}"#.len() + 1]).expect("an answer");
        node.server.signal(signal);
        let mut rest = String::new();
        busy.read_to_string(&mut rest).expect("the answer, the end, and no reset");
        assert!(rest.contains(r#""result":"slept""#), "{rest}");
        assert!(node.server.ended().success());
        node.server.says("drained in");
        assert!(std::net::TcpStream::connect(&addr).is_err() && !std::path::Path::new(&node.socket).exists());
    }
}

#[test]
fn a_server_that_stops_leaves_its_path_to_the_next_one() {
    let mut first = Node::start(&[]);
    let mut busy = std::net::TcpStream::connect(first.on("tcp")).expect("it listens");
    let sleep = r#"{"jsonrpc":"2.0","method":"sleep","params":[600000],"id":1}"#;
    let sum = r#"{"jsonrpc":"2.0","method":"sum","params":[1],"id":0}"#;
    busy.write_all(format!("{sleep}\n{sum}\n").as_bytes()).expect("it is connected");
    busy.read_exact(&mut [0]).expect("an answer");
    first.server.terminate();
    let start = Instant::now();
    while std::os::unix::net::UnixStream::connect(&first.socket).is_ok() {
        assert!(start.elapsed() < PATIENCE, "it listens still");
        std::thread::sleep(Duration::from_millis(5));
    }
    let next = Node::start(&[]);
    first.server.ended();
    std::os::unix::net::UnixStream::connect(&next.socket).expect("it is there still");
}

#[test]
fn half_a_connection_is_enough_for_an_answer() {
    let node = Node::start(&[]);
    let mut stream = node.server.connect();
    // Also without the last newline, as `printf` leaves it.
    stream.write_all(br#"{"jsonrpc":"2.0","method":"sleep","params":[50],"id":1}"#).expect("it is connected");
    stream.shutdown(Shutdown::Write).expect("as above");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("no reset");
    assert_eq!(answer, "{\"jsonrpc\":\"2.0\",\"result\":\"slept\",\"id\":1}\n");
}

#[test]
fn a_page_of_another_origin_is_refused() {
    let node = Node::start(&[]);
    let addr = node.on("ws");
    let mut stream = std::net::TcpStream::connect(&addr).expect("it listens");
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n";
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let request = format!("GET / HTTP/1.1\r\nHost: {addr}\r\nOrigin: http://elsewhere\r\n{upgrade}{key}\r\n");
    stream.write_all(request.as_bytes()).expect("it is connected");
    let mut answer = String::new();
    // The connection may end with a reset.
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
}

#[test]
fn what_is_no_socket_stays_where_it_is() {
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/jsonrpc-is-no-socket");
    std::fs::write(file, "mine").expect("the folder is ours");
    let server = command(env!("CARGO_BIN_EXE_example-jsonrpc")).args(["--unix", file]).output();
    assert!(!server.expect("it starts").status.success());
    assert_eq!(std::fs::read(file).expect("it is there"), b"mine");

    // The socket of a killed server is replaced.
    let mut node = Node::start(&[]);
    node.server.signal(Signal::KILL);
    node.server.ended();
    assert!(std::path::Path::new(&node.socket).exists());
    Node::start(&[]);
}

#[test]
fn an_address_in_use_is_an_error_that_names_it() {
    let node = Node::start(&[]);
    for (option, place) in [("--tcp", node.on("tcp")), ("--unix", node.socket.clone())] {
        names_an_address_in_use(env!("CARGO_BIN_EXE_example-jsonrpc"), &[option], &place);
    }
}

#[test]
fn it_explains_itself_and_what_it_cannot_use_it_refuses() {
    let wrong: [&[&str]; 4] =
        [&["nonsense"], &["--tcp"], &["--max-message", "many"], &["--max-message", "1000"]];
    explains_itself(env!("CARGO_BIN_EXE_example-jsonrpc"), &wrong);
}

/// A client sends all notifications before it ends.
#[test]
fn a_client_that_closes_has_said_all() {
    let node = Node::start(&[]);
    let urls = [
        format!("tcp://{}", node.on("tcp")),
        format!("unix+lengths:{}", node.socket),
        format!("http://{}", node.on("http")),
        format!("ws://{}", node.on("ws")),
    ];
    paceline::block_on(async {
        let client = async |url: &str| {
            let none = Arc::new(Dispatcher::new(Limits::default()));
            Client::connect(url, none, PATIENCE).await.expect("it listens")
        };
        let counts = client(&urls[0]).await;
        for (told, url) in urls.iter().enumerate() {
            let tells = client(url).await;
            for _ in 0..100 {
                tells.notify("counter.told.add", &[1]).await.expect("it is connected");
            }
            tells.close().await.expect("it is connected");
            // All have arrived, but may not have been counted.
            let start = Instant::now();
            while counts.call::<usize>("counter.told.get", &()).await.expect("an answer") < 100 * (told + 1) {
                assert!(start.elapsed() < PATIENCE, "{url}: some are lost");
                Timer::after(Duration::from_millis(1)).await;
            }
        }
        counts.close().await.expect("it is connected");
    });
}

#[test]
fn an_address_alone_is_served() {
    let server = Server::start(env!("CARGO_BIN_EXE_example-jsonrpc"), &["127.0.0.1:0"]);
    server.says("tcp on 127.0.0.1:");
    server.says("until Ctrl-C");
}
