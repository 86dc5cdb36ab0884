//! [`Peer`]: who is at the other end of a connection, to be called and told; and what is on its way there.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::channel::{mpsc, oneshot};
use paceline::timeout;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::client::CallError;
use crate::message::{self, Answer, Item, Message};
use crate::room::{Room, Share};
use crate::{Error, Limits};

/// The other end of a connection. Clones are the same.
#[derive(Clone)]
pub struct Peer(Arc<Inner>);

struct Inner {
    number: u64,
    outbox: mpsc::UnboundedSender<Out>,
    /// For what it asked, and for what it did not.
    replies: Arc<Room>,
    pushes: Arc<Room>,
    ids: Ids,
    ours: Mutex<Ours>,
}

/// Calls of ours that wait for their answers; and whom to tell of the end.
#[derive(Default)]
struct Ours {
    last: u64,
    waiting: HashMap<u64, oneshot::Sender<Answered>>,
    at_end: Vec<Box<dyn FnOnce() + Send>>,
    is_over: bool,
}

type Answered = Result<Result<Box<RawValue>, Error>, CallError>;

/// A message on its way. It has its share of the room until it is written.
pub(crate) struct Out {
    pub(crate) text: String,
    pub(crate) share: Share,
}

/// What is to be written.
pub(crate) type Outbox = mpsc::UnboundedReceiver<Out>;

impl Peer {
    pub(crate) fn new(limits: &Limits) -> (Self, Outbox) {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let (sender, outbox) = mpsc::unbounded();
        let inner = Inner {
            number: LAST.fetch_add(1, Ordering::Relaxed),
            outbox: sender,
            replies: Room::new(limits.calls, limits.bytes),
            pushes: Room::new(limits.pushed / 64, limits.pushed),
            ids: Ids::default(),
            ours: Mutex::default(),
        };
        (Self(Arc::new(inner)), outbox)
    }

    /// Nobody else in this process has it.
    pub fn number(&self) -> u64 {
        self.0.number
    }

    pub(crate) fn replies(&self) -> &Arc<Room> {
        &self.0.replies
    }

    pub(crate) fn ids(&self) -> &Ids {
        &self.0.ids
    }

    /// Sends a reply. If the peer is gone, nobody misses it.
    pub(crate) fn reply(&self, text: String, mut share: Share) {
        share.resize(text.len());
        let _ = self.0.outbox.unbounded_send(Out { text, share });
    }

    /// Nothing can be sent any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.outbox.is_closed()
    }

    /// Tells it something, and waits for nothing. A peer that has not taken what it was told before is told no more: perhaps it is one to
    /// [close](Peer::close).
    pub fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), CallError> {
        self.push(message::request(None, method, params)?)
    }

    /// Calls a method of its, and waits so long for the answer.
    pub async fn call<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        limit: Duration,
    ) -> Result<R, CallError> {
        let (waiting, mut answer) = Waiting::new(self)?;
        self.push(message::request(Some(waiting.id), method, params)?)?;
        let answer = timeout(limit, &mut answer).await?;
        answer.unwrap_or(Err(CallError::Closed))?.map_err(CallError::Error).and_then(|result| {
            serde_json::from_str(result.get()).map_err(|error| CallError::Answer(error.to_string()))
        })
    }

    fn push(&self, text: String) -> Result<(), CallError> {
        let share = self.0.pushes.try_take(text.len()).ok_or(CallError::TooMuch)?;
        self.0.outbox.unbounded_send(Out { text, share }).map_err(|_| CallError::Closed)
    }

    /// Hands answers on to who waits for them, and gives the rest, if there is any.
    pub(crate) fn answers(&self, message: Message) -> Option<Message> {
        let is_other = |item: &Item| match item {
            Item::Answer(answer) => {
                self.answered(answer);
                false
            }
            _ => true,
        };
        match message {
            Message::One(item) => is_other(&item).then_some(Message::One(item)),
            Message::Batch(mut items) => {
                items.retain(is_other);
                (!items.is_empty()).then_some(Message::Batch(items))
            }
        }
    }

    /// The peer has answered a call of ours, or one that nobody waits for any more.
    fn answered(&self, answer: &Answer) {
        let waiting = answer.id.and_then(|id| self.ours().waiting.remove(&id));
        let outcome = match &answer.outcome {
            Some(Ok(result)) => Ok(Ok(result.clone())),
            Some(Err(error)) => Ok(Err(error.clone())),
            None => Err(CallError::Answer("neither a result nor an error, or both".to_owned())),
        };
        waiting.into_iter().for_each(|waiting| drop(waiting.send(outcome.clone())));
    }

    /// Has something done when the connection is over; at once if it is.
    pub fn at_end(&self, action: impl FnOnce() + Send + 'static) {
        let mut ours = self.ours();
        if ours.is_over {
            drop(ours);
            return action();
        }
        ours.at_end.push(Box::new(action));
    }

    /// Sends what is there, and ends the connection.
    pub fn close(&self) {
        self.0.outbox.close_channel();
        let mut ours = self.ours();
        ours.is_over = true;
        let (waiting, at_end) = (std::mem::take(&mut ours.waiting), std::mem::take(&mut ours.at_end));
        drop(ours);
        drop(waiting);
        at_end.into_iter().for_each(|action| action());
    }

    fn ours(&self) -> MutexGuard<'_, Ours> {
        self.0.ours.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(feature = "amqp")]
impl Peer {
    /// What knows it without keeping it.
    pub(crate) fn downgrade(&self) -> Known {
        Known(self.0.number, Arc::downgrade(&self.0))
    }
}

/// A peer that goes when nobody else knows it.
#[cfg(feature = "amqp")]
#[derive(Clone)]
pub(crate) struct Known(pub(crate) u64, std::sync::Weak<Inner>);

#[cfg(feature = "amqp")]
impl Known {
    pub(crate) fn peer(&self) -> Option<Peer> {
        self.1.upgrade().map(Peer)
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Peer").field(&self.0.number).finish()
    }
}

/// A call of ours, until it is answered or given up.
struct Waiting<'a> {
    peer: &'a Peer,
    id: u64,
}

impl<'a> Waiting<'a> {
    fn new(peer: &'a Peer) -> Result<(Self, oneshot::Receiver<Answered>), CallError> {
        let (sender, answer) = oneshot::channel();
        let mut ours = peer.ours();
        if ours.is_over {
            return Err(CallError::Closed);
        }
        ours.last += 1;
        let id = ours.last;
        ours.waiting.insert(id, sender);
        Ok((Self { peer, id }, answer))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.peer.ours().waiting.remove(&self.id);
    }
}

/// The ids of a peer's calls that are not answered yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids(Arc<Mutex<HashSet<Box<str>>>>);

/// One of them, until it is.
pub(crate) struct Held(Ids, Box<str>);

impl Ids {
    /// `None` if it is there already. That of a notification, or `null`, may be there more than once.
    pub(crate) fn hold(&self, id: Option<&RawValue>) -> Option<Option<Held>> {
        let Some(id) = id.filter(|id| id.get() != "null") else { return Some(None) };
        let id: Box<str> = id.get().into();
        let is_new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
        is_new.then(|| Some(Held(self.clone(), id)))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.1);
    }
}
