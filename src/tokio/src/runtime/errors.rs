//! The errors without a runtime, or after its end.

use std::error::Error;
use std::fmt;
use std::io;

const MISSING: &str = "there is no reactor running, must be called from the context of a Tokio 1.x runtime";
const DESTROYED: &str = "The Tokio context thread-local variable has been destroyed.";
pub(crate) const SHUTTING_DOWN: &str = "A Tokio 1.x context was found, but it is being shutdown.";

/// Why there is no current runtime.
pub struct TryCurrentError {
    kind: Kind,
}

enum Kind {
    NoContext,
    ThreadLocalDestroyed,
}

impl TryCurrentError {
    pub(crate) fn missing() -> Self {
        Self { kind: Kind::NoContext }
    }

    pub(crate) fn destroyed() -> Self {
        Self { kind: Kind::ThreadLocalDestroyed }
    }

    pub fn is_missing_context(&self) -> bool {
        matches!(self.kind, Kind::NoContext)
    }

    pub fn is_thread_local_destroyed(&self) -> bool {
        matches!(self.kind, Kind::ThreadLocalDestroyed)
    }
}

impl fmt::Debug for TryCurrentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::NoContext => "NoContext",
            Kind::ThreadLocalDestroyed => "ThreadLocalDestroyed",
        };
        f.debug_struct("TryCurrentError").field("kind", &format_args!("{kind}")).finish()
    }
}

impl fmt::Display for TryCurrentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::NoContext => MISSING,
            Kind::ThreadLocalDestroyed => DESTROYED,
        })
    }
}

impl Error for TryCurrentError {}

/// Returns whether an operation failed because its runtime has ended.
pub fn is_rt_shutdown_err(error: &io::Error) -> bool {
    let is_ours = |inner: &(dyn Error + Send + Sync + 'static)| {
        inner.source().is_none() && inner.to_string() == SHUTTING_DOWN
    };
    error.kind() == io::ErrorKind::Other && error.get_ref().is_some_and(is_ours)
}
