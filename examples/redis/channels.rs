//! Publish and subscribe.
//!
//! Each subscriber has a queue, which its connection writes to the peer. The queue of a peer that reads more
//! slowly than others publish would grow for ever. So a subscriber whose queue holds more than [`MAX_HELD`]
//! bytes when the next message is published loses its connection, as with redis. A publisher never waits, and
//! other subscribers are not affected. A single message may be longer than that: a queue that holds less
//! takes it.
//!
//! A subscription has at most [`MAX_NAMES`] names of at most [`MAX_NAME`] bytes, so its names take a bounded
//! amount of memory, too.

use std::collections::{HashMap, HashSet};
use std::net::Shutdown;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_channel::{Receiver, Sender};
use paceline::net::TcpStream;

use crate::reply;

/// Bytes that the queue of one subscriber may hold for the next message to fit: those of a message of the
/// greatest length, and some. All subscribers share a message; here it counts for each.
pub const MAX_HELD: usize = (4 << 20) + (64 << 10);
/// The names of a subscription, and the bytes of one of them.
pub const MAX_NAMES: usize = 1024;
pub const MAX_NAME: usize = 1024;
/// The size of a message beside its bytes.
const OVERHEAD: usize = 64;

type Name = Arc<[u8]>;
/// An encoded message.
pub type Message = Arc<[u8]>;

#[derive(Default)]
pub struct Channels(Mutex<HashMap<Name, Vec<Arc<Subscriber>>>>);

/// A subscriber, as publishers see it.
struct Subscriber {
    queue: Sender<Message>,
    held: AtomicUsize,
    /// To disconnect it: its task may be in a write that never ends.
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
    /// Returns the number of receivers.
    pub fn publish(&self, name: &[u8], payload: &[u8]) -> usize {
        let channels = self.lock();
        let Some(subscribers) = channels.get(name) else { return 0 };
        let mut message = Vec::with_capacity(name.len() + payload.len() + OVERHEAD);
        reply::array(&mut message, 3);
        [b"message".as_slice(), name, payload].into_iter().for_each(|part| reply::bulk(&mut message, part));
        let message = Message::from(message);
        // Under the lock, so that all subscribers get the messages in the same order.
        subscribers.iter().filter(|subscriber| subscriber.takes(&message)).count()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Vec<Arc<Subscriber>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscriber {
    fn takes(&self, message: &Message) -> bool {
        // Only the bytes before this message count: a single long message is no sign of a slow peer.
        let size = message.len() + OVERHEAD;
        if self.held.fetch_add(size, Relaxed) > MAX_HELD {
            self.held.fetch_sub(size, Relaxed);
            // Ends all waits on this socket, including writes. The connection may have ended already.
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

    /// Returns whether there is room for these names, too.
    pub fn has_room<'a>(&self, names: impl Iterator<Item = &'a [u8]>) -> bool {
        let new: HashSet<&[u8]> = names.filter(|name| !self.names.contains(*name)).collect();
        self.len() + new.len() <= MAX_NAMES
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

    /// Waits for a message, and appends it and those behind it to `out`, until `out` has `enough` bytes.
    pub async fn next(&self, out: &mut Vec<u8>, enough: usize) {
        // This never fails: this struct holds a sender.
        if let Ok(message) = self.queue.recv().await {
            self.put(&message, out);
            while out.len() < enough {
                let Ok(message) = self.queue.try_recv() else { return };
                self.put(&message, out);
            }
        }
    }

    /// Appends the queued messages to `out`: no more than the queue may hold, even if others publish
    /// meanwhile.
    pub fn put_all(&self, out: &mut Vec<u8>) {
        for _ in 0..self.queue.len() {
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
