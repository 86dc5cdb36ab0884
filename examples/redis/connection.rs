//! One connection: reads, has the commands that are complete answered, and writes their replies in one go.
//!
//! Whoever sends many commands at once gets their replies with one write. Whoever does not read his replies is not read from, so what is
//! held for a connection is bounded.

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

/// Replies are written when there are so many bytes of them, though there may be more commands to answer.
const ENOUGH: usize = 64 * 1024;
/// So much is still read after the stop, where it has come already: who always has more to ask would never see an end.
const LAST: usize = 64 * 1024;
/// How long the peer has to end the connection when we have.
const LINGER: Duration = Duration::from_millis(500);

/// Who asks.
pub struct Client {
    pub shared: Arc<Shared>,
    pub stream: TcpStream,
    /// Where there is one, messages are awaited as well.
    pub subscription: Option<Subscription>,
}

pub struct Connection {
    client: Client,
    parser: Parser,
    /// Replies that are not written yet.
    out: Vec<u8>,
    pub answered: u64,
}

/// What a connection waits for.
enum Came {
    Bytes(usize),
    Messages,
    Stop,
}

impl Connection {
    pub fn new(client: Client) -> Self {
        Self { client, parser: Parser::new(), out: Vec::new(), answered: 0 }
    }

    /// Serves it until it ends; or until `stop` is closed, and what had come is answered.
    pub async fn serve(&mut self, stop: Receiver<()>) -> io::Result<()> {
        // Made once, and not for each wait.
        let mut stopped = pin!(async { _ = stop.recv().await });
        let mut last = LAST;
        loop {
            match self.wait(stopped.as_mut()).await? {
                // The peer has ended it. There is nobody to tell.
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

    /// Each wait becomes a future of the same type, and `or` polls one after the other: the first that is ready wins, and the others
    /// are dropped. So none of them may lose anything by that.
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

    /// Answers all commands that are complete. It ends the connection if one of them does, or is none.
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

    /// Ends the connection, and waits until the peer does: who closes a socket before he has read all that came resets it, and what he
    /// wrote last may not arrive.
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
