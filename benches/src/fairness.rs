//! A scene of the workload `fairness` on paceline: a role in which the driver starts its own program.
//!
//! `fairness-scene WORKERS TASKS POLL_US WINDOW_MS (paced | busy)` prints a line for each kind of wait. The
//! same scene for tokio is a program of its own, in `fairness/`, since it is built with the stand-in for
//! tokio, too.

use std::io;

#[path = "../fairness/src/scene.rs"]
#[cfg_attr(not(feature = "paceline"), expect(dead_code, reason = "only the names are used"))]
pub(crate) mod scene;
#[path = "../fairness/src/waits.rs"]
mod waits;

#[cfg(not(feature = "paceline"))]
pub(crate) fn main(_: &[String]) -> io::Result<()> {
    Err(io::Error::other("this program was built without the feature `paceline`"))
}

#[cfg(feature = "paceline")]
pub(crate) fn main(arguments: &[String]) -> io::Result<()> {
    scene::run::<native::Runtime>(arguments)
}

#[cfg(feature = "paceline")]
mod native {
    use std::future::Future;
    use std::io;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
    use paceline::{Async, Timer};

    use super::scene::Rival;

    pub(super) struct Runtime(paceline::Runtime);

    impl Rival for Runtime {
        type Socket = Async<UnixStream>;

        fn start(workers: usize) -> io::Result<Self> {
            paceline::Runtime::builder().threads(workers).build().map(Self)
        }
        fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
            self.0.spawn(future).detach();
        }
        async fn sleep(duration: Duration) {
            Timer::after(duration).await;
        }
        fn yield_now() -> impl Future<Output = ()> + Send {
            future::yield_now()
        }
        fn unblock() -> impl Future<Output = ()> + Send {
            paceline::unblock(|| ())
        }
        fn open(stream: UnixStream) -> io::Result<Self::Socket> {
            Async::new(stream)
        }
        async fn read(socket: &mut Self::Socket, buf: &mut [u8]) -> io::Result<usize> {
            socket.read(buf).await
        }
        async fn write(socket: &mut Self::Socket, buf: &[u8]) -> io::Result<()> {
            socket.write_all(buf).await
        }
    }
}
