//! [`Incoming`]: the connections of a listener as a stream.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::stream::{self, Stream};

use super::tcp::{TcpListener, TcpStream};
#[cfg(unix)]
use super::unix::{UnixListener, UnixStream};

/// The connections of a listener, as an endless stream: see [`TcpListener::incoming`].
pub struct Incoming<'a, S = TcpStream>(Pin<Box<dyn Stream<Item = io::Result<S>> + Send + 'a>>);

impl<'a, S: Send> Incoming<'a, S> {
    /// Makes a stream whose items are the results of `accept`, called once for each. An error is an item too,
    /// and does not end the stream.
    fn new<F: Future<Output = io::Result<S>> + Send + 'a>(accept: impl Fn() -> F + Send + 'a) -> Self {
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

impl TcpListener {
    /// Returns the connections as an endless stream: see [`accept`](TcpListener::accept).
    ///
    /// ```
    /// use paceline::net::{TcpListener, TcpStream};
    /// use paceline::prelude::*;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// # paceline::block_on(async {
    /// let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// let _client = TcpStream::connect(listener.local_addr()?).await?;
    /// while let Some(stream) = listener.incoming().next().await {
    ///     let stream = stream?;
    ///     assert!(stream.peer_addr()?.ip().is_loopback());
    ///     # break;
    /// }
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming::new(move || async { self.accept().await.map(|(stream, _peer)| stream) })
    }
}

#[cfg(unix)]
impl UnixListener {
    /// Returns the connections as an endless stream: see [`accept`](UnixListener::accept).
    pub fn incoming(&self) -> Incoming<'_, UnixStream> {
        Incoming::new(move || async { self.accept().await.map(|(stream, _peer)| stream) })
    }
}
