//! Programs for tokio in a simulation of `paceline::sim`.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use paceline::sim::{self, Order, Sim, check};
use tokio::sync::{Mutex, Notify, Semaphore, broadcast, mpsc, oneshot, watch};
use tokio::task::{JoinSet, LocalSet, block_in_place, spawn_blocking, spawn_local, yield_now};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};

/// A server with a queue, workers that block, clients with timeouts, and a supervisor with `select!`.
async fn program() -> Vec<String> {
    let (requests, mut queue) = mpsc::channel::<(u32, oneshot::Sender<u32>)>(2);
    let (stop, stopped) = watch::channel(false);
    let permits = Arc::new(Semaphore::new(2));
    let served = Arc::new(Mutex::new(0));
    let count = served.clone();
    let server = tokio::spawn(async move {
        let mut tasks = JoinSet::new();
        let mut ticks = interval(Duration::from_millis(5));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stopped = stopped;
        loop {
            tokio::select! {
                request = queue.recv() => {
                    let Some((number, reply)) = request else { break };
                    let (permits, count) = (permits.clone(), count.clone());
                    tasks.spawn(async move {
                        let _permit = permits.acquire_owned().await.unwrap();
                        let square = spawn_blocking(move || number * number).await.unwrap();
                        *count.lock().await += 1;
                        let _ = reply.send(square);
                    });
                }
                _ = ticks.tick() => yield_now().await,
                _ = stopped.changed() => break,
                Some(result) = tasks.join_next() => result.unwrap(),
            }
        }
        while tasks.join_next().await.is_some() {}
    });
    let mut clients = Vec::new();
    for number in 0..6 {
        let requests = requests.clone();
        clients.push(tokio::spawn(async move {
            sleep(Duration::from_millis(u64::from(number) * 3)).await;
            let (reply, replied) = oneshot::channel();
            requests.send((number, reply)).await.unwrap();
            let answer = timeout(Duration::from_millis(40), replied).await;
            let text = format!("{number}: {:?}", answer.map_err(|_| "late"));
            sim::note(&text);
            text
        }));
    }
    let mut texts = Vec::new();
    for client in clients {
        texts.push(client.await.unwrap());
    }
    stop.send(true).unwrap();
    server.await.unwrap();
    texts.push(format!("served {}", served.lock().await));
    texts
}

#[test]
fn a_program_for_tokio_is_the_same_twice_under_each_order() {
    for order in [Order::Fifo, Order::Random, Order::Pct(3)] {
        let mut hashes = HashSet::new();
        let mut outcomes = HashSet::new();
        for seed in 0..40 {
            let report = check(seed, |sim| {
                outcomes.insert(sim.order(order).block_on(program()));
            });
            hashes.insert(report.hash);
        }
        assert_eq!(hashes.len(), 40, "{order:?}");
        assert!(outcomes.len() > 5, "{order:?}: {outcomes:?}");
    }
}

#[test]
fn time_is_the_simulation_s() {
    let mut sim = Sim::new(7);
    sim.block_on(async {
        let begin = Instant::now();
        sleep(Duration::from_secs(3600)).await;
        assert_eq!(begin.elapsed(), Duration::from_secs(3600));
        sleep_until(begin + Duration::from_secs(7200)).await;
        assert_eq!(Instant::now() - begin, Duration::from_secs(7200));
        let late = timeout(Duration::from_secs(5), std::future::pending::<()>()).await;
        assert!(late.is_err());
        assert_eq!(Instant::now() - begin, Duration::from_secs(7205));
    });
    assert_eq!(sim.report().elapsed, Duration::from_secs(7205));
}

/// Both branches are always ready. Fails if the real tokio chooses.
#[test]
fn the_seed_decides_which_branch_of_a_select_is_first() {
    let choices = |seed| {
        Sim::new(seed).block_on(async {
            let mut choices = 0u64;
            for at in 0..60 {
                tokio::select! {
                    () = std::future::ready(()) => choices |= 1 << at,
                    () = std::future::ready(()) => {}
                    else => unreachable!("a branch is enabled"),
                }
                tokio::select! {
                    biased;
                    () = std::future::ready(()) => {}
                    () = std::future::ready(()) => unreachable!("the first one is ready"),
                }
            }
            choices
        })
    };
    let all: HashSet<_> = (0..50).map(choices).collect();
    assert_eq!(all.len(), 50);
    assert!((0..50).all(|seed| choices(seed) == choices(seed)));
}

#[test]
fn closures_that_block_run_on_the_simulation_s_thread() {
    check(7, |sim| {
        let here = thread::current().id();
        sim.block_on(async move {
            let handle = tokio::runtime::Handle::current();
            assert_eq!(spawn_blocking(|| thread::current().id()).await.unwrap(), here);
            let begin = Instant::now();
            // A closure that waits for a task.
            let inner = spawn_blocking(move || {
                handle.block_on(async { tokio::spawn(sleep(Duration::from_secs(1))).await })
            });
            inner.await.unwrap().unwrap();
            assert!(begin.elapsed() >= Duration::from_secs(1));
            assert_eq!(tokio::spawn(async { block_in_place(|| 5) }).await.unwrap(), 5);
            let panic = spawn_blocking(|| panic!("in a closure")).await.unwrap_err();
            assert!(panic.is_panic());
            // The real file is not in the simulation.
            assert!(!tokio::fs::try_exists("Cargo.toml").await.unwrap());
        });
    });
}

#[test]
fn tasks_are_joined_aborted_and_local() {
    for seed in 0..20 {
        check(seed, |sim| {
            sim.block_on(async {
                let aborted = tokio::spawn(std::future::pending::<()>());
                aborted.abort();
                assert!(aborted.await.unwrap_err().is_cancelled());
                assert!(tokio::spawn(async { panic!("in a task") }).await.unwrap_err().is_panic());
                let notify = Arc::new(Notify::new());
                let notifies = notify.clone();
                tokio::spawn(async move {
                    sleep(Duration::from_millis(1)).await;
                    notifies.notify_one();
                });
                notify.notified().await;
                let (tell, mut told) = broadcast::channel(4);
                tell.send(1).unwrap();
                assert_eq!(told.recv().await, Ok(1));
            });
            // Tasks that are not `Send`, in the thread of the test.
            let sum = paceline::block_on(LocalSet::new().run_until(async {
                let numbers = std::rc::Rc::new(vec![1, 2, 3]);
                let handle = spawn_local(async move {
                    sleep(Duration::from_secs(1)).await;
                    numbers.iter().sum::<u32>()
                });
                handle.await.unwrap()
            }));
            assert_eq!(sum, 6);
        });
    }
}

/// Fails if a simulation leaves the thread in its runtime, or if a socket of the system is let in.
#[test]
fn what_is_outside() {
    let mut sim = Sim::new(7);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let error = sim.block_on(async { tokio::net::TcpListener::from_std(listener).map(drop) }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(tokio::runtime::Handle::try_current().is_ok());
    drop(sim);
    assert!(tokio::runtime::Handle::try_current().is_err());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let begin = Instant::now();
    runtime.block_on(async { tokio::spawn(sleep(Duration::from_millis(10))).await.unwrap() });
    assert!(begin.elapsed() >= Duration::from_millis(10));
}

/// Echoes over TCP and UDP between two nodes, with the types of tokio.
#[test]
fn sockets_are_those_of_the_network() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket, lookup_host};

    let report = check(7, |sim| {
        sim.node("server", || async {
            let listener = TcpListener::bind("0.0.0.0:7").await.unwrap();
            let datagrams = UdpSocket::bind("0.0.0.0:7").await.unwrap();
            let mut buf = [0; 100];
            loop {
                tokio::select! {
                    Ok((mut stream, _peer)) = listener.accept() => {
                        tokio::spawn(async move {
                            let (mut read, mut write) = stream.split();
                            let _ = tokio::io::copy(&mut read, &mut write).await;
                        });
                    }
                    Ok((len, from)) = datagrams.recv_from(&mut buf) => {
                        datagrams.send_to(&buf[..len], from).await.unwrap();
                    }
                }
            }
        });
        let client = sim.client("client", async {
            let addr = lookup_host("server:7").await.unwrap().next().unwrap();
            let mut stream = TcpStream::connect("server:7").await.unwrap();
            stream.set_nodelay(true).unwrap();
            assert!(stream.nodelay().unwrap());
            assert_eq!(stream.peer_addr().unwrap(), addr);
            let data = vec![7; 300_000];
            let (mut read, mut write) = stream.split();
            let write_all = async {
                write.write_all(&data).await.unwrap();
                write.shutdown().await.unwrap();
            };
            let mut echoed = Vec::new();
            let (_, read) = tokio::join!(write_all, read.read_to_end(&mut echoed));
            assert_eq!((read.unwrap(), echoed == data), (data.len(), true));

            let socket = TcpSocket::new_v4().unwrap();
            socket.bind("0.0.0.0:1234".parse().unwrap()).unwrap();
            let stream = socket.connect(addr).await.unwrap();
            assert_eq!(stream.local_addr().unwrap().port(), 1234);
            assert_eq!(stream.try_read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
            stream.writable().await.unwrap();
            assert_eq!(stream.try_write(b"abc").unwrap(), 3);
            stream.readable().await.unwrap();
            assert_eq!(stream.peek(&mut [0; 10]).await.unwrap(), 3);

            let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
            socket.send_to(b"hello", "server:7").await.unwrap();
            let mut buf = [0; 100];
            let (len, from) = socket.recv_from(&mut buf).await.unwrap();
            assert_eq!((&buf[..len], from), (&b"hello"[..], addr));
            let error = TcpStream::connect("server:8").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        });
        sim.block_on(client);
    });
    assert!(report.elapsed > Duration::ZERO && report.elapsed < Duration::from_secs(1), "{report:?}");
}

/// Unix sockets of tokio, with a path and in pairs.
#[cfg(unix)]
#[test]
fn unix_sockets_are_those_of_the_node() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{UnixDatagram, UnixListener, UnixSocket, UnixStream};

    let mut sim = Sim::new(7);
    sim.block_on(async {
        let listener = UnixListener::bind("/run/a").unwrap();
        assert_eq!(listener.local_addr().unwrap().as_pathname().unwrap().to_str(), Some("/run/a"));
        let mut stream = UnixStream::connect("/run/a").await.unwrap();
        let (mut accepted, peer) = listener.accept().await.unwrap();
        assert!(peer.is_unnamed());
        stream.write_all(b"hello").await.unwrap();
        let mut buf = [0; 5];
        accepted.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"hello");
        drop((listener, stream));
        assert_eq!(accepted.read(&mut buf).await.unwrap(), 0);

        let socket = UnixSocket::new_stream().unwrap();
        socket.bind("/run/a").unwrap();
        let listener = socket.listen(10).unwrap();
        UnixStream::connect("/run/a").await.unwrap();
        listener.accept().await.unwrap();

        let (one, other) = UnixDatagram::pair().unwrap();
        one.send(b"to the other").await.unwrap();
        let mut buf = [0; 100];
        assert_eq!(other.recv(&mut buf).await.unwrap(), 12);
        let named = UnixDatagram::bind("/run/b").unwrap();
        let unbound = UnixDatagram::unbound().unwrap();
        unbound.send_to(b"to a path", "/run/b").await.unwrap();
        let (len, from) = named.recv_from(&mut buf).await.unwrap();
        assert_eq!((&buf[..len], from.is_unnamed()), (&b"to a path"[..], true));
        let error = unbound.send_to(b"to nobody", "/run/c").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    });
}

/// Some programs make a socket by the standard library or by socket2, set its options, and pass it on:
/// hyper's connector does. Fails if such a socket stays one of the system, or if one of the system sends a
/// packet.
#[test]
fn a_fresh_socket_of_the_system_becomes_one_of_the_network() {
    use socket2::{Domain, Socket, Type};
    use tokio::net::{TcpListener, TcpSocket};

    let fresh = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    };
    let real = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    real.set_nonblocking(true).unwrap();
    let outside = real.local_addr().unwrap();
    check(7, |sim| {
        sim.node("server", || async {
            let listener = TcpListener::bind("0.0.0.0:7").await.unwrap();
            while let Ok(accepted) = listener.accept().await {
                drop(accepted);
            }
        });
        let server = std::net::SocketAddr::new(sim.network().address("server"), 7);
        let client = sim.client("client", async move {
            let stream = TcpSocket::from_std_stream(fresh().into()).connect(server).await.unwrap();
            assert_eq!(stream.peer_addr().unwrap(), server);
            #[cfg(unix)]
            {
                use std::os::fd::{FromRawFd, IntoRawFd};
                // Taken in once, and once more with its address.
                // SAFETY: the descriptor is that of a socket, and nothing else owns it.
                let socket = unsafe { TcpSocket::from_raw_fd(fresh().into_raw_fd()) };
                socket.bind("0.0.0.0:1234".parse().unwrap()).unwrap();
                // SAFETY: as above.
                let socket = unsafe { TcpSocket::from_raw_fd(socket.into_raw_fd()) };
                assert_eq!(socket.local_addr().unwrap().port(), 1234);
                assert_eq!(socket.connect(server).await.unwrap().local_addr().unwrap().port(), 1234);
            }
            let bound = fresh();
            bound.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
            let error = TcpSocket::from_std_stream(bound.into()).connect(outside).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
        });
        sim.block_on(client);
    });
    assert_eq!(real.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

/// Fails if a socket keeps its address after its owner has dropped it, or passes it on to the next one with
/// its descriptor.
#[test]
fn a_socket_that_was_only_bound_is_closed() {
    use socket2::{Domain, Socket, Type};
    use tokio::net::{TcpListener, TcpSocket};

    Sim::new(7).block_on(async {
        let addr = "0.0.0.0:1234".parse().unwrap();
        for _ in 0..2 {
            TcpSocket::new_v4().unwrap().bind(addr).unwrap();
        }
        // With the same descriptor.
        let next = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        next.set_nonblocking(true).unwrap();
        assert_eq!(TcpSocket::from_std_stream(next.into()).local_addr().unwrap().port(), 0);
        TcpListener::bind(addr).await.unwrap();
    });
}

/// The files of a node, which a crash leaves as of the last sync.
#[test]
fn files_are_those_of_the_node() {
    use std::io::SeekFrom;
    use tokio::fs::{self, File, OpenOptions};
    use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

    for seed in 0..20 {
        let mut sim = Sim::new(seed);
        let files = sim.files();
        files.set_survival(0.0..=0.0);
        sim.node("server", || async {
            if fs::try_exists("/data/log").await.unwrap() {
                return;
            }
            fs::create_dir_all("/data").await.unwrap();
            let mut file =
                OpenOptions::new().read(true).append(true).create(true).open("/data/log").await.unwrap();
            file.write_all(b"one two ").await.unwrap();
            file.sync_all().await.unwrap();
            for folder in ["/", "/data"] {
                File::open(folder).await.unwrap().sync_all().await.unwrap();
            }
            file.write_all(b"three").await.unwrap();
            file.seek(SeekFrom::Start(4)).await.unwrap();
            let mut rest = String::new();
            file.read_to_string(&mut rest).await.unwrap();
            assert_eq!(rest, "two three");
            fs::rename("/data/log", "/data/renamed").await.unwrap();
            fs::symlink("renamed", "/data/link").await.unwrap();
            assert_eq!(fs::read("/data/link").await.unwrap(), b"one two three");
            file.set_max_buf_size(7);
            assert_eq!(file.try_into_std().unwrap_err().max_buf_size(), 7);
            sim::note("done");
        });
        sim.run_for(Duration::from_secs(30));
        let network = sim.network();
        network.crash("server");
        network.restart("server");
        let client = sim.client("client", async { fs::read("/data/log").await });
        assert_eq!(sim.block_on(client).unwrap_err().kind(), ErrorKind::NotFound);
        let seen = files.on("server", || paceline::blocking::fs::read_to_string("/data/log"));
        assert_eq!(seen.unwrap(), "one two ");
        assert_eq!(sim.report().panics, 0);
    }
}

/// A file that was opened outside of the simulation stays a real one in it.
#[test]
fn a_real_file_stays_real() {
    use std::io::Read;

    let real = std::fs::File::open("Cargo.toml").unwrap();
    let options = std::fs::OpenOptions::new();
    let text = Sim::new(7).block_on(async {
        let error = tokio::fs::OpenOptions::from(options).open("/a").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let mut text = String::new();
        let mut file = tokio::fs::File::from_std(real).into_std().await;
        file.read_to_string(&mut text).map(|_| text)
    });
    assert!(text.unwrap().contains("[package]"));
}
