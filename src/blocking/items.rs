//! A queue of items between a thread that makes them and a task that takes them.

use std::sync::Arc;
use std::task::{Context, Poll};

use concurrent_queue::{ConcurrentQueue, PopError, PushError};

use super::bell::{self, Bell};

#[derive(Debug)]
struct Shared<T> {
    items: ConcurrentQueue<T>,
    capacity: usize,
    taker: Bell,
    maker: Bell,
}

impl<T> Shared<T> {
    fn close(&self) {
        self.items.close();
        self.taker.ring();
        self.maker.ring();
    }
}

/// A queue of so many items.
pub(super) fn items<T>(capacity: usize) -> (Taker<T>, Maker<T>) {
    let capacity = capacity.max(1);
    let items = ConcurrentQueue::bounded(capacity);
    let shared = Arc::new(Shared { items, capacity, taker: Bell::new(), maker: Bell::new() });
    (Taker(shared.clone()), Maker(shared))
}

/// Takes items. Dropping it ends the queue for the other side.
#[derive(Debug)]
pub(super) struct Taker<T>(Arc<Shared<T>>);

/// Makes items. Dropping it ends the queue for the other side, which has what is left.
#[derive(Debug)]
pub(super) struct Maker<T>(Arc<Shared<T>>);

impl<T> Taker<T> {
    /// The next item; `None` if there is none left, and nobody makes one.
    pub(super) fn poll_take(&mut self, cx: &Context<'_>) -> Poll<Option<T>> {
        let shared = &*self.0;
        let next = bell::poll(&shared.taker, cx, || match shared.items.pop() {
            Ok(item) => Some(Some(item)),
            Err(PopError::Closed) => Some(None),
            Err(PopError::Empty) => None,
        });
        // A maker that waits was stopped by a full queue: it is not called for each item.
        if shared.items.len() <= shared.capacity / 2 {
            shared.maker.ring();
        }
        next
    }
}

impl<T> Maker<T> {
    /// Puts the item in when there is room. False if nobody takes it: then it is dropped.
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
