//! `echo` with netcat, with a Python program, and with its own clients.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process::{Example, LONG, other, start};

#[path = "../../examples/echo/times.rs"]
mod times;

/// Starts a server, and returns its process and its address.
fn serve(shell: &str) -> (Example, SocketAddr) {
    let mut echo = start("echo", shell, &["--serve", "127.0.0.1:0"]);
    let line = echo.says("echoing on ");
    let addr = line.split_whitespace().find_map(|word| word.parse().ok()).expect(&line);
    (echo, addr)
}

/// Several connections at once. Each sends its own bytes in pieces, some of them all before they read, and
/// then shuts down its side.
const CLIENT: &str = r#"
import asyncio, random, sys
async def client(number):
    reader, writer = await asyncio.open_connection(sys.argv[1], int(sys.argv[2]))
    own = random.Random(number)
    sent = own.randbytes(own.randrange(1, 200_000))
    async def write():
        at = 0
        while at < len(sent):
            piece = own.choice([1, 7, 100, 4096, 50_000])
            writer.write(sent[at:at + piece])
            await writer.drain()
            at += piece
        writer.write_eof()
    writes = asyncio.create_task(write())
    got = await reader.read(-1)
    await writes
    writer.close()
    assert got == sent, f"client {number}: {len(got)} of {len(sent)} bytes, or others"
async def main():
    await asyncio.gather(*(client(number) for number in range(100)))
    print("all is well")
asyncio.run(main())
"#;

#[test]
fn every_byte_comes_back_to_its_sender() {
    let (echo, addr) = serve(":");
    let (host, port) = (addr.ip().to_string(), addr.port().to_string());
    let words: Vec<_> = (0..20_000).flat_map(|number: u32| format!("{number} ").into_bytes()).collect();
    if let Some(nc) = other("nc", &["-N", "-w", "30", &host, &port], &words) {
        assert!(nc.stdout == words, "{} of {} bytes, or others", nc.stdout.len(), words.len());
    }
    if let Some(python) = other("python3", &["-c", CLIENT, &host, &port], b"") {
        let said = String::from_utf8_lossy(&python.stdout).into_owned();
        assert_eq!(said.trim(), "all is well", "{}", String::from_utf8_lossy(&python.stderr));
    }
    echo.signal(Signal::INT);
    let said = echo.end();
    assert!(said.contains("drained in ") && said.contains("none was cancelled"), "{said}");
}

/// A client that keeps its connection is disconnected, and not before the grace time is over.
#[test]
fn ctrl_c_gives_the_others_time_and_not_for_ever() {
    let (mut echo, addr) = serve(":");
    let mut idle = TcpStream::connect(addr).unwrap();
    idle.set_read_timeout(Some(LONG)).unwrap();
    let mut ask = |word: &[u8; 4]| {
        idle.write_all(word).unwrap();
        let mut answer = [0; 4];
        idle.read_exact(&mut answer).map(|()| assert_eq!(&answer, word))
    };
    ask(b"word").unwrap();
    // A row has been printed, so the program is in the middle of its run.
    echo.says("      1            1 ");
    let start = Instant::now();
    echo.signal(Signal::INT);
    ask(b"more").unwrap();
    let said = echo.end();
    assert!(said.contains("1 was cancelled"), "{said}");
    assert!(start.elapsed().as_millis() >= 1000, "it had a second");
    assert_eq!(idle.read(&mut [0]).unwrap_or(0), 0);
}

/// Runs so many of its own clients, or as many as the system allows, which the output says.
fn has_clients(wanted: usize) {
    let mut echo = start("echo", ":", &["--connections", &wanted.to_string()]);
    let line = echo.says("clients are connected");
    let reached: usize = line.split_whitespace().next().and_then(|word| word.parse().ok()).expect(&line);
    assert!(reached == wanted || line.contains("files may be open"), "{line}");
    let row = echo.says(&format!("{reached:12} "));
    let echoes: f64 = row.split_whitespace().nth(2).and_then(|word| word.parse().ok()).expect(&row);
    assert!(echoes > 0.0, "{row}");
    echo.signal(Signal::INT);
    let said = echo.end();
    assert!(said.contains(&format!("{reached} clients, of which 0 were lost: ")), "{said}");
    assert!(said.contains("none was cancelled"), "{said}");
    eprintln!("{line}\n{row}");
}

#[test]
fn hundreds_of_clients_of_its_own() {
    has_clients(700);
}

#[test]
#[ignore = "takes both cores for some seconds, and 20 064 open files"]
fn ten_thousand_clients_of_its_own() {
    has_clients(10_000);
}

/// Clients that are connected when Ctrl-C arrives still get their echoes. Fails if the loop that connects
/// them does not yield to other futures.
#[test]
fn ctrl_c_is_heeded_while_clients_connect() {
    let mut echo = start("echo", ":", &["--connections", "10000"]);
    echo.says("echoing on ");
    echo.signal(Signal::INT);
    let line = echo.says("clients are connected");
    let said = echo.end();
    let reached: usize = line.split_whitespace().next().and_then(|word| word.parse().ok()).expect(&line);
    assert!(reached == 0 || said.contains(&format!("{reached} clients, of which 0 were lost: ")), "{said}");
    // If few files may be open, all clients that this allows are connected before a signal can arrive.
    let is_soon_done = line.contains("files may be open") && reached < 5000;
    assert!(line.ends_with(": it was interrupted") || is_soon_done, "{line}");
}

/// The program raises the limit as far as allowed, and prints how many clients that allows.
#[test]
fn a_limit_of_open_files_is_raised_and_said() {
    let raised = |shell: &str, said: &str| {
        let mut echo = start("echo", shell, &["--connections", "200"]);
        let line = echo.says("clients are connected");
        assert!(line.starts_with(said), "{line}");
        echo.signal(Signal::INT);
        // At once, while some of the connections are not even accepted.
        let said = echo.end();
        assert!(said.contains("of which 0 were lost"), "{said}");
    };
    raised("ulimit -Sn 100", "200 clients are connected");
    raised("ulimit -n 300", "118 of 200 clients are connected: no more than 300 files may be open");
}

/// The server continues without free descriptors, and accepts the next client as soon as one is free.
#[test]
fn without_descriptors_it_serves_those_that_it_has() {
    let (echo, addr) = serve("ulimit -n 40");
    let mut many: Vec<_> = (0..60).map(|_| TcpStream::connect(addr).unwrap()).collect();
    let ask = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(b"word").unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
    };
    ask(&mut many[0]);
    let mut last = many.pop().unwrap();
    drop(many);
    ask(&mut last);
    echo.signal(Signal::INT);
    drop(last);
    echo.end();
}

#[test]
fn without_arguments_it_ends_by_itself() {
    let said = start("echo", ":", &[]).end();
    assert!(said.contains("300 clients, of which 0 were lost") && said.contains("\npolls_direct "), "{said}");
    assert!(said.lines().any(|line| line.starts_with("      1          300 ")), "{said}");
}

/// The printed duration of echoes is too long by a sixteenth at most, and never too short.
#[test]
fn times_are_counted_by_ranges() {
    let times = times::Times::new();
    assert_eq!((times.count(), times.percentile(99)), (0, Duration::ZERO));
    let mut exact: Vec<u64> =
        (0..20_000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (n % 64)).collect();
    exact.extend([0, 1, 15, 16, 31, 32, 33, u64::MAX]);
    exact.iter().for_each(|nanos| times.add(Duration::from_nanos(*nanos)));
    exact.sort_unstable();
    assert_eq!(times.count(), exact.len() as u64);
    for percent in 1..=100 {
        let here = exact[(exact.len() * percent).div_ceil(100) - 1];
        let said = times.percentile(percent as u64).as_nanos() as u64;
        assert!((here..=here.saturating_add(here / 16)).contains(&said), "{percent} %: {said} for {here}");
    }
    times.add(Duration::MAX);
    assert_eq!(times.percentile(100), Duration::from_nanos(u64::MAX));
}
