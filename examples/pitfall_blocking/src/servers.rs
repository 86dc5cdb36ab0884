//! The server on three runtimes: the same handler, with each runtime's own sockets.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use crate::THREADS;

/// The requests.
pub(crate) const AT_ONCE: u8 = b'.';
pub(crate) const BLOCK: u8 = b'B';
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    /// Ends the server, and returns its remark.
    pub(crate) stop: Box<dyn FnOnce() -> Option<String>>,
}

/// The handler, which differs only in the traits that are in scope where it is expanded: answers each byte
/// with itself, a `B` only after it has blocked its thread.
macro_rules! handler {
    ($stream:ty) => {
        async fn answer(mut stream: $stream) -> io::Result<()> {
            let mut byte = [0];
            while stream.read(&mut byte).await? == 1 {
                if byte == [BLOCK] {
                    thread::sleep(PAUSE);
                }
                stream.write_all(&byte).await?;
            }
            Ok(())
        }
    };
}

pub(crate) fn on_tokio() -> io::Result<Server> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    handler!(TcpStream);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_io().build()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let addr = listener.local_addr()?;
    runtime.spawn(async move {
        while let Ok((stream, _peer)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    });
    Ok(Server {
        addr,
        stop: Box::new(|| {
            drop(runtime);
            None
        }),
    })
}

pub(crate) fn on_smol() -> io::Result<Server> {
    use smol::io::{AsyncReadExt, AsyncWriteExt};
    use smol::net::{TcpListener, TcpStream};

    handler!(TcpStream);
    let executor: &smol::Executor<'static> = Box::leak(Box::default());
    let (stop, stopped) = smol::channel::bounded::<()>(1);
    for _ in 0..THREADS {
        let stopped = stopped.clone();
        thread::spawn(move || smol::block_on(executor.run(stopped.recv())));
    }
    let listener = smol::block_on(TcpListener::bind("127.0.0.1:0"))?;
    let addr = listener.local_addr()?;
    executor
        .spawn(async move {
            while let Ok((stream, _peer)) = listener.accept().await {
                executor.spawn(answer(stream)).detach();
            }
        })
        .detach();
    // The threads end with the channel.
    Ok(Server {
        addr,
        stop: Box::new(|| {
            drop(stop);
            None
        }),
    })
}

pub(crate) fn on_paceline() -> io::Result<Server> {
    use paceline::net::{TcpListener, TcpStream};
    use paceline::prelude::*;

    handler!(TcpStream);
    let runtime = paceline::Runtime::builder().threads(THREADS).build()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let addr = listener.local_addr()?;
    runtime
        .spawn(async move {
            while let Ok((stream, _peer)) = listener.accept().await {
                paceline::spawn(answer(stream)).detach();
            }
        })
        .detach();
    let stop = move || {
        let added = runtime.metrics().replacements;
        Some(format!("The price: paceline added {added} threads while its workers were blocked."))
    };
    Ok(Server { addr, stop: Box::new(stop) })
}
