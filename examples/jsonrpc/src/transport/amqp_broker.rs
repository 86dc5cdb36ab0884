//! The parts that both sides share.

use std::io;

use lapin::options::{BasicPublishOptions, QueueDeclareOptions};
use lapin::publisher_confirm::Confirmation;
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, Error};

/// Returns the broker's address, and the queue.
pub(super) fn parts(url: &str) -> io::Result<(&str, &str)> {
    let usage =
        || io::Error::new(io::ErrorKind::InvalidInput, format!("{url:?} is no amqp://HOST:PORT?queue=NAME"));
    url.split_once("?queue=").ok_or_else(usage)
}

pub(super) async fn reach(broker: &str) -> io::Result<Connection> {
    let reached = Connection::connect(broker, super::amqp_runtime::properties()).await;
    reached.map_err(|error| io::Error::other(format!("cannot reach the broker at {broker}: {error}")))
}

/// Declares a queue that exists as long as this connection. A full queue rejects messages, and the sender is
/// notified.
pub(super) async fn own_queue(channel: &Channel) -> Result<String, Error> {
    let mut limits = FieldTable::default();
    limits.insert("x-max-length-bytes".into(), AMQPValue::LongInt(16 << 20));
    limits.insert("x-overflow".into(), AMQPValue::LongString("reject-publish".into()));
    let options = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
    Ok(channel.queue_declare("", options, limits).await?.name().to_string())
}

/// Sends messages, and waits until the broker has put them into that queue.
pub(super) async fn publish(
    channel: &Channel,
    to: &str,
    ours: &str,
    messages: Vec<String>,
) -> io::Result<()> {
    let properties = BasicProperties::default().with_content_type("application/json".into());
    let properties = properties.with_reply_to(ours.into());
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    let mut confirms = Vec::new();
    for message in messages {
        let confirm = channel.basic_publish("", to, options, message.as_bytes(), properties.clone()).await;
        confirms.push(confirm.map_err(io::Error::other)?);
    }
    for confirm in confirms {
        if confirm.await.map_err(io::Error::other)? != Confirmation::Ack(None) {
            let what = format!("there is no queue {to:?}, or it takes no more");
            return Err(io::Error::new(io::ErrorKind::NotConnected, what));
        }
    }
    Ok(())
}
