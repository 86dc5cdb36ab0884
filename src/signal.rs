//! Signals of the process: [`ctrl_c`], and [`Signals`] for the others. On Unix only.
//!
//! From the first use on, and for as long as the process lives, a signal that is listened for does not end
//! the process any more: the program can end in its own way ([`Handle::drain`](crate::Handle::drain)). Each
//! listener receives each signal. Several signals of the same kind that arrive before the listener checks are
//! reported as one, as the system does.
//!
//! ```no_run
//! use paceline::signal::{Signal, Signals};
//!
//! # fn main() -> std::io::Result<()> {
//! # paceline::block_on(async {
//! let mut signals = Signals::new([Signal::Interrupt, Signal::Terminate])?;
//! println!("{:?}: the end", signals.next().await?);
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! The signal handler only does what a handler may: it sets a bit and sends a byte to a socket, which is
//! registered like any other source.

use std::future::{Future, poll_fn};
use std::io;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::io::AsyncRead;
use futures::stream::Stream;
use rustix::net::{SendFlags, send};
use rustix::process::Signal as Number;
use signal_hook_registry::{SigId, register, unregister};

use crate::io::Async;
use crate::sync::{AtomicU32, Ordering};

/// A signal to listen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Signal {
    /// `SIGINT`: Ctrl-C.
    Interrupt,
    /// `SIGTERM`: a request to end the process, as from `kill` and service managers.
    Terminate,
    /// `SIGHUP`: the terminal is gone. Many servers read their settings again.
    Hangup,
    /// `SIGQUIT`: Ctrl-\.
    Quit,
    /// `SIGUSR1`.
    User1,
    /// `SIGUSR2`.
    User2,
    /// `SIGWINCH`: the terminal's window has another size.
    Window,
    /// `SIGCHLD`: a child has ended or stopped.
    Child,
}

/// On systems without this flag the standard library makes the process ignore `SIGPIPE` anyway.
#[cfg(not(target_vendor = "apple"))]
const SEND_FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
#[cfg(target_vendor = "apple")]
const SEND_FLAGS: SendFlags = SendFlags::DONTWAIT;

/// All signals, in the order of their bits.
const ALL: [(Signal, Number); 8] = [
    (Signal::Interrupt, Number::INT),
    (Signal::Terminate, Number::TERM),
    (Signal::Hangup, Number::HUP),
    (Signal::Quit, Number::QUIT),
    (Signal::User1, Number::USR1),
    (Signal::User2, Number::USR2),
    (Signal::Window, Number::WINCH),
    (Signal::Child, Number::CHILD),
];

/// Waits for the next Ctrl-C (`SIGINT`). The process listens for the signal from this call on, not from the
/// first poll; if that fails, the future returns the error.
///
/// ```no_run
/// # fn main() -> std::io::Result<()> {
/// # let runtime = paceline::Runtime::builder().build()?;
/// runtime.block_on(async {
///     paceline::signal::ctrl_c().await?;
///     println!("{}", runtime.drain(std::time::Duration::from_secs(5)).await);
///     Ok(())
/// })
/// # }
/// ```
///
/// During the drain a second Ctrl-C is ignored; [`Handle::drain`](crate::Handle::drain) shows how to end the
/// process with it.
///
/// # Errors
///
/// The same as for [`Signals::new`], and those of the reactor.
pub fn ctrl_c() -> impl Future<Output = io::Result<()>> + Send {
    let signals = Signals::new([Signal::Interrupt]);
    async move { signals?.next().await.map(drop) }
}

/// A stream of the signals that arrive after it is made.
///
/// ```
/// use paceline::signal::{Signal, Signals};
///
/// # fn main() -> std::io::Result<()> {
/// # paceline::block_on(async {
/// let mut signals = Signals::new([Signal::User1])?;
/// std::process::Command::new("kill").args(["-USR1", &std::process::id().to_string()]).status()?;
/// assert_eq!(signals.next().await?, Signal::User1);
/// # Ok(())
/// # })
/// # }
/// ```
///
/// If there is no signal to listen for, or once another crate has removed the handlers, [`next`](Self::next)
/// stays pending.
#[derive(Debug)]
pub struct Signals {
    /// One bit for each signal that has arrived.
    come: Arc<AtomicU32>,
    /// The end of a socket pair that the listener reads. A byte in it means that a bit of `come` may be set.
    bell: Async<UnixStream>,
    /// The other end of `bell`, which the handlers write to. Kept here because there may be no handlers, or
    /// another crate may remove them: `bell` must not reach the end of its stream, which would make it
    /// readable for ever.
    _ringer: Arc<UnixStream>,
    /// The registered handlers, which the drop removes.
    ids: Vec<SigId>,
}

impl Signals {
    /// Starts to listen for these signals. The list may be empty, as one from a configuration may be. If one
    /// signal cannot be listened for, this listens for none.
    ///
    /// # Errors
    ///
    /// Returns the errors of `sigaction`, of `socketpair` and of [`Async::new`].
    pub fn new(signals: impl IntoIterator<Item = Signal>) -> io::Result<Self> {
        let (bell, ringer) = UnixStream::pair()?;
        let ringer = Arc::new(ringer);
        let come = Arc::new(AtomicU32::new(0));
        let mut this = Self { come, bell: Async::new(bell)?, _ringer: ringer.clone(), ids: Vec::new() };
        for signal in signals {
            let bit = 1 << signal as u32;
            let (come, ringer) = (this.come.clone(), ringer.clone());
            let ring = move || {
                // ORDER: Release pairs with the Acquire operations in `take`. The bit publishes no other
                // data: the byte that is sent after it wakes the listener.
                come.fetch_or(bit, Ordering::Release);
                // If the socket is full, a byte that wakes the listener is in it already.
                let _ = send(&*ringer, &[0], SEND_FLAGS);
            };
            // SAFETY: the handler is async-signal-safe: it takes no lock, allocates nothing and cannot panic.
            this.ids.push(unsafe { register(ALL[signal as usize].1.as_raw(), ring)? });
        }
        Ok(this)
    }

    /// Waits for the next signal. If several have arrived, they are returned in the order of the variants of
    /// [`Signal`].
    ///
    /// # Errors
    ///
    /// Returns the errors of the reactor.
    ///
    /// # Cancel safety
    ///
    /// A signal is taken in the same poll that returns it: dropping the future loses none.
    pub async fn next(&mut self) -> io::Result<Signal> {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// Takes a signal that has arrived; if there is none, reads the bell until it is empty, and waits for it.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Signal>> {
        loop {
            if let Some(signal) = self.take() {
                return Poll::Ready(Ok(signal));
            }
            // No wakeup is lost: a handler sets its bit before it sends the byte, so if `take` did not see
            // the bit, its byte is still to be read here.
            ready!(Pin::new(&mut &self.bell).poll_read(cx, &mut [0; 64]))?;
        }
    }

    /// Takes one of the signals that have arrived, the first in the order of [`ALL`]; `None` if there is
    /// none.
    fn take(&self) -> Option<Signal> {
        // ORDER: the Acquire operations pair with the Release in `new`.
        let come = self.come.load(Ordering::Acquire);
        let signal = ALL.get(come.trailing_zeros() as usize)?.0;
        self.come.fetch_and(!(1 << signal as u32), Ordering::Acquire);
        Some(signal)
    }
}

/// The stream is endless.
impl Stream for Signals {
    type Item = io::Result<Signal>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll(cx).map(Some)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.ids.drain(..).for_each(|id| _ = unregister(id));
    }
}
