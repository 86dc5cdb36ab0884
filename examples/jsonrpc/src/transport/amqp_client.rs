//! The client's side of AMQP: a queue of its own, and that of the servers. An answer goes to the server that
//! sent the call.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use lapin::acker::Acker;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, ConfirmSelectOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Connection, Consumer, Error};
use paceline::prelude::*;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::amqp_broker::{own_queue, parts, publish, reach};
use crate::session::{Incoming, Reader, Writer};

/// Messages prefetched at once; the broker keeps the others.
const AT_ONCE: u16 = 100;

pub(crate) struct AmqpReader {
    consumer: Consumer,
    /// The previous message, which is taken off the queue when the next one is requested.
    last: Option<Acker>,
    asked: Asked,
}

/// The queues of calling servers, by the ids of their unanswered calls.
type Asked = Arc<Mutex<HashMap<u64, String>>>;

/// The members that distinguish a call from an answer.
#[derive(Deserialize)]
struct Head {
    method: Option<IgnoredAny>,
    id: Option<u64>,
}

pub(crate) struct AmqpWriter {
    connection: Connection,
    channel: Channel,
    /// The server's queue, and that of this side.
    to: String,
    ours: String,
    messages: Vec<String>,
    asked: Asked,
    /// Answers, and their queues.
    answers: Vec<(String, String)>,
}

pub(crate) async fn connect(url: &str) -> io::Result<(AmqpReader, AmqpWriter)> {
    let (broker, queue) = parts(url)?;
    halves(reach(broker).await?, queue).await.map_err(io::Error::other)
}

async fn halves(connection: Connection, queue: &str) -> Result<(AmqpReader, AmqpWriter), Error> {
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    channel.basic_qos(AT_ONCE, BasicQosOptions::default()).await?;
    let ours = own_queue(&channel).await?;
    let consumer =
        channel.basic_consume(&ours, "", BasicConsumeOptions::default(), FieldTable::default()).await?;
    let (asked, to) = (Asked::default(), queue.to_owned());
    let (messages, answers) = (Vec::new(), Vec::new());
    let writer = AmqpWriter { connection, channel, to, ours, messages, asked: asked.clone(), answers };
    Ok((AmqpReader { consumer, last: None, asked }, writer))
}

impl Reader for AmqpReader {
    async fn next(&mut self) -> io::Result<Option<Incoming>> {
        if let Some(last) = self.last.take() {
            last.ack(BasicAckOptions::default()).await.map_err(io::Error::other)?;
        }
        let Some(delivery) = self.consumer.next().await else { return Ok(None) };
        let delivery = delivery.map_err(io::Error::other)?;
        self.last = Some(delivery.acker);
        // Answers to calls of this side have none.
        if let Some(to) = delivery.properties.reply_to() {
            if let Ok(Head { method: Some(_), id: Some(id) }) = serde_json::from_slice(&delivery.data) {
                let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
                asked.insert(id, to.to_string());
            }
        }
        Ok(Some(Incoming::Message(delivery.data)))
    }
}

impl Writer for AmqpWriter {
    async fn put(&mut self, message: String) -> io::Result<()> {
        let asked = match serde_json::from_str(&message) {
            Ok(Head { method: None, id: Some(id) }) => {
                self.asked.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
            }
            _ => None,
        };
        match asked {
            Some(to) => self.answers.push((to, message)),
            None => self.messages.push(message),
        }
        Ok(())
    }

    async fn flush(&mut self) -> io::Result<()> {
        for (to, answer) in self.answers.drain(..) {
            // A server that has disconnected needs no answer.
            let _ = publish(&self.channel, &to, &self.ours, vec![answer]).await;
        }
        publish(&self.channel, &self.to, &self.ours, std::mem::take(&mut self.messages)).await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.connection.close(200, "the client is done").await.map_err(io::Error::other)
    }
}
