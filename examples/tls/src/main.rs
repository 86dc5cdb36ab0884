//! HTTPS: hyper over `futures-rustls` over a socket of paceline's, with HTTP/1 or HTTP/2, as the client likes.
//!
//! ```sh
//! cargo run --release -p example-tls                                  # talks to itself and ends
//! cargo run --release -p example-tls -- 127.0.0.1:7443 cert.pem       # serves until Ctrl-C, with a certificate made now:
//! curl --cacert cert.pem https://localhost:7443/
//! ```
//!
//! Look at `connection`: a TLS stream is a stream as any other. What has a limit: the handshake, the time to the first request, with
//! HTTP/1 that to the next one, too, and an HTTP/2 client that answers no ping. What has none: one that answers them and asks no more;
//! a body that stalls, in either direction, for only the handler knows how long one may take; how many connections there are
//! (`examples/http` has a limit).

mod demo;

use std::error::Error;
use std::io;
use std::iter::successors;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::{Either as Which, select};
use futures_rustls::TlsAcceptor;
use futures_rustls::pki_types::{CertificateDer, PrivateKeyDer};
use futures_rustls::rustls::{ProtocolVersion, ServerConfig};
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use paceline::hyper::{Executor, Io, Timer};
use paceline::net::{TcpListener, TcpStream};
use paceline::signal::{Signal, Signals};
use paceline::{block_on, spawn, timeout};

/// For the handshake; for the first request, and with HTTP/1 for the head of the next.
const HANDSHAKE: Duration = Duration::from_secs(3);
const REQUEST: Duration = Duration::from_secs(10);
/// An HTTP/2 client that is silent for so long is pinged, and has as long again to answer.
const SILENCE: Duration = Duration::from_secs(10);
/// How long requests have that are on their way when the server is asked to stop.
const GRACE: Duration = Duration::from_secs(10);

type AnyError = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), AnyError> {
    let mut args = std::env::args().skip(1);
    let (addr, file) = (args.next(), args.next());
    // The names for which it is valid.
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der())?;
    let tls = acceptor(own.cert.der().clone(), key)?;

    block_on(async {
        let listener = TcpListener::bind(addr.as_deref().unwrap_or("127.0.0.1:0")).await?;
        let local = listener.local_addr()?;
        let connections = GracefulShutdown::new();
        let server = serve(listener, tls, &connections);
        if addr.is_none() {
            return select(pin!(server), pin!(demo::talk(local, own.cert.der()))).await.factor_first().0;
        }
        let file =
            file.ok_or("the second argument is missing: the file to which the certificate is written")?;
        std::fs::write(&file, own.cert.pem()).map_err(|error| format!("cannot write {file}: {error}"))?;
        let mut signals = Signals::new([Signal::Interrupt, Signal::Terminate])?;
        println!("serving HTTPS on {local}, with the certificate in {file}, until Ctrl-C");
        // With it the listener goes: nobody comes in any more.
        match select(Box::pin(server), pin!(signals.next())).await {
            Which::Left((ended, _)) => return ended,
            Which::Right((signal, _)) => drop(signal?),
        }
        if let Err(late) = timeout(GRACE, connections.shutdown()).await {
            eprintln!("connections are left: {late}");
        }
        Ok(())
    })
}

fn acceptor(cert: CertificateDer<'static>, key: PrivateKeyDer<'static>) -> Result<TlsAcceptor, AnyError> {
    let mut config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![cert], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config).into())
}

/// Accepts connections, and spawns a task for each.
async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    connections: &GracefulShutdown,
) -> Result<(), AnyError> {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let connection = connection(stream, tls.clone(), connections.watcher());
                let told = async move { connection.await.unwrap_or_else(|error| tell(peer, &*error)) };
                spawn(told).detach();
            }
            // No descriptor left, perhaps, which is told once: the listener itself works on.
            Err(error) => eprintln!("{error}"),
        }
    }
}

/// Prints an error with its causes: hyper's own words are "connection error".
fn tell(peer: SocketAddr, error: &(dyn Error + 'static)) {
    let causes = successors(Some(error), |&error| error.source());
    let causes: Vec<_> = causes.map(ToString::to_string).collect();
    eprintln!("{peer}: {}", causes.join(": "));
}

/// One client, from its handshake to the close of the TLS session, which is announced: so the client knows that nothing was cut off.
async fn connection(stream: TcpStream, tls: TlsAcceptor, watcher: Watcher) -> Result<(), AnyError> {
    stream.set_nodelay(true)?;
    let stream = timeout(HANDSHAKE, tls.accept(stream)).await.map_err(io::Error::from)??;
    let session = stream.get_ref().1;
    let version = session.protocol_version();

    // What was agreed on in the handshake. Else hyper would have to look at what comes, for which it has no limit.
    let http = auto::Builder::new(Executor);
    let mut http = match session.alpn_protocol() {
        Some(b"h2") => http.http2_only(),
        _ => http.http1_only(),
    };
    // A client that closes its side may have an answer nevertheless.
    http.http1().timer(Timer).header_read_timeout(REQUEST).half_close(true);
    http.http2().timer(Timer).keep_alive_interval(SILENCE).keep_alive_timeout(SILENCE);
    let begun = AtomicBool::new(false);
    let service = service_fn(|request| {
        begun.store(true, Ordering::Relaxed);
        answer(request, version)
    });
    let mut connection = pin!(watcher.watch(http.serve_connection(Io::new(stream), service)));
    // HTTP/2 has no pings before its first bytes have come, and none matter to a client that answers them and never asks.
    match timeout(REQUEST, connection.as_mut()).await {
        Ok(ended) => ended,
        Err(_) if begun.load(Ordering::Relaxed) => connection.await,
        Err(late) => Err(io::Error::from(late).into()),
    }
}

/// Sends a body back as it comes, or says hello.
async fn answer(
    request: Request<Incoming>,
    version: Option<ProtocolVersion>,
) -> Result<Response<Either<Incoming, Full<Bytes>>>, hyper::Error> {
    if request.method() == Method::POST {
        return Ok(Response::new(Either::Left(request.into_body())));
    }
    let tls = version.and_then(|version| version.as_str()).unwrap_or("TLS");
    let hello = format!("hello over {:?} over {tls}\n", request.version());
    Ok(Response::new(Either::Right(hello.into())))
}
