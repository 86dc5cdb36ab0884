//! [`Client`]: calls the methods of a server, over any transport.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use paceline::net::TcpStream;
use paceline::{Elapsed, Task, spawn, timeout};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::dispatcher::Dispatcher;
use crate::peer::Peer;
use crate::server::Stream;
use crate::session::{self, Reader, Writer};
use crate::transport::framed::{Framing, framed};
use crate::transport::http_client::HttpClient;
use crate::transport::patient::Patient;
use crate::transport::websocket;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection to a server, whose methods can be called. The client's own dispatcher answers the server's
/// calls and notifications.
///
/// Dropping it ends the connection at once, and messages on their way may be lost: [`close`](Client::close)
/// waits for them.
#[derive(Debug)]
pub struct Client {
    way: Way,
    limit: Duration,
}

#[derive(Debug)]
enum Way {
    Peer {
        peer: Peer,
        /// Ends with the client.
        session: Task<io::Result<()>>,
    },
    Http(HttpClient),
}

impl Client {
    /// Connects to one of these.
    ///
    /// | url | transport |
    /// |---|---|
    /// | `tcp://HOST:PORT`, `unix:PATH` | lines |
    /// | `tcp+lengths://HOST:PORT`, `unix+lengths:PATH` | lengths |
    /// | `http://HOST:PORT` | a `POST` for each call, and events of [subscribed](Client::subscribe) topics |
    /// | `ws://HOST:PORT` | WebSocket |
    /// | `amqp://HOST:PORT/VHOST?queue=NAME`, with the feature `amqp` | a queue for each side |
    ///
    /// Each call waits so long for its answer at most: `limit`.
    pub async fn connect(url: &str, dispatcher: Arc<Dispatcher>, limit: Duration) -> io::Result<Self> {
        let way = timeout(CONNECT, Way::connect(url, dispatcher)).await??;
        Ok(Self { way, limit })
    }

    /// Calls a method.
    pub async fn call<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<R, CallError> {
        match &self.way {
            Way::Peer { peer, .. } => peer.call(method, params, self.limit).await,
            Way::Http(http) => http.call(method, params, self.limit).await,
        }
    }

    /// Sends a notification, which is not answered. The message may not have been sent yet when this returns:
    /// see [`close`](Client::close).
    pub async fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), CallError> {
        match &self.way {
            Way::Peer { peer, .. } => peer.notify(method, params),
            Way::Http(http) => http.notify(method, params, self.limit).await,
        }
    }

    /// Sends all pending [notifications](Client::notify), answers the server's calls, and ends the
    /// connection.
    pub async fn close(self) -> io::Result<()> {
        match self.way {
            Way::Peer { peer, session } => {
                peer.close();
                session.await
            }
            // The server has already answered the requests that carried the notifications.
            Way::Http(_) => Ok(()),
        }
    }

    /// Subscribes to a topic. For each event the server calls the client's own method `event`.
    ///
    /// Over HTTP the events use a connection of their own. If that ends before the client does, the client's
    /// method `end` is called with the topic and the reason; calls still work.
    pub async fn subscribe(&self, topic: &str) -> Result<(), CallError> {
        match &self.way {
            Way::Peer { peer, .. } => peer.call("subscribe", &[topic], self.limit).await,
            Way::Http(http) => http.subscribe(topic, self.limit).await,
        }
    }
}

impl Way {
    async fn connect(url: &str, dispatcher: Arc<Dispatcher>) -> io::Result<Self> {
        let limits = dispatcher.limits.clone();
        #[cfg(unix)]
        for (scheme, framing) in [("unix:", Framing::Lines), ("unix+lengths:", Framing::Lengths)] {
            if let Some(path) = url.strip_prefix(scheme) {
                let stream = paceline::net::unix::UnixStream::connect(path).await?;
                let (reader, writer) = framed(&Patient::new(stream, limits.send), Some(framing), &limits);
                return Ok(Self::session(reader, writer, dispatcher));
            }
        }
        let Some((scheme, addr)) = url.split_once("://") else { return Err(unknown(url)) };
        let addr = addr.trim_end_matches('/');
        match scheme {
            "tcp" | "tcp+lengths" => {
                let framing = if scheme == "tcp" { Framing::Lines } else { Framing::Lengths };
                let (reader, writer) = framed(&tcp(addr, limits.send).await?, Some(framing), &limits);
                Ok(Self::session(reader, writer, dispatcher))
            }
            "ws" => {
                let stream = tcp(addr, limits.send).await?;
                let (reader, writer) = websocket::connect(stream, &format!("ws://{addr}/"), &limits).await?;
                Ok(Self::session(reader, writer, dispatcher))
            }
            #[cfg(feature = "amqp")]
            "amqp" => {
                let (reader, writer) = crate::transport::amqp_client::connect(url).await?;
                Ok(Self::session(reader, writer, dispatcher))
            }
            "http" => Ok(Self::Http(HttpClient::new(addr.to_owned(), dispatcher))),
            _ => Err(unknown(url)),
        }
    }

    fn session(reader: impl Reader, writer: impl Writer, dispatcher: Arc<Dispatcher>) -> Self {
        let (peer, outbox) = Peer::new(&dispatcher.limits);
        let run = session::run(reader, writer, (peer.clone(), outbox), dispatcher, std::future::pending());
        // A caller notices that the session is closed.
        Self::Peer { peer, session: spawn(run) }
    }
}

async fn tcp(addr: &str, send: Duration) -> io::Result<impl Stream + use<>> {
    let stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    Ok(Patient::new(stream, send))
}

fn unknown(url: &str) -> io::Error {
    let what =
        format!("{url:?} begins with none of tcp://, tcp+lengths://, unix:, unix+lengths:, http://, ws://");
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// Why a call has no result.
#[derive(Clone, Debug)]
pub enum CallError {
    /// The peer has returned this error.
    Error(Error),
    /// The answer is late. An answer that still comes is dropped.
    TimedOut(Elapsed),
    /// The connection has ended.
    Closed,
    /// The peer has not read earlier messages, and no more may be queued.
    TooMuch,
    /// The parameters are neither an object nor an array, nor missing (`()`).
    Params(String),
    /// The answer has an unexpected form.
    Answer(String),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => error.fmt(f),
            Self::TimedOut(late) => late.fmt(f),
            Self::Closed => f.write_str("the connection is closed"),
            Self::TooMuch => f.write_str("the peer has not read earlier messages"),
            Self::Params(what) => write!(f, "these parameters cannot be sent: {what}"),
            Self::Answer(what) => write!(f, "the answer is invalid: {what}"),
        }
    }
}

impl std::error::Error for CallError {}

impl From<Elapsed> for CallError {
    fn from(late: Elapsed) -> Self {
        Self::TimedOut(late)
    }
}

/// A handler that called another peer fails with that peer's error, or because the answer is missing.
impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Error(error) => error,
            error => Error::internal(error),
        }
    }
}
