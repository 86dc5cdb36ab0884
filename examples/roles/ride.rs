//! The watched server with three workers, its clients, and handlers that block on demand.

use std::net::SocketAddr;
use std::time::{Duration, Instant};
use std::{io, thread};

use paceline::net::{TcpListener, TcpStream};
use paceline::prelude::*;
use paceline::{Runtime, Timer, spawn};

pub const WORKERS: usize = 3;
const CLIENTS: u64 = 6;

/// The requests: a moment of work, or a handler that blocks, or computes, for as long as the request says.
const WORK: u8 = b'.';
const MOMENT: Duration = Duration::from_micros(400);
pub const BLOCK: u8 = b'B';
pub const COMPUTE: u8 = b'C';

pub struct Ride {
    pub runtime: Runtime,
    /// The runtime of the clients, whose threads are not watched.
    pub outside: Runtime,
    addr: SocketAddr,
}

impl Ride {
    pub fn start() -> io::Result<Self> {
        let runtime = Runtime::builder().threads(WORKERS).thread_name("rider").build()?;
        let outside = Runtime::builder().threads(1).thread_name("client").build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let addr = listener.local_addr()?;
        runtime.spawn(serve(listener)).detach();
        for number in 0..CLIENTS {
            outside.spawn(come_and_go(addr, number)).detach();
        }
        Ok(Self { runtime, outside, addr })
    }

    /// Makes one handler do this for so long.
    pub fn ask(&self, what: u8, lasts: Duration) {
        let addr = self.addr;
        self.outside
            .spawn(async move { ask(&mut TcpStream::connect(addr).await?, what, lasts).await })
            .detach();
    }
}

async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, _peer) = listener.accept().await?;
        spawn(handle(stream)).detach();
    }
}

/// Three bytes are a request: the action, and its milliseconds.
async fn handle(mut stream: TcpStream) -> io::Result<()> {
    let mut request = [0; 3];
    while stream.read_exact(&mut request).await.is_ok() {
        let [what, lasts @ ..] = request;
        let lasts = Duration::from_millis(u16::from_be_bytes(lasts).into());
        match what {
            BLOCK => thread::sleep(lasts),
            COMPUTE => compute(lasts),
            _ => compute(MOMENT),
        }
        stream.write_all(&request).await?;
    }
    Ok(())
}

fn compute(lasts: Duration) {
    let start = Instant::now();
    while start.elapsed() < lasts {
        std::hint::spin_loop();
    }
}

async fn ask(stream: &mut TcpStream, what: u8, lasts: Duration) -> io::Result<()> {
    let [high, low] = u16::try_from(lasts.as_millis()).unwrap_or(u16::MAX).to_be_bytes();
    stream.write_all(&[what, high, low]).await?;
    stream.read_exact(&mut [0; 3]).await
}

/// A client that pauses between its requests.
async fn come_and_go(addr: SocketAddr, number: u64) -> io::Result<()> {
    let mut stream = TcpStream::connect(addr).await?;
    for turn in 0u64.. {
        // Any function that keeps the clients out of step.
        let pause = 4 + (turn * 7 + number * 5) % 17;
        Timer::after(Duration::from_millis(pause)).await;
        ask(&mut stream, WORK, Duration::ZERO).await?;
    }
    Ok(())
}
