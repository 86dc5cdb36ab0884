//! JSON-RPC 2.0: one dispatcher, served over TCP, a Unix socket, HTTP, WebSocket, and AMQP, at once.
//!
//! ```sh
//! cargo run --release -p example-jsonrpc                          # serves, talks to itself over each, and ends
//! cargo run --release -p example-jsonrpc -- 127.0.0.1:7011        # serves over TCP, until Ctrl-C
//! cargo run --release -p example-jsonrpc -- --tcp 127.0.0.1:7011 --unix /tmp/rpc --http 127.0.0.1:7012 --ws 127.0.0.1:7013
//! ```
//!
//! Then, until Ctrl-C:
//!
//! ```sh
//! echo '{"jsonrpc":"2.0","method":"sum","params":[1,2,3],"id":1}' | nc -N 127.0.0.1 7011
//! curl -H content-type:application/json -d '{"jsonrpc":"2.0","method":"echo","params":["hello"],"id":1}' http://127.0.0.1:7012/
//! curl -N 'http://127.0.0.1:7012/?topic=news'                    # what is published there, from whichever side
//! ```
//!
//! `src/lib.rs` has the map; `src/service.rs` the methods.

mod demo;
mod service;

use std::time::Duration;
use std::{env, io};

use example_jsonrpc::{Limits, Protocol, Server};
use paceline::Runtime;
use paceline::net::TcpListener;
use paceline::signal::{Signal, Signals};

/// So many connections at once, of all transports together. Each may hold some 10 MiB if its peer does its worst (by [`Limits`]: 2 MiB of
/// calls and 2 of answers, one message of 1 MiB that waits, what is read and written, 1 MiB of what is pushed), so all of them 10 GiB; a
/// quiet one has some kilobytes. A peer that is gone without a word keeps its place over all but HTTP, where nothing is said: there is no
/// keep-alive.
const CONNECTIONS: usize = 1000;
/// What calls have that run when the server is asked to stop.
const GRACE: Duration = Duration::from_secs(5);

const USAGE: &str = "usage: example-jsonrpc [--tcp ADDRESS] [--unix PATH] [--http ADDRESS] [--ws ADDRESS] [--amqp URL] [--max-message BYTES], or only an ADDRESS, for --tcp";

fn main() -> io::Result<()> {
    let runtime = Runtime::builder().build()?;
    let args: Vec<_> = env::args().skip(1).collect();
    let report = runtime.block_on(async {
        match args.is_empty() {
            true => demo::run().await?,
            false => serve(&args).await?,
        }
        io::Result::Ok(runtime.drain(Duration::from_secs(1)).await)
    })?;
    println!("{report}");
    Ok(())
}

/// Serves on what the arguments name, until Ctrl-C or SIGTERM.
async fn serve(args: &[String]) -> io::Result<()> {
    let args = match args {
        [addr] if !addr.starts_with('-') => &["--tcp".to_owned(), addr.clone()],
        args => args,
    };
    let usage = || io::Error::new(io::ErrorKind::InvalidInput, USAGE);
    let mut limits = Limits::default();
    let (mut listen, mut paths) = (Vec::new(), Vec::new());
    for pair in args.chunks(2) {
        let [option, value] = pair else { return Err(usage()) };
        match option.as_str() {
            "--max-message" => limits.message = value.parse().map_err(|_| usage())?,
            "--tcp" | "--unix" | "--http" | "--ws" | "--amqp" => listen.push((option, value)),
            _ => return Err(usage()),
        }
    }
    let mut signals = Signals::new([Signal::Interrupt, Signal::Terminate])?;
    let server = Server::new(service::dispatcher(limits), CONNECTIONS);
    for (option, value) in listen {
        let protocol = match option.as_str() {
            "--http" => Protocol::Http,
            "--ws" => Protocol::WebSocket,
            _ => Protocol::Framed,
        };
        let place = match option.as_str() {
            "--unix" => {
                paths.push(unix(&server, value)?);
                value.clone()
            }
            "--amqp" => {
                amqp(&server, value).await?;
                value.clone()
            }
            _ => tcp(&server, value, protocol).await?.to_string(),
        };
        println!("{} on {place}", &option[2..]);
    }
    println!("serving, until Ctrl-C");
    signals.next().await?;
    // Before calls have their time to finish: meanwhile another server may take the path.
    drop(paths);
    stop(server).await;
    Ok(())
}

/// Calls that run are answered; nobody else is let in.
async fn stop(server: Server) {
    if let Err(late) = server.stop(GRACE).await {
        eprintln!("connections are left: {late}");
    }
}

async fn tcp(server: &Server, addr: &str, protocol: Protocol) -> io::Result<std::net::SocketAddr> {
    let listener = TcpListener::bind(addr).await?;
    let addr = listener.local_addr()?;
    server.listen(listener, protocol);
    Ok(addr)
}

/// A path is left behind by its listener, and would be in the way of the next one.
struct Removed(String);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(unix)]
fn unix(server: &Server, path: &str) -> io::Result<Removed> {
    use std::os::unix::fs::FileTypeExt;

    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    // One that a server has left behind which was killed. If a server is there, it answers.
    let is_left = is_socket
        && std::os::unix::net::UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if is_left {
        std::fs::remove_file(path)?;
    }
    server.listen(paceline::net::unix::UnixListener::bind(path)?, Protocol::Framed);
    Ok(Removed(path.to_owned()))
}

#[cfg(not(unix))]
fn unix(_: &Server, path: &str) -> io::Result<Removed> {
    Err(io::Error::new(io::ErrorKind::Unsupported, format!("{path}: there are no Unix sockets here")))
}

#[cfg(feature = "amqp")]
async fn amqp(server: &Server, url: &str) -> io::Result<()> {
    server.listen_amqp(url).await
}

#[cfg(not(feature = "amqp"))]
async fn amqp(_: &Server, url: &str) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!("{url}: this was built without the feature `amqp`"),
    ))
}
