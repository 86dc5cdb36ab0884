//! A pipe of bytes between a task and a thread: a ring with one writer and one reader, each of which works on
//! its part of the ring in place.
//!
//! `tail` counts the bytes written, `head` the bytes read, both from the beginning;
//! `head <= tail <= head + capacity`. The bytes from `head` to `tail` belong to the reader, the rest to the
//! writer. Each side moves only its own end, and only so that bytes of its own become bytes of the other
//! side. So neither side touches bytes of the other.

use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{fmt, slice};

use super::bell::{self, Bell};
use crate::sync::{AtomicBool, AtomicUsize, Ordering};

/// Upper bound of the bytes that a side works on at once: the other side need not wait for the whole of a
/// large ring, and reads bytes while they are in the cache.
const CHUNK: usize = 128 * 1024;

struct Ring {
    bytes: NonNull<[u8]>,
    head: AtomicUsize,
    tail: AtomicUsize,
    closed: AtomicBool,
    reader: Bell,
    writer: Bell,
}

// SAFETY: each byte belongs to one side at a time, as the header says.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Returns where `position` is, and how many of `most` bytes follow it without a gap, at most [`CHUNK`].
    fn place(&self, position: usize, most: usize) -> (NonNull<u8>, usize) {
        // The capacity is a power of two, so that positions may wrap around.
        let at = position & (self.capacity() - 1);
        // SAFETY: `at` is within the ring.
        (unsafe { self.bytes.cast::<u8>().add(at) }, most.min(self.capacity() - at).min(CHUNK))
    }

    /// Closes the pipe and wakes both sides. Bytes that are in it can still be read.
    fn close(&self) {
        // ORDER: Release pairs with the Acquire of `is_closed`: the other side sees what was written before
        // the end.
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
        // SAFETY: the pointer is from `Box::into_raw`, and the last reference to the ring is dropped here.
        drop(unsafe { Box::from_raw(self.bytes.as_ptr()) });
    }
}

/// Makes a pipe that holds at least `capacity` bytes: the next power of two. Panics if a `usize` has no such
/// power.
pub(super) fn pipe(capacity: usize) -> (Reader, Writer) {
    // A large zeroed allocation costs nothing until its pages are touched.
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

/// The side that takes bytes out. Dropping it closes the pipe for the other side.
pub(super) struct Reader(Arc<Ring>);

/// The side that puts bytes in. Dropping it closes the pipe for the other side, which may read what is left.
pub(super) struct Writer(Arc<Ring>);

impl Reader {
    /// Returns the next bytes, at least one and not always all that are there; `None` if none are left and
    /// the writer is gone. [`take`](Self::take) frees them.
    pub(super) fn poll_bytes(&mut self, cx: &Context<'_>) -> Poll<Option<&[u8]>> {
        let ring = &*self.0;
        let head = ring.head.load(Ordering::Relaxed);
        bell::poll(&ring.reader, cx, || {
            // Before `tail` is read: bytes that were written before the end are seen with it.
            let closed = ring.is_closed();
            // ORDER: Acquire pairs with the Release of `Writer::put`: the bytes.
            match ring.tail.load(Ordering::Acquire).wrapping_sub(head) {
                0 if closed => Some(None),
                0 => None,
                there => {
                    let (at, len) = ring.place(head, there);
                    // SAFETY: these bytes belong to the reader until `take`, which needs `&mut self`.
                    Some(Some(unsafe { slice::from_raw_parts(at.as_ptr(), len) }))
                }
            }
        })
    }

    /// Frees this many of the bytes that `poll_bytes` returned. Wakes a waiting writer once half of the ring
    /// is free. Panics if the ring has fewer bytes.
    pub(super) fn take(&mut self, bytes: usize) {
        let ring = &*self.0;
        let head = ring.head.load(Ordering::Relaxed).wrapping_add(bytes);
        let left = ring.tail.load(Ordering::Relaxed).wrapping_sub(head);
        assert!(left <= ring.capacity(), "more was read than there was");
        // ORDER: Release pairs with the Acquire of `Writer::poll_room`: this side is done with the bytes.
        ring.head.store(head, Ordering::Release);
        // A writer waits only because the ring was full, and is woken when half of the ring is free, not for
        // each byte.
        if left <= ring.capacity() / 2 {
            ring.writer.ring();
        }
    }
}

impl Writer {
    /// Returns the place for the next bytes, with room for at least one; `None` if the reader is gone.
    /// [`put`](Self::put) passes them on.
    pub(super) fn poll_room(&mut self, cx: &Context<'_>) -> Poll<Option<&mut [u8]>> {
        let ring = &*self.0;
        let tail = ring.tail.load(Ordering::Relaxed);
        bell::poll(&ring.writer, cx, || {
            if ring.is_closed() {
                return Some(None);
            }
            // ORDER: Acquire pairs with the Release of `Reader::take`: the reader is done with these bytes.
            match ring.capacity() - tail.wrapping_sub(ring.head.load(Ordering::Acquire)) {
                0 => None,
                room => {
                    let (at, len) = ring.place(tail, room);
                    // SAFETY: these bytes belong to the writer until `put`, which needs `&mut self`.
                    Some(Some(unsafe { slice::from_raw_parts_mut(at.as_ptr(), len) }))
                }
            }
        })
    }

    /// Passes this many bytes of the place that `poll_room` returned to the reader, and wakes the reader if
    /// it waits. Panics if the pipe has no room for so many.
    pub(super) fn put(&mut self, bytes: usize) {
        let ring = &*self.0;
        let tail = ring.tail.load(Ordering::Relaxed).wrapping_add(bytes);
        assert!(
            tail.wrapping_sub(ring.head.load(Ordering::Relaxed)) <= ring.capacity(),
            "more was written than fits"
        );
        // ORDER: Release pairs with the Acquire of `Reader::poll_bytes`: the bytes.
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
    use crate::budget;
    use crate::waking::WakeCounter;

    #[test]
    fn bytes_go_round_the_ring_in_order() {
        // The capacity becomes eight, a power of two. Otherwise the order would be lost where positions wrap
        // around, after gigabytes on 32 bits.
        let (mut reader, mut writer) = pipe(7);
        for position in [&reader.0.head, &reader.0.tail] {
            position.store(usize::MAX - 20, Ordering::Relaxed);
        }
        let cx = Context::from_waker(Waker::noop());
        let (mut put, mut got) = (0u8, 0u8);
        assert!(reader.poll_bytes(&cx).is_pending());
        for round in 0..100 {
            budget::refill();
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
    fn a_writer_sees_that_the_reader_is_gone() {
        let (reader, mut writer) = pipe(1);
        drop(reader);
        assert_eq!(writer.poll_room(&Context::from_waker(Waker::noop())), Poll::Ready(None));
    }

    #[test]
    fn a_writer_is_called_when_half_of_the_ring_is_free() {
        let (mut reader, mut writer) = pipe(8);
        let (wakes, waker) = WakeCounter::new();
        let cx = Context::from_waker(&waker);
        let Poll::Ready(Some(room)) = writer.poll_room(&cx) else { panic!("there is room") };
        assert_eq!(room.len(), 8);
        writer.put(8);
        assert!(writer.poll_room(&cx).is_pending());
        let calls: Vec<_> = (0..5)
            .map(|_| {
                reader.take(1);
                wakes.times()
            })
            .collect();
        assert_eq!(calls, [0, 0, 0, 1, 1]);
        assert!(writer.poll_room(&cx).is_ready());
    }
}
