//! The client's side of HTTP: connections are reused, with one call on each at a time.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, Response, StatusCode};
use paceline::hyper::Io;
use paceline::net::TcpStream;
use paceline::prelude::*;
use paceline::{Task, spawn, timeout};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::to_raw_value;

use crate::client::CallError;
use crate::dispatcher::{Dispatcher, Todo};
use crate::message::{self, Item, Message};
use crate::peer::Ids;
use crate::transport::patient::Patient;

/// Calls methods by `POST`, and receives events by `GET`.
pub(crate) struct HttpClient {
    addr: String,
    dispatcher: Arc<Dispatcher>,
    /// Idle connections.
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
    /// Connections for events.
    events: Mutex<Vec<Task<()>>>,
}

/// How many idle connections are kept.
const KEEP: usize = 64;

impl HttpClient {
    pub(crate) fn new(addr: String, dispatcher: Arc<Dispatcher>) -> Self {
        Self { addr, dispatcher, idle: Mutex::default(), events: Mutex::default() }
    }

    pub(crate) async fn call<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        limit: Duration,
    ) -> Result<R, CallError> {
        let body = timeout(limit, self.post(Some(1), method, params)).await??;
        let wrong = || CallError::Answer(String::from_utf8_lossy(&body).chars().take(200).collect());
        let Ok(Message::One(Item::Answer(answer))) = message::parse(&body, &self.dispatcher.limits) else {
            return Err(wrong());
        };
        let result = answer.outcome.ok_or_else(wrong)?.map_err(CallError::Error)?;
        serde_json::from_str(result.get()).map_err(|error| CallError::Answer(error.to_string()))
    }

    pub(crate) async fn notify(
        &self,
        method: &str,
        params: &impl Serialize,
        limit: Duration,
    ) -> Result<(), CallError> {
        timeout(limit, self.post(None, method, params)).await?.map(drop)
    }

    async fn post(&self, id: Option<u64>, method: &str, params: &impl Serialize) -> Result<Bytes, CallError> {
        let text = message::request(id, method, params)?;
        let request = Request::post("/").header(CONTENT_TYPE, "application/json");
        let (answer, sender) = self.send(request.header(HOST, &self.addr), text.into()).await?;
        let body = Limited::new(answer.into_body(), self.dispatcher.limits.message).collect().await;
        let body = body.map_err(|error| CallError::Answer(error.to_string()))?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEEP {
            idle.push(sender);
        }
        Ok(body.to_bytes())
    }

    /// Sends on an idle connection, or on a new one.
    async fn send(
        &self,
        request: hyper::http::request::Builder,
        body: Bytes,
    ) -> Result<(Response<Incoming>, SendRequest<Full<Bytes>>), CallError> {
        let request = request.body(Full::new(body)).map_err(|error| CallError::Params(error.to_string()))?;
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut sender = loop {
            let Some(mut sender) = idle() else { break self.connect().await? };
            // A connection that the server has closed meanwhile is dropped.
            if sender.ready().await.is_ok() {
                break sender;
            }
        };
        let answer = sender.send_request(request).await.map_err(|_| CallError::Closed)?;
        Ok((answer, sender))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, CallError> {
        let stream = TcpStream::connect(&self.addr).await.map_err(|_| CallError::Closed)?;
        let _ = stream.set_nodelay(true);
        let stream = Patient::new(stream, self.dispatcher.limits.send);
        let (sender, connection) = handshake(Io::new(stream)).await.map_err(|_| CallError::Closed)?;
        // The task ends with its sender, or when the server closes the connection.
        spawn(connection).detach();
        Ok(sender)
    }

    pub(crate) async fn subscribe(&self, topic: &str, limit: Duration) -> Result<(), CallError> {
        let request = Request::get(format!("/?topic={topic}")).header(HOST, &self.addr);
        let (answer, sender) = timeout(limit, self.send(request, Bytes::new())).await??;
        if answer.status() != StatusCode::OK {
            return Err(CallError::Answer(answer.status().to_string()));
        }
        let (dispatcher, topic) = (self.dispatcher.clone(), topic.to_owned());
        let hears = spawn(async move {
            // The connection ends without it.
            let _sender = sender;
            let why = match hear(answer, &dispatcher).await {
                Ok(()) => "the server has ended it".to_owned(),
                Err(error) => error.to_string(),
            };
            let params = to_raw_value(&[&topic, &why]).expect("strings are JSON");
            // The client may have no such method.
            let _ = dispatcher.call("end".to_owned(), Some(params), None).await;
        });
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(hears);
        Ok(())
    }
}

/// The start of an event's line.
const DATA: &[u8] = b"data: ";

/// Each event is a line `data: MESSAGE`. A line that is too long is an error, and ends the stream.
async fn hear(answer: Response<Incoming>, dispatcher: &Arc<Dispatcher>) -> io::Result<()> {
    let limits = &dispatcher.limits;
    let chunks = answer.into_body().into_data_stream().map_err(io::Error::other);
    let (mut stream, mut line) = (BufReader::new(chunks.into_async_read()), Vec::new());
    let most = DATA.len() + limits.message + 1;
    loop {
        line.clear();
        if (&mut stream).take(most as u64).read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        let Some(text) = line.strip_suffix(b"\n") else {
            let what =
                format!("it ends in an event, or with one that is longer than {} bytes", limits.message);
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        };
        let Some(text) = text.strip_prefix(DATA) else { continue };
        let message = message::parse(text, limits);
        if let Todo::Calls(_, answer) = dispatcher.take(message, &Ids::default(), None) {
            answer.await;
        }
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("addr", &self.addr).finish_non_exhaustive()
    }
}
