//! HTTP/1: a `POST` for each message, with the answer in its response; and a `GET` with `?topic=` for the
//! events of a topic (`text/event-stream`), since HTTP has no other way back.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use futures::stream::BoxStream;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use paceline::hyper::{Io, Timer};
use paceline::prelude::*;
use paceline::timeout;
use serde_json::value::to_raw_value;

use crate::Error;
use crate::dispatcher::{Dispatcher, Todo};
use crate::message;
use crate::peer::{Ids, Peer};
use crate::server::{Shares, Stop, Stream};

/// For the head of a request, also of the next one on the same connection.
const HEAD: Duration = Duration::from_secs(30);

type Body =
    http_body_util::Either<Full<Bytes>, StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>>;

/// Serves a stream until the client ends it, or until the server stops and pending calls are answered.
pub(crate) async fn serve(stream: impl Stream, shared: Shares) -> io::Result<()> {
    let Shares { dispatcher, stop, .. } = shared.clone();
    let events = stop.clone();
    let service = service_fn(move |request| {
        let (dispatcher, stop) = (dispatcher.clone(), events.clone());
        async move { Ok::<_, Infallible>(answer(request, &dispatcher, stop).await) }
    });
    let connection = http1::Builder::new()
        .timer(Timer)
        .header_read_timeout(HEAD)
        .serve_connection(Io::new(stream), service);
    let mut connection = pin!(connection);
    let ended = match select(connection.as_mut(), stop).await {
        Either::Left((ended, _)) => ended,
        Either::Right(_) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    ended.map_err(io::Error::other)
}

async fn answer(request: Request<Incoming>, dispatcher: &Arc<Dispatcher>, stop: Stop) -> Response<Body> {
    match *request.method() {
        Method::POST => post(request, dispatcher).await,
        Method::GET => events(&request, dispatcher, stop).await,
        _ => {
            let mut refused =
                response(StatusCode::METHOD_NOT_ALLOWED, "POST a message, or GET /?topic=NAME\n".into());
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST"));
            refused
        }
    }
}

async fn post(request: Request<Incoming>, dispatcher: &Arc<Dispatcher>) -> Response<Body> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    // A web page of another origin can make a browser send other content types without a preflight request.
    if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return response(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content-type is application/json\n".into());
    }
    let body = Limited::new(request.into_body(), dispatcher.limits.message).collect();
    let bytes = match timeout(dispatcher.limits.partial, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let error = message::too_long(&dispatcher.limits);
            return json(StatusCode::PAYLOAD_TOO_LARGE, message::error(None, &error));
        }
        Ok(Err(error)) => return json(StatusCode::BAD_REQUEST, message::error(None, &Error::parse(error))),
        Err(late) => return json(StatusCode::REQUEST_TIMEOUT, message::error(None, &Error::parse(late))),
    };
    let message = message::parse(&bytes, &dispatcher.limits);
    let reply = match dispatcher.take(message, &Ids::default(), None) {
        Todo::Nothing => None,
        Todo::Reply(reply) => Some(reply),
        // A task, as for other transports. The task is cancelled if the client disconnects.
        Todo::Calls(_, answer) => paceline::spawn(answer).await,
    };
    match reply {
        Some(reply) => json(StatusCode::OK, reply),
        None => response(StatusCode::NO_CONTENT, Bytes::new()),
    }
}

/// Streams unrequested messages, until the server stops or too many of them are unread.
async fn events(request: &Request<Incoming>, dispatcher: &Arc<Dispatcher>, stop: Stop) -> Response<Body> {
    let topic = request.uri().query().and_then(|query| query.strip_prefix("topic=")).unwrap_or("");
    let (peer, outbox) = Peer::new(&dispatcher.limits);
    let closes = Closes(peer.clone());
    let params = to_raw_value(&[topic]).expect("a string is JSON");
    if let Err(error) = dispatcher.call("subscribe".to_owned(), Some(params), Some(peer)).await {
        return json(StatusCode::BAD_REQUEST, message::error(None, &error));
    }
    let stream = outbox.take_until(stop).map(move |out| {
        let _ = &closes;
        Ok(Frame::data(Bytes::from(format!("data: {}\n\n", out.text.replace('\n', " ")))))
    });
    let mut answer = Response::new(Body::Right(StreamBody::new(stream.boxed())));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// The client no longer reads the events.
struct Closes(Peer);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn json(status: StatusCode, text: String) -> Response<Body> {
    let mut response = response(status, text.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn response(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::Left(Full::new(body)));
    *response.status_mut() = status;
    response
}
