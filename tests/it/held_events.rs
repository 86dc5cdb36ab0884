//! Scenes in which one thread finds many events at once, and holds them.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, ThreadId};

use futures_lite::{AsyncReadExt, future};
use paceline::{Async, Builder, Runtime};

use crate::given_time::RecvSoon;
use crate::setups::{Latch, OpenOnDrop, sockets, without_looks};

/// Makes all of `sockets` ready in one batch: all workers are busy while the bytes arrive. Only without a
/// deputy, which would add a worker.
pub fn ready_at_once(runtime: &Runtime, ours: &mut [impl Write], bytes: &[u8], meanwhile: impl FnOnce()) {
    let latch = Latch::new();
    let free = OpenOnDrop(latch.clone());
    let (blocks, is_blocking) = mpsc::channel();
    let block = |_| {
        let (latch, blocks) = (latch.clone(), blocks.clone());
        let blocked = runtime.spawn(async move {
            blocks.send(()).unwrap();
            latch.wait();
        });
        is_blocking.recv_soon().unwrap();
        blocked
    };
    let blocked: Vec<_> = (0..runtime.metrics().workers).map(block).collect();
    ours.iter_mut().for_each(|socket| socket.write_all(bytes).unwrap());
    meanwhile();
    drop(free);
    blocked.into_iter().for_each(|task| runtime.block_on(task));
}

/// Reads a byte of the socket, and tells when it has begun to wait for it.
pub async fn read_a_byte(socket: UnixStream, waits: Sender<()>) {
    let mut socket = Async::new(socket).unwrap();
    let mut read = Box::pin(async { socket.read_exact(&mut [0]).await.unwrap() });
    assert!(future::poll_once(&mut read).await.is_none());
    waits.send(()).unwrap();
    read.await;
}

/// Returns the settings of a runtime for [`block_beside`]: two workers, and a deputy that never looks.
pub fn builder() -> Builder {
    Runtime::builder().threads(2).max_threads(2).tuning(without_looks())
}

/// Makes many sockets ready in one batch, and blocks the handler that runs first until all others have run.
/// Its thread holds events then, or the other worker does that has taken some of them before; no thread but
/// the other worker can fire them. Returns the thread that was blocked.
pub fn block_beside(runtime: &Runtime) -> ThreadId {
    const SOCKETS: usize = 20;
    let (mut ours, theirs): (Vec<_>, Vec<_>) = (0..SOCKETS).map(|_| sockets()).unzip();
    let (run, others) = (Arc::new(AtomicUsize::new(0)), Latch::new());
    let (waits, is_waiting) = mpsc::channel();
    let (ends, has_ended) = mpsc::channel();
    let handle = |socket| {
        let (run, others) = (run.clone(), others.clone());
        let (waits, ends) = (waits.clone(), ends.clone());
        runtime.spawn(async move {
            read_a_byte(socket, waits).await;
            match run.fetch_add(1, SeqCst) + 1 {
                1 => {
                    others.wait();
                    ends.send(thread::current().id()).unwrap();
                }
                SOCKETS => others.open(),
                _ => {}
            }
        })
    };
    let tasks: Vec<_> = theirs.into_iter().map(handle).collect();
    (0..SOCKETS).for_each(|_| is_waiting.recv_soon().unwrap());
    ready_at_once(runtime, &mut ours, b"x", || {});
    let blocked = has_ended.recv_soon().expect("the other handlers run on the other worker");
    tasks.into_iter().for_each(future::block_on);
    blocked
}
