//! What one reaches for in the first hour, with the crates that have it. Nothing is defined here.
//!
//! Channels, locks and streams know no runtime: those of `async-channel`, `async-lock`, `event-listener`, `futures` and even
//! `tokio::sync` work here as they are. Each recipe below is compiled and run.
//!
//! # Whichever comes first
//!
//! `or` of `futures-lite` takes two futures with one type of output, and prefers the first. Whatever does not come first is dropped: look
//! for "cancel safety" in its docs.
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
//! `select!` of `futures` has arms, as tokio's has. It wants futures that know that they are done: a [`Timer`](crate::Timer) does, others are made
//! so by `fuse`, and pinned by `pin!`. Those that live outside of a loop keep what they have done so far from turn to turn.
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
//! assert!(count > 1);
//! # });
//! ```
//!
//! # Messages out of bytes
//!
//! Lines: a `BufReader`. It reads ahead, so keep it for as long as the stream; the other direction stays free.
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
//! Frames: `asynchronous-codec` makes of a stream a `Stream` and a `Sink` of messages. `LengthCodec` and `LinesCodec` are there; another
//! format is an `Encoder` and a `Decoder` of yours, which gets a `BytesMut` as `tokio-util`'s does.
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
//! `read_buf` is not needed: read into a slice, and remember how much of it is filled.
//!
//! # One stream, two tasks
//!
//! Sockets of [`net`](crate::net) can be cloned: one task reads, another writes. `&TcpStream` reads and writes, too. Of an `Arc<Async<T>>`, what
//! reads and writes is `&*arc`: `(&*stream).write_all(..)`, because writing wants a `&mut` of the thing that writes, and `&Async<T>` is such a
//! thing.
//!
//! # Tell all, tell one
//!
//! | tokio | here |
//! |---|---|
//! | `sync::mpsc`, `oneshot` | `async-channel`: many senders, many receivers |
//! | `sync::broadcast` | `async-broadcast` |
//! | `sync::watch` | `async-watch`, or tokio's own |
//! | `sync::Notify` | `event_listener::Event` |
//! | `sync::Mutex`, `RwLock`, `Semaphore`, `Barrier` | `async-lock`; often a [`Strand`](crate::Strand) is what is wanted |
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
//! # So many connections, and no more
//!
//! A permit is taken before the accept: who is too many waits in the system's backlog. It is given back when its task ends, however that
//! happens.
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
//! # Stop when asked to
//!
//! ```no_run
//! use std::time::Duration;
//! use futures_lite::FutureExt;
//! use paceline::{Runtime, signal};
//!
//! # async fn serve() -> std::io::Result<()> { Ok(()) }
//! # fn main() -> std::io::Result<()> {
//! let runtime = Runtime::builder().build()?;
//! runtime.block_on(async {
//!     serve().or(signal::ctrl_c()).await?;
//!     // Nothing new from here on; what runs has ten seconds.
//!     let report = runtime.drain(Duration::from_secs(10)).await;
//!     println!("{report}");
//!     Ok(())
//! })
//! # }
//! ```
//!
//! A task that is to do something on the way out, such as to say goodbye to its client, listens for it: an [`Event`](event_listener::Event), or a channel
//! whose sender is dropped.
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
//! `async-fs` and `async-process` have more of that, and by the patch of the README they use these threads and this reactor; without it,
//! ones of their own.
//!
//! # What blocks, what computes
//!
//! [`unblock`](crate::unblock()) for files and libraries that do their own I/O; [`blocking::Job`](crate::blocking::Job) if it may take for ever. A handler
//! that blocks by accident costs one thread for as long as that takes, and [`Builder::on_stall`](crate::Builder::on_stall) names it.
//!
//! A task gives way when it has to wait, and at no other time: one whose socket or channel always has something for it, because a client floods
//! it, say, keeps its thread, as one does that computes. `futures_lite::future::yield_now().await` after each so many messages lets others have
//! their turn, and costs less than a tenth of a microsecond.
