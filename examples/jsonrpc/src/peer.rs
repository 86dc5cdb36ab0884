//! [`Peer`]: the other end of a connection, which can be called and notified; and the messages on their way
//! to it.

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

/// The other end of a connection. Clones refer to the same peer.
#[derive(Clone)]
pub struct Peer(Arc<Inner>);

struct Inner {
    number: u64,
    outbox: mpsc::UnboundedSender<Out>,
    /// Room for replies, and room for unrequested messages.
    replies: Arc<Room>,
    pushes: Arc<Room>,
    ids: Ids,
    ours: Mutex<Ours>,
}

/// Calls of this side that wait for their answers, and actions for the end.
#[derive(Default)]
struct Ours {
    last: u64,
    waiting: HashMap<u64, oneshot::Sender<Answered>>,
    at_end: Vec<Box<dyn FnOnce() + Send>>,
    is_over: bool,
}

type Answered = Result<Result<Box<RawValue>, Error>, CallError>;

/// A message on its way. The message holds its share of the room until it is written.
pub(crate) struct Out {
    pub(crate) text: String,
    pub(crate) share: Share,
}

/// The messages to be written.
pub(crate) type Outbox = mpsc::UnboundedReceiver<Out>;

impl Peer {
    pub(crate) fn new(limits: &Limits) -> (Self, Outbox) {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let (sender, outbox) = mpsc::unbounded();
        let inner = Inner {
            number: LAST.fetch_add(1, Ordering::Relaxed),
            outbox: sender,
            replies: Room::new(limits.calls, limits.bytes),
            // A long message does not fill the room: another one may follow before the peer has read it.
            pushes: Room::new(limits.pushed / 64, limits.pushed.max(limits.message)),
            ids: Ids::default(),
            ours: Mutex::default(),
        };
        (Self(Arc::new(inner)), outbox)
    }

    /// A number that is unique in this process.
    pub fn number(&self) -> u64 {
        self.0.number
    }

    pub(crate) fn replies(&self) -> &Arc<Room> {
        &self.0.replies
    }

    pub(crate) fn ids(&self) -> &Ids {
        &self.0.ids
    }

    /// Sends a reply; drops it if the peer has disconnected.
    pub(crate) fn reply(&self, text: String, mut share: Share) {
        share.resize(text.len());
        let _ = self.0.outbox.unbounded_send(Out { text, share });
    }

    /// Returns whether nothing can be sent any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.outbox.is_closed()
    }

    /// Sends a notification without waiting. Fails if the peer has not read enough of the earlier ones: such
    /// a peer may be worth [closing](Peer::close).
    pub fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), CallError> {
        self.push(message::request(None, method, params)?)
    }

    /// Calls a method of the peer, and waits so long for the answer.
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

    /// Passes answers to their waiting calls, and returns the rest of the message, if there is any.
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

    /// Handles an answer to a call of this side, which may no longer wait for it.
    fn answered(&self, answer: &Answer) {
        let waiting = answer.id.and_then(|id| self.ours().waiting.remove(&id));
        let outcome = match &answer.outcome {
            Some(Ok(result)) => Ok(Ok(result.clone())),
            Some(Err(error)) => Ok(Err(error.clone())),
            None => Err(CallError::Answer("neither a result nor an error, or both".to_owned())),
        };
        waiting.into_iter().for_each(|waiting| drop(waiting.send(outcome.clone())));
    }

    /// Registers an action for the end of the connection; runs it at once if the connection has ended.
    pub fn at_end(&self, action: impl FnOnce() + Send + 'static) {
        let mut ours = self.ours();
        if ours.is_over {
            drop(ours);
            return action();
        }
        ours.at_end.push(Box::new(action));
    }

    /// Sends the queued messages, and ends the connection.
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
    /// Returns a weak reference.
    pub(crate) fn downgrade(&self) -> Known {
        Known(self.0.number, Arc::downgrade(&self.0))
    }
}

/// A weak reference to a peer.
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

/// A call of this side, until it is answered or given up.
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

/// One of these ids, removed when this is dropped.
pub(crate) struct Held(Ids, Box<str>);

impl Ids {
    /// Returns `None` if the id is in use. A missing id and `null` may be used more than once.
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
