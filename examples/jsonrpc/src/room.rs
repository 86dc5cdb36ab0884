//! [`Room`]: how much a connection may hold, and who waits until that is less.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use futures::task::AtomicWaker;

/// For so many things of so many bytes together. One task at a time may wait for it.
#[derive(Debug)]
pub(crate) struct Room {
    most: (usize, usize),
    count: AtomicUsize,
    bytes: AtomicUsize,
    waiting: AtomicWaker,
}

/// Some of the room, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    room: Arc<Room>,
    count: usize,
    bytes: usize,
}

impl Room {
    pub(crate) fn new(count: usize, bytes: usize) -> Arc<Self> {
        let most = (count, bytes);
        Arc::new(Self { most, count: 0.into(), bytes: 0.into(), waiting: AtomicWaker::new() })
    }

    /// Takes it, though there may be less: who can wait has waited before.
    pub(crate) fn take(self: &Arc<Self>, count: usize, bytes: usize) -> Share {
        self.count.fetch_add(count, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Share { room: self.clone(), count, bytes }
    }

    /// Takes it if it is there.
    pub(crate) fn try_take(self: &Arc<Self>, bytes: usize) -> Option<Share> {
        let share = self.take(1, bytes);
        let is_too_much = self.count.load(Ordering::Relaxed) > self.most.0
            || self.bytes.load(Ordering::Relaxed) > self.most.1;
        (!is_too_much).then_some(share)
    }

    /// Until there is some.
    pub(crate) async fn some(&self) {
        self.until(|count, bytes| count < self.most.0 && bytes < self.most.1).await;
    }

    /// Until all of it is there.
    pub(crate) async fn all(&self) {
        self.until(|count, _| count == 0).await;
    }

    async fn until(&self, enough: impl Fn(usize, usize) -> bool) {
        let enough = || enough(self.count.load(Ordering::Acquire), self.bytes.load(Ordering::Acquire));
        poll_fn(|cx| {
            if enough() {
                return Poll::Ready(());
            }
            self.waiting.register(cx.waker());
            // It may have been given back between the look and the wait.
            if enough() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl Share {
    /// It is of so many bytes now.
    pub(crate) fn resize(&mut self, bytes: usize) {
        self.room.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.room.bytes.fetch_sub(self.bytes, Ordering::Release);
        self.bytes = bytes;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.room.bytes.fetch_sub(self.bytes, Ordering::Release);
        self.room.count.fetch_sub(self.count, Ordering::Release);
        self.room.waiting.wake();
    }
}
