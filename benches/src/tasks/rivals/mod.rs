//! The small trait that a runtime stands behind, and its implementations.
//!
//! Each runtime is one static with [`THREADS`] workers that live until the process ends; idle ones sleep while
//! another is measured.

use std::fs::File;
use std::future::Future;
use std::net::TcpListener;
use std::time::Duration;

#[cfg(feature = "paceline")]
mod paceline;
mod smol;
mod tokio;

#[cfg(feature = "paceline")]
pub(super) use paceline::Paceline;
pub(super) use smol::Smol;
pub(super) use tokio::Tokio;

/// Workers of each runtime.
pub(super) const THREADS: usize = 2;

/// Which of a kind's two runtimes; all cases but one use the first.
#[derive(Clone, Copy)]
enum Which {
    First,
    Second,
}

pub(super) trait Rival: 'static {
    const NAME: &'static str;
    type Join<T: Send + 'static>: Future<Output = T> + Send + 'static;
    type Timer: Future + Send;

    fn spawn<F>(future: F) -> Self::Join<F::Output>
    where
        F: Future<Output: Send> + Send + 'static;
    /// On a second runtime of the same kind, with threads of its own, started at the first call.
    fn spawn_elsewhere<F>(future: F) -> Self::Join<F::Output>
    where
        F: Future<Output: Send> + Send + 'static;
    fn detach<T: Send + 'static>(join: Self::Join<T>);
    fn cancel<T: Send + 'static>(join: Self::Join<T>);

    /// The future runs on the calling thread, which is no worker.
    fn block_on<F: Future>(future: F) -> F::Output;

    /// On a thread that may block. To be called in a task of this runtime.
    fn unblock<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Self::Join<T>;

    /// Reads a file to its end, this many bytes at a time at most, by what the runtime has for files; how many there were. To be called
    /// in a task of this runtime.
    fn read_file(file: File, at_once: usize) -> impl Future<Output = usize> + Send;

    /// To be called in a task of this runtime.
    fn timer(after: Duration) -> Self::Timer;

    /// Accepts connections and holds each in a task that reads a byte at a time and tells
    /// [`arrived`](super::memory::arrived) first.
    fn accept_and_hold(listener: TcpListener) -> impl Future<Output = ()> + Send;

    /// The future runs inside a task.
    fn block_on_worker<F>(future: F) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        Self::block_on(Self::spawn(future))
    }

    /// Exempt from a budget per poll, where the runtime has one: it would answer some of the measured polls
    /// with "later" instead of doing the work.
    fn unbudgeted<F: Future<Output: Send> + Send>(future: F) -> impl Future<Output = F::Output> + Send {
        future
    }
}
