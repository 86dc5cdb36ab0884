//! [`Acceptor`]: how an accept handles errors that are not those of the listener.
//!
//! * Errors of the connection: `ECONNABORTED`, and the errors of a connection's network that Linux reports.
//!   The connection is gone, and the next one is accepted.
//! * Errors of the process or the machine: `EMFILE`, `ENFILE`, `ENOBUFS`, `ENOMEM`. The first one is
//!   returned. After that the accept is retried after a pause, which grows.
//! * All other errors are those of the listener. Each is returned, after a pause if there was another error a
//!   moment ago: the caller may accept in a loop.
//!
//! A connection that cannot be accepted stays in the listener's queue, so the next attempt fails at once.
//! Without a pause the loop would spin, and if each error were returned, it would report a million of them.

use std::future::Future;
use std::io;
use std::time::Duration;

use crate::io::Timer;
use crate::sync::{self, Instant, Mutex};

/// The first pause, and the longest one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));
/// An error after this time without errors counts as new.
const QUIET: Duration = Duration::from_secs(5);

/// What a listener remembers of its errors. An accept that succeeds does not read it.
#[derive(Debug, Default)]
pub(super) struct Acceptor {
    last_trouble: Mutex<Option<Instant>>,
}

impl Acceptor {
    /// Runs `accept` until it returns a connection, or an error that is to be reported: any error of the
    /// listener, after a pause unless it is the first for some time, and the first one of the process for
    /// some time. Tries again at once after an error of the connection, and after a pause if the process is
    /// still short of something.
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
            match cause_of(&error) {
                Cause::Connection => {}
                Cause::Listener => {
                    if !self.note_trouble() {
                        Timer::after(PAUSES.1).await;
                    }
                    return Err(error);
                }
                Cause::Process if self.note_trouble() => return Err(shortage(&error)),
                Cause::Process => {
                    Timer::after(pause).await;
                    pause = (2 * pause).min(PAUSES.1);
                }
            }
        }
    }

    /// Records an error of the listener or the process. Returns whether it is new: the first one for
    /// [`QUIET`].
    fn note_trouble(&self) -> bool {
        let now = Instant::now();
        let last = sync::lock(&self.last_trouble).replace(now);
        last.is_none_or(|last| now.saturating_duration_since(last) > QUIET)
    }
}

/// What an error of an accept is about.
enum Cause {
    /// The connection that was to be accepted: the next one may do.
    Connection,
    /// The process or the machine, which is short of descriptors or memory.
    Process,
    /// The listener; every unknown error counts as one.
    Listener,
}

/// Returns what an error of an accept is about: the process if that lacks descriptors or memory, the
/// connection if its peer or the network has failed, the listener otherwise.
#[cfg(unix)]
fn cause_of(error: &io::Error) -> Cause {
    use rustix::io::Errno;

    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Cause::Process,
        Some(Errno::CONNABORTED | Errno::PROTO | Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::NETDOWN) => {
            Cause::Connection
        }
        Some(Errno::HOSTDOWN | Errno::NOPROTOOPT) => Cause::Connection,
        #[cfg(any(target_os = "linux", target_os = "android"))]
        Some(Errno::NONET) => Cause::Connection,
        _ => Cause::Listener,
    }
}

/// Returns what an error of an accept is about: the process if that lacks descriptors or memory, the
/// connection if its peer has reset it, the listener otherwise.
#[cfg(windows)]
fn cause_of(error: &io::Error) -> Cause {
    const WSAEMFILE: i32 = 10024;
    const WSAENOBUFS: i32 = 10055;
    match error.raw_os_error() {
        Some(WSAEMFILE | WSAENOBUFS) => Cause::Process,
        _ if error.kind() == io::ErrorKind::ConnectionReset => Cause::Connection,
        _ => Cause::Listener,
    }
}

/// Returns the error that reports a shortage, with what it means.
fn shortage(error: &io::Error) -> io::Error {
    let what = format!(
        "cannot accept a connection: {error}. Usually the limit on open files of the process (`ulimit -n`) or of the machine \
         is reached. The listener accepts waiting connections as others are closed, and does not report this again"
    );
    io::Error::new(error.kind(), what)
}

#[cfg(all(test, unix, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Accepts a connection after `errors`, which come from the last one to the first.
    fn accept(acceptor: &Acceptor, errors: &Cell<Vec<i32>>) -> io::Result<()> {
        crate::block_on(acceptor.accept(|| {
            let mut left = errors.take();
            let next = left.pop();
            errors.set(left);
            std::future::ready(next.map_or(Ok(()), |code| Err(io::Error::from_raw_os_error(code))))
        }))
    }

    #[test]
    fn a_shortage_is_told_once() {
        let (full, aborted, bad) =
            (rustix::io::Errno::MFILE, rustix::io::Errno::CONNABORTED, rustix::io::Errno::BADF);
        let acceptor = Acceptor::default();
        let errors = Cell::new(vec![full.raw_os_error(); 4]);
        let error = accept(&acceptor, &errors).unwrap_err();
        assert!(error.to_string().contains("ulimit -n"), "{error}");
        assert!(accept(&acceptor, &errors).is_ok(), "three times in silence");
        errors.set(vec![aborted.raw_os_error(); 3]);
        assert!(accept(&acceptor, &errors).is_ok());
        errors.set(vec![bad.raw_os_error(); 2]);
        assert_eq!(accept(&acceptor, &errors).unwrap_err().raw_os_error(), Some(bad.raw_os_error()));
    }
}
