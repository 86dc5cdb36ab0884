//! A future that is polled again before any thread has looked for events.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};

use futures_lite::{AsyncRead, AsyncReadExt, future};
use paceline::{Async, Promotion, Runtime, block_on};

use crate::setups::without_looks;

use crate::io::tcp_pair;

/// A future is polled twice in a row, and the awaited bytes are sent in between. The second poll finds them
/// although no thread looked for events, as if each poll tried to read. (Fails if a wait always trusts the
/// cached readiness.)
#[test]
pub fn a_poll_that_comes_back_sees_what_came_meanwhile() {
    let polls = || async {
        let (mut reader, writer) = tcp_pair().await.unwrap();
        let (mut one, mut pair) = ([0], [0; 2]);
        // After 128 operations a poll gives way.
        for _ in 0..60 {
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
    // Where this begins, so does another budget. The other executor knows none.
    block_on(async {});
    future::block_on(polls());
    // In the middle of a worker's turn, beside other threads that lead.
    block_on(paceline::spawn(async move { polls().await }));
}

/// A wait that begins after an event trusts that the next event will come, although its thread has not looked
/// in between: other threads have. (Fails if only the reactor's turn is compared. Then a handler with a quick
/// client finds the next request each time it asks for one, and its thread serves only this client.)
#[test]
fn an_event_in_between_is_a_look() {
    // The leader blocks in this waker, so that no thread looks for the next event.
    struct Called(Mutex<mpsc::Sender<()>>, Mutex<mpsc::Receiver<()>>);
    impl Wake for Called {
        fn wake(self: Arc<Self>) {
            self.0.lock().unwrap().send(()).unwrap();
            _ = self.1.lock().unwrap().recv();
        }
    }
    // The other thread leads while this one polls. The deputy adds no third one, and the test waits outside.
    let eager = without_looks().promotion(Promotion::Eager);
    let runtime = Runtime::builder().threads(2).tuning(eager).build().unwrap();
    let task = runtime.spawn(async {
        let (mut reader, writer) = tcp_pair().await.unwrap();
        let ((call, called), (_end, ended)) = (mpsc::channel(), mpsc::channel());
        let waker = Waker::from(Arc::new(Called(call.into(), ended.into())));
        let mut reads = || {
            let mut context = Context::from_waker(&waker);
            Pin::new(&mut reader).poll_read(&mut context, &mut [0; 2]).map(Result::unwrap)
        };
        assert!(reads().is_pending());
        writer.get_ref().write_all(b"a").unwrap();
        called.recv().unwrap();
        assert_eq!(reads(), Poll::Ready(1));
        writer.get_ref().write_all(b"b").unwrap();
        assert!(reads().is_pending(), "it tries");
    });
    pollster::block_on(task);
}
