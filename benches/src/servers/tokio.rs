//! tokio, multi-thread and current-thread: a task per connection, the accept loop a task as well.

use std::future::Future;
use std::io;

use ::tokio::io::{AsyncReadExt, AsyncWriteExt};
use ::tokio::net::{TcpListener, TcpStream};
use ::tokio::runtime::{Builder, Runtime};
use ::tokio::task::{block_in_place, spawn_blocking};

use super::{accept_failed, listen};
use crate::handler::{self, Exchange};

/// Serves each connection by `converse`, in a task.
pub(super) fn multi_thread<F>(port: u16, threads: usize, converse: fn(TcpStream) -> F) -> io::Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    run(&Builder::new_multi_thread().worker_threads(threads).enable_all().build()?, port, converse)
}

pub(super) fn current_thread(port: u16) -> io::Result<()> {
    run(&Builder::new_current_thread().enable_all().build()?, port, converse)
}

fn run<F>(runtime: &Runtime, port: u16, converse: fn(TcpStream) -> F) -> io::Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = listen(port)?;
    runtime.block_on(async {
        let accepting = ::tokio::spawn(accept(TcpListener::from_std(listener)?, converse));
        accepting.await.map_err(io::Error::other)
    })
}

async fn accept<F>(listener: TcpListener, converse: fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(::tokio::spawn(converse(stream))),
            Err(error) => accept_failed(&error),
        }
    }
}

pub(super) async fn converse(mut stream: TcpStream) {
    let mut exchange = Exchange::new();
    while let Ok(read) = stream.read(exchange.space()).await {
        let Ok(answer) = exchange.received(read) else { return };
        if stream.write_all(answer).await.is_err() {
            return;
        }
    }
}

/// Answers, and does long work in `block_in_place`, which first gives the worker's other tasks away.
pub(super) async fn converse_in_place(mut stream: TcpStream) {
    let mut exchange = Exchange::new();
    while let Ok(read) = stream.read(exchange.space()).await {
        let answer = exchange.received_by(read, |path| match handler::long(path) {
            None => handler::work(path),
            Some(path) => block_in_place(|| handler::work(path)),
        });
        let Ok(answer) = answer else { return };
        if stream.write_all(answer).await.is_err() {
            return;
        }
    }
}

/// Answers, and does long work in `spawn_blocking`, on a thread for it.
pub(super) async fn converse_spawning(mut stream: TcpStream) {
    let mut exchange = Exchange::new();
    while let Ok(read) = stream.read(exchange.space()).await {
        let Ok((answer, long)) = exchange.received_short(read) else { return };
        if let Some(path) = long {
            if spawn_blocking(move || handler::work(path)).await.is_err() {
                return;
            }
        }
        if stream.write_all(answer).await.is_err() {
            return;
        }
    }
}
