//! Publish and subscribe.
//!
//! Each subscriber has a queue, which its connection writes to the peer. A peer that reads more slowly than others publish would have it
//! grow for ever: so when it holds more than [`MAX_HELD`] bytes, the subscriber loses its connection, as it does with redis. Whoever
//! publishes never waits, and nobody else notices.

use std::collections::{HashMap, HashSet};
use std::net::Shutdown;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_channel::{Receiver, Sender};
use paceline::net::TcpStream;

use crate::reply;

/// What is held for one subscriber. A message is shared by all; here it counts for each.
pub const MAX_HELD: usize = 1 << 20;
/// What a message takes beside its bytes.
const OVERHEAD: usize = 64;

type Name = Arc<[u8]>;
/// As it is sent.
pub type Message = Arc<[u8]>;

#[derive(Default)]
pub struct Channels(Mutex<HashMap<Name, Vec<Arc<Subscriber>>>>);

/// Who gets messages, as those see it who publish.
struct Subscriber {
    queue: Sender<Message>,
    held: AtomicUsize,
    /// To cut it off: its task may be in a write that never ends.
    stream: TcpStream,
}

/// The same as its connection sees it. Dropping it ends all its subscriptions.
pub struct Subscription {
    channels: Arc<Channels>,
    names: HashSet<Name>,
    subscriber: Arc<Subscriber>,
    queue: Receiver<Message>,
}

impl Channels {
    /// How many get it.
    pub fn publish(&self, name: &[u8], payload: &[u8]) -> usize {
        let channels = self.lock();
        let Some(subscribers) = channels.get(name) else { return 0 };
        let mut message = Vec::with_capacity(name.len() + payload.len() + OVERHEAD);
        reply::array(&mut message, 3);
        [b"message".as_slice(), name, payload].into_iter().for_each(|part| reply::bulk(&mut message, part));
        let message = Message::from(message);
        // Under the lock, so that all get the messages in the same order.
        subscribers.iter().filter(|subscriber| subscriber.takes(&message)).count()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Vec<Arc<Subscriber>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscriber {
    fn takes(&self, message: &Message) -> bool {
        let size = message.len() + OVERHEAD;
        if self.held.fetch_add(size, Relaxed) + size > MAX_HELD {
            self.held.fetch_sub(size, Relaxed);
            // All that waits for this socket ends now, a write as well. It may have ended already.
            let _ = self.stream.shutdown(Shutdown::Both);
            return false;
        }
        self.queue.try_send(message.clone()).is_ok()
    }
}

impl Subscription {
    pub fn new(channels: Arc<Channels>, stream: TcpStream) -> Self {
        let (sender, queue) = async_channel::unbounded();
        let subscriber = Arc::new(Subscriber { queue: sender, held: AtomicUsize::new(0), stream });
        Self { channels, names: HashSet::new(), subscriber, queue }
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn names(&self) -> Vec<Name> {
        self.names.iter().cloned().collect()
    }

    pub fn subscribe(&mut self, name: &[u8]) {
        let name = Name::from(name);
        if self.names.insert(name.clone()) {
            self.channels.lock().entry(name).or_default().push(self.subscriber.clone());
        }
    }

    pub fn unsubscribe(&mut self, name: &[u8]) {
        if self.names.remove(name) {
            let mut channels = self.channels.lock();
            if let Some(subscribers) = channels.get_mut(name) {
                subscribers.retain(|subscriber| !Arc::ptr_eq(subscriber, &self.subscriber));
                if subscribers.is_empty() {
                    channels.remove(name);
                }
            }
        }
    }

    /// Waits for a message, and puts it and those behind it to what is to be written, until that is `enough`.
    pub async fn next(&self, out: &mut Vec<u8>, enough: usize) {
        // It never fails: this holds a sender.
        if let Ok(message) = self.queue.recv().await {
            self.put(&message, out);
            self.put_those_there(out, enough);
        }
    }

    /// The same with those that are there.
    pub fn put_those_there(&self, out: &mut Vec<u8>, enough: usize) {
        while out.len() < enough {
            let Ok(message) = self.queue.try_recv() else { return };
            self.put(&message, out);
        }
    }

    fn put(&self, message: &Message, out: &mut Vec<u8>) {
        out.extend_from_slice(message);
        self.subscriber.held.fetch_sub(message.len() + OVERHEAD, Relaxed);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.names().iter().for_each(|name| self.unsubscribe(name));
    }
}
