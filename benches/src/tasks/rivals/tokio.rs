//! tokio's multi-thread runtime.

use std::fs::File;
use std::future::Future;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;

use ::tokio::io::AsyncReadExt;
use ::tokio::net::TcpListener as TokioListener;

use super::{Rival, THREADS, Which};
use crate::tasks::memory::arrived;

pub(in crate::tasks) struct Tokio;

fn runtime(which: Which) -> &'static ::tokio::runtime::Runtime {
    static RUNTIMES: [OnceLock<::tokio::runtime::Runtime>; 2] = [const { OnceLock::new() }; 2];
    RUNTIMES[which as usize].get_or_init(|| {
        let mut builder = ::tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(THREADS).enable_all().build().expect("tokio's runtime starts")
    })
}

pub(in crate::tasks) struct TokioJoin<T>(::tokio::task::JoinHandle<T>);

impl<T> Future for TokioJoin<T> {
    type Output = T;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        Pin::new(&mut self.0).poll(cx).map(|result| result.expect("the task neither panics nor is cancelled"))
    }
}

impl Rival for Tokio {
    const NAME: &'static str = "tokio";
    type Join<T: Send + 'static> = TokioJoin<T>;
    type Timer = ::tokio::time::Sleep;

    fn spawn<F>(future: F) -> TokioJoin<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        TokioJoin(runtime(Which::First).spawn(future))
    }
    fn spawn_elsewhere<F>(future: F) -> TokioJoin<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        TokioJoin(runtime(Which::Second).spawn(future))
    }
    fn detach<T: Send + 'static>(join: TokioJoin<T>) {
        drop(join);
    }
    fn cancel<T: Send + 'static>(join: TokioJoin<T>) {
        join.0.abort();
    }
    fn block_on<F: Future>(future: F) -> F::Output {
        runtime(Which::First).block_on(future)
    }
    fn unblock<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Self::Join<T> {
        TokioJoin(::tokio::task::spawn_blocking(f))
    }
    async fn read_file(file: File, at_once: usize) -> usize {
        let (mut file, mut buf) = (::tokio::fs::File::from_std(file), vec![0; at_once]);
        let mut bytes = 0;
        while let read @ 1.. = file.read(&mut buf).await.expect("a file can be read") {
            bytes += read;
        }
        bytes
    }
    fn timer(after: Duration) -> Self::Timer {
        ::tokio::time::sleep(after)
    }
    async fn accept_and_hold(listener: TcpListener) {
        let listener = TokioListener::from_std(listener).expect("called in the runtime");
        while let Ok((mut stream, _)) = listener.accept().await {
            drop(::tokio::spawn(async move {
                let _here = arrived();
                let mut byte = [0];
                while stream.read(&mut byte).await.is_ok_and(|read| read > 0) {}
            }));
        }
    }
    fn unbudgeted<F: Future<Output: Send> + Send>(future: F) -> impl Future<Output = F::Output> + Send {
        ::tokio::task::unconstrained(future)
    }
}
