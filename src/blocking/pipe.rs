//! A pipe of bytes between a task and a thread: a ring with one writer and one reader, each of which works on its part of the ring in
//! place.
//!
//! `tail` is what was written, `head` what was read, both counted from the beginning; `head <= tail <= head + capacity`. What is from
//! `head` to `tail` is the reader's, the rest the writer's. Each moves its own end only, and only from what is its own to what is the
//! other's; so nobody touches what is not his.

use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{fmt, slice};

use super::bell::{self, Bell};
use crate::sync::{AtomicBool, AtomicUsize, Ordering};

/// Bytes that a side works on at once, at most: so that the other side need not wait for the whole of a large ring, and what was
/// just written is read while it is in the cache.
const AT_ONCE: usize = 128 * 1024;

struct Ring {
    bytes: NonNull<[u8]>,
    head: AtomicUsize,
    tail: AtomicUsize,
    closed: AtomicBool,
    reader: Bell,
    writer: Bell,
}

// SAFETY: each byte is one side's at a time, see above.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Where `position` is, and how many of `most` bytes follow it without a gap.
    fn place(&self, position: usize, most: usize) -> (NonNull<u8>, usize) {
        // The capacity is a power of two, so that positions may wrap around.
        let at = position & (self.capacity() - 1);
        // SAFETY: it is within the ring.
        (unsafe { self.bytes.cast::<u8>().add(at) }, most.min(self.capacity() - at).min(AT_ONCE))
    }

    fn close(&self) {
        // ORDER: Release pairs with the Acquire of `is_closed`: what was written before.
        self.closed.store(true, Ordering::Release);
        self.reader.ring();
        self.writer.ring();
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: it is from `Box::into_raw`, and nobody else has it any more.
        drop(unsafe { Box::from_raw(self.bytes.as_ptr()) });
    }
}

/// A pipe that holds so many bytes at least.
pub(super) fn pipe(capacity: usize) -> (Reader, Writer) {
    // Zeroes, which the system gives for nothing where there are many.
    let capacity = capacity.max(1).checked_next_power_of_two().expect("so many bytes can be addressed");
    let bytes = Box::into_raw(vec![0; capacity].into_boxed_slice());
    let ring = Arc::new(Ring {
        bytes: NonNull::new(bytes).expect("a box is somewhere"),
        head: AtomicUsize::new(0),
        tail: AtomicUsize::new(0),
        closed: AtomicBool::new(false),
        reader: Bell::new(),
        writer: Bell::new(),
    });
    (Reader(ring.clone()), Writer(ring))
}

/// Takes bytes out. Dropping it ends the pipe for the other side.
pub(super) struct Reader(Arc<Ring>);

/// Puts bytes in. Dropping it ends the pipe for the other side, which may read what is left.
pub(super) struct Writer(Arc<Ring>);

impl Reader {
    /// The next bytes, one at least; `None` if there are none left, and nobody writes.
    pub(super) fn poll_bytes(&mut self, cx: &Context<'_>) -> Poll<Option<&[u8]>> {
        let ring = &*self.0;
        let head = ring.head.load(Ordering::Relaxed);
        bell::poll(&ring.reader, cx, || {
            // What was written before the end is seen with it.
            let closed = ring.is_closed();
            // ORDER: Acquire pairs with the Release of `Writer::put`: the bytes.
            match ring.tail.load(Ordering::Acquire).wrapping_sub(head) {
                0 if closed => Some(None),
                0 => None,
                there => {
                    let (at, len) = ring.place(head, there);
                    // SAFETY: they are the reader's until `take`, which needs `self`.
                    Some(Some(unsafe { slice::from_raw_parts(at.as_ptr(), len) }))
                }
            }
        })
    }

    /// So many of these bytes were read.
    pub(super) fn take(&mut self, bytes: usize) {
        let ring = &*self.0;
        let head = ring.head.load(Ordering::Relaxed).wrapping_add(bytes);
        let left = ring.tail.load(Ordering::Relaxed).wrapping_sub(head);
        assert!(left <= ring.capacity(), "more was read than there was");
        // ORDER: Release pairs with the Acquire of `Writer::poll_room`: this side is done with the bytes.
        ring.head.store(head, Ordering::Release);
        // A writer that waits was stopped by a full ring: it is not called for each byte of room.
        if left <= ring.capacity() / 2 {
            ring.writer.ring();
        }
    }
}

impl Writer {
    /// Where the next bytes go, room for one at least; `None` if nobody reads.
    pub(super) fn poll_room(&mut self, cx: &Context<'_>) -> Poll<Option<&mut [u8]>> {
        let ring = &*self.0;
        let tail = ring.tail.load(Ordering::Relaxed);
        bell::poll(&ring.writer, cx, || {
            if ring.is_closed() {
                return Some(None);
            }
            // ORDER: Acquire pairs with the Release of `Reader::take`.
            match ring.capacity() - tail.wrapping_sub(ring.head.load(Ordering::Acquire)) {
                0 => None,
                room => {
                    let (at, len) = ring.place(tail, room);
                    // SAFETY: they are the writer's until `put`, which needs `self`.
                    Some(Some(unsafe { slice::from_raw_parts_mut(at.as_ptr(), len) }))
                }
            }
        })
    }

    /// So many bytes were written there.
    pub(super) fn put(&mut self, bytes: usize) {
        let ring = &*self.0;
        let tail = ring.tail.load(Ordering::Relaxed).wrapping_add(bytes);
        assert!(
            tail.wrapping_sub(ring.head.load(Ordering::Relaxed)) <= ring.capacity(),
            "more was written than fits"
        );
        // ORDER: Release pairs with the Acquire of `Reader::poll_bytes`.
        ring.tail.store(tail, Ordering::Release);
        ring.reader.ring();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn bytes_go_round_the_ring_in_order() {
        // Eight, which is a power of two: else order would be lost where positions wrap around, after gigabytes on 32 bits.
        let (mut reader, mut writer) = pipe(7);
        for position in [&reader.0.head, &reader.0.tail] {
            position.store(usize::MAX - 20, Ordering::Relaxed);
        }
        let cx = Context::from_waker(Waker::noop());
        let (mut put, mut got) = (0u8, 0u8);
        assert!(reader.poll_bytes(&cx).is_pending());
        for round in 0..100 {
            while let Poll::Ready(Some(room)) = writer.poll_room(&cx) {
                let some = room.len().min(1 + round % 3);
                room[..some].iter_mut().for_each(|byte| (*byte, put) = (put, put.wrapping_add(1)));
                writer.put(some);
            }
            assert_eq!(put.wrapping_sub(got), 8);
            for _ in 0..1 + round % 7 {
                let Poll::Ready(Some(bytes)) = reader.poll_bytes(&cx) else { panic!("it is full") };
                assert_eq!(bytes[0], got);
                got = got.wrapping_add(1);
                reader.take(1);
            }
        }
        drop(writer);
        while let Poll::Ready(Some(bytes)) = reader.poll_bytes(&cx) {
            let some = bytes.len();
            got = got.wrapping_add(some as u8);
            reader.take(some);
        }
        assert_eq!(got, put, "what was written before the end can be read after it");
        assert_eq!(reader.poll_bytes(&cx), Poll::Ready(None));
    }

    #[test]
    fn nobody_reads() {
        let (reader, mut writer) = pipe(1);
        drop(reader);
        assert_eq!(writer.poll_room(&Context::from_waker(Waker::noop())), Poll::Ready(None));
    }

    #[test]
    fn a_writer_is_called_when_half_of_the_ring_is_free() {
        struct Count(std::sync::atomic::AtomicUsize);
        impl std::task::Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let (mut reader, mut writer) = pipe(8);
        let count = Arc::new(Count(std::sync::atomic::AtomicUsize::new(0)));
        let waker = Waker::from(count.clone());
        let cx = Context::from_waker(&waker);
        let Poll::Ready(Some(room)) = writer.poll_room(&cx) else { panic!("there is room") };
        assert_eq!(room.len(), 8);
        writer.put(8);
        assert!(writer.poll_room(&cx).is_pending());
        let calls: Vec<_> = (0..5)
            .map(|_| {
                reader.take(1);
                count.0.load(Ordering::Relaxed)
            })
            .collect();
        assert_eq!(calls, [0, 0, 0, 1, 1]);
        assert!(writer.poll_room(&cx).is_ready());
    }
}
