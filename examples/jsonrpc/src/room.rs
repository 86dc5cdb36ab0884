//! [`Room`]: how much a connection may hold, and the wait for free room.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use futures::task::AtomicWaker;

/// Room for a number of items and a number of bytes. One task at a time may wait for it.
#[derive(Debug)]
pub(crate) struct Room {
    most: (usize, usize),
    count: AtomicUsize,
    bytes: AtomicUsize,
    waiting: AtomicWaker,
}

/// A share of the room, until it is dropped.
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

    /// Takes a share, even beyond the limit: callers that can wait have waited before.
    pub(crate) fn take(self: &Arc<Self>, count: usize, bytes: usize) -> Share {
        self.count.fetch_add(count, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Share { room: self.clone(), count, bytes }
    }

    /// Takes a share, unless earlier shares fill the room. So the last item may have any size: a limit on the
    /// sum refuses a peer that reads nothing, and never a single long message to a peer that reads.
    pub(crate) fn try_take(self: &Arc<Self>, bytes: usize) -> Option<Share> {
        let counted = self.count.fetch_add(1, Ordering::Relaxed);
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let share = Share { room: self.clone(), count: 1, bytes };
        (counted < self.most.0 && before <= self.most.1).then_some(share)
    }

    /// Waits for some free room.
    pub(crate) async fn some(&self) {
        self.until(|count, bytes| count < self.most.0 && bytes < self.most.1).await;
    }

    /// Waits until all shares were returned.
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
            // A share may have been returned between the check and the registration.
            if enough() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl Share {
    /// Changes the number of bytes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_long_message_has_room_and_the_next_has_none_until_it_is_taken() {
        let room = Room::new(10, 100);
        let short = room.try_take(60).expect("the room is empty");
        let long = room.try_take(1000).expect("60 bytes do not fill the room");
        assert!(room.try_take(1).is_none());
        drop(long);
        assert!(room.try_take(1).is_some());
        drop(short);
        assert!(room.try_take(1000).is_some());
    }

    #[test]
    fn there_is_room_for_so_many() {
        let room = Room::new(2, 100);
        let _two = [room.try_take(0).expect("the first"), room.try_take(0).expect("the second")];
        assert!(room.try_take(0).is_none());
    }
}
