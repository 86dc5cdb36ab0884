//! paceline, and its `Executor` alone.

use std::future::{Future, pending};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use ::paceline::{Async, Executor, Runtime, Tuning, unblock};
use futures_lite::{AsyncReadExt, AsyncWriteExt};

use super::smol::converse;
use super::{accept_failed, listen};
use crate::handler::{self, Exchange};

/// Serves each connection by `converse`, in a task.
pub(super) fn serve<F>(
    port: u16,
    threads: usize,
    portable: bool,
    converse: fn(Async<TcpStream>) -> F,
) -> io::Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let tuning = Tuning::default().portable(portable);
    let runtime = Arc::new(Runtime::builder().threads(threads).tuning(tuning).build()?);
    let listener = listen(port)?;
    let spawning = runtime.clone();
    let accepting = runtime.spawn(accept(listener, move |stream| spawning.spawn(converse(stream)).detach()));
    runtime.block_on(accepting)
}

/// Answers, and does long work on a thread that may block.
pub(super) async fn converse_apart(mut stream: Async<TcpStream>) {
    let mut exchange = Exchange::new();
    while let Ok(read) = stream.read(exchange.space()).await {
        let Ok((answer, long)) = exchange.received_short(read) else { return };
        if let Some(path) = long {
            unblock(move || handler::work(path)).await;
        }
        if stream.write_all(answer).await.is_err() {
            return;
        }
    }
}

/// An executor as a library uses it: threads of its own run it, over the one reactor of the default instance.
pub(super) fn serve_on_own_threads(port: u16, threads: usize) -> io::Result<()> {
    let executor: &'static Executor<'static> = Box::leak(Box::default());
    let listener = listen(port)?;
    executor.spawn(accept(listener, |stream| executor.spawn(converse(stream)).detach())).detach();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| ::paceline::block_on(executor.run(pending::<()>())));
        }
    });
    Ok(())
}

/// The listener becomes a source inside the task, so that it belongs to the reactor of the runtime that runs
/// the task.
async fn accept(listener: TcpListener, spawn: impl Fn(Async<TcpStream>)) -> io::Result<()> {
    let listener = Async::new(listener)?;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => spawn(stream),
            Err(error) => accept_failed(&error),
        }
    }
}
