//! Error messages of this module for failures that the operating system's own text does not explain.

use super::sys;
use std::error::Error;
use std::{fmt, io};

/// An error with the error that caused it.
struct ExplainedError {
    text: String,
    cause: io::Error,
}

impl fmt::Display for ExplainedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Prints the same as `Display`: a `main` that returns the error prints its `Debug` form.
impl fmt::Debug for ExplainedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for ExplainedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

/// Returns an error with this text, whose `source` is the cause.
pub(crate) fn explained(kind: io::ErrorKind, text: String, cause: io::Error) -> io::Error {
    io::Error::new(kind, ExplainedError { text, cause })
}

/// Explains why a handle could not be put in non-blocking mode or registered.
///
/// The error keeps its kind. The raw code moves to the error's `source`, because an [`io::Error`] has either
/// a code or a text. For a registration that fails the text is worth more: the running program cannot repair
/// the cause. Errors with another meaning are returned unchanged.
pub(super) fn not_registered(err: io::Error) -> io::Error {
    let meaning = match err.kind() {
        _ if sys::is_bad_handle(&err) => {
            "the descriptor is closed, or was never open: keep its owner alive until it is registered"
        }
        io::ErrorKind::PermissionDenied => {
            "a regular file or a directory cannot be polled for readiness: read it on a thread that may block"
        }
        io::ErrorKind::AlreadyExists => {
            "the descriptor is registered already: share its one `Async` (in an `Arc`), or clone the descriptor"
        }
        _ => return err,
    };
    explained(err.kind(), format!("{meaning} ({err})"), err)
}

/// Explains why a connection attempt failed at once with `WouldBlock`: the listener's queue is full.
///
/// The error gets the kind `NotConnected`. A caller takes `WouldBlock` to mean "wait until the socket is
/// writable", but no event reports that the queue has room again. Other errors are returned unchanged.
pub(super) fn not_connected(err: io::Error) -> io::Error {
    // A `WouldBlock` without a code has been explained already: if no thread can be started, for example.
    if err.kind() != io::ErrorKind::WouldBlock || err.raw_os_error().is_none() {
        return err;
    }
    let text = format!("the listener's queue of waiting connections is full: try again later ({err})");
    explained(io::ErrorKind::NotConnected, text, err)
}

#[cfg(all(test, unix, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::not_registered;
    use rustix::io::Errno;
    use std::error::Error;
    use std::io;

    #[test]
    fn kind_and_cause_survive_and_the_text_says_what_to_do() {
        for (errno, words) in
            [(Errno::PERM, "thread that may block"), (Errno::BADF, "closed"), (Errno::EXIST, "Arc")]
        {
            let kind = io::Error::from(errno).kind();
            let err = not_registered(errno.into());
            assert_eq!(err.kind(), kind);
            assert!(err.to_string().contains(words), "{err}");
            let cause = err.get_ref().and_then(Error::source).and_then(|e| e.downcast_ref::<io::Error>());
            assert_eq!(cause.and_then(io::Error::raw_os_error), Some(errno.raw_os_error()));
        }
    }

    #[test]
    fn other_errors_pass_unchanged() {
        assert_eq!(not_registered(Errno::MFILE.into()).raw_os_error(), Some(Errno::MFILE.raw_os_error()));
    }
}
