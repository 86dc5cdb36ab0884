//! A connection on which either side may call the other: how it is read and written, and how it ends.
//!
//! A peer that sends calls without reading the answers is not read from while [`calls`](crate::Limits::calls)
//! or [`bytes`](crate::Limits::bytes) of them wait, and is disconnected after [`send`](crate::Limits::send).
//! When the peer has no more calls, or the server has to stop, pending calls are answered first. A connection
//! with running handlers has not ended, even if the peer has: their memory belongs to the connection.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::{Either, select};
use paceline::prelude::*;
use paceline::spawn;

use crate::Error;
use crate::dispatcher::{Dispatcher, Todo};
use crate::message;
use crate::peer::{Outbox, Peer};

/// Queued messages are written together, up to so many bytes.
const TOGETHER: usize = 64 << 10;

/// An incoming message.
pub(crate) enum Incoming {
    Message(Vec<u8>),
    /// A message beyond the limit, which was not kept.
    TooLong,
    /// The connection has ended in the middle of a message.
    Partial,
}

/// The half of a transport that reads messages. `None` is the end.
pub(crate) trait Reader: Send + 'static {
    fn next(&mut self) -> impl Future<Output = io::Result<Option<Incoming>>> + Send;
}

/// The half of a transport that writes messages.
pub(crate) trait Writer: Send + 'static {
    /// Queues a message; several messages may be sent together.
    fn put(&mut self, message: String) -> impl Future<Output = io::Result<()>> + Send;
    /// Sends the queued messages.
    fn flush(&mut self) -> impl Future<Output = io::Result<()>> + Send;
    /// Ends this direction.
    fn close(&mut self) -> impl Future<Output = io::Result<()>> + Send;
}

/// Serves a connection until it ends, or until `stop` is ready and pending calls are answered.
pub(crate) async fn run(
    mut reader: impl Reader,
    writer: impl Writer,
    (peer, outbox): (Peer, Outbox),
    dispatcher: Arc<Dispatcher>,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    // Runs in every case, also when this future is dropped.
    let _ends = Ends(peer.clone());
    let mut writing = spawn(write(writer, outbox));
    let reading = async {
        let stopped = AtomicBool::new(false);
        let ended = match select(pin!(read(&mut reader, &peer, &dispatcher, &stopped)), pin!(stop)).await {
            Either::Left((ended, _)) => ended,
            Either::Right(((), read)) => {
                stopped.store(true, Ordering::Relaxed);
                // A handler may wait for the peer's answer.
                match select(read, pin!(peer.replies().all())).await {
                    Either::Left((ended, _)) => ended,
                    Either::Right(_) => Ok(()),
                }
            }
        };
        // After an error, too: complete messages are answered even if an incomplete one follows.
        peer.replies().all().await;
        ended
    };
    match select(pin!(reading), &mut writing).await {
        Either::Left((ended, _)) => {
            peer.close();
            writing.await.and(ended)
        }
        // This side has closed the connection, the connection cannot be written to, or the peer has not read
        // enough notifications.
        Either::Right((ended, _)) => {
            peer.close();
            peer.replies().all().await;
            ended
        }
    }
}

struct Ends(Peer);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Reads messages until the end. After `stop`, handles only answers.
async fn read(
    reader: &mut impl Reader,
    peer: &Peer,
    dispatcher: &Arc<Dispatcher>,
    stopped: &AtomicBool,
) -> io::Result<()> {
    // Without a writer there is always room, and a peer that keeps sending would never reach the end.
    while !peer.is_closed() {
        let Some(incoming) = reader.next().await? else { break };
        let (message, len) = match incoming {
            Incoming::Message(bytes) => (message::parse(&bytes, &dispatcher.limits), bytes.len()),
            Incoming::TooLong => (Err(message::too_long(&dispatcher.limits)), 0),
            Incoming::Partial => (Err(Error::parse("the end of the connection in a message")), 0),
        };
        // Answers wait for no room, because handlers that hold room may wait for them.
        let Some(message) = message.map(|message| peer.answers(message)).transpose() else { continue };
        if stopped.load(Ordering::Relaxed) {
            continue;
        }
        peer.replies().some().await;
        match dispatcher.take(message, peer.ids(), Some(peer)) {
            Todo::Nothing => {}
            Todo::Reply(reply) => peer.reply(reply, peer.replies().take(1, 0)),
            Todo::Calls(count, answer) => {
                let (share, peer) = (peer.replies().take(count, len), peer.clone());
                let answers = async move {
                    // A notification returns its share here.
                    if let Some(reply) = answer.await {
                        peer.reply(reply, share);
                    }
                };
                spawn(answers).detach();
            }
        }
    }
    Ok(())
}

async fn write(mut writer: impl Writer, mut outbox: Outbox) -> io::Result<()> {
    while let Some(first) = outbox.next().await {
        let mut next = Some(first);
        // The messages hold their shares of the room until they are written.
        let (mut shares, mut bytes) = (Vec::new(), 0);
        while let Some(out) = next.take() {
            bytes += out.text.len();
            shares.push(out.share);
            writer.put(out.text).await?;
            next = if bytes < TOGETHER { outbox.try_recv().ok() } else { None };
        }
        writer.flush().await?;
    }
    writer.close().await
}

#[cfg(test)]
mod tests;
