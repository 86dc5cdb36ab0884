//! HTTPS: hyper over `futures-rustls` over a socket of paceline, with HTTP/1 or HTTP/2, as the client
//! chooses.
//!
//! ```sh
//! cargo run --release -p example-tls                                  # talks to itself and ends
//! cargo run --release -p example-tls -- 127.0.0.1:7443 cert.pem       # serves until Ctrl-C, with a new certificate:
//! curl --cacert cert.pem https://localhost:7443/
//! cargo run --release -p example-tls -- 127.0.0.1:7443                # the same, with the certificate in example-tls-cert.pem
//! ```
//!
//! Look at `connection`: a TLS stream is a stream like any other. Limited are the handshake, the time to the
//! first request, with HTTP/1 also that to the next one, and an HTTP/2 client that answers no ping. Not
//! limited are a client that answers pings and sends no requests; a body that stalls, in either direction,
//! because only the handler knows how long one may take; and the number of connections (`examples/http` has a
//! limit).

#[path = "../../common/cli.rs"]
mod cli;
mod demo;
#[path = "../../common/stop.rs"]
mod stop;

use std::io;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cli::AnyError;
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
use paceline::{block_on, spawn, timeout};

/// For the handshake; for the first request, and with HTTP/1 for the head of the next.
const HANDSHAKE: Duration = Duration::from_secs(3);
const REQUEST: Duration = Duration::from_secs(10);
/// An HTTP/2 client that is silent for so long is pinged, and has as long again to answer.
const SILENCE: Duration = Duration::from_secs(10);
/// How long requests in progress have when the server is asked to stop.
const GRACE: Duration = Duration::from_secs(10);

/// Where the certificate is written without a second argument.
const CERTIFICATE: &str = "example-tls-cert.pem";

fn main() -> ExitCode {
    cli::run(include_str!("main.rs"), |args| match args {
        [] => run(None, CERTIFICATE),
        [addr] if !addr.starts_with('-') => run(Some(addr), CERTIFICATE),
        [addr, file] if !addr.starts_with('-') => run(Some(addr), file),
        _ => Err(cli::refuse(args, "ADDRESS:PORT [CERTIFICATE_FILE], or no arguments")),
    })
}

/// Serves on this address until Ctrl-C, with a certificate that is written to `file`; without an address,
/// talks to itself and ends.
fn run(addr: Option<&str>, file: &str) -> Result<(), AnyError> {
    // The names for which it is valid.
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der())?;
    let tls = acceptor(own.cert.der().clone(), key)?;

    block_on(async {
        let listener = TcpListener::bind(addr.unwrap_or("127.0.0.1:0")).await?;
        let local = listener.local_addr()?;
        let connections = GracefulShutdown::new();
        let server = serve(listener, tls, &connections);
        if addr.is_none() {
            return select(pin!(server), pin!(demo::talk(local, own.cert.der()))).await.factor_first().0;
        }
        std::fs::write(file, own.cert.pem()).map_err(|error| format!("cannot write {file}: {error}"))?;
        let asked = stop::asked()?;
        println!("serving HTTPS on {local}, with the certificate in {file}, until Ctrl-C");
        // This drops the listener, too: no client is accepted any more.
        if let Which::Left((ended, _)) = select(Box::pin(server), pin!(asked)).await {
            return ended;
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
                let told = async move {
                    // With its causes: hyper's own text is "connection error".
                    connection
                        .await
                        .unwrap_or_else(|error| eprintln!("{peer}: {}", cli::with_causes(&*error)))
                };
                spawn(told).detach();
            }
            // Perhaps no descriptor is free; that is reported once, and the listener continues.
            Err(error) => eprintln!("{error}"),
        }
    }
}

/// Serves one client, from its handshake to the announced close of the TLS session, by which the client knows
/// that nothing is missing.
async fn connection(stream: TcpStream, tls: TlsAcceptor, watcher: Watcher) -> Result<(), AnyError> {
    stream.set_nodelay(true)?;
    let stream = timeout(HANDSHAKE, tls.accept(stream)).await.map_err(io::Error::from)??;
    let session = stream.get_ref().1;
    let version = session.protocol_version();

    // The protocol that the handshake selected. Otherwise hyper would have to wait for bytes, for which it
    // has no limit.
    let http = auto::Builder::new(Executor);
    let mut http = match session.alpn_protocol() {
        Some(b"h2") => http.http2_only(),
        _ => http.http1_only(),
    };
    // A client that closes its side still gets its answer.
    http.http1().timer(Timer).header_read_timeout(REQUEST).half_close(true);
    http.http2().timer(Timer).keep_alive_interval(SILENCE).keep_alive_timeout(SILENCE);
    let begun = AtomicBool::new(false);
    let service = service_fn(|request| {
        begun.store(true, Ordering::Relaxed);
        answer(request, version)
    });
    let mut connection = pin!(watcher.watch(http.serve_connection(Io::new(stream), service)));
    // HTTP/2 has no pings before its first bytes, and pings do not limit a client that answers them and sends
    // no requests.
    match timeout(REQUEST, connection.as_mut()).await {
        Ok(ended) => ended,
        Err(_) if begun.load(Ordering::Relaxed) => connection.await,
        Err(late) => Err(io::Error::from(late).into()),
    }
}

/// Sends a body back as it arrives, or says hello.
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
