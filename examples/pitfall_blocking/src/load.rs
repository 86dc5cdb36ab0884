//! The clients: a thread each, with a socket of the standard library.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::servers::{AT_ONCE, BLOCK};

/// These threads need very little stack.
const STACK: usize = 64 << 10;

/// The times of the short requests.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) per_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) worst: Duration,
}

/// Runs clients for this time, and returns the figures of those with short requests.
pub(crate) fn load(addr: SocketAddr, short: usize, blocked: usize, round: Duration) -> io::Result<Figures> {
    let deadline = Instant::now() + round;
    let client = |kind: u8| thread::Builder::new().stack_size(STACK).spawn(move || ask(addr, kind, deadline));
    // Blocking clients come first, so that they are active when the others begin.
    let blocked = (0..blocked).map(|_| client(BLOCK)).collect::<io::Result<Vec<_>>>()?;
    let short = (0..short).map(|_| client(AT_ONCE)).collect::<io::Result<Vec<_>>>()?;
    let mut times = Vec::new();
    for client in short {
        times.extend(client.join().expect("no client panics")?);
    }
    for client in blocked {
        client.join().expect("no client panics")?;
    }
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    let per_second = times.len() as f64 / round.as_secs_f64();
    Ok(Figures { per_second, p50: at(50), p99: at(99), worst: at(100) })
}

/// Runs one client, which waits for each answer. Returns how long each took: at least one.
fn ask(addr: SocketAddr, kind: u8, deadline: Instant) -> io::Result<Vec<Duration>> {
    let mut stream = TcpStream::connect(addr)?;
    stream.set_nodelay(true)?;
    let mut times = Vec::new();
    loop {
        let start = Instant::now();
        stream.write_all(&[kind])?;
        stream.read_exact(&mut [0])?;
        times.push(start.elapsed());
        if Instant::now() >= deadline {
            return Ok(times);
        }
    }
}
