//! The part that both servers of this package share: it serves a given hyper service.
//!
//! Look at `serve`: hyper needs an [`Executor`], a [`Timer`] and an [`Io`] around each stream from a runtime.
//!
//! Limited are the number of connections, the time to a connection's first request, with HTTP/1 also that to
//! the next one, and an HTTP/2 client that answers no ping. Not limited are a client that answers pings and
//! sends no requests, and a body that stalls, in either direction: only the handler knows how long one may
//! take.

#[path = "../../common/cli.rs"]
mod cli;
mod demo;
#[path = "../../common/stop.rs"]
mod stop;

use std::error::Error;
use std::io;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_lock::Semaphore;
use futures::future::{FutureExt, select};
use hyper::body::{Body, Incoming};
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use paceline::hyper::{Executor, Io, Timer};
use paceline::net::TcpListener;
use paceline::{Runtime, spawn, timeout};

/// Connections at once. More of them wait in the listener's queue, until it is full.
const CONNECTIONS: usize = 20_000;
/// For the first request of a connection, and with HTTP/1 for the head of the next.
const REQUEST: Duration = Duration::from_secs(10);
/// An HTTP/2 client that is silent for so long is pinged, and has as long again to answer.
const SILENCE: Duration = Duration::from_secs(10);
/// How long requests in progress have when the server is asked to stop.
const GRACE: Duration = Duration::from_secs(10);

/// Any error.
pub type AnyError = Box<dyn Error + Send + Sync>;

/// Serves on the address that is the program's argument, until Ctrl-C or SIGTERM; without an argument, runs
/// clients of its own for a second.
///
/// `--help` prints the header of `source`, the program's file.
pub fn run<S, B>(source: &str, service: S) -> ExitCode
where
    S: Service<Request<Incoming>, Response = Response<B>, Future: Send, Error: Into<AnyError>>,
    S: Clone + Send + 'static,
    B: Body<Data: Send, Error: Into<AnyError>> + Send + 'static,
{
    cli::run(source, |args| run_on(cli::address(args)?, service))
}

fn run_on<S, B>(addr: Option<&str>, service: S) -> Result<(), AnyError>
where
    S: Service<Request<Incoming>, Response = Response<B>, Future: Send, Error: Into<AnyError>>,
    S: Clone + Send + 'static,
    B: Body<Data: Send, Error: Into<AnyError>> + Send + 'static,
{
    // The default instance, on which `block_on` and `spawn` act otherwise, stays until the process ends. This
    // runtime can be drained.
    let runtime = Runtime::builder().build()?;
    let report = runtime.block_on(async {
        let listener = TcpListener::bind(addr.unwrap_or("127.0.0.1:0")).await?;
        let local = listener.local_addr()?;
        if addr.is_some() {
            let asked = stop::asked()?;
            println!("serving on {local}, until Ctrl-C");
            serve(listener, service, CONNECTIONS, asked.map(Ok)).await?;
        } else {
            serve(listener, service, CONNECTIONS, demo::talk(local)).await?;
        }
        Ok::<_, AnyError>(runtime.drain(Duration::from_secs(1)).await)
    })?;
    println!("{report}");
    Ok(())
}

/// Serves each connection with HTTP/1 or HTTP/2, as the client begins, and limits their number, until `stop`
/// is ready. Then no connection is accepted any more, and each connection ends when its requests are
/// answered.
async fn serve<S, B>(
    listener: TcpListener,
    service: S,
    most: usize,
    stop: impl Future<Output = io::Result<()>>,
) -> io::Result<()>
where
    S: Service<Request<Incoming>, Response = Response<B>, Future: Send, Error: Into<AnyError>>,
    S: Clone + Send + 'static,
    B: Body<Data: Send, Error: Into<AnyError>> + Send + 'static,
{
    let mut http = auto::Builder::new(Executor);
    http.http1().timer(Timer).header_read_timeout(REQUEST);
    http.http2().timer(Timer).keep_alive_interval(SILENCE).keep_alive_timeout(SILENCE);
    let connections = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(most));

    let accept = async {
        loop {
            let place = room.acquire_arc().await;
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                // Perhaps no descriptor is free; that is reported once, and the listener continues.
                Err(error) => {
                    eprintln!("{error}");
                    continue;
                }
            };
            // If the peer has already disconnected, the next read fails.
            let _ = stream.set_nodelay(true);
            let (begun, service) = (Arc::new(AtomicBool::new(false)), service.clone());
            let begins = begun.clone();
            let noted = service_fn(move |request| {
                begins.store(true, Ordering::Relaxed);
                service.call(request)
            });
            let connection = http.serve_connection(Io::new(stream), noted).into_owned();
            let connection = connections.watch(connection);
            spawn(async move {
                let _place = place;
                let mut connection = pin!(connection);
                // hyper's own limits begin when the version is known, so a silent peer has none of them.
                let ended = match timeout(REQUEST, connection.as_mut()).await {
                    Ok(ended) => ended,
                    Err(_) if begun.load(Ordering::Relaxed) => connection.await,
                    Err(late) => Err(io::Error::from(late).into()),
                };
                if let Err(error) = ended {
                    // With its causes: hyper's own text is "connection error".
                    eprintln!("{peer}: {}", cli::with_causes(&*error));
                }
            })
            .detach();
        }
    };
    select(pin!(accept), pin!(stop)).await.factor_first().0?;

    // Before the runtime is drained, because a drain refuses new tasks: HTTP/2 has a task for each request,
    // including those that are just arriving.
    drop(listener);
    if let Err(late) = timeout(GRACE, connections.shutdown()).await {
        eprintln!("connections are left: {late}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http_body_util::Empty;
    use hyper::body::Bytes;
    use paceline::net::TcpStream;
    use paceline::prelude::*;

    use super::*;

    #[test]
    fn a_connection_without_a_place_waits_for_one() {
        let service = service_fn(async |_| Ok::<_, AnyError>(Response::new(Empty::<Bytes>::new())));
        let served = Runtime::builder().build().expect("it starts").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let local = listener.local_addr()?;
            let clients = async {
                let mut streams = Vec::new();
                for _ in 0..3 {
                    let mut stream = TcpStream::connect(local).await?;
                    stream.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").await?;
                    streams.push(stream);
                }
                let mut byte = [0];
                streams[0].read_exact(&mut byte).await?;
                streams[1].read_exact(&mut byte).await?;
                let early = timeout(Duration::from_millis(200), streams[2].read_exact(&mut byte)).await;
                assert!(early.is_err(), "there are two places");
                drop(streams.remove(0));
                streams[1].read_exact(&mut byte).await
            };
            timeout(GRACE * 3, serve(listener, service, 2, clients)).await?
        });
        served.expect("an answer for each");
    }
}
