//! Waiting for signals and for the exit of child processes, which kqueue supports besides descriptors.

use crate::io::Async;
use crate::io::conversions::conversions;
use crate::reactor::raw::RawSource;
use sealed::{Name, Named};
use std::io;
use std::num::NonZeroI32;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::process::Child;
use std::task::{Context, Poll};

pub use crate::io::ready::Ready;

/// A signal or a child process, registered with the reactor of the current runtime.
///
/// # Examples
///
/// ```no_run
/// use paceline::os::kqueue::{Exit, Filter};
/// use std::process::Command;
///
/// # fn main() -> std::io::Result<()> {
/// let child = Command::new("true").spawn()?;
/// let exit = Filter::new(Exit::new(child))?;
/// paceline::block_on(exit.ready())
/// # }
/// ```
#[derive(Debug)]
pub struct Filter<T>(Async<T>);

impl<T: Queueable> Filter<T> {
    /// Registers a signal or a child process with the reactor of the current runtime. On a thread that
    /// belongs to no runtime, that is the default instance.
    ///
    /// # Errors
    ///
    /// Returns the errors of kqueue, for example if there is no such process.
    pub fn new(filter: T) -> io::Result<Self> {
        let Name(raw) = filter.name();
        // SAFETY: a signal or a process has no descriptor that could be closed. The caller of
        // `Exit::from_pid` promised that the process is a child; the `Child` given to `Exit::new` is one.
        unsafe { Async::register(raw, filter) }.map(Self)
    }
}

impl<T> Filter<T> {
    /// Returns the signal or the child process that is watched.
    pub fn get_ref(&self) -> &T {
        self.0.get_ref()
    }

    /// Returns a mutable reference to the signal or the child process. Changing it does not change what the
    /// registration watches.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: a `T` that is not a descriptor can be replaced without harm. Only `TryFrom<OwnedFd>` makes
        // a filter of a descriptor: if that is replaced and closed, the deregistration of its number returns
        // an error, and nothing else happens.
        unsafe { self.0.get_mut() }
    }

    /// Ends the registration and returns the signal or the child process.
    ///
    /// # Errors
    ///
    /// Returns the errors of kqueue.
    pub fn into_inner(self) -> io::Result<T> {
        self.0.into_inner()
    }

    /// Waits until the signal comes or the child exits.
    pub fn ready(&self) -> Ready<'_, T> {
        Ready::new(&self.0)
    }

    /// Polls for the signal or the exit, for hand-written futures. Only the task of the last caller is woken.
    ///
    /// # Errors
    ///
    /// Returns the errors of kqueue.
    pub fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_readable(cx)
    }
}

impl<T> AsMut<T> for Filter<T> {
    fn as_mut(&mut self) -> &mut T {
        self.get_mut()
    }
}

conversions!(
    Filter, |io| Async::new(io).map(Filter);
    AsFd::as_fd -> BorrowedFd, AsRawFd::as_raw_fd -> RawFd, OwnedFd
);

/// A signal or a process that a [`Filter`] can watch: [`Signal`] or [`Exit`].
pub trait Queueable: Named {}

/// A signal, by its number. The signal is reported whether or not the process ignores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(pub i32);

impl Queueable for Signal {}

impl Named for Signal {
    fn name(&self) -> Name {
        Name(RawSource::Signal(self.0))
    }
}

/// The exit of a child process.
#[derive(Debug)]
pub struct Exit(NonZeroI32);

impl Exit {
    /// Returns the exit of `child`. The filter does not reap the child: its status remains to be collected
    /// with `waitpid`.
    ///
    /// # Panics
    ///
    /// If the operating system gave the child a number that is not a process id.
    pub fn new(child: Child) -> Self {
        let pid = i32::try_from(child.id()).ok().and_then(NonZeroI32::new);
        Self(pid.expect("a process id is positive"))
    }

    /// Returns the exit of the process with this id.
    ///
    /// # Safety
    ///
    /// The process is a child of this process, and no thread waits for it (`waitpid`) while it is watched.
    pub unsafe fn from_pid(pid: NonZeroI32) -> Self {
        Self(pid)
    }
}

impl Queueable for Exit {}

impl Named for Exit {
    fn name(&self) -> Name {
        Name(RawSource::Exit(self.0))
    }
}

mod sealed {
    /// The name by which the reactor watches it.
    #[allow(unreachable_pub)] // What a public trait names has to be public, wherever it lies.
    #[derive(Debug)]
    pub struct Name(pub(crate) super::RawSource);

    /// Gives the name by which the reactor watches it; other crates cannot implement this.
    #[allow(unreachable_pub)]
    pub trait Named {
        #[doc(hidden)]
        fn name(&self) -> Name;
    }
}
