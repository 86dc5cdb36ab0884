//! Sessions over two channels.

use std::pin::pin;
use std::time::Duration;

use futures::channel::{mpsc, oneshot};
use paceline::{Timer, timeout};

use super::*;
use crate::{Call, Limits};

/// Longer than any step should take.
const PATIENCE: Duration = Duration::from_secs(30);

type Messages = mpsc::UnboundedReceiver<String>;

impl Reader for Messages {
    async fn next(&mut self) -> io::Result<Option<Incoming>> {
        Ok(StreamExt::next(self).await.map(|text| Incoming::Message(text.into_bytes())))
    }
}

/// Fails without a receiver.
impl Writer for mpsc::UnboundedSender<String> {
    async fn put(&mut self, message: String) -> io::Result<()> {
        self.unbounded_send(message).map_err(io::Error::other)
    }

    async fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        self.close_channel();
        Ok(())
    }
}

fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":["{params}"],"id":"{method}"}}"#)
}

fn result(result: &str, id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","result":"{result}","id":{id}}}"#)
}

/// Calls its caller.
async fn ask(call: Call) -> Result<String, Error> {
    Ok(call.peer()?.call("name", &(), PATIENCE).await?)
}

async fn next(written: &mut Messages) -> Option<String> {
    timeout(PATIENCE, StreamExt::next(written)).await.expect("it is written")
}

#[test]
fn a_session_waits_for_handlers_also_if_it_cannot_write() {
    let (release, released) = oneshot::channel::<()>();
    let released = released.shared();
    let slow = move |_| released.clone().map(|_| Ok(()));
    let dispatcher = Arc::new(Dispatcher::new(Limits::default()).task("slow", slow));
    let (comes, reader) = mpsc::unbounded();
    let (writer, written) = mpsc::unbounded();
    drop(written);
    comes.unbounded_send(request("slow", "")).expect("it is read");
    comes.unbounded_send(request("unknown", "")).expect("it is read");
    paceline::block_on(async {
        let peer = Peer::new(&dispatcher.limits);
        let last = peer.0.clone();
        let mut run = pin!(run(reader, writer, peer, dispatcher, std::future::pending()));
        // A failed write has ended the session, except for the running handler.
        assert!(timeout(Duration::from_millis(50), &mut run).await.is_err());
        assert!(last.notify("event", &()).is_err());
        drop(release);
        assert!(timeout(PATIENCE, run).await.expect("nothing runs").is_err());
    });
}

#[test]
fn a_handler_is_answered_when_it_is_to_stop_and_nothing_else_is_begun() {
    let dispatcher = Arc::new(Dispatcher::new(Limits::default()).task("ask", ask));
    let (comes, reader) = mpsc::unbounded();
    let (writer, mut written) = mpsc::unbounded();
    let (stop, stopped) = oneshot::channel::<()>();
    comes.unbounded_send(request("ask", "")).expect("it is read");
    paceline::block_on(async {
        let peer = Peer::new(&dispatcher.limits);
        let run = spawn(run(reader, writer, peer, dispatcher, stopped.map(drop)));
        assert!(next(&mut written).await.expect("a question").contains(r#""method":"name""#));
        drop(stop);
        Timer::after(Duration::from_millis(20)).await;
        comes.unbounded_send(request("unknown", "")).expect("it is read");
        comes.unbounded_send(result("a client", "1")).expect("it is read");
        assert_eq!(next(&mut written).await, Some(result("a client", r#""ask""#)));
        assert_eq!(next(&mut written).await, None);
        timeout(PATIENCE, run).await.expect("nothing runs").expect("it can be written to");
    });
}

#[test]
fn an_answer_needs_no_room() {
    let limits = Limits { bytes: 100, ..Limits::default() };
    let dispatcher = Arc::new(Dispatcher::new(limits).task("ask", ask));
    let (comes, reader) = mpsc::unbounded();
    let (writer, mut written) = mpsc::unbounded();
    comes.unbounded_send(request("ask", &"x".repeat(200))).expect("it is read");
    paceline::block_on(async {
        let peer = Peer::new(&dispatcher.limits);
        let _run = spawn(run(reader, writer, peer, dispatcher, std::future::pending()));
        assert!(next(&mut written).await.expect("a question").contains(r#""method":"name""#));
        comes.unbounded_send(result("a client", "1")).expect("it is read");
        assert_eq!(next(&mut written).await, Some(result("a client", r#""ask""#)));
    });
}

/// Sends a million calls, without a pause.
struct Endless(u32);

impl Reader for Endless {
    async fn next(&mut self) -> io::Result<Option<Incoming>> {
        assert!(self.0 < 1_000_000, "it is read from for ever");
        self.0 += 1;
        Ok(Some(Incoming::Message(b"1".to_vec())))
    }
}

#[test]
fn a_client_that_cannot_be_written_to_is_not_read_from() {
    let dispatcher = Arc::new(Dispatcher::new(Limits::default()));
    let (writer, _) = mpsc::unbounded();
    paceline::block_on(async {
        let peer = Peer::new(&dispatcher.limits);
        assert!(run(Endless(0), writer, peer, dispatcher, std::future::pending()).await.is_err());
    });
}
