//! Signals of the process: [`ctrl_c`], and [`Signals`] for the others.
//!
//! From the first use on, a signal that is listened for ends the process no more, for as long as it lives: that is how a program
//! comes to its end in its own way ([`Runtime::drain`](crate::Runtime::drain)). Each listener gets each signal; of several of a kind that come
//! before it looks it sees one, as the system does.
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
//! The handler does what a handler may: it sets a bit and sends a byte to a socket, which is a source as any other. On Unix only.

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

/// What can be listened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Signal {
    /// `SIGINT`: Ctrl-C.
    Interrupt,
    /// `SIGTERM`: somebody asks the process to end, as `kill` and service managers do.
    Terminate,
    /// `SIGHUP`: the terminal is gone; many a server reads its settings again.
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

/// Where there is no such flag, the standard library has the process ignore `SIGPIPE` anyway.
#[cfg(not(target_vendor = "apple"))]
const FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
#[cfg(target_vendor = "apple")]
const FLAGS: SendFlags = SendFlags::DONTWAIT;

/// In the order of their bits.
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

/// Waits for the next Ctrl-C (`SIGINT`). It is listened for from this call on.
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
/// # Errors
///
/// As for [`Signals::new`].
pub fn ctrl_c() -> impl Future<Output = io::Result<()>> + Send {
    let signals = Signals::new([Signal::Interrupt]);
    async move { signals?.next().await.map(drop) }
}

/// Signals as they come, from when this is made.
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
#[derive(Debug)]
pub struct Signals {
    /// One bit for each signal that has come.
    come: Arc<AtomicU32>,
    bell: Async<UnixStream>,
    ids: Vec<SigId>,
}

impl Signals {
    /// Listens for these signals.
    ///
    /// # Errors
    ///
    /// Those of `sigaction` and of `socketpair`.
    pub fn new(signals: impl IntoIterator<Item = Signal>) -> io::Result<Self> {
        let (bell, ringer) = UnixStream::pair()?;
        let ringer = Arc::new(ringer);
        let mut this = Self { come: Arc::new(AtomicU32::new(0)), bell: Async::new(bell)?, ids: Vec::new() };
        for signal in signals {
            let bit = 1 << signal as u32;
            let (come, ringer) = (this.come.clone(), ringer.clone());
            let ring = move || {
                // ORDER: Release pairs with the Acquire of `take`, for no more than order's sake: the byte comes after it.
                come.fetch_or(bit, Ordering::Release);
                // A socket that is full has been rung.
                let _ = send(&*ringer, &[0], FLAGS);
            };
            // SAFETY: what is called there takes no lock, allocates nothing and cannot panic.
            this.ids.push(unsafe { register(ALL[signal as usize].1.as_raw(), ring)? });
        }
        Ok(this)
    }

    /// The next one.
    ///
    /// # Errors
    ///
    /// Those of the reactor.
    ///
    /// # Cancel safety
    ///
    /// A signal is taken in the very poll that returns it: dropping the future loses none.
    pub async fn next(&mut self) -> io::Result<Signal> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Signal>> {
        loop {
            if let Some(signal) = self.take() {
                return Poll::Ready(Ok(signal));
            }
            // Whoever sets a bit rings afterwards: a bit that was not seen has a byte that comes.
            ready!(Pin::new(&mut &self.bell).poll_read(cx, &mut [0; 64]))?;
        }
    }

    fn take(&self) -> Option<Signal> {
        // ORDER: see `new`.
        let come = self.come.load(Ordering::Acquire);
        let signal = ALL.get(come.trailing_zeros() as usize)?.0;
        self.come.fetch_and(!(1 << signal as u32), Ordering::Acquire);
        Some(signal)
    }
}

/// Endless.
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
