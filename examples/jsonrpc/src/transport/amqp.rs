//! AMQP: calls come from a queue that any number of servers share, and answers go to the queue that a call
//! names (`reply_to`), with its `correlation_id`.
//!
//! | kind of failure | what happens |
//! |---|---|
//! | the server dies during a call | another server gets it: a call leaves its queue when it is answered |
//! | the caller has disconnected, or its queue is full | messages to it come back, and no more are sent |
//! | the broker is lost | the server reconnects repeatedly |
//!
//! There are no connections, so the peer is the owner of that queue, for as long as a handler refers to it:
//! the peer has the place of a connection, and is refused if there is none. The answer to a call in the other
//! direction goes to the `reply_to` of that call, with the peer's own queue as `reply_to`, as always. The
//! broker limits the length of the messages that it holds (`max_message_size`).

use std::collections::HashMap;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{Either, select};
use futures::stream;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions,
    ConfirmSelectOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection};
use paceline::prelude::*;
use paceline::{Timer, spawn};

use crate::Error;
use crate::dispatcher::{Dispatcher, Todo};
use crate::message::{self, Item, Message};
use crate::peer::{Ids, Known, Outbox, Peer};
use crate::room::Room;
use crate::server::Shares;
use crate::transport::amqp_broker::{own_queue, parts, publish, reach};

/// The pause between two attempts to reach the broker.
const PAUSE: Duration = Duration::from_secs(1);

/// The peers by their queues; unreferenced ones are dropped.
type Peers = Arc<Mutex<HashMap<String, Known>>>;

type Parsed = Result<Message, Error>;

/// Serves in a task, until the server stops.
pub(crate) async fn listen(url: &str, shared: Shares) -> io::Result<()> {
    let (broker, queue) = parts(url)?;
    let mut served = Served::begin(broker, queue, &shared).await?;
    let (broker, queue) = (broker.to_owned(), queue.to_owned());
    spawn(async move {
        // True if the server must stop.
        while !served.go_on(&shared).await {
            served = loop {
                let again = async {
                    Timer::after(PAUSE).await;
                    Served::begin(&broker, &queue, &shared).await
                };
                match select(pin!(again), shared.stop.clone()).await {
                    Either::Left((Ok(served), _)) => break served,
                    Either::Left((Err(error), _)) => eprintln!("{error}"),
                    Either::Right(_) => return,
                }
            };
        }
    })
    .detach();
    Ok(())
}

/// A queue that is served over one connection to the broker.
struct Served {
    connection: Connection,
    /// For answers, and for unrequested messages, which are confirmed.
    answers: Channel,
    pushes: Channel,
    /// Calls, and answers to calls of this side.
    deliveries: stream::BoxStream<'static, Result<Delivery, lapin::Error>>,
    /// The consumer tag of the calls.
    calls: String,
    /// The queue of this side.
    ours: String,
    room: Arc<Room>,
    peers: Peers,
}

impl Served {
    async fn begin(broker: &str, queue: &str, shared: &Shares) -> io::Result<Self> {
        let connection = reach(broker).await?;
        Self::of(connection, queue, &shared.dispatcher).await.map_err(io::Error::other)
    }

    async fn of(connection: Connection, queue: &str, dispatcher: &Dispatcher) -> Result<Self, lapin::Error> {
        let limits = &dispatcher.limits;
        let (answers, pushes) = (connection.create_channel().await?, connection.create_channel().await?);
        pushes.confirm_select(ConfirmSelectOptions::default()).await?;
        // The broker keeps further calls until some are answered.
        let most = limits.calls.try_into().unwrap_or(u16::MAX);
        answers.basic_qos(most, BasicQosOptions::default()).await?;
        answers.queue_declare(queue, QueueDeclareOptions::default(), FieldTable::default()).await?;
        let ours = own_queue(&answers).await?;
        let consume =
            |queue| answers.basic_consume(queue, "", BasicConsumeOptions::default(), FieldTable::default());
        let (calls, returns) = (consume(queue).await?, consume(&ours).await?);
        let tag = calls.tag().to_string();
        let room = Room::new(limits.calls, limits.bytes);
        let deliveries = stream::select(calls, returns).boxed();
        Ok(Self { connection, answers, pushes, deliveries, calls: tag, ours, room, peers: Peers::default() })
    }

    /// Serves until the server stops, or until the broker is lost: then returns false.
    async fn go_on(&mut self, shared: &Shares) -> bool {
        loop {
            match select(self.deliveries.next(), shared.stop.clone()).await {
                Either::Left((Some(Ok(delivery)), _)) => {
                    let Some((delivery, message)) = self.answers(delivery, &shared.dispatcher).await else {
                        continue;
                    };
                    self.room.some().await;
                    self.take(delivery, message, shared);
                }
                Either::Left((ended, _)) => {
                    eprintln!("the broker is gone: {ended:?}");
                    let peers = std::mem::take(&mut *self.peers());
                    peers.into_values().filter_map(|known| known.peer()).for_each(|peer| peer.close());
                    return false;
                }
                Either::Right(_) => break,
            }
        }
        // Other delivered messages return to the queue when this ends.
        let _ = self.answers.basic_cancel(&self.calls, BasicCancelOptions::default()).await;
        // A handler may wait for an answer.
        let room = self.room.clone();
        let mut all = pin!(room.all());
        while let Either::Left((Some(Ok(delivery)), _)) = select(self.deliveries.next(), all.as_mut()).await {
            self.answers(delivery, &shared.dispatcher).await;
        }
        room.all().await;
        let _ = self.connection.close(200, "the server stops").await;
        true
    }

    /// Passes answers to their waiting calls, and returns the rest of the message, if there is any.
    async fn answers(&mut self, delivery: Delivery, dispatcher: &Dispatcher) -> Option<(Delivery, Parsed)> {
        let known = reply_to(&delivery).and_then(|to| self.peers().get(&to).and_then(Known::peer));
        let message = message::parse(&delivery.data, &dispatcher.limits);
        let rest = message.map(|message| match known {
            Some(peer) => peer.answers(message),
            None => Some(message),
        });
        if let Some(rest) = rest.transpose() {
            return Some((delivery, rest));
        }
        // Without a broker there is nothing to confirm.
        let _ = delivery.acker.ack(BasicAckOptions::default()).await;
        None
    }

    /// Answers a call, and then takes it off the queue.
    fn take(&self, delivery: Delivery, message: Parsed, shared: &Shares) {
        let share = self.room.take(1, delivery.data.len());
        let to = reply_to(&delivery);
        let todo = match to.as_ref().map(|to| self.peer(to, shared).ok_or_else(|| busy(&message))) {
            Some(Ok(peer)) => shared.dispatcher.take(message, peer.ids(), Some(&peer)),
            Some(Err(busy)) => busy,
            None => shared.dispatcher.take(message, &Ids::default(), None),
        };
        let answers = self.answers.clone();
        spawn(async move {
            let reply = match todo {
                Todo::Nothing => None,
                Todo::Reply(reply) => Some(reply),
                Todo::Calls(_, answer) => answer.await,
            };
            if let (Some(reply), Some(to)) = (reply, to) {
                let mut properties = BasicProperties::default().with_content_type("application/json".into());
                if let Some(id) = delivery.properties.correlation_id() {
                    properties = properties.with_correlation_id(id.clone());
                }
                let options = BasicPublishOptions::default();
                if answers.basic_publish("", &to, options, reply.as_bytes(), properties).await.is_err() {
                    // The broker gives the call to another server.
                    return;
                }
            }
            // Without a broker there is nothing to confirm.
            let _ = delivery.acker.ack(BasicAckOptions::default()).await;
            drop(share);
        })
        .detach();
    }

    fn peers(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the peer of this queue, if there is a place.
    fn peer(&self, to: &str, shared: &Shares) -> Option<Peer> {
        let mut peers = self.peers();
        if let Some(peer) = peers.get(to).and_then(Known::peer) {
            return Some(peer);
        }
        let place = shared.room.try_acquire_arc()?;
        let (peer, outbox) = Peer::new(&shared.dispatcher.limits);
        let known = peer.downgrade();
        peers.insert(to.to_owned(), known.clone());
        drop(peers);
        let (channel, ours, peers, to) =
            (self.pushes.clone(), self.ours.clone(), self.peers.clone(), to.to_owned());
        spawn(async move {
            tell(outbox, &channel, &to, &ours).await;
            // The peer has disconnected, or is unreferenced. Another one may take its place.
            if let Some(peer) = known.peer() {
                peer.close();
            }
            let mut peers = peers.lock().unwrap_or_else(PoisonError::into_inner);
            if peers.get(&to).is_some_and(|other| other.0 == known.0) {
                peers.remove(&to);
            }
            drop((peers, place));
        })
        .detach();
        Some(peer)
    }
}

/// No place is free.
fn busy(message: &Parsed) -> Todo {
    let id = match message {
        Ok(Message::One(Item::Request(request))) if request.id.is_none() => return Todo::Nothing,
        Ok(Message::One(Item::Request(request))) => request.id.as_deref(),
        _ => None,
    };
    let busy = Error::new(Error::BUSY, "Too many have connections, or queues of their own");
    Todo::Reply(message::error(id, &busy))
}

/// Returns the queue of the sender.
fn reply_to(delivery: &Delivery) -> Option<String> {
    delivery.properties.reply_to().as_ref().map(ToString::to_string)
}

/// Sends unrequested messages, until one comes back or the peer is dropped.
async fn tell(mut outbox: Outbox, channel: &Channel, to: &str, ours: &str) {
    while let Some(first) = outbox.next().await {
        let mut outs = vec![first];
        while let Ok(out) = outbox.try_recv() {
            outs.push(out);
        }
        // The messages hold their shares of the room until the broker has them.
        let (texts, _shares): (Vec<_>, Vec<_>) = outs.into_iter().map(|out| (out.text, out.share)).unzip();
        if publish(channel, to, ours, texts).await.is_err() {
            return;
        }
    }
}
