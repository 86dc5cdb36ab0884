//! [`Server`]: answers numbered requests over TCP and over a Unix socket, in many ways.
//!
//! A request is a [`Head`] and a body; so is its answer, with another body. Both sides know both bodies from
//! the number.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, fs, process, thread};

use futures_lite::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, FutureExt, future};
use paceline::{Async, Runtime, Strand, Timer, block_on, spawn, timeout, unblock};

use crate::leftovers::failed;
use crate::scene::foreign;

/// The number of ways to answer a request, which [`Handler::answer`] has.
pub const WAYS: u64 = 12;

/// Returns the body of a request or of its answer.
pub fn body(number: u64, length: usize, is_answer: bool) -> Vec<u8> {
    let first = number.wrapping_mul(if is_answer { 31 } else { 17 });
    (0..length as u64).map(|at| (first.wrapping_add(at * 7) >> 3) as u8).collect()
}

/// The header before the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub number: u64,
    pub length: u16,
    pub way: u8,
}

impl Head {
    pub const SIZE: usize = 11;

    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..10].copy_from_slice(&self.length.to_le_bytes());
        bytes[10] = self.way;
        bytes
    }

    pub fn from_bytes(bytes: [u8; Self::SIZE]) -> Self {
        Self {
            number: u64::from_le_bytes(bytes[..8].try_into().unwrap()),
            length: u16::from_le_bytes(bytes[8..10].try_into().unwrap()),
            way: bytes[10],
        }
    }
}

/// Serves in a runtime until the runtime refuses tasks.
pub struct Server {
    pub tcp: SocketAddr,
    pub unix: PathBuf,
    handler: Handler,
}

impl Server {
    pub fn start(runtime: &Runtime) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let unix = env::temp_dir().join(format!("paceline-soak-{}-{number}", process::id()));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let tcp = listener.local_addr().unwrap();
        let listener2 = UnixListener::bind(&unix).unwrap();
        let handler = Handler::default();
        let (handler1, handler2) = (handler.clone(), handler.clone());
        let serve_tcp = async move {
            let listener = Async::new(listener).unwrap();
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        // Otherwise a client that waits for the acknowledgement of a small answer waits for
                        // 40 milliseconds.
                        let _ = stream.get_ref().set_nodelay(true);
                        spawn(handler1.clone().serve(stream)).detach();
                    }
                    Err(error) => assert!(is_gone(&error), "cannot accept: {error}"),
                }
            }
        };
        let serve_unix = async move {
            let listener = Async::new(listener2).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                spawn(handler2.clone().serve(stream)).detach();
            }
        };
        runtime.spawn(serve_tcp).detach();
        runtime.spawn(serve_unix).detach();
        Self { tcp, unix, handler }
    }

    /// Returns the number of answered requests.
    pub fn answered(&self) -> u64 {
        self.handler.0.answered.load(Relaxed)
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> usize {
        self.handler.0.open.load(Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file::<&Path>(&self.unix);
    }
}

/// Returns whether the other side has disconnected, which some clients do in the middle.
pub fn is_gone(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof)
}

#[derive(Clone, Default)]
struct Handler(Arc<Shared>);

#[derive(Default)]
struct Shared {
    answered: AtomicU64,
    open: AtomicUsize,
    lock: Mutex<u64>,
}

struct Open(Handler);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.0.open.fetch_sub(1, Relaxed);
    }
}

impl Handler {
    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        self.0.open.fetch_add(1, Relaxed);
        let open = Open(self);
        if let Err(error) = open.0.answer_all(stream).await {
            if !is_gone(&error) {
                failed(&format!("a server's connection: {error}"));
            }
        }
    }

    async fn answer_all(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let strand = Strand::new(0_u64);
        let mut expected = None;
        loop {
            let mut bytes = [0; Head::SIZE];
            stream.read_exact(&mut bytes).await?;
            let head = Head::from_bytes(bytes);
            let mut request = vec![0; head.length.into()];
            stream.read_exact(&mut request).await?;
            let is_next = expected.is_none_or(|expected| head.number == expected);
            expected = Some(head.number + 1);
            if !is_next || request != body(head.number, request.len(), false) {
                failed(&format!("a server got another request than was sent: {head:?}"));
            }
            let mut answer = head.to_bytes().to_vec();
            answer.extend(self.answer(head, &strand).await);
            stream.write_all(&answer).await?;
            self.0.answered.fetch_add(1, Relaxed);
        }
    }

    /// Answers in one of several ways, some of which block their thread.
    async fn answer(&self, head: Head, strand: &Strand<u64>) -> Vec<u8> {
        let Head { number, length, way } = head;
        let answer = move || body(number, length.into(), true);
        match u64::from(way) % WAYS {
            0..=2 => answer(),
            3 => {
                future::yield_now().await;
                answer()
            }
            4 => {
                Timer::after(Duration::from_micros(number % 3_000)).await;
                answer()
            }
            5 => spawn(async move { answer() }).await,
            6 => unblock(answer).await,
            7 => strand.with(move |_| answer()).await,
            8 => {
                let mut lock = self.0.lock.lock().unwrap();
                thread::sleep(Duration::from_micros(number % 200));
                *lock += 1;
                answer()
            }
            9 => {
                let task = spawn(async move {
                    future::yield_now().await;
                    answer()
                });
                if number % 2 == 0 { block_on(task) } else { foreign(number / 2, task) }
            }
            10 => {
                let panics = spawn(async { panic!("on purpose") });
                let panic = std::panic::AssertUnwindSafe(panics).catch_unwind().await;
                if panic.is_ok() {
                    failed("a panic did not arrive");
                }
                timeout(Duration::from_secs(600), async move { answer() }).await.unwrap()
            }
            // One answer in so many blocks for as long as the deputy needs to notice.
            _ => {
                thread::sleep(Duration::from_millis(if number % 8 == 0 { 20 } else { 0 }));
                answer()
            }
        }
    }
}
