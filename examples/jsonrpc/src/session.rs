//! A connection on which either side may call the other: who reads it, who writes it, and how it ends.
//!
//! Whoever asks without taking the answers is read from no more when [`calls`](crate::Limits::calls) or [`bytes`](crate::Limits::bytes) of
//! them wait, and is given up after [`send`](crate::Limits::send). When the peer has nothing more to ask, or the server is to stop, what was
//! asked is answered first. A connection whose handlers run is not over, also when nobody hears them any more: what they hold is its.

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

/// Messages that are there are written together, up to so many bytes.
const TOGETHER: usize = 64 << 10;

/// What comes.
pub(crate) enum Incoming {
    Message(Vec<u8>),
    /// One that is longer than it may be. It was not kept.
    TooLong,
    /// The connection has ended in the middle of one.
    Partial,
}

/// The half of a transport that reads messages. `None` is the end.
pub(crate) trait Reader: Send + 'static {
    fn next(&mut self) -> impl Future<Output = io::Result<Option<Incoming>>> + Send;
}

/// The half that writes them.
pub(crate) trait Writer: Send + 'static {
    /// Has this go with those before and after it.
    fn put(&mut self, message: String) -> impl Future<Output = io::Result<()>> + Send;
    /// Sends what was put.
    fn flush(&mut self) -> impl Future<Output = io::Result<()>> + Send;
    /// Nothing more comes from here.
    fn close(&mut self) -> impl Future<Output = io::Result<()>> + Send;
}

/// Serves a connection until it ends, or until `stop` is ready and what was asked is answered.
pub(crate) async fn run(
    mut reader: impl Reader,
    writer: impl Writer,
    (peer, outbox): (Peer, Outbox),
    dispatcher: Arc<Dispatcher>,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    // Whatever becomes of this future, also when it is dropped.
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
        // After an error, too: half a message is no reason to leave whole ones without an answer.
        peer.replies().all().await;
        ended
    };
    match select(pin!(reading), &mut writing).await {
        Either::Left((ended, _)) => {
            peer.close();
            writing.await.and(ended)
        }
        // It was closed from here, cannot be written to, or has not taken what it was told.
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

/// Takes what comes, until the end. When it is told to stop, only answers.
async fn read(
    reader: &mut impl Reader,
    peer: &Peer,
    dispatcher: &Arc<Dispatcher>,
    stopped: &AtomicBool,
) -> io::Result<()> {
    // Without somebody who writes there is always room, and no end of a peer that goes on asking.
    while !peer.is_closed() {
        let Some(incoming) = reader.next().await? else { break };
        let (message, len) = match incoming {
            Incoming::Message(bytes) => (message::parse(&bytes, &dispatcher.limits), bytes.len()),
            Incoming::TooLong => (Err(message::too_long(&dispatcher.limits)), 0),
            Incoming::Partial => (Err(Error::parse("the end of the connection in a message")), 0),
        };
        // These wait for no room: who has it may wait for them.
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
                    // What is not answered gives its share back here.
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
        // They have their shares of the room until they are written.
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
