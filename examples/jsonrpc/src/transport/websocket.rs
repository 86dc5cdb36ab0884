//! One WebSocket message, text or binary, for each message.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use async_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use async_tungstenite::tungstenite::http::StatusCode;
use async_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use async_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use async_tungstenite::tungstenite::{Error, Message};
use async_tungstenite::{
    WebSocketReceiver, WebSocketSender, WebSocketStream, accept_hdr_async_with_config,
    client_async_with_config,
};
use futures::future::{Either, select};
use paceline::prelude::*;
use paceline::timeout;

use crate::Limits;
use crate::peer::Peer;
use crate::server::{Shares, Stream};
use crate::session::{self, Incoming, Reader, Writer};
use crate::transport::whole::{Count, Whole};

pub(crate) struct WebSocketReader<S> {
    receiver: WebSocketReceiver<Whole<S>>,
    code: Code,
    count: Count,
}

pub(crate) struct WebSocketWriter<S>(WebSocketSender<Whole<S>>, Code);

/// Why this side closes: the reader sets it, and the writer sends it.
type Code = Arc<AtomicU16>;

/// Serves a stream from its handshake on.
pub(crate) async fn serve<S: Stream>(stream: S, shared: Shares) -> io::Result<()> {
    let Shares { dispatcher, stop, .. } = shared.clone();
    let limits = &dispatcher.limits;
    let count = Count::default();
    let stream = Whole::new(stream, limits.partial, count.clone());
    let handshake = accept_hdr_async_with_config(stream, no_page, Some(config(limits)));
    let halves = halves(handshake, count, limits);
    let (reader, writer) = match select(pin!(halves), stop.clone()).await {
        Either::Left((halves, _)) => halves?,
        // No call has arrived yet.
        Either::Right(_) => return Ok(()),
    };
    let peer = Peer::new(limits);
    session::run(reader, writer, peer, dispatcher, stop.map(drop)).await
}

/// A web page of another origin can make a browser connect and read events; browsers send the origin.
#[allow(clippy::result_large_err)] // The library's.
fn no_page(request: &Request, response: Response) -> Result<Response, ErrorResponse> {
    if !request.headers().contains_key("origin") {
        return Ok(response);
    }
    let mut refused = ErrorResponse::new(Some("this is not for pages".to_owned()));
    *refused.status_mut() = StatusCode::FORBIDDEN;
    Err(refused)
}

/// Becomes a client of the peer.
pub(crate) async fn connect<S: Stream>(
    stream: S,
    url: &str,
    limits: &Limits,
) -> io::Result<(WebSocketReader<S>, WebSocketWriter<S>)> {
    let count = Count::default();
    let stream = Whole::new(stream, limits.partial, count.clone());
    let handshake = client_async_with_config(url, stream, Some(config(limits)));
    halves(handshake.map(|done| done.map(|(socket, _)| socket)), count, limits).await
}

async fn halves<S: Stream>(
    handshake: impl Future<Output = Result<WebSocketStream<Whole<S>>, Error>>,
    count: Count,
    limits: &Limits,
) -> io::Result<(WebSocketReader<S>, WebSocketWriter<S>)> {
    let (writer, reader) = timeout(limits.send, handshake).await?.map_err(error)?.split();
    // The handshake counts as the first message.
    count.fetch_add(1, Ordering::Relaxed);
    let code = Code::new(u16::from(CloseCode::Away).into());
    Ok((WebSocketReader { receiver: reader, code: code.clone(), count }, WebSocketWriter(writer, code)))
}

fn config(limits: &Limits) -> WebSocketConfig {
    // Each connection has such a buffer from its start; the default is 128 KiB.
    let most = Some(limits.message);
    WebSocketConfig::default().read_buffer_size(8 << 10).max_message_size(most).max_frame_size(most)
}

fn error(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        error => io::Error::other(error),
    }
}

impl<S: Stream> Reader for WebSocketReader<S> {
    /// The library answers pings.
    async fn next(&mut self) -> io::Result<Option<Incoming>> {
        loop {
            let next = self.receiver.next().await;
            self.count.fetch_add(1, Ordering::Relaxed);
            return match next {
                None | Some(Err(Error::ConnectionClosed | Error::AlreadyClosed)) => Ok(None),
                Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => {
                    Ok(Some(Incoming::Message(message.into_data().into())))
                }
                Some(Ok(_)) => continue,
                Some(Err(problem)) => {
                    let code = match &problem {
                        Error::Capacity(_) => CloseCode::Size,
                        Error::Utf8(_) => CloseCode::Invalid,
                        _ => CloseCode::Protocol,
                    };
                    self.code.store(code.into(), Ordering::Relaxed);
                    Err(error(problem))
                }
            };
        }
    }
}

impl<S: Stream> Writer for WebSocketWriter<S> {
    async fn put(&mut self, message: String) -> io::Result<()> {
        self.0.feed(Message::text(message)).await.map_err(error)
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.0.flush().await.map_err(error)
    }

    async fn close(&mut self) -> io::Result<()> {
        let code = self.1.load(Ordering::Relaxed).into();
        let closed = self.0.send(Message::Close(Some(CloseFrame { code, reason: "".into() }))).await;
        match closed {
            Err(Error::ConnectionClosed | Error::AlreadyClosed) => Ok(()),
            closed => closed.map_err(error),
        }
    }
}
