//! [`Accepting`]: what an accept does about errors that are not the listener's.
//!
//! | error | whose | what happens |
//! |---|---|---|
//! | `ECONNABORTED`, and what Linux reports of a connection's network | the connection's: it is gone | the next one is taken |
//! | `EMFILE`, `ENFILE`, `ENOBUFS`, `ENOMEM` | the process's, or the machine's | the caller is told once; then it is tried again after a pause, which grows |
//! | all others | the listener's | the caller is told, after a pause if he was a moment ago: he may be in a loop |
//!
//! A connection that cannot be taken stays in the listener's queue, so the next try finds it at once: without a pause that is a loop
//! that spins, and without silence a million messages.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::stream::{self, Stream};

use crate::io::Timer;
use crate::sync::{self, Instant, Mutex};

/// The first pause, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));
/// After so long without trouble the next is new.
const QUIET: Duration = Duration::from_secs(5);

/// What a listener remembers of trouble. Nothing is looked at while there is none.
#[derive(Debug, Default)]
pub(super) struct Accepting {
    last_trouble: Mutex<Option<Instant>>,
}

impl Accepting {
    /// Accepts by `accept`, again where an error is not the listener's.
    pub(super) async fn accept<T, F>(&self, mut accept: impl FnMut() -> F) -> io::Result<T>
    where
        F: Future<Output = io::Result<T>>,
    {
        let mut pause = PAUSES.0;
        loop {
            let error = match accept().await {
                Ok(connection) => return Ok(connection),
                Err(error) => error,
            };
            match whose(&error) {
                Whose::Connection => {}
                Whose::Listener => {
                    if !self.is_news() {
                        Timer::after(PAUSES.1).await;
                    }
                    return Err(error);
                }
                Whose::Process if self.is_news() => return Err(shortage(&error)),
                Whose::Process => {
                    Timer::after(pause).await;
                    pause = (2 * pause).min(PAUSES.1);
                }
            }
        }
    }

    /// There is trouble. Whether that is new.
    fn is_news(&self) -> bool {
        let now = Instant::now();
        let last = sync::lock(&self.last_trouble).replace(now);
        last.is_none_or(|last| now.saturating_duration_since(last) > QUIET)
    }
}

/// The connections of a listener, as an endless stream: see [`TcpListener::incoming`](super::TcpListener::incoming).
pub struct Incoming<'a, S = super::TcpStream>(Pin<Box<dyn Stream<Item = io::Result<S>> + Send + 'a>>);

impl<'a, S: Send> Incoming<'a, S> {
    pub(super) fn new<F: Future<Output = io::Result<S>> + Send + 'a>(
        accept: impl Fn() -> F + Send + 'a,
    ) -> Self {
        Self(Box::pin(stream::unfold(accept, |accept| async move {
            let next = accept();
            Some((next.await, accept))
        })))
    }
}

impl<S> Stream for Incoming<'_, S> {
    type Item = io::Result<S>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl<S> fmt::Debug for Incoming<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").finish_non_exhaustive()
    }
}

enum Whose {
    Connection,
    Process,
    Listener,
}

#[cfg(unix)]
fn whose(error: &io::Error) -> Whose {
    use rustix::io::Errno;

    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Whose::Process,
        Some(Errno::CONNABORTED | Errno::PROTO | Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::NETDOWN) => {
            Whose::Connection
        }
        Some(Errno::HOSTDOWN | Errno::NOPROTOOPT) => Whose::Connection,
        #[cfg(any(target_os = "linux", target_os = "android"))]
        Some(Errno::NONET) => Whose::Connection,
        _ => Whose::Listener,
    }
}

#[cfg(windows)]
fn whose(error: &io::Error) -> Whose {
    const WSAEMFILE: i32 = 10024;
    const WSAENOBUFS: i32 = 10055;
    match error.raw_os_error() {
        Some(WSAEMFILE | WSAENOBUFS) => Whose::Process,
        _ if error.kind() == io::ErrorKind::ConnectionReset => Whose::Connection,
        _ => Whose::Listener,
    }
}

fn shortage(error: &io::Error) -> io::Error {
    let what = format!(
        "cannot accept a connection: {error}. The limit of open files is reached, of the process (`ulimit -n`) or of the \
         machine. Those that wait are accepted as others are closed, which this listener tries quietly from now on"
    );
    io::Error::new(error.kind(), what)
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// One error after the other, then a connection.
    fn accept(accepting: &Accepting, errors: &Cell<Vec<i32>>) -> io::Result<()> {
        crate::block_on(accepting.accept(|| {
            let mut left = errors.take();
            let next = left.pop();
            errors.set(left);
            std::future::ready(next.map_or(Ok(()), |code| Err(io::Error::from_raw_os_error(code))))
        }))
    }

    #[test]
    #[cfg(unix)]
    fn a_shortage_is_told_once() {
        let (full, aborted, bad) =
            (rustix::io::Errno::MFILE, rustix::io::Errno::CONNABORTED, rustix::io::Errno::BADF);
        let accepting = Accepting::default();
        let errors = Cell::new(vec![full.raw_os_error(); 4]);
        let error = accept(&accepting, &errors).unwrap_err();
        assert!(error.to_string().contains("ulimit -n"), "{error}");
        assert!(accept(&accepting, &errors).is_ok(), "three times in silence");
        errors.set(vec![aborted.raw_os_error(); 3]);
        assert!(accept(&accepting, &errors).is_ok());
        errors.set(vec![bad.raw_os_error(); 2]);
        assert_eq!(accept(&accepting, &errors).unwrap_err().raw_os_error(), Some(bad.raw_os_error()));
    }
}
