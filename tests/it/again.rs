//! What a poll may answer that comes back before anybody has looked for events.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use futures_lite::{AsyncRead, AsyncReadExt, future};
use paceline::{Async, Runtime, block_on};

use crate::io::tcp_pair;

/// Polled twice in a row, with the awaited bytes sent in between: the second poll has them, as a read that is tried at each
/// poll would, although nobody looked for events meanwhile. (Fails if a wait always trusts the cached readiness.)
#[test]
pub fn a_poll_that_comes_back_sees_what_came_meanwhile() {
    let polls = || async {
        let (mut reader, writer) = tcp_pair().await.unwrap();
        let (mut one, mut pair) = ([0], [0; 2]);
        for _ in 0..1000 {
            assert!(future::poll_once(reader.read(&mut pair)).await.is_none());
            writer.get_ref().write_all(b"abc").unwrap();
            assert_eq!(future::poll_once(reader.read(&mut pair)).await.unwrap().unwrap(), 2);
            let last = reader.read_with(|mut stream| stream.read(&mut one));
            assert_eq!(future::poll_once(last).await.unwrap().unwrap(), 1);
        }
        let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0)).unwrap();
        assert!(future::poll_once(listener.accept()).await.is_none());
        let _client = TcpStream::connect(listener.get_ref().local_addr().unwrap()).unwrap();
        assert!(future::poll_once(listener.accept()).await.is_some());
    };
    block_on(polls());
    future::block_on(polls());
    // In the midst of a turn, beside other threads that lead.
    block_on(paceline::spawn(async move { polls().await }));
}

/// A wait that begins after an event trusts that the next one will come, although its thread has not looked meanwhile: others
/// have. (Fails if only the turn is compared. Then a handler whose client is quick finds the next request each time it asks
/// for one, and its thread serves this client alone.)
#[test]
fn an_event_in_between_is_a_look() {
    struct Called(AtomicBool);
    impl Wake for Called {
        fn wake(self: Arc<Self>) {
            self.0.store(true, SeqCst);
        }
    }
    let runtime = Runtime::builder().threads(2).build().unwrap();
    let task = runtime.spawn(async {
        let (mut reader, writer) = tcp_pair().await.unwrap();
        // All in one poll: this thread does not look, the other one leads. It may be quick enough to see the second byte, too,
        // but not each time.
        (0..1000).any(|_| {
            let called = Arc::new(Called(AtomicBool::new(false)));
            let waker = Waker::from(called.clone());
            let mut reads = || {
                let mut context = Context::from_waker(&waker);
                Pin::new(&mut reader).poll_read(&mut context, &mut [0; 2]).map(Result::unwrap)
            };
            assert!(reads().is_pending());
            writer.get_ref().write_all(b"a").unwrap();
            while !called.0.load(SeqCst) {
                thread::yield_now();
            }
            assert_eq!(reads(), Poll::Ready(1));
            writer.get_ref().write_all(b"b").unwrap();
            reads().is_pending()
        })
    });
    assert!(runtime.block_on(task), "it always tries");
}
