//! The runtime parts that lapin needs: tasks, sockets and timers. lapin has a thread of its own for its
//! frames.

use std::future::Future;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use executor_trait::{BlockingExecutor, Executor, FullExecutor, Task};
use futures::stream::Stream;
use lapin::ConnectionProperties;
use paceline::{Async, Handle, IoSafe, Timer};
use reactor_trait::{AsyncIOHandle, IOHandle, Reactor, TimeReactor};

/// For the runtime of the current task or thread.
pub(super) fn properties() -> ConnectionProperties {
    let here = Here(Handle::current());
    ConnectionProperties::default().with_executor(here.clone()).with_reactor(here)
}

#[derive(Clone)]
struct Here(Handle);

impl FullExecutor for Here {}

impl Executor for Here {
    fn block_on(&self, future: Pin<Box<dyn Future<Output = ()>>>) {
        paceline::block_on(future);
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) -> Box<dyn Task> {
        Box::new(Spawned(Some(self.0.spawn(future))))
    }
}

#[async_trait]
impl BlockingExecutor for Here {
    async fn spawn_blocking(&self, run: Box<dyn FnOnce() + Send + 'static>) {
        paceline::unblock(run).await;
    }
}

impl Reactor for Here {
    fn register(&self, socket: IOHandle) -> io::Result<Box<dyn AsyncIOHandle + Send>> {
        let _entered = self.0.enter();
        Ok(Box::new(Async::new(Socket(socket))?))
    }
}

#[async_trait]
impl TimeReactor for Here {
    async fn sleep(&self, time: Duration) {
        Timer::after(time).await;
    }

    fn interval(&self, time: Duration) -> Box<dyn Stream<Item = Instant>> {
        Box::new(Timer::interval(time))
    }
}

/// A task that continues when this is dropped, as lapin expects.
struct Spawned(Option<paceline::Task<()>>);

impl Future for Spawned {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().map_or(Poll::Ready(()), |task| Pin::new(task).poll(cx))
    }
}

#[async_trait(?Send)]
impl Task for Spawned {
    async fn cancel(mut self: Box<Self>) -> Option<()> {
        self.0.take()?.cancel().await
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.detach();
        }
    }
}

struct Socket(IOHandle);

// SAFETY: reads and writes go to the inner socket, which is never replaced.
unsafe impl IoSafe for Socket {}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Read for Socket {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }

    fn read_vectored(&mut self, bufs: &mut [io::IoSliceMut<'_>]) -> io::Result<usize> {
        self.0.read_vectored(bufs)
    }
}

impl Write for Socket {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf)
    }

    fn write_vectored(&mut self, bufs: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.0.write_vectored(bufs)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
