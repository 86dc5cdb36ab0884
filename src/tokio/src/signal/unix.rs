//! [`Signal`]: a listener for one kind of signal.

use std::ffi::c_int;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use real::sync::watch::Receiver;

use super::registry;
use crate::context;

#[derive(Debug, Clone, Copy, Hash, PartialEq, Eq)]
pub struct SignalKind(c_int);

macro_rules! kinds {
    ($($name:ident: $number:ident;)+) => {$(
        pub const fn $name() -> Self {
            Self(libc::$number)
        }
    )+};
}

impl SignalKind {
    pub const fn from_raw(signum: c_int) -> Self {
        Self(signum)
    }

    pub const fn as_raw_value(&self) -> c_int {
        self.0
    }

    kinds! {
        alarm: SIGALRM;
        child: SIGCHLD;
        hangup: SIGHUP;
        interrupt: SIGINT;
        io: SIGIO;
        pipe: SIGPIPE;
        quit: SIGQUIT;
        terminate: SIGTERM;
        user_defined1: SIGUSR1;
        user_defined2: SIGUSR2;
        window_change: SIGWINCH;
    }

    #[cfg(any(
        target_vendor = "apple",
        target_os = "freebsd",
        target_os = "dragonfly",
        target_os = "netbsd",
        target_os = "openbsd",
        target_os = "illumos"
    ))]
    kinds! { info: SIGINFO; }
}

impl From<c_int> for SignalKind {
    fn from(signum: c_int) -> Self {
        Self::from_raw(signum)
    }
}

impl From<SignalKind> for c_int {
    fn from(kind: SignalKind) -> Self {
        kind.as_raw_value()
    }
}

/// Receives signals of a kind from its creation on; several signals between two polls are received as one.
#[must_use = "streams do nothing unless polled"]
pub struct Signal {
    /// Returns its receiver, for the next wait.
    next: Pin<Box<dyn Future<Output = Receiver<usize>> + Send + Sync>>,
}

#[track_caller]
pub fn signal(kind: SignalKind) -> io::Result<Signal> {
    registry::subscribe(kind.0, &context::expect_io()).map(|told| Signal { next: Box::pin(next(told)) })
}

async fn next(mut told: Receiver<usize>) -> Receiver<usize> {
    told.changed().await.expect("the senders are never dropped");
    told
}

impl Signal {
    pub async fn recv(&mut self) -> Option<()> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        self.next.as_mut().poll(cx).map(|told| {
            registry::received(*told.borrow());
            self.next = Box::pin(next(told));
            Some(())
        })
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").finish_non_exhaustive()
    }
}
