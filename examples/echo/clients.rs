//! Thousands of clients, each of which waits for its echo before it sends again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{fmt, io};

use futures_lite::{FutureExt, future};
use paceline::net::TcpStream;
use paceline::prelude::*;
use paceline::{Runtime, Task, timeout};

use crate::times::Times;

/// Open files that the process needs for itself.
const SPARE: u64 = 64;
/// How long the last echoes may take.
const LAST: Duration = Duration::from_secs(10);

/// The connected clients.
pub struct Clients(Vec<TcpStream>);

/// Clients that send until they are told to end, and the times of their echoes.
pub struct Talks {
    tasks: Vec<Task<io::Result<()>>>,
    shared: Arc<Shared>,
    began: Instant,
}

struct Shared {
    is_over: AtomicBool,
    times: Times,
}

/// The result.
pub struct Figures {
    clients: usize,
    lost: usize,
    lasted: Duration,
    shared: Arc<Shared>,
}

impl Clients {
    /// Connects the wanted number of clients, one after the other, or as many as possible before it is
    /// stopped; prints the number.
    pub async fn connect(
        addr: SocketAddr,
        wanted: usize,
        files: u64,
        stop: impl Future<Output = ()>,
    ) -> Self {
        // Both ends of a connection are in this process.
        let allowed = usize::try_from(files.saturating_sub(SPARE) / 2).unwrap_or(usize::MAX);
        let mut streams = Vec::new();
        let connects = async {
            while streams.len() < wanted.min(allowed) {
                match TcpStream::connect(addr).await {
                    Ok(stream) => streams.push(stream),
                    Err(error) => return error.to_string(),
                }
                // A connection within one machine is established at once, so `connect` does not wait. Without
                // this yield, the loop would run to its end in a single poll, and Ctrl-C would go unnoticed
                // until then.
                future::yield_now().await;
            }
            format!("no more than {files} files may be open (`ulimit -Hn`)")
        };
        let stopped = async {
            stop.await;
            "it was interrupted".to_owned()
        };
        let why = stopped.or(connects).await;
        let reached = streams.len();
        match reached {
            _ if wanted == 0 => {}
            _ if reached < wanted => println!("{reached} of {wanted} clients are connected: {why}"),
            _ => println!("{reached} clients are connected"),
        }
        Self(streams)
    }

    pub fn talk(self, on: &Runtime) -> Talks {
        let shared = Arc::new(Shared { is_over: AtomicBool::new(false), times: Times::new() });
        let tasks = self.0.into_iter().map(|stream| on.spawn(talk(stream, shared.clone()))).collect();
        Talks { tasks, shared, began: Instant::now() }
    }
}

impl Talks {
    /// Lets each client receive its last echo and disconnect. A client without it in time counts as lost.
    pub async fn end(self) -> Option<Figures> {
        let Self { tasks, shared, began } = self;
        shared.is_over.store(true, Relaxed);
        let mut figures = Figures { clients: tasks.len(), lost: 0, lasted: began.elapsed(), shared };
        let deadline = Instant::now() + LAST;
        for task in tasks {
            let left = deadline.saturating_duration_since(Instant::now());
            let is_done = matches!(timeout(left, task).await, Ok(Ok(())));
            figures.lost += usize::from(!is_done);
        }
        (figures.clients > 0).then_some(figures)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clients, lost, lasted, shared } = self;
        let echoes = shared.times.count();
        let per_second = echoes as f64 / lasted.as_secs_f64();
        write!(f, "{clients} clients, of which {lost} were lost: {echoes} echoes, {per_second:.0} a second")?;
        if echoes == 0 {
            return Ok(());
        }
        let [p50, p99] = [50, 99].map(|percent| shared.times.percentile(percent));
        write!(f, ", p50 {p50:.1?}, p99 {p99:.1?}")
    }
}

/// Sends and waits for the echo, repeatedly, and at least once.
async fn talk(mut stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    let mut answer = [0; 5];
    loop {
        let start = Instant::now();
        stream.write_all(b"hello").await?;
        stream.read_exact(&mut answer).await?;
        assert_eq!(&answer, b"hello");
        shared.times.add(start.elapsed());
        if shared.is_over.load(Relaxed) {
            return Ok(());
        }
    }
}

/// Raises the limit of open files as far as the system allows, and returns the limit.
#[cfg(unix)]
pub fn allow_files() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let maximum = getrlimit(Resource::Nofile).maximum;
    // If even that is forbidden, the limit stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(not(unix))]
pub fn allow_files() -> u64 {
    u64::MAX
}
