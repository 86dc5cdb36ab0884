//! Sockets by name: look-ups, halves, the end of a stream, and a process without free descriptors.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future;
#[cfg(unix)]
use paceline::net::unix::{UnixDatagram, UnixListener, UnixStream};
use paceline::net::{self, TcpListener, TcpStream, UdpSocket};
use paceline::prelude::*;
use paceline::{Async, Runtime, block_on, spawn, timeout, unblock};

use crate::setups::{ENDLESS_STACK, Latch, OpenOnDrop, SOON, eventually, for_each_builder, for_each_setup};

const LOCAL: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

/// Two ends of a connection.
async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(LOCAL).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (ours, theirs) = future::try_zip(TcpStream::connect(addr), listener.accept()).await.unwrap();
    (ours, theirs.0)
}

#[test]
fn a_name_is_looked_up_by_threads_that_block() {
    for_each_setup(|runtime| {
        runtime.block_on(async {
            let before = runtime.metrics().blocking_jobs;
            let listener = TcpListener::bind(LOCAL).await.unwrap();
            let addr = listener.local_addr().unwrap();
            TcpStream::connect(addr.to_string()).await.unwrap();
            TcpStream::connect(("127.0.0.1", addr.port())).await.unwrap();
            assert_eq!(runtime.metrics().blocking_jobs, before, "numbers are not looked up");
            let client = TcpStream::connect(("localhost", addr.port())).await.unwrap();
            assert_eq!(client.peer_addr().unwrap(), addr);
            eventually("a look-up is counted", || runtime.metrics().blocking_jobs == before + 1);
        });
    });
}

/// Returns the errors of all calls that look up a name, if that is impossible.
async fn errors_of_look_ups() -> Vec<std::io::Error> {
    let name = "localhost:9";
    // An address needs no look-up.
    let socket = UdpSocket::bind(LOCAL).await.unwrap();
    vec![
        net::resolve(name).await.unwrap_err(),
        TcpListener::bind(name).await.unwrap_err(),
        TcpStream::connect(name).await.unwrap_err(),
        TcpStream::connect_timeout(name, SOON).await.unwrap_err(),
        UdpSocket::bind(name).await.unwrap_err(),
        socket.connect(name).await.unwrap_err(),
        socket.send_to(b"x", name).await.unwrap_err(),
    ]
}

/// Fails if a look-up is an `unblock`, which panics if no thread can be started for its closure.
#[test]
fn a_look_up_without_threads_is_an_error() {
    // No system has room for such a stack.
    let runtime = Runtime::builder().current_thread().stack_size(ENDLESS_STACK).build().unwrap();
    for error in runtime.block_on(errors_of_look_ups()) {
        let text = error.to_string();
        assert!(text.contains("localhost") && text.contains("cannot start a thread"), "{text}");
        assert_ne!(error.kind(), ErrorKind::WouldBlock, "a caller would wait");
    }
}

#[test]
fn a_look_up_after_a_shutdown_is_an_error() {
    for_each_setup(|runtime| {
        runtime.shutdown(SOON).unwrap();
        for error in runtime.block_on(errors_of_look_ups()) {
            let text = error.to_string();
            assert!(text.contains("localhost") && text.contains("has ended"), "{text}");
        }
    });
}

/// A task of one runtime awaits a look-up that waits for a thread of another runtime, which is shut down.
#[test]
fn a_look_up_in_another_runtime_that_ends_is_an_error() {
    for_each_builder(|setup| {
        let other = setup.builder().blocking_threads(1).build().unwrap();
        let handle = other.handle();
        let (end, latch) = (Latch::new(), Latch::new());
        let _end = OpenOnDrop(end.clone());
        let is_occupied = latch.clone();
        let entered = handle.enter();
        let occupied = unblock(move || {
            is_occupied.open();
            end.wait();
        });
        drop(entered);
        latch.wait();
        let runtime = setup.build();
        let connects = runtime.spawn(async move {
            let mut connect = Box::pin(TcpStream::connect("localhost:9"));
            let entered = handle.enter();
            assert!(
                future::block_on(future::poll_once(&mut connect)).is_none(),
                "its only thread is occupied"
            );
            drop(entered);
            other.shutdown(SOON).unwrap();
            connect.await.unwrap_err()
        });
        let text = runtime.block_on(connects).to_string();
        assert!(text.contains("localhost") && text.contains("has ended"), "{text}");
        occupied.detach();
    });
}

#[test]
fn an_error_says_for_what() {
    block_on(async {
        let closed = TcpListener::bind(LOCAL).await.unwrap().local_addr().unwrap();
        let error = TcpStream::connect(closed).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert!(error.to_string().contains(&format!("connect to {closed}: ")), "{error}");
        let cause = error.get_ref().and_then(|error| error.source()).unwrap();
        assert!(cause.downcast_ref::<std::io::Error>().unwrap().raw_os_error().is_some());

        let taken = TcpListener::bind(LOCAL).await.unwrap();
        let addr = taken.local_addr().unwrap();
        let error = TcpListener::bind(addr).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert!(error.to_string().contains(&format!("listen on {addr}: ")), "{error}");

        let error = TcpStream::connect("no.such.name.invalid:80").await.unwrap_err();
        assert!(error.to_string().starts_with("cannot look up \"no.such.name.invalid\": "), "{error}");
        assert_eq!(TcpStream::connect(&[][..]).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    });
}

#[cfg(unix)]
#[test]
fn an_error_says_for_which_path() {
    let missing = std::env::temp_dir().join("paceline-no-such-socket");
    let error = block_on(UnixStream::connect(&missing)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("paceline-no-such-socket"), "{error}");
}

/// The first address that accepts is used; if none does, the error names each.
#[test]
fn each_address_is_tried() {
    block_on(async {
        let closed = TcpListener::bind(LOCAL).await.unwrap().local_addr().unwrap();
        let listener = TcpListener::bind(LOCAL).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let stream = TcpStream::connect(&[closed, addr][..]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), addr);
        let error = TcpStream::connect([closed, closed]).await.unwrap_err();
        assert_eq!(error.to_string().matches(&closed.to_string()).count(), 2, "{error}");
        // The same for binding a listener or a socket: one address is in use, the other is free.
        let second = TcpListener::bind([addr, LOCAL.into()]).await.unwrap();
        assert_ne!(second.local_addr().unwrap(), addr);
        assert_eq!(net::resolve([addr, closed]).await.unwrap(), [addr, closed]);
    });
}

/// `close` shuts the write side down, and the peer's answer can still be read.
#[test]
fn a_stream_that_is_closed_still_reads() {
    for_each_setup(|runtime| {
        runtime.block_on(async {
            let (mut ours, mut theirs) = pair().await;
            ours.write_all(b"question").await.unwrap();
            ours.close().await.unwrap();
            let mut question = String::new();
            theirs.read_to_string(&mut question).await.unwrap();
            theirs.write_all(b"answer").await.unwrap();
            drop(theirs);
            let mut answer = String::new();
            ours.read_to_string(&mut answer).await.unwrap();
            assert_eq!((question.as_str(), answer.as_str()), ("question", "answer"));
            let error = ours.write(b"more").await.unwrap_err();
            // The error of Windows is WSAESHUTDOWN, for which the standard library has no kind.
            let is_shut_down = cfg!(windows) && error.to_string().contains("10058");
            assert!(error.kind() == ErrorKind::BrokenPipe || is_shut_down, "{error}");
            ours.close().await.unwrap();
        });
    });
}

#[cfg(unix)]
#[test]
fn a_unix_stream_that_is_closed_still_reads() {
    for_each_setup(|runtime| {
        runtime.block_on(async {
            let (mut one, mut other) = UnixStream::pair().unwrap();
            one.close().await.unwrap();
            assert_eq!(other.read(&mut [0]).await.unwrap(), 0);
            other.write_all(b"x").await.unwrap();
            assert_eq!(one.read(&mut [0]).await.unwrap(), 1);
        });
    });
}

#[test]
fn halves_go_their_own_ways() {
    for_each_setup(|runtime| {
        runtime.block_on(async {
            let (ours, theirs) = pair().await;
            let (mut read, mut write) = ours.into_split();
            let echo = spawn(async move {
                let (mut read, mut write) = theirs.split();
                let mut buf = [0; 1000];
                while let count @ 1.. = read.read(&mut buf).await.unwrap() {
                    write.write_all(&buf[..count]).await.unwrap();
                }
                write.close().await.unwrap();
            });
            let sent: Vec<u8> = (0..100_000).map(|number| number as u8).collect();
            let to_send = sent.clone();
            // The half is dropped at the end of the task, which shuts that side down: otherwise the peer
            // would never see an end.
            let writer = spawn(async move { write.write_all(&to_send).await.unwrap() });
            let mut got = Vec::new();
            read.read_to_end(&mut got).await.unwrap();
            assert!(got == sent);
            future::zip(echo, writer).await;
        });
    });
}

#[test]
fn halves_come_together_again() {
    block_on(async {
        let ((one, mut peer), (other, _)) = (pair().await, pair().await);
        let ((read, write), (read2, write2)) = (one.into_split(), other.into_split());
        let error = read.reunite(write2).unwrap_err();
        let (read, write2) = (error.0, error.1);
        assert!(read2.reunite(write2).is_ok());
        let mut again = read.reunite(write).unwrap();
        again.write_all(b"x").await.unwrap();
        peer.read_exact(&mut [0]).await.unwrap();
        // A forgotten half leaves its side open.
        let (read, write) = again.into_split();
        write.forget();
        let nothing = future::or(async { Some(peer.read(&mut [0]).await) }, async {
            paceline::Timer::after(Duration::from_millis(20)).await;
            None
        });
        assert!(nothing.await.is_none());
        drop(read);
        assert_eq!(peer.read(&mut [0]).await.unwrap(), 0);
    });
}

/// Any number of clones may accept, and each connection goes to one of them.
#[test]
fn clones_share_a_listener() {
    for_each_setup(|runtime| {
        runtime.block_on(async {
            let listener = TcpListener::bind(LOCAL).await.unwrap();
            let addr = listener.local_addr().unwrap();
            let accepted: Vec<_> = (0..4)
                .map(|_| {
                    let listener = listener.clone();
                    spawn(async move { listener.incoming().take(5).try_collect::<Vec<_>>().await.unwrap() })
                })
                .collect();
            let mut clients = Vec::new();
            for _ in 0..20 {
                clients.push(TcpStream::connect(addr).await.unwrap().local_addr().unwrap());
            }
            let mut peers = Vec::new();
            for task in accepted {
                peers.extend(task.await.into_iter().map(|stream| stream.peer_addr().unwrap()));
            }
            clients.sort_unstable();
            peers.sort_unstable();
            assert_eq!(clients, peers);
        });
    });
}

#[test]
fn options_are_the_sockets() {
    block_on(async {
        let (stream, _peer) = pair().await;
        stream.set_nodelay(true).unwrap();
        assert!(stream.clone().nodelay().unwrap());
        stream.set_ttl(42).unwrap();
        assert_eq!(stream.ttl().unwrap(), 42);
        assert_eq!(stream.linger().unwrap(), None);
        stream.set_linger(Some(Duration::from_secs(1))).unwrap();
        assert_eq!(stream.linger().unwrap(), Some(Duration::from_secs(1)));
        stream.set_recv_buffer_size(50_000).unwrap();
        stream.set_send_buffer_size(60_000).unwrap();
        assert!(stream.recv_buffer_size().unwrap() >= 50_000 && stream.send_buffer_size().unwrap() >= 60_000);
        assert!(stream.take_error().unwrap().is_none());
        let udp = UdpSocket::bind(LOCAL).await.unwrap();
        udp.set_broadcast(true).unwrap();
        assert!(udp.broadcast().unwrap());
    });
}

/// Conversions to and from the types of the standard library, and of the underlying crates.
#[test]
fn conversions_keep_the_socket() {
    block_on(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let listener = TcpListener::try_from(listener).unwrap();
        let mut client = std::net::TcpStream::connect(addr).unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let inner: Arc<Async<std::net::TcpStream>> = stream.into();
        let inner = Arc::into_inner(inner).unwrap().into_inner().unwrap();
        inner.set_nonblocking(false).unwrap();
        (&inner).write_all(b"x").unwrap();
        client.read_exact(&mut [0]).unwrap();
        TcpStream::from(Async::new(inner).unwrap()).shutdown(Shutdown::Both).unwrap();
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    });
}

#[test]
fn datagrams_by_name() {
    for_each_setup(|runtime| {
        runtime.block_on(async {
            let (ours, theirs) = (
                UdpSocket::bind("localhost:0").await.unwrap(),
                UdpSocket::bind("localhost:0").await.unwrap(),
            );
            let port = theirs.local_addr().unwrap().port();
            ours.send_to(b"one", ("localhost", port)).await.unwrap();
            ours.connect(("localhost", port)).await.unwrap();
            ours.send(b"two").await.unwrap();
            let mut buf = [0; 16];
            assert_eq!(theirs.peek_from(&mut buf).await.unwrap(), (3, ours.local_addr().unwrap()));
            assert_eq!(theirs.recv_from(&mut buf).await.unwrap(), (3, ours.local_addr().unwrap()));
            assert_eq!(theirs.recv(&mut buf).await.unwrap(), 3);
            assert_eq!(&buf[..3], b"two");
        });
    });
}

#[cfg(unix)]
#[test]
fn datagrams_by_path() {
    for_each_setup(|runtime| {
        runtime.block_on(async {
            let mut buf = [0; 16];
            let path = std::env::temp_dir().join(format!("paceline-datagram-{:p}", &buf));
            let (bound, unbound) = (UnixDatagram::bind(&path).unwrap(), UnixDatagram::unbound().unwrap());
            unbound.send_to(b"three", &path).await.unwrap();
            assert_eq!(bound.recv(&mut buf).await.unwrap(), 5);
            unbound.connect(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            unbound.send(b"four").await.unwrap();
            assert!(bound.recv_from(&mut buf).await.unwrap().1.is_unnamed());
        });
    });
}

#[cfg(unix)]
#[test]
fn unix_streams_by_path() {
    for_each_setup(|runtime| {
        runtime.block_on(async {
            let path =
                std::env::temp_dir().join(format!("paceline-stream-{:?}", std::thread::current().id()));
            let _ = std::fs::remove_file(&path);
            let listener = UnixListener::bind(&path).unwrap();
            assert_eq!(UnixListener::bind(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
            let (mut client, server) =
                future::try_zip(UnixStream::connect(&path), listener.accept()).await.unwrap();
            std::fs::remove_file(&path).unwrap();
            let mut server = server.0;
            client.write_all(b"x").await.unwrap();
            server.read_exact(&mut [0]).await.unwrap();
        });
    });
}

/// A process without free descriptors gets one error, does not spin, and accepts all waiting connections as
/// soon as possible.
#[cfg(unix)]
#[test]
fn a_listener_recovers_from_a_shortage_of_descriptors() {
    use std::time::Instant;

    use crate::setups::is_child;

    const CLIENTS: usize = 20;
    if !is_child("net::a_listener_recovers_from_a_shortage_of_descriptors", "ulimit -n 256") {
        return;
    }
    let listener = block_on(TcpListener::bind(LOCAL)).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut clients: Vec<_> =
        (0..CLIENTS).map(|_| std::net::TcpStream::connect_timeout(&addr, SOON).unwrap()).collect();
    let mut hoard: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
    block_on(async {
        let error = listener.accept().await.unwrap_err();
        assert!(error.to_string().contains("ulimit -n"), "{error}");
        let start = Instant::now();
        let polls = || paceline::metrics().polls_direct + paceline::metrics().polls_surplus;
        let before = polls();
        let waits = spawn(async move {
            let mut streams = Vec::new();
            while streams.len() < CLIENTS {
                streams.push(listener.accept().await.expect("it was told before").0);
            }
            streams
        });
        paceline::Timer::after(Duration::from_millis(300)).await;
        let polls = polls() - before;
        assert!(polls < 100, "{polls} polls in {:?}", start.elapsed());
        // A few at a time: the shortage repeats.
        while hoard.len() > 30 {
            hoard.truncate(hoard.len() - 7);
            paceline::Timer::after(Duration::from_millis(1)).await;
        }
        for stream in &mut waits.await {
            stream.write_all(b"x").await.unwrap();
        }
    });
    clients.iter_mut().for_each(|client| client.read_exact(&mut [0]).unwrap());
}

/// Some strings could be read as several kinds of addresses.
#[test]
fn an_address_is_taken_as_it_is_written() {
    block_on(async {
        let v6: SocketAddr = "[::1]:1".parse().unwrap();
        assert_eq!(net::resolve("[::1]:1").await.unwrap(), [v6]);
        assert_eq!(net::resolve(("::1", 1)).await.unwrap(), [v6]);
        assert!(net::resolve("localhost:1").await.unwrap().iter().all(|addr| addr.ip().is_loopback()));
        // Windows looks an empty name up as that of the machine itself.
        let [text, pair] = [net::resolve(":80").await, net::resolve(("", 80)).await].map(Result::ok);
        assert!(text == pair && (cfg!(windows) || text.is_none()), "{text:?}, {pair:?}");
    });
}

/// A listener with a full queue does not answer. The error contains the address, as other errors do, also as
/// `main` prints it.
#[cfg(target_os = "linux")]
#[test]
fn a_connect_that_is_not_answered_names_the_address() {
    let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let addr = listener.local_addr().unwrap().as_socket().unwrap();
    let limit = Duration::from_millis(100);
    block_on(async {
        let mut connected = Vec::new();
        let error = loop {
            match TcpStream::connect_timeout(addr, limit).await {
                Ok(stream) => connected.push(stream),
                Err(error) => break error,
            }
            assert!(connected.len() < 16, "its queue has no end");
        };
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!(error.to_string(), format!("cannot connect to {addr}: no answer within 100ms"));
        assert!(format!("{error:?}").contains(&error.to_string()), "{error:?}");
    });
}

/// A peer that writes all the time, so that a read of a few bytes never waits. Fails if a poll may read for ever:
/// then no timeout fires that is polled beside the reads, and no drain ends before its deadline.
#[test]
fn a_peer_that_floods_holds_up_neither_a_timeout_nor_a_drain() {
    for_each_setup(|runtime| {
        let listener = std::net::TcpListener::bind(SocketAddr::from(LOCAL)).unwrap();
        let addr = listener.local_addr().unwrap();
        let floods = std::thread::spawn(move || {
            let mut peer = std::net::TcpStream::connect(addr).unwrap();
            while peer.write_all(&[0; 1 << 16]).is_ok() {}
        });
        let (theirs, _) = listener.accept().unwrap();
        let reads = runtime.spawn(async move {
            let mut stream = TcpStream::from(Async::new(theirs).unwrap());
            let mut few = [0; 16];
            let all = async { while stream.read(&mut few).await.unwrap() > 0 {} };
            timeout(Duration::from_millis(50), all).await.is_err()
        });
        reads.detach();
        let report = runtime.block_on(runtime.drain(Duration::from_secs(3600)));
        assert!(report.is_clean() && report.finished == 1, "{report}");
        floods.join().unwrap();
    });
}
