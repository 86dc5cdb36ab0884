//! The smol crate's own arrangement: a static executor, threads in `block_on(run)`.

use std::fs::File;
use std::future::{Future, pending};
use std::net::TcpListener;
use std::sync::OnceLock;
use std::time::Duration;

use async_executor::Executor;
use async_io::Async;

use super::{Rival, THREADS, Which};
use crate::tasks::blocking::read_to_end;
use crate::tasks::memory::hold;

pub(in crate::tasks) struct Smol;

fn executor(which: Which) -> &'static Executor<'static> {
    static EXECUTORS: [OnceLock<Executor<'static>>; 2] = [const { OnceLock::new() }; 2];
    let mut new = false;
    let executor = EXECUTORS[which as usize].get_or_init(|| {
        new = true;
        Executor::new()
    });
    if new {
        for _ in 0..THREADS {
            std::thread::spawn(|| async_io::block_on(executor.run(pending::<()>())));
        }
    }
    executor
}

impl Rival for Smol {
    const NAME: &'static str = "smol";
    type Join<T: Send + 'static> = async_executor::Task<T>;
    type Timer = async_io::Timer;

    fn spawn<F>(future: F) -> Self::Join<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        executor(Which::First).spawn(future)
    }
    fn spawn_elsewhere<F>(future: F) -> Self::Join<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        executor(Which::Second).spawn(future)
    }
    fn detach<T: Send + 'static>(join: Self::Join<T>) {
        join.detach();
    }
    fn cancel<T: Send + 'static>(join: Self::Join<T>) {
        drop(join);
    }
    fn block_on<F: Future>(future: F) -> F::Output {
        async_io::block_on(future)
    }
    fn unblock<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Self::Join<T> {
        blocking::unblock(f)
    }
    fn read_file(file: File, at_once: usize) -> impl Future<Output = usize> + Send {
        read_to_end(blocking::Unblock::new(file), at_once)
    }
    fn timer(after: Duration) -> Self::Timer {
        async_io::Timer::after(after)
    }
    async fn accept_and_hold(listener: TcpListener) {
        let listener = Async::new(listener).expect("a listener can be registered");
        while let Ok((stream, _)) = listener.accept().await {
            Self::detach(Self::spawn(hold(stream)));
        }
    }
}
