//! smol: one `async-executor` run by N threads under async-io's `block_on`, as the smol crate does it.

use std::future::pending;
use std::io;
use std::net::TcpListener;

use async_executor::Executor;
use async_io::Async;
use futures_lite::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{accept_failed, listen};
use crate::handler::Exchange;

pub(super) fn serve(port: u16, threads: usize) -> io::Result<()> {
    let executor: &'static Executor<'static> = Box::leak(Box::new(Executor::new()));
    let listener = Async::new(listen(port)?)?;
    executor.spawn(accept(listener, executor)).detach();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| async_io::block_on(executor.run(pending::<()>())));
        }
    });
    Ok(())
}

async fn accept(listener: Async<TcpListener>, executor: &'static Executor<'static>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => executor.spawn(converse(stream)).detach(),
            Err(error) => accept_failed(&error),
        }
    }
}

/// Shared with paceline: the streams of both have the same traits.
pub(super) async fn converse(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut exchange = Exchange::new();
    while let Ok(read) = stream.read(exchange.space()).await {
        let Ok(answer) = exchange.received(read) else { return };
        if stream.write_all(answer).await.is_err() {
            return;
        }
    }
}
