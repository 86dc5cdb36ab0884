//! What kqueue can wait for besides descriptors: signals, and the exit of child processes.

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
    /// Registers a signal or a child process.
    ///
    /// # Errors
    ///
    /// Those of kqueue: for example that there is no such process.
    pub fn new(filter: T) -> io::Result<Self> {
        let Name(raw) = filter.name();
        // SAFETY: there is no descriptor that could be closed; that a child is one, its maker promised.
        unsafe { Async::register(raw, filter) }.map(Self)
    }
}

impl<T> Filter<T> {
    /// What is watched.
    pub fn get_ref(&self) -> &T {
        self.0.get_ref()
    }

    /// What is watched, mutable. Changing it does not change what the registration watches.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: a `T` that is not a descriptor can be replaced without harm, and only `TryFrom<OwnedFd>` makes one
        // of a descriptor: the deregistration of a number that was closed reports an error, which is all it does.
        unsafe { self.0.get_mut() }
    }

    /// Ends the registration.
    ///
    /// # Errors
    ///
    /// Those of kqueue.
    pub fn into_inner(self) -> io::Result<T> {
        self.0.into_inner()
    }

    /// Waits until the signal comes or the child exits.
    pub fn ready(&self) -> Ready<'_, T> {
        Ready::new(&self.0)
    }

    /// The form of [`ready`](Filter::ready) for hand-written futures: the task of the last caller is woken.
    ///
    /// # Errors
    ///
    /// Those of kqueue.
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

/// What a [`Filter`] can watch: a [`Signal`] or an [`Exit`].
pub trait Queueable: Named {}

/// A signal, by its number. It is reported whether or not the process ignores it.
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
    /// The exit of `child`. The child is not waited for: `waitpid` remains to be called by whoever wants its status.
    ///
    /// # Panics
    ///
    /// If the operating system gave the child a number that is no process id.
    pub fn new(child: Child) -> Self {
        let pid = i32::try_from(child.id()).ok().and_then(NonZeroI32::new);
        Self(pid.expect("a process id is positive"))
    }

    /// The exit of the process with this id.
    ///
    /// # Safety
    ///
    /// It is a child of this process, and nobody waits for it while it is watched.
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
    /// What is watched, as the reactor calls it.
    #[allow(unreachable_pub)] // What a public trait names has to be public, wherever it lies.
    #[derive(Debug)]
    pub struct Name(pub(crate) super::RawSource);

    /// Names what is watched; no other crate can.
    #[allow(unreachable_pub)]
    pub trait Named {
        #[doc(hidden)]
        fn name(&self) -> Name;
    }
}
