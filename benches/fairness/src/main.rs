//! A scene of the workload `fairness` on tokio:
//! `fairness-scene WORKERS TASKS POLL_US WINDOW_MS (paced | busy)`.

use std::env;
use std::future::Future;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Builder;

use scene::Rival;

mod scene;
mod waits;

struct Runtime(tokio::runtime::Runtime);

impl Rival for Runtime {
    type Socket = tokio::net::UnixStream;

    fn start(workers: usize) -> io::Result<Self> {
        Builder::new_multi_thread().worker_threads(workers).enable_all().build().map(Self)
    }
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        drop(self.0.spawn(future));
    }
    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(duration)
    }
    fn yield_now() -> impl Future<Output = ()> + Send {
        tokio::task::yield_now()
    }
    async fn unblock() {
        tokio::task::spawn_blocking(|| ()).await.expect("the closure does nothing");
    }
    fn open(stream: UnixStream) -> io::Result<Self::Socket> {
        stream.set_nonblocking(true)?;
        tokio::net::UnixStream::from_std(stream)
    }
    async fn read(socket: &mut Self::Socket, buf: &mut [u8]) -> io::Result<usize> {
        socket.read(buf).await
    }
    async fn write(socket: &mut Self::Socket, buf: &[u8]) -> io::Result<()> {
        socket.write_all(buf).await
    }
}

fn main() -> io::Result<()> {
    scene::run::<Runtime>(&env::args().skip(1).collect::<Vec<_>>())
}
