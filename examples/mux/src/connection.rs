//! A connection, as the program sees it: streams are opened and accepted here.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::error::Error;
use crate::session::Session;
use crate::shared::Shared;
use crate::stream::Stream;
use crate::waiting::{Line, Wakes};

/// One side of a connection. Clones refer to the same connection.
///
/// Opens streams and accepts those of the peer, at the same time if necessary. When all clones are dropped,
/// GOODBYE is sent, and streams that were not accepted are reset; existing ones continue, and the driver ends
/// after the last of them.
#[derive(Clone, Debug)]
pub struct Connection(Arc<Handle>);

#[derive(Debug)]
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.with(|session, wakes| session.forsake(wakes));
    }
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(Arc::new(Handle(shared)))
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }

    fn wait<T>(&self, line: LineOf, ask: Ask<T>) -> Waits<'_, T> {
        Waits { shared: self.shared(), line, ask, ticket: 0 }
    }

    /// Opens a stream. Waits while the peer allows no more streams.
    ///
    /// # Errors
    ///
    /// [`Error::Goodbye`] if one of the sides has sent it, [`Error::Spent`] after two thousand million
    /// streams, and the error that has ended the connection.
    ///
    /// # Cancel safety
    ///
    /// A stream is opened in the very poll that returns it.
    pub async fn open(&self) -> Result<Stream, Error> {
        let id = self.wait(|session| &mut session.openers, Session::poll_open).await?;
        Ok(Stream::new(self.shared().clone(), id))
    }

    /// Accepts a stream that the peer has opened. Returns `None` when there will be no more, because one of
    /// the sides has sent GOODBYE.
    ///
    /// Streams that wait to be accepted count among those that the peer may open, and their bytes wait as
    /// well: call this again soon, and have a task for each stream.
    ///
    /// # Errors
    ///
    /// The error that has ended the connection.
    ///
    /// # Cancel safety
    ///
    /// A stream is taken in the very poll that returns it: dropping the future loses none.
    pub async fn accept(&self) -> Result<Option<Stream>, Error> {
        let id = self.wait(|session| &mut session.acceptors, Session::poll_accept).await?;
        Ok(id.map(|id| Stream::new(self.shared().clone(), id)))
    }

    /// Sends GOODBYE, and waits for the end of the streams, and so of the connection: use a
    /// [`timeout`](paceline::timeout()), and drop the driver when that has passed.
    ///
    /// From the first poll on neither side opens a stream; streams of the peer that have already arrived may
    /// be accepted.
    ///
    /// # Errors
    ///
    /// The error that has ended the connection otherwise.
    pub async fn close(&self) -> Result<(), Error> {
        self.shared().with(|session, wakes| session.say_goodbye(wakes));
        self.wait(|session| &mut session.closers, Session::poll_done).await
    }

    /// Returns the memory in use for the bytes of its streams, which is limited: see
    /// [`Config`](crate::Config).
    pub fn memory(&self) -> usize {
        self.shared().with(|session, _| session.memory())
    }
}

type LineOf = fn(&mut Session) -> &mut Line;
type Ask<T> = fn(&mut Session, &mut u64, &Context<'_>, &mut Wakes) -> Poll<T>;

/// Checks whenever it is woken, and leaves the line when it is dropped.
struct Waits<'a, T> {
    shared: &'a Shared,
    line: LineOf,
    ask: Ask<T>,
    ticket: u64,
}

impl<T> Future for Waits<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Self { shared, ask, ticket, .. } = &mut *self;
        shared.with(|session, wakes| ask(session, ticket, cx, wakes))
    }
}

impl<T> Drop for Waits<'_, T> {
    fn drop(&mut self) {
        if self.ticket != 0 {
            self.shared.with(|session, wakes| (self.line)(session).leave(self.ticket, wakes));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::future::FutureExt;
    use futures::io::Cursor;

    use crate::{Config, client};

    #[test]
    fn a_dropped_wait_leaves_nothing() {
        let (connection, _driver) = client(Cursor::new(Vec::new()), Config::default());
        for _ in 0..100 {
            assert!(connection.open().now_or_never().is_none(), "the peer does not answer");
            assert!(connection.accept().now_or_never().is_none());
        }
        assert!(connection.close().now_or_never().is_none());
        let lens = |session: &mut super::Session| {
            [&session.openers, &session.acceptors, &session.closers].map(super::Line::len)
        };
        assert_eq!(connection.shared().with(|session, _| lens(session)), [0; 3]);
    }
}
