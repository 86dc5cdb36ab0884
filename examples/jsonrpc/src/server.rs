//! [`Server`]: one dispatcher behind any number of listeners, until it is told to stop.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_lock::Semaphore;
use futures::channel::{mpsc, oneshot};
use futures::future::{Shared, select};
use paceline::net::{TcpListener, TcpStream};
use paceline::prelude::*;
use paceline::{Elapsed, spawn, timeout};

use crate::dispatcher::Dispatcher;
use crate::transport::patient::Patient;
use crate::transport::{framed, http, websocket};

/// How long a peer has to end a connection after this side has.
const LINGER: Duration = Duration::from_secs(1);
/// How much a peer may still send meanwhile.
const LEFT: usize = 8 << 20;

/// The protocol of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// JSON in lines or with lengths, as the client begins.
    Framed,
    /// A request of HTTP/1 for each message, and events for unrequested messages.
    Http,
    /// Messages of WebSocket.
    WebSocket,
}

/// Ready, for all clones, when the server must stop.
pub(crate) type Stop = Shared<oneshot::Receiver<()>>;

/// A stream that two tasks can share.
pub trait Stream: AsyncRead + AsyncWrite + Clone + Unpin + Send + Sync + 'static {}

impl<S: AsyncRead + AsyncWrite + Clone + Unpin + Send + Sync + 'static> Stream for S {}

/// A source of such streams.
pub trait Listener: Send + Sync + 'static {
    /// The type of stream.
    type Stream: Stream;
    /// Accepts the next stream; also returns the name of the peer.
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, String)>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, String)> {
        let (stream, peer) = TcpListener::accept(self).await?;
        // If the peer has already disconnected, the next read fails.
        let _ = stream.set_nodelay(true);
        Ok((stream, peer.to_string()))
    }
}

#[cfg(unix)]
impl Listener for paceline::net::unix::UnixListener {
    type Stream = paceline::net::unix::UnixStream;

    async fn accept(&self) -> io::Result<(Self::Stream, String)> {
        let (stream, _) = paceline::net::unix::UnixListener::accept(self).await?;
        Ok((stream, "a Unix socket".to_owned()))
    }
}

/// A dispatcher with its listeners.
pub struct Server {
    shared: Shares,
    stop: oneshot::Sender<()>,
    gone: mpsc::Receiver<Infallible>,
}

/// The parts of the server that each connection shares.
#[derive(Clone)]
pub(crate) struct Shares {
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) stop: Stop,
    /// A permit for each connection.
    pub(crate) room: Arc<Semaphore>,
    /// Nothing is sent: the channel closes when all senders were dropped.
    _alive: mpsc::Sender<Infallible>,
}

impl Server {
    /// Returns a server for so many connections at once, of all listeners together.
    pub fn new(dispatcher: Arc<Dispatcher>, connections: usize) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (alive, gone) = mpsc::channel(0);
        let room = Arc::new(Semaphore::new(connections));
        Self { shared: Shares { dispatcher, stop: stopped.shared(), room, _alive: alive }, stop, gone }
    }

    /// Serves the connections of this listener in tasks, until the server stops.
    pub fn listen(&self, listener: impl Listener, protocol: Protocol) {
        let shared = self.shared.clone();
        spawn(async move {
            let accepting = accept(&listener, protocol, &shared);
            select(std::pin::pin!(accepting), shared.stop.clone()).await;
        })
        .detach();
    }

    /// Serves a queue of a broker: `amqp://HOST:PORT/VHOST?queue=NAME`. If the broker is lost, the server
    /// reconnects repeatedly.
    ///
    /// # Errors
    ///
    /// The error of the first attempt.
    #[cfg(feature = "amqp")]
    pub async fn listen_amqp(&self, url: &str) -> io::Result<()> {
        crate::transport::amqp::listen(url, self.shared.clone()).await
    }

    /// Accepts no more connections, and lets connections end after they have answered their calls, within the
    /// grace time.
    pub async fn stop(self, grace: Duration) -> Result<(), Elapsed> {
        let Self { shared, stop, mut gone } = self;
        drop((shared, stop));
        timeout(grace, gone.next()).await.map(drop)
    }
}

async fn accept<L: Listener>(listener: &L, protocol: Protocol, shared: &Shares) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Without a free place the next connection waits, as do the others in the listener's queue.
                // An idle listener takes no place.
                let place = shared.room.acquire_arc().await;
                let shared = shared.clone();
                let connection = async move {
                    let _place = place;
                    if let Err(error) = serve(stream, protocol, shared).await {
                        eprintln!("{peer}: {error}");
                    }
                };
                spawn(connection).detach();
            }
            // Perhaps no descriptor is free; that is reported once, and the listener continues.
            Err(error) => eprintln!("{error}"),
        }
    }
}

async fn serve<S: Stream>(stream: S, protocol: Protocol, shared: Shares) -> io::Result<()> {
    let stream = Patient::new(stream, shared.dispatcher.limits.send);
    let mut last = stream.clone();
    let ended = match protocol {
        Protocol::Framed => framed::serve(stream, shared).await,
        Protocol::Http => http::serve(stream, shared).await,
        Protocol::WebSocket => websocket::serve(stream, shared).await,
    };
    // To the end of the stream: with unread bytes, the system would reset the connection, and the last
    // messages might not arrive.
    let rest = async {
        last.close().await?;
        let (mut left, mut buf) = (LEFT, [0; 4096]);
        while left > 0 {
            left = match last.read(&mut buf).await? {
                0 => break,
                read => left.saturating_sub(read),
            };
        }
        io::Result::Ok(())
    };
    let _ = timeout(LINGER, rest).await;
    ended
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("dispatcher", &self.shared.dispatcher).finish_non_exhaustive()
    }
}
