//! paceline's runtime with its default settings.

use std::fs::File;
use std::future::Future;
use std::net::TcpListener;
use std::sync::OnceLock;
use std::time::Duration;

use ::paceline::Async;

use super::{Rival, THREADS, Which};
use crate::tasks::blocking::read_to_end;
use crate::tasks::memory::hold;

pub(in crate::tasks) struct Paceline;

fn runtime(which: Which) -> &'static ::paceline::Runtime {
    static RUNTIMES: [OnceLock<::paceline::Runtime>; 2] = [const { OnceLock::new() }; 2];
    RUNTIMES[which as usize].get_or_init(|| {
        ::paceline::Runtime::builder().threads(THREADS).build().expect("paceline's runtime starts")
    })
}

impl Rival for Paceline {
    const NAME: &'static str = "paceline";
    type Join<T: Send + 'static> = ::paceline::Task<T>;
    type Timer = ::paceline::Timer;

    fn spawn<F>(future: F) -> Self::Join<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        runtime(Which::First).spawn(future)
    }
    fn spawn_elsewhere<F>(future: F) -> Self::Join<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        runtime(Which::Second).spawn(future)
    }
    fn detach<T: Send + 'static>(join: Self::Join<T>) {
        join.detach();
    }
    fn cancel<T: Send + 'static>(join: Self::Join<T>) {
        drop(join);
    }
    fn block_on<F: Future>(future: F) -> F::Output {
        runtime(Which::First).block_on(future)
    }
    fn unblock<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Self::Join<T> {
        ::paceline::unblock(f)
    }
    fn read_file(file: File, at_once: usize) -> impl Future<Output = usize> + Send {
        read_to_end(::paceline::Unblock::new(file), at_once)
    }
    fn timer(after: Duration) -> Self::Timer {
        ::paceline::Timer::after(after)
    }
    async fn accept_and_hold(listener: TcpListener) {
        let listener = Async::new(listener).expect("a listener can be registered");
        while let Ok((stream, _)) = listener.accept().await {
            Self::detach(Self::spawn(hold(stream)));
        }
    }
}
