//! `shards` with its own clients and with others.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process::{Example, LONG, start};

/// Starts a server with two shards, and returns its process and its address.
fn serve() -> (Example, SocketAddr) {
    let mut shards = start("shards", ":", &["127.0.0.1:0", "2"]);
    let line = shards.says("echoing on ");
    let addr = line.split_whitespace().find_map(|word| word.parse().ok()).expect(&line);
    (shards, addr)
}

/// Returns how many connections each shard has served.
fn served(said: &str) -> Vec<usize> {
    let row = |line: &str| {
        let (_, rest) = line.split_once(" has served ")?;
        Some(rest.split_whitespace().next()?.parse().expect(line))
    };
    said.lines().filter_map(row).collect()
}

/// One shard gets all 200 connections with a probability of 2 to the power of -199.
#[test]
fn without_arguments_each_shard_serves_some_clients() {
    let said = start("shards", ":", &[]).end();
    assert!(said.contains("200 of 200 clients had all their echoes"), "{said}");
    let served = served(&said);
    assert_eq!((served.len(), served.iter().sum()), (2, 200), "{said}");
    assert!(!served.contains(&0) && !said.contains(" was cancelled after"), "{said}");
}

/// Clients that are connected when Ctrl-C arrives still get echoes, on both shards.
#[test]
fn ctrl_c_cuts_no_client_off_on_any_shard() {
    let (shards, addr) = serve();
    // All echoes after the signal come within the grace time of ten seconds.
    let mut clients: Vec<_> = (0..8).map(|_| TcpStream::connect(addr).unwrap()).collect();
    let ask = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(b"word").unwrap();
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"word");
    };
    clients.iter_mut().for_each(ask);
    shards.signal(Signal::INT);
    clients.iter_mut().for_each(ask);
    drop(clients);
    let said = shards.end();
    assert_eq!(served(&said).iter().sum::<usize>(), 8, "{said}");
    assert_eq!(said.matches("none was cancelled").count(), 2, "{said}");
}

/// Each worker may run on the cores that the program prints for its shard, and on no others.
#[test]
fn workers_are_pinned_to_the_cores_of_their_shard() {
    let (shards, _) = serve();
    let cores = |line: &String| {
        let list = line.split_once(" has cores [")?.1.trim_end_matches(']').split(", ");
        Some(list.map(|core| core.parse().expect(line)).collect())
    };
    let wanted: Vec<Vec<usize>> = shards.said.iter().filter_map(cores).collect();
    assert_eq!(wanted.len(), 2, "{:?}", shards.said);
    let tasks = format!("/proc/{}/task", shards.id());
    let pinned = || {
        let threads = fs::read_dir(&tasks).unwrap().map(|thread| thread.unwrap().path());
        threads.filter_map(|thread| worker(&thread)).collect::<Vec<_>>()
    };
    let is_done = |pinned: &[(usize, Vec<usize>)]| {
        pinned.len() == wanted.iter().map(Vec::len).sum::<usize>()
            && pinned.iter().all(|(shard, cores)| *cores == wanted[*shard])
    };
    let begin = Instant::now();
    while !is_done(&pinned()) {
        assert!(begin.elapsed() < LONG, "{:?} instead of {wanted:?}", pinned());
        thread::sleep(Duration::from_millis(2));
    }
    shards.signal(Signal::INT);
    shards.end();
}

/// Returns the shard of a worker and the cores on which it may run; `None` for other threads.
fn worker(thread: &Path) -> Option<(usize, Vec<usize>)> {
    let status = fs::read_to_string(thread.join("status")).ok()?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let (shard, number) = field("Name:")?.strip_prefix("shard-")?.split_once('-')?;
    number.parse::<usize>().ok()?;
    Some((shard.parse().ok()?, cores(field("Cpus_allowed_list:")?)))
}

/// Parses a list of the kernel, such as `0-2,5`.
fn cores(list: &str) -> Vec<usize> {
    let number = |text: &str| text.parse::<usize>().expect(list);
    let range = |part: &str| match part.split_once('-') {
        Some((first, last)) => number(first)..=number(last),
        None => number(part)..=number(part),
    };
    list.split(',').flat_map(range).collect()
}
