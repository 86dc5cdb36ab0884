//! What both servers of this package share: they bring a service of hyper's, and this serves it.
//!
//! Look at `serve`: all that hyper wants of a runtime is an [`Executor`], a [`Timer`] and an [`Io`] around each stream.
//!
//! What has a limit: how many connections there are, the time to a connection's first request, with HTTP/1 that to the next one, too,
//! and an HTTP/2 client that answers no ping. What has none: one that answers them and asks no more, and a body that stalls, in either
//! direction. Only the handler knows how long one may take.

mod demo;

use std::error::Error;
use std::io;
use std::iter::successors;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_lock::Semaphore;
use futures::future::select;
use hyper::body::{Body, Incoming};
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use paceline::hyper::{Executor, Io, Timer};
use paceline::net::TcpListener;
use paceline::signal::{Signal, Signals};
use paceline::{Runtime, spawn, timeout};

/// So many at once. More of them wait until the system accepts them no longer.
const CONNECTIONS: usize = 20_000;
/// For the first request of a connection, and with HTTP/1 for the head of the next.
const REQUEST: Duration = Duration::from_secs(10);
/// An HTTP/2 client that is silent for so long is pinged, and has as long again to answer.
const SILENCE: Duration = Duration::from_secs(10);
/// How long requests have that are on their way when the server is asked to stop.
const GRACE: Duration = Duration::from_secs(10);

/// What may go wrong.
pub type AnyError = Box<dyn Error + Send + Sync>;

/// Serves on the address that is the program's argument, until Ctrl-C or SIGTERM; without one, it has clients of its own for a second.
pub fn run<S, B>(service: S) -> Result<(), AnyError>
where
    S: Service<Request<Incoming>, Response = Response<B>, Future: Send, Error: Into<AnyError>>,
    S: Clone + Send + 'static,
    B: Body<Data: Send, Error: Into<AnyError>> + Send + 'static,
{
    // The default instance, which `block_on` and `spawn` act on otherwise, stays until the process ends. This one can be drained.
    let runtime = Runtime::builder().build()?;
    let report = runtime.block_on(async {
        let addr = std::env::args().nth(1);
        let listener = TcpListener::bind(addr.as_deref().unwrap_or("127.0.0.1:0")).await?;
        let local = listener.local_addr()?;
        if addr.is_some() {
            let mut signals = Signals::new([Signal::Interrupt, Signal::Terminate])?;
            println!("serving on {local}, until Ctrl-C");
            serve(listener, service, CONNECTIONS, async move { signals.next().await.map(drop) }).await?;
        } else {
            serve(listener, service, CONNECTIONS, demo::talk(local)).await?;
        }
        Ok::<_, AnyError>(runtime.drain(Duration::from_secs(1)).await)
    })?;
    println!("{report}");
    Ok(())
}

/// Serves each connection with HTTP/1 or HTTP/2, as it begins, and so many at once at most, until `stop` is done. Then nobody comes in
/// any more, and connections end when their requests are answered.
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
                // No descriptor left, perhaps, which is told once: the listener itself works on.
                Err(error) => {
                    eprintln!("{error}");
                    continue;
                }
            };
            // A peer that is gone already is found out by whoever reads.
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
                // hyper's own limits begin when the version is known, so a peer that says nothing has none of them.
                let ended = match timeout(REQUEST, connection.as_mut()).await {
                    Ok(ended) => ended,
                    Err(_) if begun.load(Ordering::Relaxed) => connection.await,
                    Err(late) => Err(io::Error::from(late).into()),
                };
                if let Err(error) = ended {
                    tell(peer, &*error);
                }
            })
            .detach();
        }
    };
    select(pin!(accept), pin!(stop)).await.factor_first().0?;

    // Before the runtime is drained, which accepts no task: HTTP/2 has one for each request, also for those that are just coming.
    drop(listener);
    if let Err(late) = timeout(GRACE, connections.shutdown()).await {
        eprintln!("connections are left: {late}");
    }
    Ok(())
}

/// Prints an error with its causes: hyper's own words are "connection error".
fn tell(peer: SocketAddr, error: &(dyn Error + 'static)) {
    let causes = successors(Some(error), |&error| error.source());
    let causes: Vec<_> = causes.map(ToString::to_string).collect();
    eprintln!("{peer}: {}", causes.join(": "));
}

#[cfg(test)]
mod tests {
    use http_body_util::Empty;
    use hyper::body::Bytes;
    use paceline::net::TcpStream;
    use paceline::prelude::*;

    use super::*;

    #[test]
    fn who_finds_no_place_waits_for_one() {
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
