//! One end of a transfer over one TCP stream, or both: a role in which the driver starts its own program.
//!
//! `transfer-end RIVAL BUFFER BYTES receive` prints its port, and `transfer-end RIVAL BUFFER BYTES send PORT`
//! connects to that port; `both` runs the two ends in tasks of one process. Each prints a line of figures,
//! from the connection to the last byte.

use std::future::Future;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::str::FromStr;
use std::time::Instant;

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::driver::procfs::own_cpu;
use crate::servers::listen;

/// Workers of each process, as in all other servers here.
const THREADS: usize = 2;

/// The ways to read and write a stream. The first one is the reference for the ratios.
pub(crate) const RIVALS: &[&str] = &[
    "tokio",
    // By the traits of `futures`; by those of tokio, directly and through `ForTokio`.
    #[cfg(feature = "paceline")]
    "paceline",
    #[cfg(feature = "paceline")]
    "paceline-tokio-io",
    #[cfg(feature = "paceline")]
    "paceline-for-tokio",
];

pub(crate) fn main(arguments: &[String]) -> io::Result<()> {
    let usage = || io::Error::other("usage: transfer-end RIVAL BUFFER BYTES (receive | send PORT | both)");
    let [rival, buffer, bytes, ends, rest @ ..] = arguments else { return Err(usage()) };
    let size = Size { buffer: number(buffer)?, bytes: number(bytes)? };
    let figures = match (ends.as_str(), rest) {
        ("receive", []) => {
            let listener = listen(0)?;
            listener.set_nonblocking(false)?;
            println!("{}", listener.local_addr()?.port());
            let stream = listener.accept()?.0;
            measured(|| run(rival, size, [Some(End::Receives(stream)), None]))?
        }
        ("send", [port]) => {
            let stream = TcpStream::connect(("127.0.0.1", number(port)?))?;
            measured(|| run(rival, size, [Some(End::Sends(stream)), None]))?
        }
        ("both", []) => {
            let listener = TcpListener::bind(("127.0.0.1", 0))?;
            let sender = TcpStream::connect(listener.local_addr()?)?;
            let ends = [Some(End::Receives(listener.accept()?.0)), Some(End::Sends(sender))];
            measured(|| run(rival, size, ends))?
        }
        _ => return Err(usage()),
    };
    println!("{figures}");
    Ok(())
}

fn number<N: FromStr>(word: &str) -> io::Result<N> {
    word.parse().map_err(|_| io::Error::other(format!("{word} is not a valid number")))
}

/// The number of bytes, and the size of one buffer.
#[derive(Clone, Copy)]
struct Size {
    buffer: usize,
    bytes: usize,
}

enum End {
    Receives(TcpStream),
    Sends(TcpStream),
}

fn measured(transfer: impl FnOnce() -> io::Result<()>) -> io::Result<Value> {
    let (start, cpu) = (Instant::now(), own_cpu());
    transfer()?;
    Ok(json!({ "seconds": start.elapsed().as_secs_f64(), "cpu": (own_cpu() - cpu).as_secs_f64() }))
}

/// Runs each end in a task, and waits for all.
fn run(rival: &str, size: Size, ends: [Option<End>; 2]) -> io::Result<()> {
    let ends = ends.into_iter().flatten();
    match rival {
        "tokio" => in_tokio(ends.map(|end| async move {
            match end {
                End::Receives(stream) => receives_tokio(tokio_stream(stream)?, size).await,
                End::Sends(stream) => sends_tokio(tokio_stream(stream)?, size).await,
            }
        })),
        #[cfg(feature = "paceline")]
        "paceline" => in_paceline(ends.map(|end| async move {
            match end {
                End::Receives(stream) => receives(our_stream(stream)?, size).await,
                End::Sends(stream) => sends(our_stream(stream)?, size).await,
            }
        })),
        #[cfg(feature = "paceline")]
        "paceline-tokio-io" => in_paceline(ends.map(|end| async move {
            match end {
                End::Receives(stream) => receives_tokio(our_stream(stream)?, size).await,
                End::Sends(stream) => sends_tokio(our_stream(stream)?, size).await,
            }
        })),
        #[cfg(feature = "paceline")]
        "paceline-for-tokio" => in_paceline(ends.map(|end| async move {
            use paceline::tokio_io::ForTokio;
            match end {
                End::Receives(stream) => receives_tokio(ForTokio::new(our_stream(stream)?), size).await,
                End::Sends(stream) => sends_tokio(ForTokio::new(our_stream(stream)?), size).await,
            }
        })),
        _ => Err(io::Error::other(format!("unknown rival {rival:?}; the rivals are {}", RIVALS.join(", ")))),
    }
}

fn tokio_stream(stream: TcpStream) -> io::Result<tokio::net::TcpStream> {
    stream.set_nonblocking(true)?;
    tokio::net::TcpStream::from_std(stream)
}

#[cfg(feature = "paceline")]
fn our_stream(stream: TcpStream) -> io::Result<paceline::net::TcpStream> {
    stream.try_into()
}

fn in_tokio<F>(ends: impl Iterator<Item = F>) -> io::Result<()>
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build()?;
    runtime.block_on(async {
        for task in ends.map(tokio::spawn).collect::<Vec<_>>() {
            task.await??;
        }
        Ok(())
    })
}

#[cfg(feature = "paceline")]
fn in_paceline<F>(ends: impl Iterator<Item = F>) -> io::Result<()>
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let runtime = paceline::Runtime::builder().threads(THREADS).build()?;
    runtime.block_on(async {
        for task in ends.map(|end| runtime.spawn(end)).collect::<Vec<_>>() {
            task.await?;
        }
        Ok(())
    })
}

/// Checks that all bytes arrived.
fn complete(received: usize, size: Size) -> io::Result<()> {
    let Size { bytes, .. } = size;
    if received == bytes {
        return Ok(());
    }
    Err(io::Error::other(format!("received {received} of {bytes} bytes")))
}

#[cfg_attr(not(feature = "paceline"), expect(dead_code, reason = "tokio has other traits"))]
async fn receives(mut stream: impl futures_lite::AsyncRead + Unpin, size: Size) -> io::Result<()> {
    let (mut buf, mut received) = (vec![0; size.buffer], 0);
    loop {
        match stream.read(&mut buf).await? {
            0 => return complete(received, size),
            n => received += n,
        }
    }
}

#[cfg_attr(not(feature = "paceline"), expect(dead_code, reason = "tokio has other traits"))]
async fn sends(mut stream: impl futures_lite::AsyncWrite + Unpin, size: Size) -> io::Result<()> {
    let buf = vec![1; size.buffer];
    for _ in 0..size.bytes / size.buffer {
        stream.write_all(&buf).await?;
    }
    stream.close().await
}

async fn receives_tokio(mut stream: impl tokio::io::AsyncRead + Unpin, size: Size) -> io::Result<()> {
    let (mut buf, mut received) = (vec![0; size.buffer], 0);
    loop {
        match stream.read(&mut buf).await? {
            0 => return complete(received, size),
            n => received += n,
        }
    }
}

async fn sends_tokio(mut stream: impl tokio::io::AsyncWrite + Unpin, size: Size) -> io::Result<()> {
    let buf = vec![1; size.buffer];
    for _ in 0..size.bytes / size.buffer {
        stream.write_all(&buf).await?;
    }
    stream.shutdown().await
}
