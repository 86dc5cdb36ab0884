//! A queue of items between a thread that makes them and a task that takes them.

use std::sync::Arc;
use std::task::{Context, Poll};

use concurrent_queue::{ConcurrentQueue, PopError, PushError};

use super::bell::{self, Bell};

#[derive(Debug)]
struct SharedQueue<T> {
    items: ConcurrentQueue<T>,
    capacity: usize,
    taker: Bell,
    maker: Bell,
}

impl<T> SharedQueue<T> {
    /// Closes the queue and wakes both sides. Items that are in it can still be taken.
    fn close(&self) {
        self.items.close();
        self.taker.ring();
        self.maker.ring();
    }
}

/// Makes a queue of this capacity; zero counts as one.
pub(super) fn items<T>(capacity: usize) -> (Taker<T>, Maker<T>) {
    let capacity = capacity.max(1);
    let items = ConcurrentQueue::bounded(capacity);
    let shared = Arc::new(SharedQueue { items, capacity, taker: Bell::new(), maker: Bell::new() });
    (Taker(shared.clone()), Maker(shared))
}

/// The side that takes items. Dropping it closes the queue for the other side.
#[derive(Debug)]
pub(super) struct Taker<T>(Arc<SharedQueue<T>>);

/// The side that makes items. Dropping it closes the queue for the other side, which can take what is left.
#[derive(Debug)]
pub(super) struct Maker<T>(Arc<SharedQueue<T>>);

impl<T> Taker<T> {
    /// Returns the next item; `None` if none is left and the other side is closed. Wakes a waiting maker once
    /// half of the queue is free.
    pub(super) fn poll_take(&mut self, cx: &Context<'_>) -> Poll<Option<T>> {
        let shared = &*self.0;
        let next = bell::poll(&shared.taker, cx, || match shared.items.pop() {
            Ok(item) => Some(Some(item)),
            Err(PopError::Closed) => Some(None),
            Err(PopError::Empty) => None,
        });
        // A maker waits only because the queue was full, and is woken when half of the queue is free, not for
        // each item.
        if shared.items.len() <= shared.capacity / 2 {
            shared.maker.ring();
        }
        next
    }
}

impl<T> Maker<T> {
    /// Puts the item in when there is room, and wakes a waiting taker. Returns false if the other side is
    /// closed: then the item is dropped. `item` has to be there at each poll.
    pub(super) fn poll_put(&mut self, item: &mut Option<T>, cx: &Context<'_>) -> Poll<bool> {
        let shared = &*self.0;
        let put = bell::poll(&shared.maker, cx, || match shared.items.push(item.take()?) {
            Ok(()) => Some(true),
            Err(PushError::Closed(_)) => Some(false),
            Err(PushError::Full(back)) => {
                *item = Some(back);
                None
            }
        });
        if put == Poll::Ready(true) {
            shared.taker.ring();
        }
        put
    }
}

impl<T> Drop for Taker<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<T> Drop for Maker<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}
