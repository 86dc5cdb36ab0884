//! [`Server`]: one dispatcher behind as many listeners as one likes, until it is told to stop.

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
use paceline::{TimedOut, spawn, timeout};

use crate::dispatcher::Dispatcher;
use crate::transport::patient::Patient;
use crate::transport::{framed, http, websocket};

/// How long a peer has to end a connection that we have ended.
const LINGER: Duration = Duration::from_secs(1);
/// And how much it may still send meanwhile.
const LEFT: usize = 8 << 20;

/// What is spoken on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// JSON in lines or with lengths, as the client begins.
    Framed,
    /// A request of HTTP/1 for each message, and events for what is pushed.
    Http,
    /// Messages of WebSocket.
    WebSocket,
}

/// Ready, for all that have a clone, when the server is to stop.
pub(crate) type Stop = Shared<oneshot::Receiver<()>>;

/// A stream that two tasks can share.
pub trait Stream: AsyncRead + AsyncWrite + Clone + Unpin + Send + Sync + 'static {}

impl<S: AsyncRead + AsyncWrite + Clone + Unpin + Send + Sync + 'static> Stream for S {}

/// What gives such streams.
pub trait Listener: Send + Sync + 'static {
    /// One of them.
    type Stream: Stream;
    /// The next one, and who it is.
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, String)>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, String)> {
        let (stream, peer) = TcpListener::accept(self).await?;
        // A peer that is gone already is found out by whoever reads.
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

/// A dispatcher that is served.
pub struct Server {
    shared: Shares,
    stop: oneshot::Sender<()>,
    gone: mpsc::Receiver<Infallible>,
}

/// What each connection has of it.
#[derive(Clone)]
pub(crate) struct Shares {
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) stop: Stop,
    /// For a connection each.
    pub(crate) room: Arc<Semaphore>,
    /// Nothing is sent: that all are dropped is the message.
    _alive: mpsc::Sender<Infallible>,
}

impl Server {
    /// A server for so many connections at once, of all its listeners together.
    pub fn new(dispatcher: Arc<Dispatcher>, connections: usize) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (alive, gone) = mpsc::channel(0);
        let room = Arc::new(Semaphore::new(connections));
        Self { shared: Shares { dispatcher, stop: stopped.shared(), room, _alive: alive }, stop, gone }
    }

    /// Serves whom this listener accepts, in tasks, until the server stops.
    pub fn listen(&self, listener: impl Listener, protocol: Protocol) {
        let shared = self.shared.clone();
        spawn(async move {
            let accepting = accept(&listener, protocol, &shared);
            select(std::pin::pin!(accepting), shared.stop.clone()).await;
        })
        .detach();
    }

    /// Serves a queue of a broker: `amqp://HOST:PORT/VHOST?queue=NAME`. Where the broker goes, it is tried again until it is back.
    ///
    /// # Errors
    ///
    /// That of the first try.
    #[cfg(feature = "amqp")]
    pub async fn listen_amqp(&self, url: &str) -> io::Result<()> {
        crate::transport::amqp::listen(url, self.shared.clone()).await
    }

    /// Lets nobody in any more, and has connections end when they have answered what they were asked, within so much time.
    pub async fn stop(self, grace: Duration) -> Result<(), TimedOut> {
        let Self { shared, stop, mut gone } = self;
        drop((shared, stop));
        timeout(grace, gone.next()).await.map(drop)
    }
}

async fn accept<L: Listener>(listener: &L, protocol: Protocol, shared: &Shares) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Who finds no place waits, and the others in the listener's queue. A listener without anybody takes no place.
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
            // No descriptor left, perhaps, which is told once: the listener itself works on.
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
    // Until its end: with bytes that nobody has read, the system would reset the connection, and what was written last might not arrive.
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
