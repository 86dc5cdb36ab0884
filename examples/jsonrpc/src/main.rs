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
//! curl -N 'http://127.0.0.1:7012/?topic=news'                    # events of this topic, from any transport
//! ```
//!
//! `src/lib.rs` has the map; `src/service.rs` the methods.

#[path = "../../common/cli.rs"]
mod cli;
mod demo;
mod service;
#[path = "../../common/stop.rs"]
mod stop;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use cli::AnyError;

use example_jsonrpc::{Limits, Protocol, Server};
use paceline::Runtime;
use paceline::net::TcpListener;

/// Connections at once, of all transports together. Each may hold some 10 MiB in the worst case (by
/// [`Limits`]: 2 MiB of calls and 2 of answers, one waiting message of 1 MiB, buffers, 1 MiB of unrequested
/// messages), so all of them 10 GiB; a quiet one has some kilobytes. A peer that vanished silently keeps its
/// place over all transports but HTTP, where idle connections end: there is no keep-alive.
const CONNECTIONS: usize = 1000;
/// How long running calls have when the server is asked to stop.
const GRACE: Duration = Duration::from_secs(5);

const TAKES: &str = "any of --tcp ADDRESS, --unix PATH, --http ADDRESS, --ws ADDRESS, --amqp URL, and --max-message BYTES, \
                     or only an ADDRESS for --tcp, or no arguments";

fn main() -> ExitCode {
    cli::run(include_str!("main.rs"), |args| {
        let runtime = Runtime::builder().build()?;
        let report = runtime.block_on(async {
            match args.is_empty() {
                true => demo::run().await?,
                false => serve(args).await?,
            }
            Ok::<_, AnyError>(runtime.drain(Duration::from_secs(1)).await)
        })?;
        println!("{report}");
        Ok(())
    })
}

/// Serves on the addresses in the arguments, until Ctrl-C or SIGTERM.
async fn serve(args: &[&str]) -> Result<(), AnyError> {
    let refuse = || cli::refuse(args, TAKES);
    let args = match args {
        [addr] if !addr.starts_with('-') => &["--tcp", addr],
        args => args,
    };
    let mut limits = Limits::default();
    let (mut listen, mut paths) = (Vec::new(), Vec::new());
    for pair in args.chunks(2) {
        let &[option, value] = pair else { return Err(refuse()) };
        match option {
            "--max-message" => limits.message = value.parse().map_err(|_| refuse())?,
            "--tcp" | "--unix" | "--http" | "--ws" | "--amqp" => listen.push((option, value)),
            _ => return Err(refuse()),
        }
    }
    if listen.is_empty() {
        return Err(refuse());
    }
    let server = Server::new(service::dispatcher(limits), CONNECTIONS);
    for (option, value) in listen {
        let protocol = match option {
            "--http" => Protocol::Http,
            "--ws" => Protocol::WebSocket,
            _ => Protocol::Framed,
        };
        let place = match option {
            "--unix" => {
                paths.push(unix(&server, value)?);
                value.to_owned()
            }
            "--amqp" => {
                amqp(&server, value).await?;
                value.to_owned()
            }
            _ => tcp(&server, value, protocol).await?.to_string(),
        };
        println!("{} on {place}", &option[2..]);
    }
    // Until here Ctrl-C ends the program at once.
    let asked = stop::asked()?;
    println!("serving, until Ctrl-C");
    asked.await;
    // Before the grace time for calls, so that another server may take the path meanwhile.
    drop(paths);
    end(server).await;
    Ok(())
}

/// Running calls are answered; no new client is accepted.
async fn end(server: Server) {
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

/// A path that its listener leaves behind would be in the way of the next listener.
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
    // A killed server leaves its socket behind. If a server still runs, it answers.
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
