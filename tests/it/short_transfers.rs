//! Transfers that move less than requested although there is more data (or room): the next transfer must not
//! wait for an event, because none will come.

use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use paceline::{Async, IoSafe, Runtime, Timer};

use crate::setups::{SOON, for_each_setup};

/// More slices than one call takes on any system.
const SLICES: usize = 3000;

fn tcp() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (one, listener.accept().unwrap().0)
}

/// Returns a registered stream after the event for its current readiness has come: no other event will come.
async fn settled<T: AsFd>(stream: T) -> Async<T> {
    let stream = Async::new(stream).unwrap();
    Timer::after(Duration::from_millis(5)).await;
    stream
}

/// Fails if slices beyond the system's limit count as requested: `SURE_SLICES`.
#[test]
fn more_slices_than_a_call_takes_are_written() {
    for_each_setup(|runtime| {
        let (ours, mut theirs) = tcp();
        runtime.block_on(async {
            let mut ours = settled(ours).await;
            let mut left = SLICES;
            while left > 0 {
                left -= ours.write_vectored(&vec![IoSlice::new(b"x"); left]).await.unwrap();
            }
        });
        theirs.read_exact(&mut [0; SLICES]).unwrap();
    });
}

/// The same for reads.
#[test]
fn more_slices_than_a_call_takes_are_read() {
    for_each_setup(|runtime| {
        let (mut ours, theirs) = tcp();
        ours.write_all(&[1; SLICES]).unwrap();
        runtime.block_on(async {
            let mut theirs = settled(theirs).await;
            let mut left = SLICES;
            while left > 0 {
                let mut bytes = vec![0; left];
                let mut slices: Vec<_> = bytes.chunks_mut(1).map(IoSliceMut::new).collect();
                left -= theirs.read_vectored(&mut slices).await.unwrap();
            }
        });
    });
}

/// All bytes come in one event, which reports an urgent mark. Fails if a read that ends at the mark is taken
/// for one that drained the socket: without `PRI` in `read_cut`.
#[test]
fn a_read_that_ends_at_the_urgent_mark_is_not_the_last() {
    use rustix::net::{SendFlags, send};
    for_each_setup(|runtime| {
        let (ours, theirs) = tcp();
        ours.set_nodelay(true).unwrap();
        read_parts(runtime, theirs, b"abc__def", || {
            let parts =
                [(b"abc", SendFlags::empty()), (b"__X", SendFlags::OOB), (b"def", SendFlags::empty())];
            for (part, flags) in parts {
                assert_eq!(send(&ours, part, flags).unwrap(), 3);
            }
        });
    });
}

/// A read of a Unix stream ends behind a message that carries descriptors. Fails if such a short read counts
/// as draining: `proof::of_read`.
#[test]
fn a_read_that_ends_behind_descriptors_is_not_the_last() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use std::mem::MaybeUninit;
    for_each_setup(|runtime| {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        read_parts(runtime, theirs, b"with descriptors, without", || {
            let descriptors = [ours.as_fd()];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
            let bytes = [IoSlice::new(b"with descriptors, ")];
            sendmsg(&ours, &bytes, &mut control, SendFlags::empty()).unwrap();
            ours.write_all(b"without").unwrap();
        });
    });
}

/// Reads all of `expected`, which `send` sends in parts while no thread looks for events: one event reports
/// all of them.
fn read_parts<T: IoSafe + Read + AsFd>(runtime: &Runtime, theirs: T, expected: &[u8], send: impl FnOnce()) {
    // Only this thread leads.
    runtime.shutdown(SOON).unwrap();
    runtime.block_on(async {
        let mut theirs = settled(theirs).await;
        let mut bytes = [0; 64];
        assert!(future::poll_once(theirs.read(&mut bytes)).await.is_none());
        // A thread that waits twice without a look for events in between tries the read once more.
        Timer::after(Duration::from_millis(5)).await;
        send();
        let mut got = Vec::new();
        while got.len() < expected.len() {
            let n = theirs.read(&mut bytes).await.unwrap();
            assert!(n < expected.len(), "they came as one");
            got.extend_from_slice(&bytes[..n]);
        }
        assert_eq!(got, expected);
    });
}
