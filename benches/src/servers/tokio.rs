//! tokio, multi-thread and current-thread: a task per connection, the accept loop a task as well.

use std::io;

use ::tokio::io::{AsyncReadExt, AsyncWriteExt};
use ::tokio::net::{TcpListener, TcpStream};
use ::tokio::runtime::{Builder, Runtime};

use super::{Sharing, accept_failed, listen};
use crate::handler::Exchange;

pub(super) fn multi_thread(port: u16, threads: usize) -> io::Result<()> {
    run(&Builder::new_multi_thread().worker_threads(threads).enable_all().build()?, port)
}

pub(super) fn current_thread(port: u16) -> io::Result<()> {
    run(&Builder::new_current_thread().enable_all().build()?, port)
}

fn run(runtime: &Runtime, port: u16) -> io::Result<()> {
    let listener = listen(port, Sharing::Alone)?;
    runtime.block_on(async {
        let accepting = ::tokio::spawn(accept(TcpListener::from_std(listener)?));
        accepting.await.map_err(io::Error::other)
    })
}

async fn accept(listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(::tokio::spawn(converse(stream))),
            Err(error) => accept_failed(&error),
        }
    }
}

async fn converse(mut stream: TcpStream) {
    let mut exchange = Exchange::new();
    while let Ok(read) = stream.read(exchange.space()).await {
        let Ok(answer) = exchange.received(read) else { return };
        if stream.write_all(answer).await.is_err() {
            return;
        }
    }
}
