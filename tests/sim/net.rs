//! The network of a simulation, through the types of `paceline::net`.

use std::io::{ErrorKind, IoSliceMut};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use paceline::net::{TcpListener, TcpStream, UdpSocket};
use paceline::prelude::*;
use paceline::sim::{self, PacketBody, Sim, Verdict};
use paceline::{Timer, clock, timeout};

use crate::panic_of;

const SECOND: Duration = Duration::from_secs(1);

/// Sends back what it receives, on each connection.
async fn echo() {
    let listener = TcpListener::bind("0.0.0.0:7").await.unwrap();
    loop {
        let (mut stream, _peer) = listener.accept().await.unwrap();
        paceline::spawn(async move {
            let mut buf = [0; 1000];
            while let Ok(len @ 1..) = stream.read(&mut buf).await {
                if stream.write_all(&buf[..len]).await.is_err() {
                    break;
                }
            }
        })
        .detach();
    }
}

async fn ask(mut stream: &TcpStream, text: &[u8]) -> std::io::Result<Vec<u8>> {
    stream.write_all(text).await?;
    let mut answer = vec![0; text.len()];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

#[test]
fn a_stream_carries_bytes_to_another_node_and_takes_time() {
    let mut sim = Sim::new(7);
    sim.node("server", echo);
    sim.network().set_latency(Duration::from_millis(10)..=Duration::from_millis(10));
    let client = sim.client("client", async {
        let begin = clock::now();
        let stream = TcpStream::connect("server:7").await.unwrap();
        let (local, peer) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        assert_eq!(
            (local.ip().to_string(), peer.to_string()),
            ("192.168.0.3".into(), "192.168.0.2:7".into())
        );
        assert_eq!(clock::now() - begin, Duration::from_millis(20));
        assert_eq!(ask(&stream, b"hello").await.unwrap(), b"hello");
        assert_eq!(clock::now() - begin, Duration::from_millis(40));
    });
    sim.block_on(client);
}

#[test]
fn much_data_is_limited_by_the_windows() {
    let mut sim = Sim::new(7);
    sim.node("server", echo);
    sim.block_on(async {
        let stream = TcpStream::connect("server:7").await.unwrap();
        let data: Vec<u8> = (0..1_000_000_u32).map(|n| n as u8).collect();
        let (mut read, mut write) = stream.clone().into_split();
        let sent = data.clone();
        let writer = paceline::spawn(async move {
            write.write_all(&sent).await.unwrap();
            write.close().await.unwrap();
        });
        let mut received = Vec::new();
        read.read_to_end(&mut received).await.unwrap();
        writer.await;
        assert_eq!(received, data);
    });
}

#[test]
fn errors_are_those_of_a_real_network() {
    let mut sim = Sim::new(7);
    sim.node("server", async || drop(TcpListener::bind("0.0.0.0:7").await));
    sim.block_on(async {
        let error = TcpStream::connect("server:8").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
        let error = TcpStream::connect("nowhere:8").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        let listener = TcpListener::bind("127.0.0.1:80").await.unwrap();
        let error = TcpListener::bind("127.0.0.1:80").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
        drop(listener);
        TcpListener::bind("127.0.0.1:80").await.unwrap();
        let error = TcpListener::bind("8.8.8.8:80").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrNotAvailable, "{error}");
        let error = TcpStream::connect_timeout("8.8.8.8:80", SECOND).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::NetworkUnreachable), "{error}");
    });
}

#[test]
fn datagrams_find_their_way_and_may_be_lost() {
    let mut sim = Sim::new(7);
    sim.node("server", || async {
        let socket = UdpSocket::bind("0.0.0.0:53").await.unwrap();
        let mut buf = [0; 100];
        loop {
            let (len, from) = socket.recv_from(&mut buf).await.unwrap();
            socket.send_to(&buf[..len], from).await.unwrap();
        }
    });
    let network = sim.network();
    sim.block_on(async move {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        socket.connect("server:53").await.unwrap();
        let mut buf = [0; 100];
        socket.send(b"one").await.unwrap();
        assert_eq!(socket.recv(&mut buf).await.unwrap(), 3);
        network.set_loss(1.0);
        socket.send(b"two").await.unwrap();
        assert!(timeout(SECOND, socket.recv(&mut buf)).await.is_err());
    });
}

/// What is written during a partition arrives after it, and each run of a seed is the same.
#[test]
fn a_partition_heals() {
    let run = |seed| {
        let log = Arc::new(Mutex::new(Vec::new()));
        let report = sim::check(seed, |sim| {
            sim.node("server", echo);
            let network = sim.network();
            network.set_loss(0.01);
            let (cut, heals) = (network.clone(), network);
            sim.at(SECOND, move || cut.partition("client", "server"));
            sim.at(20 * SECOND, move || heals.repair("client", "server"));
            let times = log.clone();
            let client = sim.client("client", async move {
                let stream = TcpStream::connect("server:7").await.unwrap();
                for _ in 0..40 {
                    ask(&stream, b"ping").await.unwrap();
                    times.lock().unwrap().push(sim::try_rng().map(|_| clock::now()));
                    Timer::after(SECOND / 10).await;
                }
            });
            sim.block_on(client);
        });
        (report.hash, report.elapsed)
    };
    let (hash, elapsed) = run(1);
    assert!(elapsed > 20 * SECOND && elapsed < 60 * SECOND, "{elapsed:?}");
    assert_eq!(run(1), (hash, elapsed));
    assert_ne!(run(2).0, hash);
}

/// Fails if the sockets of a crash stay, if its tasks run on, or if the program does not run again.
#[test]
fn a_crash_ends_tasks_and_sockets_and_a_restart_begins_anew() {
    let mut sim = Sim::new(7);
    let runs = Arc::new(Mutex::new(Vec::new()));
    let counted = runs.clone();
    sim.node("server", move || {
        let counted = counted.clone();
        async move {
            counted.lock().unwrap().push(0);
            paceline::spawn(echo()).detach();
            loop {
                Timer::after(SECOND / 10).await;
                *counted.lock().unwrap().last_mut().unwrap() += 1;
            }
        }
    });
    let network = sim.network();
    sim.block_on(async move {
        let stream = TcpStream::connect("server:7").await.unwrap();
        ask(&stream, b"a").await.unwrap();
        Timer::after(SECOND).await;
        network.crash("server");
        assert!(!network.is_up("server"));
        let before = runs.lock().unwrap().clone();
        assert!(before.len() == 1 && before[0] >= 9, "{before:?}");
        // No answer, and no error either: nothing comes from there.
        assert!(timeout(SECOND, ask(&stream, b"b")).await.is_err());
        assert!(TcpStream::connect_timeout("server:7", SECOND).await.is_err());
        assert_eq!(*runs.lock().unwrap(), before);
        network.restart("server");
        Timer::after(SECOND).await;
        assert_eq!(runs.lock().unwrap().len(), 2);
        // The new program knows nothing of the connection.
        let mut ours = &stream;
        let error = ours.read(&mut [0; 10]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        let stream = TcpStream::connect("server:7").await.unwrap();
        ask(&stream, b"c").await.unwrap();
    });
}

#[test]
fn a_half_is_closed_and_the_other_still_carries_data() {
    let mut sim = Sim::new(7);
    sim.node("server", || async {
        let listener = TcpListener::bind("0.0.0.0:7").await.unwrap();
        let (mut stream, _peer) = listener.accept().await.unwrap();
        let mut question = String::new();
        stream.read_to_string(&mut question).await.unwrap();
        stream.write_all(question.to_uppercase().as_bytes()).await.unwrap();
    });
    let answer = sim.block_on(async {
        let mut stream = TcpStream::connect("server:7").await?;
        stream.write_all(b"hello").await?;
        stream.close().await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    });
    assert_eq!(answer.unwrap(), "HELLO");
}

/// Unix sockets have paths of their own on each node, and a path is free again when its socket is closed.
#[cfg(unix)]
#[test]
fn unix_sockets_belong_to_their_node() {
    use paceline::net::unix::{UnixDatagram, UnixListener, UnixStream};

    let report = sim::check(7, |sim| {
        sim.node("other", || async {
            let _listener = UnixListener::bind("/run/a").unwrap();
            std::future::pending::<()>().await;
        });
        sim.block_on(async {
            let error = UnixStream::connect("/run/a").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            for path in ["/run/a", "\0abstract"] {
                let listener = UnixListener::bind(path).unwrap();
                let error = UnixListener::bind(path).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
                let server = paceline::spawn(async move {
                    let (mut stream, peer) = listener.accept().await.unwrap();
                    assert!(peer.is_unnamed());
                    let mut question = String::new();
                    stream.read_to_string(&mut question).await.unwrap();
                    stream.write_all(question.to_uppercase().as_bytes()).await.unwrap();
                });
                let mut stream = UnixStream::connect(path).await.unwrap();
                let name = stream.peer_addr().unwrap();
                assert_eq!(name.as_pathname().is_some(), path.starts_with('/'), "{name:?}");
                stream.write_all(b"hello").await.unwrap();
                stream.close().await.unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                assert_eq!(answer, "HELLO");
                server.await;
            }
            let (one, mut other) = UnixStream::pair().unwrap();
            drop(one);
            assert_eq!(other.read(&mut [0; 10]).await.unwrap(), 0);
            let receiver = UnixDatagram::bind("/run/b").unwrap();
            let sender = UnixDatagram::bind("/run/c").unwrap();
            sender.send_to(b"to a path", "/run/b").await.unwrap();
            let mut buf = [0; 100];
            let (len, from) = receiver.recv_from(&mut buf).await.unwrap();
            assert_eq!(
                (&buf[..len], from.as_pathname().unwrap().to_str()),
                (&b"to a path"[..], Some("/run/c"))
            );
            let (one, other) = UnixDatagram::pair().unwrap();
            one.send(b"to the other").await.unwrap();
            assert_eq!(other.recv(&mut buf).await.unwrap(), 12);
        });
    });
    assert_eq!(report.elapsed, Duration::ZERO);
}

/// Fails if a connection has the segments of another MTU, or if the payload has a changed size.
#[test]
fn segments_are_as_large_as_the_mtu_permits() {
    for (mtu, largest) in [(None, 1460), (Some(1000), 960), (Some(9000), 8960)] {
        let mut sim = Sim::new(7);
        let network = sim.network();
        if let Some(mtu) = mtu {
            network.set_mtu(mtu);
        }
        sim.node("server", echo);
        let seen = Arc::new(Mutex::new(0));
        let most = seen.clone();
        network.add_rule(move |packet| {
            if let PacketBody::Tcp(segment) = &packet.body {
                let mut most = most.lock().unwrap();
                *most = segment.data.len().max(*most);
            }
            Verdict::Pass
        });
        sim.block_on(async {
            let stream = TcpStream::connect("server:7").await.unwrap();
            let data = vec![1; 20_000];
            assert_eq!(ask(&stream, &data).await.unwrap(), data);
        });
        assert_eq!(*seen.lock().unwrap(), largest);
    }
}

/// Fails unless the times are those of Linux with these settings: the first timeout is a second for a SYN,
/// and 200 ms more than the measured round trip later.
#[test]
fn a_connection_fails_after_its_retries() {
    let mut sim = Sim::new(7);
    let network = sim.network();
    network.set_retries(2, 1);
    sim.node("server", echo);
    let times = sim.block_on(async move {
        let mut stream = TcpStream::connect("server:7").await.unwrap();
        network.partition("test", "server");
        let begin = clock::now();
        // A name has two addresses, which are tried one after the other.
        let error = TcpStream::connect((network.address("server"), 7)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let opening = clock::now() - begin;
        let begin = clock::now();
        stream.write_all(b"lost").await.unwrap();
        let error = stream.read(&mut [0; 10]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        (opening, clock::now() - begin)
    });
    assert_eq!(times.0, 7 * SECOND);
    assert!((600..650).contains(&times.1.as_millis()), "{times:?}");
}

/// As on Linux, a queue has room for one more connection than its backlog says.
#[test]
fn a_listener_keeps_no_more_connections_than_the_largest_backlog() {
    let mut sim = Sim::new(7);
    sim.network().set_max_backlog(2);
    sim.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:80").await.unwrap();
        let mut streams = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout("127.0.0.1:80", SECOND / 2).await {
            streams.push(stream);
        }
        assert_eq!(streams.len(), 3);
        listener.accept().await.unwrap();
        streams.push(TcpStream::connect("127.0.0.1:80").await.unwrap());
    });
}

/// Fails if a wrong use hangs, or does not say what is wrong.
#[test]
fn wrong_uses_are_errors_that_say_so() {
    let mut sim = Sim::new(7);
    sim.node("a", std::future::pending::<()>);
    let (network, again) = (sim.network(), sim.network());
    assert!(panic_of(|| network.crash("b")).contains("no node \"b\"; the nodes are test, a"));
    assert!(panic_of(|| network.crash("test")).contains("cannot crash"));
    assert!(panic_of(|| network.set_loss(2.0)).contains("2 is no fraction"));
    assert!(panic_of(|| sim.node("a", std::future::pending::<()>)).contains("a node \"a\" already"));
    network.add_rule(move |_| if again.is_up("a") { Verdict::Pass } else { Verdict::Drop });
    let send = async {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        socket.send_to(b"x", "a:1").await.unwrap();
    };
    assert!(panic_of(|| sim.block_on(send)).contains("a rule of the network calls the network"));
    let elsewhere = network.clone();
    let panic = std::thread::spawn(move || elsewhere.is_up("a")).join().unwrap_err();
    assert_eq!(*panic.downcast::<&str>().unwrap(), "a network is used on its simulation's thread only");
    drop(sim);
    assert!(panic_of(|| _ = network.is_up("a")).contains("simulation of this network is gone"));
}

/// Fails if a vectored read leaves bytes behind that no event reports.
#[test]
fn a_vectored_read_fills_one_buffer_after_the_other() {
    let mut sim = Sim::new(7);
    sim.node("server", echo);
    sim.block_on(async {
        let mut stream = TcpStream::connect("server:7").await.unwrap();
        stream.write_all(&[1; 100]).await.unwrap();
        Timer::after(SECOND).await;
        let (mut one, mut other) = ([0; 10], [0; 10]);
        let mut buffers = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut other)];
        assert_eq!(stream.read_vectored(&mut buffers).await.unwrap(), 20);
        stream.read_exact(&mut [0; 80]).await.unwrap();
    });
}

/// Fails if a task is dropped inside of its wake: the channel holds a lock then, which the receiver takes.
#[test]
fn a_crash_ends_tasks_that_share_a_channel() {
    let mut sim = Sim::new(7);
    let (network, ended) = (sim.network(), Arc::new(()));
    let alive = ended.clone();
    sim.node("a", move || {
        let alive = alive.clone();
        async move {
            let (tell, told) = async_channel::bounded::<()>(1);
            let (one, other) = (alive.clone(), alive);
            paceline::spawn(async move {
                let _held = (tell, one);
                std::future::pending::<()>().await;
            })
            .detach();
            paceline::spawn(async move {
                let _held = other;
                let _ = told.recv().await;
            })
            .detach();
        }
    });
    sim.run_for(SECOND);
    assert_eq!(Arc::strong_count(&ended), 4);
    network.crash("a");
    sim.run_for(SECOND);
    assert_eq!(Arc::strong_count(&ended), 2, "the test and the program of the node are left");
}

/// Fails if what a destructor spawns on a host that crashes runs on another one, or at all.
#[test]
fn destructors_of_a_crash_run_on_their_host() {
    struct Spawns(async_channel::Sender<std::net::IpAddr>);
    impl Drop for Spawns {
        fn drop(&mut self) {
            let tell = self.0.clone();
            let tells = async move {
                let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
                socket.connect("test:1").await.unwrap();
                tell.send(socket.local_addr().unwrap().ip()).await.unwrap();
            };
            paceline::spawn(tells).detach();
        }
    }
    let mut sim = Sim::new(7);
    let (tell, told) = async_channel::unbounded();
    sim.node("a", move || {
        let spawns = Spawns(tell.clone());
        async move {
            let _spawns = spawns;
            std::future::pending::<()>().await;
        }
    });
    sim.run_for(SECOND);
    let network = sim.network();
    network.crash("a");
    sim.run_for(SECOND);
    assert_eq!(told.try_recv(), Err(async_channel::TryRecvError::Empty));
}

/// Fails if a program that panics when it begins is lost, or leaves the test on its host.
#[test]
fn a_program_that_panics_may_begin_again() {
    let mut sim = Sim::new(7);
    let mut runs = 0;
    let (tell, told) = async_channel::unbounded();
    sim.node("a", move || {
        runs += 1;
        assert!(runs != 2, "the second run");
        let tell = tell.clone();
        async move { tell.send(runs).await.unwrap() }
    });
    let network = sim.network();
    network.crash("a");
    assert!(panic_of(|| network.restart("a")).contains("the second run"));
    network.crash("a");
    network.restart("a");
    sim.run_for(SECOND);
    assert_eq!((told.try_recv(), told.try_recv().is_err()), (Ok(3), true));
    let own = sim.block_on(async {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        socket.connect("a:1").await.unwrap();
        socket.local_addr().unwrap().ip()
    });
    assert_eq!(own, sim.network().address("test"));
}

/// Fails if a sender that a full receiver has stopped is not woken.
#[cfg(unix)]
#[test]
fn senders_of_unix_datagrams_are_woken() {
    use paceline::net::unix::UnixDatagram;

    Sim::new(7).block_on(async {
        let receiver = UnixDatagram::bind("/run/a").unwrap();
        let sends = paceline::spawn(async {
            let sender = UnixDatagram::unbound().unwrap();
            for _ in 0..100 {
                sender.send_to(b"x", "/run/a").await.unwrap();
            }
        });
        for _ in 0..100 {
            Timer::after(SECOND).await;
            receiver.recv(&mut [0; 10]).await.unwrap();
        }
        sends.await;
        let (one, other) = UnixDatagram::pair().unwrap();
        let sends = paceline::spawn(async move { while one.send(b"x").await.is_ok() {} });
        Timer::after(SECOND).await;
        drop(other);
        sends.await;
    });
}

/// Fails if the settings of two nodes are those of the others at the time of a partition, or are forgotten
/// where they are the same as those of the others.
#[test]
fn two_nodes_have_their_own_settings_only_where_they_are_set() {
    let mut sim = Sim::new(7);
    let network = sim.network();
    for name in ["a", "b"] {
        sim.node(name, || async {
            let socket = UdpSocket::bind("0.0.0.0:7").await.unwrap();
            loop {
                let (_, from) = socket.recv_from(&mut [0; 10]).await.unwrap();
                socket.send_to(b"y", from).await.unwrap();
            }
        });
    }
    network.partition("test", "a");
    network.set_loss_between("test", "b", 0.0);
    network.set_loss(1.0);
    network.repair("test", "a");
    sim.block_on(async {
        let answers = async |name: &'static str| {
            let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
            socket.send_to(b"x", name).await.unwrap();
            timeout(SECOND, socket.recv(&mut [0; 10])).await.is_ok()
        };
        assert!(!answers("a:7").await, "the loss is that of all");
        assert!(answers("b:7").await, "the loss is its own");
    });
}

/// Fails if a socket that is dropped outside of the simulation keeps its address; or if what a connection
/// sends for ever keeps a deadlock from being found.
#[test]
fn sockets_that_are_left_end_nothing() {
    let mut sim = Sim::new(7);
    let socket = sim.block_on(async { UdpSocket::bind("0.0.0.0:53").await.unwrap() });
    std::thread::spawn(move || drop(socket)).join().unwrap();
    let _other_descriptor = std::fs::File::open("Cargo.toml").unwrap();
    sim.block_on(async { drop(UdpSocket::bind("0.0.0.0:53").await.unwrap()) });

    sim.node("server", || async {
        let listener = TcpListener::bind("0.0.0.0:7").await.unwrap();
        let _held = listener.accept().await.unwrap();
        std::future::pending::<()>().await;
    });
    let stuck = async {
        let mut stream = TcpStream::connect("server:7").await.unwrap();
        stream.write_all(&vec![0; 10_000_000]).await.unwrap();
    };
    assert!(panic_of(|| sim.block_on(stuck)).contains("deadlock"));
}

/// Fails if a task that has got a socket of a host that crashes waits for ever.
#[test]
fn a_socket_that_moved_to_another_node_ends_with_its_host() {
    let mut sim = Sim::new(7);
    let (give, given) = async_channel::unbounded();
    sim.node("a", move || {
        let give = give.clone();
        async move { give.send(UdpSocket::bind("0.0.0.0:7").await.unwrap()).await.unwrap() }
    });
    let network = sim.network();
    sim.at(SECOND, move || network.crash("a"));
    sim.block_on(async move {
        let socket = given.recv().await.unwrap();
        socket.recv(&mut [0; 10]).await.unwrap_err();
    });
}

/// Fails if tasks that read one stream wake each other: then the clock stands, which is an error.
#[test]
fn tasks_that_share_a_socket_sleep() {
    let mut sim = Sim::new(3);
    let client = sim.client("client", async {
        let listener = TcpListener::bind("0.0.0.0:7").await.unwrap();
        let stream = TcpStream::connect("client:7").await.unwrap();
        let (mut peer, _) = listener.accept().await.unwrap();
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let mut stream = stream.clone();
                paceline::spawn(async move { stream.read(&mut [0]).await.unwrap() })
            })
            .collect();
        Timer::after(SECOND).await;
        peer.write_all(b"abc").await.unwrap();
        for reader in readers {
            assert_eq!(timeout(SECOND, reader).await.unwrap(), 1);
        }
    });
    sim.block_on(client);
    let polls = sim.run_for(Duration::ZERO).polls;
    assert!(polls < 50, "{polls} polls");
}
