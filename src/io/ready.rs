//! The futures of [`Async::readable`], [`Async::writable`] and their owned forms.
//!
//! Each is a blind wait on the registration of a handle: the future does not see what the caller does with
//! the handle afterwards.

use super::async_handle::Async;
use crate::reactor::Direction;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Defines a future that waits for one direction of the registration of `$handle`.
macro_rules! wait {
    ($(#[$doc:meta])* $name:ident<$($generic:tt),*>($handle:ty), $direction:expr) => {
        $(#[$doc])*
        #[must_use = "a wait does nothing unless it is awaited"]
        pub struct $name<$($generic),*> {
            /// The count of events when the wait began; `None` before the first poll.
            after: Option<u16>,
            handle: $handle,
        }

        impl<$($generic),*> $name<$($generic),*> {
            pub(super) fn new(handle: $handle) -> Self {
                Self { after: None, handle }
            }
        }

        impl<$($generic),*> Future for $name<$($generic),*> {
            type Output = io::Result<()>;

            /// Ends only when the system says that the handle is ready, or with an error: asks the system
            /// after each event.
            fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                let Self { after, handle } = &mut *self;
                handle.source().poll_until_ready($direction, after, cx)
            }
        }

        // Written out because a derive would ask for `T: Debug`.
        impl<$($generic),*> fmt::Debug for $name<$($generic),*> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).field("after", &self.after).finish_non_exhaustive()
            }
        }
    };
}

wait! {
    /// Waits until a handle is readable; made by [`Async::readable`].
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Async, Readable};
    /// use std::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
    ///     socket.send_to(b"to myself", socket.get_ref().local_addr()?).await?;
    ///     let wait: Readable<'_, UdpSocket> = socket.readable();
    ///     wait.await
    /// })
    /// # }
    /// ```
    Readable<'a, T>(&'a Async<T>), Direction::Read
}

wait! {
    /// Waits until a shared handle is readable; made by [`Async::readable_owned`].
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Async, ReadableOwned};
    /// use std::net::UdpSocket;
    /// use std::sync::Arc;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let socket = Arc::new(Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?);
    ///     socket.send_to(b"to myself", socket.get_ref().local_addr()?).await?;
    ///     let wait: ReadableOwned<UdpSocket> = socket.readable_owned();
    ///     wait.await
    /// })
    /// # }
    /// ```
    ReadableOwned<T>(Arc<Async<T>>), Direction::Read
}

wait! {
    /// Waits until a handle is writable; made by [`Async::writable`].
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Async, Writable};
    /// use std::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
    /// let wait: Writable<'_, UdpSocket> = socket.writable();
    /// paceline::block_on(wait)
    /// # }
    /// ```
    Writable<'a, T>(&'a Async<T>), Direction::Write
}

wait! {
    /// Waits until a shared handle is writable; made by [`Async::writable_owned`].
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Async, WritableOwned};
    /// use std::net::UdpSocket;
    /// use std::sync::Arc;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let socket = Arc::new(Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?);
    /// let wait: WritableOwned<UdpSocket> = socket.writable_owned();
    /// paceline::block_on(wait)
    /// # }
    /// ```
    WritableOwned<T>(Arc<Async<T>>), Direction::Write
}

#[cfg(any(paceline_kqueue, windows))]
wait! {
    /// Waits until a signal, a process or a handle reports; made by the method `ready` of its wrapper.
    Ready<'a, T>(&'a Async<T>), Direction::Read
}
