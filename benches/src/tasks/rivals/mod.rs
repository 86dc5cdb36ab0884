//! The trait of a runtime, and its implementations.
//!
//! Each runtime is one static with [`THREADS`] workers that live until the process ends; idle workers sleep
//! while another runtime is measured.

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

/// Selects one of a rival's two runtimes; all cases but one use the first.
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
    /// Spawns on a second runtime of the same kind, with threads of its own, which starts at the first call.
    fn spawn_elsewhere<F>(future: F) -> Self::Join<F::Output>
    where
        F: Future<Output: Send> + Send + 'static;
    fn detach<T: Send + 'static>(join: Self::Join<T>);
    fn cancel<T: Send + 'static>(join: Self::Join<T>);

    /// Runs the future on the calling thread, which is no worker.
    fn block_on<F: Future>(future: F) -> F::Output;

    /// Runs a closure on a thread that may block. Must be called in a task of this runtime.
    fn unblock<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Self::Join<T>;

    /// Reads a file to its end with the runtime's own means, this many bytes at a time at most, and returns
    /// the number of bytes. Must be called in a task of this runtime.
    fn read_file(file: File, at_once: usize) -> impl Future<Output = usize> + Send;

    /// Must be called in a task of this runtime.
    fn timer(after: Duration) -> Self::Timer;

    /// Accepts connections and holds each in a task that first calls [`arrived`](super::memory::arrived) and
    /// then reads a byte at a time.
    fn accept_and_hold(listener: TcpListener) -> impl Future<Output = ()> + Send;

    /// Runs the future inside a task.
    fn block_on_worker<F>(future: F) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        Self::block_on(Self::spawn(future))
    }

    /// Exempts a future from a budget per poll, if the runtime has one: the budget would answer some of the
    /// measured polls with "later" instead of doing the work.
    fn unbudgeted<F: Future<Output: Send> + Send>(future: F) -> impl Future<Output = F::Output> + Send {
        future
    }
}
