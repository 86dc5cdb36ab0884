//! An echo server with several leaders: one runtime for each group of cores, each with a listener of its own
//! on the same address.
//!
//! ```sh
//! cargo run --release --example shards                          # two shards, and 200 clients of its own
//! cargo run --release --example shards -- 127.0.0.1:7000 4      # four shards, for other clients, until Ctrl-C
//! ```
//!
//! A runtime has one reactor and one leader at a time. If a machine has more cores than one leader can feed,
//! a program can have a runtime for each group of cores: a *shard*. The listeners share the address by
//! `SO_REUSEPORT`, and the kernel decides by a hash which one gets a connection. A connection stays with its
//! shard, and so does each task that serves it.
//!
//! Look at `Shard::open`: a hook of the builder pins each worker to the shard's cores. At the end the program
//! prints how many connections each shard has served.

#[path = "common/cli.rs"]
mod cli;
#[cfg(target_os = "linux")]
#[path = "common/stop.rs"]
mod stop;

use std::process::ExitCode;

const SHARDS: usize = 2;

fn main() -> ExitCode {
    cli::run(include_str!("shards.rs"), |args| {
        let takes = "an ADDRESS:PORT to serve on, then a number of SHARDS, or no arguments";
        let wish = match args {
            [] => Some((None, SHARDS)),
            [addr] => addr.parse().ok().map(|addr| (Some(addr), SHARDS)),
            [addr, shards] => addr.parse().ok().map(Some).zip(shards.parse().ok()),
            _ => None,
        };
        let (addr, shards) =
            wish.filter(|(_, shards)| *shards > 0).ok_or_else(|| cli::refuse(args, takes))?;
        Ok(linux::run(addr, shards)?)
    })
}

#[cfg(not(target_os = "linux"))]
mod linux {
    use std::io;
    use std::net::SocketAddr;

    pub(super) fn run(_addr: Option<SocketAddr>, _shards: usize) -> io::Result<()> {
        println!("this example needs Linux, which distributes connections among listeners of one address");
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::time::Duration;

    use futures::future::join_all;
    use futures_lite::FutureExt as _;
    use paceline::net::{TcpListener, TcpStream};
    use paceline::prelude::*;
    use paceline::{Runtime, Task, block_on, spawn};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::stop;

    /// How long open connections have at the end.
    const GRACE: Duration = Duration::from_secs(10);
    const CLIENTS: usize = 200;
    const ROUNDS: usize = 20;

    /// One leader with its workers and connections.
    struct Shard {
        runtime: Runtime,
        addr: SocketAddr,
        server: Task<io::Result<()>>,
        /// Connections so far.
        served: Arc<AtomicUsize>,
    }

    impl Shard {
        /// Starts a runtime with a worker for each of these cores, and serves on the address.
        fn open(number: usize, cores: &[usize], addr: SocketAddr) -> io::Result<Self> {
            let listener = listen(addr)?;
            let addr = listener.local_addr()?;
            let mut set = CpuSet::new();
            cores.iter().for_each(|core| set.set(*core));
            let pin = move || {
                // A worker that cannot be pinned works on any core.
                if let Err(error) = sched_setaffinity(None, &set) {
                    eprintln!("cannot pin a worker of shard {number}: {error}");
                }
            };
            let builder = Runtime::builder().threads(cores.len()).thread_name(format!("shard-{number}"));
            let runtime = builder.on_thread_start(pin).build()?;
            let served = Arc::<AtomicUsize>::default();
            let server = runtime.spawn(serve(listener, served.clone()));
            Ok(Self { runtime, addr, server, served })
        }

        /// Accepts no more connections, and waits for the end of those that there are.
        async fn close(self) -> String {
            // Cancels the task, which drops its listener.
            drop(self.server);
            let report = self.runtime.drain(GRACE).await;
            format!("{} connections; {report}", self.served.load(Relaxed))
        }
    }

    pub(super) fn run(addr: Option<SocketAddr>, shards: usize) -> io::Result<()> {
        // The default instance waits for the signals, and runs the clients.
        let stop = block_on(async { stop::asked() })?;
        let mut at = addr.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
        let mut open = Vec::new();
        for (number, cores) in groups(shards)?.into_iter().enumerate() {
            let shard = Shard::open(number, &cores, at)?;
            println!("shard {number} has cores {cores:?}");
            // If the system has chosen the port, the next shards use the same.
            at = shard.addr;
            open.push(shard);
        }
        let end = if addr.is_some() { ", until Ctrl-C" } else { "" };
        println!("echoing on {at} with {shards} shards{end}");
        block_on(async {
            let talked = async {
                if addr.is_some() {
                    std::future::pending::<()>().await;
                }
                let clients: Vec<_> = (0..CLIENTS).map(|_| spawn(talk(at))).collect();
                let talks = join_all(clients).await;
                println!("{} of {CLIENTS} clients had all their echoes", talks.iter().flatten().count());
            };
            stop.or(talked).await;
            // At the same time, so that the grace time is the same for all connections.
            let reports = join_all(open.into_iter().map(Shard::close)).await;
            reports
                .iter()
                .enumerate()
                .for_each(|(number, report)| println!("shard {number} has served {report}"));
        });
        Ok(())
    }

    /// Divides the cores that this process may use into groups. With more groups than cores, some share one.
    fn groups(count: usize) -> io::Result<Vec<Vec<usize>>> {
        let allowed = sched_getaffinity(None)?;
        let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
        let group = |number: usize| {
            let (begin, end) = (number * cores.len() / count, (number + 1) * cores.len() / count);
            cores[begin..end.max(begin + 1)].to_vec()
        };
        Ok((0..count).map(group).collect())
    }

    /// Binds a listener to an address that the other shards use, too.
    fn listen(addr: SocketAddr) -> io::Result<std::net::TcpListener> {
        let family = if addr.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        sockopt::set_socket_reuseport(&socket, true)?;
        let bound = rustix::net::bind(&socket, &addr).and_then(|()| rustix::net::listen(&socket, 4096));
        bound.map_err(|error| {
            let error = io::Error::from(error);
            io::Error::new(error.kind(), format!("cannot listen on {addr}: {error}"))
        })?;
        Ok(socket.into())
    }

    /// Accepts connections, and spawns a task for each. The listener becomes a source here, on a thread of
    /// the shard, and so belongs to the shard's reactor; so do the connections.
    async fn serve(listener: std::net::TcpListener, served: Arc<AtomicUsize>) -> io::Result<()> {
        let listener = TcpListener::try_from(listener)?;
        loop {
            match listener.accept().await {
                Ok((stream, _peer)) => {
                    served.fetch_add(1, Relaxed);
                    spawn(echo(stream)).detach();
                }
                // Perhaps no descriptor is free; that is reported once, and the listener continues.
                Err(error) => eprintln!("{error}"),
            }
        }
    }

    /// Sends back all that it reads, until the peer closes its side.
    async fn echo(mut stream: TcpStream) -> io::Result<()> {
        let mut buffer = [0; 4096];
        loop {
            match stream.read(&mut buffer).await? {
                0 => return Ok(()),
                n => stream.write_all(&buffer[..n]).await?,
            }
        }
    }

    async fn talk(addr: SocketAddr) -> io::Result<()> {
        let mut stream = TcpStream::connect(addr).await?;
        for _ in 0..ROUNDS {
            stream.write_all(b"word").await?;
            stream.read_exact(&mut [0; 4]).await?;
        }
        Ok(())
    }
}
