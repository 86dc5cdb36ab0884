//! One connection: reads, answers complete commands, and writes their replies together.
//!
//! A client that sends many commands at once gets their replies in one write. A client that does not read its
//! replies is not read from, so the memory of a connection is bounded.

use std::future::Future;
use std::io;
use std::ops::ControlFlow::{self, Break, Continue};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use async_channel::Receiver;
use futures_lite::future::or;
use paceline::net::TcpStream;
use paceline::prelude::*;
use paceline::timeout;

use crate::channels::Subscription;
use crate::resp::Parser;
use crate::server::Shared;
use crate::{command, reply};

/// Replies are written at this size, even if more commands wait.
const ENOUGH: usize = 64 * 1024;
/// How many bytes that have already arrived are still read after the stop: without a limit a client that
/// keeps sending would never end.
const LAST: usize = 64 * 1024;
/// How long the peer has to end the connection after this side has.
const LINGER: Duration = Duration::from_millis(500);

/// The client of a connection.
pub struct Client {
    pub shared: Arc<Shared>,
    pub stream: TcpStream,
    /// With a subscription the connection also waits for messages.
    pub subscription: Option<Subscription>,
}

pub struct Connection {
    client: Client,
    parser: Parser,
    /// Replies that are not written yet.
    out: Vec<u8>,
    pub answered: u64,
}

/// The events of a connection.
enum Came {
    Bytes(usize),
    Messages,
    Stop,
}

impl Connection {
    pub fn new(client: Client) -> Self {
        Self { client, parser: Parser::new(), out: Vec::new(), answered: 0 }
    }

    /// Serves the connection until it ends, or until `stop` is closed and the commands that had arrived are
    /// answered.
    pub async fn serve(&mut self, stop: Receiver<()>) -> io::Result<()> {
        // Made once, and not for each wait.
        let mut stopped = pin!(async { _ = stop.recv().await });
        let mut last = LAST;
        loop {
            match self.wait(stopped.as_mut()).await? {
                // The peer has ended the connection, and gets no reply.
                Came::Bytes(0) => return Ok(()),
                Came::Bytes(bytes) => {
                    self.parser.filled(bytes);
                    if stop.is_closed() {
                        last = last.saturating_sub(bytes);
                    }
                }
                Came::Messages => {}
                Came::Stop => break,
            }
            if self.answer().await?.is_break() || last == 0 {
                break;
            }
        }
        self.linger().await
    }

    /// Each wait is a future of the same type, and `or` polls them in order: the first one that is ready
    /// wins, and the others are dropped. So dropping any of them must lose nothing.
    async fn wait(&mut self, stopped: Pin<&mut impl Future<Output = ()>>) -> io::Result<Came> {
        let mut stream = &self.client.stream;
        let bytes = async { stream.read(self.parser.space()).await.map(Came::Bytes) };
        let stop = async {
            stopped.await;
            Ok(Came::Stop)
        };
        let Some(subscription) = &self.client.subscription else {
            return or(bytes, stop).await;
        };
        let messages = async {
            subscription.next(&mut self.out, ENOUGH).await;
            Ok(Came::Messages)
        };
        or(bytes, or(messages, stop)).await
    }

    /// Answers all complete commands. Ends the connection after a command that says so, or after an invalid
    /// one.
    async fn answer(&mut self) -> io::Result<ControlFlow<()>> {
        loop {
            let then = match self.parser.next() {
                Ok(Some(command)) => {
                    self.answered += 1;
                    command::run(&mut self.client, command, &mut self.out)
                }
                Ok(None) => {
                    self.send().await?;
                    return Ok(Continue(()));
                }
                Err(error) => {
                    reply::error(&mut self.out, format_args!("ERR {error}"));
                    Break(())
                }
            };
            if then.is_break() || self.out.len() >= ENOUGH {
                self.send().await?;
            }
            if then.is_break() {
                return Ok(then);
            }
        }
    }

    async fn send(&mut self) -> io::Result<()> {
        (&self.client.stream).write_all(&self.out).await?;
        self.out.clear();
        self.out.shrink_to(ENOUGH);
        Ok(())
    }

    /// Ends the connection, and waits until the peer does: closing a socket with unread bytes resets the
    /// connection, and the last replies may not arrive.
    async fn linger(&mut self) -> io::Result<()> {
        self.client.subscription = None;
        let mut stream = &self.client.stream;
        stream.close().await?;
        let rest = async {
            while stream.read(self.parser.space()).await? > 0 {}
            Ok(())
        };
        timeout(LINGER, rest).await.unwrap_or(Ok(()))
    }
}
