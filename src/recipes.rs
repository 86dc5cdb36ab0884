//! Recipes for common tasks, with the crates that provide what is needed. This module defines nothing.
//!
//! Channels, locks and streams do not depend on a runtime: those of `async-channel`, `async-lock`,
//! `event-listener`, `futures` and even `tokio::sync` work here without changes. Each recipe below is
//! compiled and run.
//!
//! # Wait for the first of two futures
//!
//! `or` of `futures-lite` takes two futures with the same output type, and prefers the first. The other
//! future is dropped: look for "cancel safety" in its documentation.
//!
//! ```
//! use std::time::Duration;
//! use futures_lite::FutureExt;
//! use paceline::{Timer, block_on};
//!
//! enum Next { Message(String), Tick }
//!
//! # block_on(async {
//! let (sender, messages) = async_channel::bounded(1);
//! sender.send("hello".to_owned()).await.unwrap();
//! let message = async { messages.recv().await.map(Next::Message) };
//! let tick = async { Timer::after(Duration::from_secs(5)).await; Ok(Next::Tick) };
//! match message.or(tick).await {
//!     Ok(Next::Message(text)) => assert_eq!(text, "hello"),
//!     Ok(Next::Tick) => unreachable!(),
//!     Err(closed) => panic!("{closed}"),
//! }
//! # });
//! ```
//!
//! `select!` of `futures` has arms, like tokio's. Its futures have to be fused: a [`Timer`](crate::Timer) is,
//! and has no `fuse`; others are fused with `fuse` and pinned with `pin!`. A future that lives outside of a
//! loop keeps its progress from one iteration to the next.
//!
//! ```
//! use std::pin::pin;
//! use std::time::Duration;
//! use futures::{FutureExt, StreamExt, select};
//! use paceline::{Timer, block_on};
//!
//! # async fn work() { Timer::after(Duration::from_millis(20)).await; }
//! # block_on(async {
//! let mut ticks = Timer::interval(Duration::from_millis(1));
//! let mut deadline = Timer::after(Duration::from_secs(5));
//! let mut work = pin!(work().fuse());
//! let mut count = 0;
//! loop {
//!     select! {
//!         _ = ticks.next() => count += 1,
//!         _ = work => break,
//!         _ = deadline => panic!("it takes too long"),
//!     }
//! }
//! println!("{count} ticks until the work was done");
//! # });
//! ```
//!
//! # Wait for many tasks
//!
//! `FuturesUnordered` of `futures` is what tokio calls a `JoinSet`: it returns outputs as tasks finish.
//! Dropping it cancels the others.
//!
//! ```
//! use futures::StreamExt;
//! use futures::stream::FuturesUnordered;
//! use paceline::{block_on, spawn};
//!
//! # block_on(async {
//! let mut tasks: FuturesUnordered<_> = (0..10).map(|number| spawn(async move { number * number })).collect();
//! let mut sum = 0;
//! while let Some(square) = tasks.next().await {
//!     sum += square;
//! }
//! assert_eq!(sum, 285);
//! # });
//! ```
//!
//! To give a task a result that is made elsewhere, use `futures::channel::oneshot`.
//!
//! # Tick, and miss ticks
//!
//! If the work after a tick takes longer than the period, [`Timer::interval`](crate::Timer::interval) returns
//! the ticks that were missed one after the other, without a wait: tokio calls that `Burst`. To have a whole
//! period between work and work (`Delay`), set a timer again. To leave the missed ticks out (`Skip`), take
//! those that are due before you wait.
//!
//! ```
//! use std::time::Duration;
//! use futures::{FutureExt, StreamExt};
//! use paceline::{Timer, block_on};
//!
//! # use std::time::Instant;
//! # fn work() { std::thread::sleep(Duration::from_millis(25)); }
//! # block_on(async {
//! let period = Duration::from_millis(10);
//! let mut delayed = Timer::after(period);
//! for _ in 0..2 {
//!     (&mut delayed).await;
//!     work();
//!     delayed.set_after(period);
//! }
//!
//! let mut ticks = Timer::interval(period);
//! for _ in 0..2 {
//!     ticks.next().await;
//!     work();
//!     # let worked = Instant::now();
//!     while ticks.next().now_or_never().is_some() {}
//!     # assert!(ticks.next().await.unwrap() > worked);
//! }
//! # });
//! ```
//!
//! # Split bytes into messages
//!
//! For lines, use a `BufReader`. A `BufReader` reads ahead, so keep it as long as the stream; the other
//! direction stays free.
//!
//! ```
//! use futures::io::BufReader;
//! use paceline::net::TcpStream;
//! use paceline::prelude::*;
//!
//! async fn greet(stream: TcpStream) -> std::io::Result<()> {
//!     let mut lines = BufReader::new(&stream).lines();
//!     while let Some(name) = lines.next().await {
//!         (&stream).write_all(format!("hello, {}\n", name?).as_bytes()).await?;
//!     }
//!     Ok(())
//! }
//! # use paceline::net::TcpListener;
//! # paceline::block_on(async {
//! # let listener = TcpListener::bind("127.0.0.1:0").await?;
//! # let mut client = TcpStream::connect(listener.local_addr()?).await?;
//! # client.write_all(b"world\n").await?;
//! # client.close().await?;
//! # greet(listener.accept().await?.0).await?;
//! # let mut answer = String::new();
//! # client.read_to_string(&mut answer).await?;
//! # assert_eq!(answer, "hello, world\n");
//! # std::io::Result::Ok(())
//! # }).unwrap();
//! ```
//!
//! For frames, `asynchronous-codec` turns a stream into a `Stream` and a `Sink` of messages. `LengthCodec`
//! and `LinesCodec` exist; for another format, implement `Encoder` and `Decoder`, which take a `BytesMut` as
//! in `tokio-util`.
//!
//! ```
//! use asynchronous_codec::{Framed, LengthCodec};
//! use futures::{SinkExt, StreamExt};
//! use paceline::net::unix::UnixStream;
//!
//! # paceline::block_on(async {
//! let (ours, theirs) = UnixStream::pair()?;
//! let (mut ours, mut theirs) = (Framed::new(ours, LengthCodec), Framed::new(theirs, LengthCodec));
//! ours.send("one message".into()).await?;
//! assert_eq!(theirs.next().await.unwrap()?, "one message");
//! # std::io::Result::Ok(())
//! # }).unwrap();
//! ```
//!
//! There is no need for `read_buf`: read into a slice, and remember how much of it is filled.
//!
//! # Use one stream in two tasks
//!
//! Sockets of [`net`](crate::net) can be cloned: one task reads, another writes. `&TcpStream` also implements
//! the reading and writing traits. To read or write through an `Arc<Async<T>>`, use `&*arc`:
//! `(&*stream).write_all(..)`. Writing needs a `&mut` of the writer, and `&Async<T>` is one.
//!
//! # Send to one receiver, or to all
//!
//! | tokio | here |
//! |---|---|
//! | `sync::mpsc` | `async-channel`: many senders, many receivers |
//! | `sync::oneshot` | `futures::channel::oneshot`, or tokio's own |
//! | `sync::broadcast` | `async-broadcast` |
//! | `sync::watch` | `async-watch`, or tokio's own |
//! | `sync::Notify` | `event_listener::Event` |
//! | `sync::Mutex`, `RwLock`, `Semaphore`, `Barrier` | `async-lock`, or a [`Strand`](crate::Strand) |
//!
//! ```
//! use event_listener::Event;
//! use std::sync::atomic::{AtomicBool, Ordering};
//!
//! static IS_READY: AtomicBool = AtomicBool::new(false);
//! static READY: Event = Event::new();
//!
//! # paceline::block_on(async {
//! let waits = paceline::spawn(async {
//!     while !IS_READY.load(Ordering::Acquire) {
//!         let told = READY.listen();
//!         // It may have become true between the look and the listen.
//!         if !IS_READY.load(Ordering::Acquire) {
//!             told.await;
//!         }
//!     }
//! });
//! IS_READY.store(true, Ordering::Release);
//! READY.notify(usize::MAX);
//! waits.await;
//! # });
//! ```
//!
//! # Limit the number of connections
//!
//! Take a permit before the accept: further clients wait in the system's backlog. The permit is returned when
//! its task ends, in whatever way.
//!
//! ```
//! use std::sync::Arc;
//! use async_lock::Semaphore;
//! use paceline::net::{TcpListener, TcpStream};
//! use paceline::spawn;
//!
//! async fn serve(listener: TcpListener, limit: usize) {
//!     let permits = Arc::new(Semaphore::new(limit));
//!     loop {
//!         let permit = permits.acquire_arc().await;
//!         match listener.accept().await {
//!             Ok((stream, _peer)) => {
//!                 let connection = async move {
//!                     handle(stream).await;
//!                     drop(permit);
//!                 };
//!                 spawn(connection).detach();
//!             }
//!             // No descriptor left, perhaps, which is told once. A `?` here would end the server.
//!             Err(error) => eprintln!("{error}"),
//!         }
//!     }
//! }
//! # async fn handle(_: TcpStream) {}
//! # paceline::block_on(async {
//! # let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
//! # let addr = listener.local_addr().unwrap();
//! # let _server = spawn(serve(listener, 1));
//! # for _ in 0..3 {
//! #     use paceline::prelude::*;
//! #     TcpStream::connect(addr).await.unwrap().read(&mut [0]).await.unwrap();
//! # }
//! # });
//! ```
//!
//! # Shut down gracefully
//!
//! ```no_run
//! use std::io;
//! use std::time::Duration;
//! use futures_lite::future::or;
//! use paceline::signal::{Signal, Signals};
//! use paceline::{Handle, block_on};
//!
//! # async fn serve() -> std::io::Result<()> { Ok(()) }
//! # fn main() -> std::io::Result<()> {
//! block_on(async {
//!     let mut signals = Signals::new([Signal::Interrupt, Signal::Terminate])?;
//!     or(serve(), async { signals.next().await.map(drop) }).await?;
//!
//!     // No new tasks from here on; those that run have ten seconds.
//!     let drain = async { io::Result::Ok(Handle::current().drain(Duration::from_secs(10)).await) };
//!     // A second signal ends the process at once.
//!     let second = async {
//!         signals.next().await?;
//!         std::process::exit(130)
//!     };
//!     println!("{}", or(drain, second).await?);
//!     Ok(())
//! })
//! # }
//! ```
//!
//! The same works in `#[paceline::main]`. Without the second wait, a signal that arrives during the drain is
//! ignored: from the first use of [`signal`](crate::signal) on, the process handles the signal and the
//! system's default action no longer applies.
//!
//! A drain waits until its deadline for tasks that do not end, and a connection whose client keeps it open
//! without a request does not end. So tell each connection to stop: dropping the sender of a channel reaches
//! all of its receivers. Each connection waits for the next request or for the stop.
//!
//! ```
//! use std::io;
//! use std::time::Duration;
//! use async_channel::Receiver;
//! use futures::io::BufReader;
//! use futures_lite::future::or;
//! use paceline::net::{TcpListener, TcpStream};
//! use paceline::prelude::*;
//! use paceline::{DrainReport, Handle, spawn};
//!
//! async fn accept(listener: TcpListener, stopped: Receiver<()>) -> io::Result<()> {
//!     loop {
//!         match listener.accept().await {
//!             Ok((stream, _peer)) => spawn(serve(stream, stopped.clone())).detach(),
//!             Err(error) => eprintln!("{error}"),
//!         }
//!     }
//! }
//!
//! /// Answers each line, until the client or the server ends the connection.
//! async fn serve(stream: TcpStream, stopped: Receiver<()>) -> io::Result<()> {
//!     let mut lines = BufReader::new(&stream).lines();
//!     // `recv` fails once the sender is dropped. The stop comes first, or a client that never pauses would
//!     // prevent it.
//!     let stop = async || {
//!         let _ = stopped.recv().await;
//!         None
//!     };
//!     while let Some(line) = or(stop(), lines.next()).await {
//!         (&stream).write_all(format!("{}\n", line?).as_bytes()).await?;
//!     }
//!     Ok(())
//! }
//!
//! async fn run(
//!     listener: TcpListener,
//!     signal: impl Future<Output = io::Result<()>>,
//! ) -> io::Result<DrainReport> {
//!     let (stop, stopped) = async_channel::bounded(1);
//!     // `or` drops the listener when the signal arrives.
//!     or(accept(listener, stopped), signal).await?;
//!     // Idle connections end now, the others after the answer that they are at.
//!     drop(stop);
//!     Ok(Handle::current().drain(Duration::from_secs(10)).await)
//! }
//! # let runtime = paceline::Runtime::builder().threads(1).build().unwrap();
//! # runtime.block_on(async {
//! #     let listener = TcpListener::bind("127.0.0.1:0").await?;
//! #     let mut client = TcpStream::connect(listener.local_addr()?).await?;
//! #     let signal = async {
//! #         client.write_all(b"hello\n").await?;
//! #         client.read_exact(&mut [0; 6]).await
//! #     };
//! #     let report = run(listener, signal).await?;
//! #     assert_eq!(report.cancelled, 0, "{report}");
//! #     assert_eq!(client.read(&mut [0]).await?, 0);
//! #     io::Result::Ok(())
//! # }).unwrap();
//! ```
//!
//! `examples/redis/server.rs` stops its connections in this way. For hyper, `examples/http/src/lib.rs` uses
//! `GracefulShutdown` of `hyper-util`, which does the same for each connection that it watches.
//!
//! # Tests without waiting
//!
//! With the features `macros` and `test-clock`, a test marked `#[paceline::test(start_paused)]` runs with a
//! clock that is paused: when the test has nothing else to do, the clock advances to the next timer. A
//! timeout of an hour takes no time, and timers fire in the same order each time. `paceline::clock` has
//! `now`, `advance`, `pause` and `resume`; `Builder::start_paused` does the same without the attribute.
//!
//! # Files, processes, standard input
//!
//! ```no_run
//! use paceline::{Unblock, unblock};
//! use paceline::prelude::*;
//!
//! # paceline::block_on(async {
//! let text = unblock(|| std::fs::read_to_string("Cargo.toml")).await?;
//! let mut lines = futures::io::BufReader::new(Unblock::new(std::io::stdin())).lines();
//! while let Some(line) = lines.next().await {
//!     println!("{}", text.contains(&line?));
//! }
//! # std::io::Result::Ok(())
//! # }).unwrap();
//! ```
//!
//! `async-fs` and `async-process` offer more. With the patch described in the README they use paceline's
//! threads and reactor; without it, their own.
//!
//! # Block or compute
//!
//! Use [`unblock`](crate::unblock()) for files and for libraries that do their own I/O, and
//! [`blocking::Job`](crate::blocking::Job) if the work may never end. A handler that blocks by accident costs
//! one thread meanwhile, and [`Builder::on_stall`](crate::Builder::on_stall) names it.
//!
//! A task yields only when it has to wait. If its socket or channel always has data, because a client floods
//! it, for example, the task keeps its thread, like a task that computes. Call
//! `futures_lite::future::yield_now().await` after some number of messages to let other tasks run: a call
//! costs less than a tenth of a microsecond.
