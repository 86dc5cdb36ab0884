//! A service, and connections to it.

use std::convert::Infallible;
use std::future::Future;
use std::sync::LazyLock;
use std::time::Duration;

use async_lock::Barrier;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, client, header, server, upgrade};
use paceline::hyper::{Executor, Io, Timer};
use paceline::net::{TcpListener, TcpStream};
use paceline::prelude::*;
use paceline::{Task, spawn};

pub type Body = BoxBody<Bytes, hyper::Error>;
pub type Sent = Full<Bytes>;

/// How long `/slow` takes.
pub const SLOW: Duration = Duration::from_millis(100);

pub fn text(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).map_err(|never| match never {}).boxed()
}

/// How many requests for `/together` are answered at a time.
pub const TOGETHER: usize = 100;

/// `/echo` returns the body as it comes, `/length` its length or the error, `/slow` takes a while,
/// `/together` answers when [`TOGETHER`] requests for it are there, `/never` never answers, `/up` becomes a
/// stream that echoes, as a `CONNECT` does; all other paths are the answer's body.
pub async fn answer(mut request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    if request.method() == Method::CONNECT || request.uri().path() == "/up" {
        let is_connect = request.method() == Method::CONNECT;
        let upgrade = upgrade::on(&mut request);
        spawn(async move {
            let (read, write) = Io::new(upgrade.await.unwrap()).split();
            echo(read, write).await;
        })
        .detach();
        let mut response = Response::new(text(""));
        if !is_connect {
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            response.headers_mut().insert(header::CONNECTION, "upgrade".parse().unwrap());
            response.headers_mut().insert(header::UPGRADE, "echo".parse().unwrap());
        }
        return Ok(response);
    }
    let path = request.uri().path().to_owned();
    let body = match path.as_str() {
        "/echo" => request.into_body().boxed(),
        "/length" => match request.into_body().collect().await {
            Ok(body) => text(body.to_bytes().len().to_string()),
            Err(error) => text(chain(&error)),
        },
        "/slow" => {
            paceline::Timer::after(SLOW).await;
            text(path)
        }
        "/together" => {
            static ALL: LazyLock<Barrier> = LazyLock::new(|| Barrier::new(TOGETHER));
            ALL.wait().await;
            text(path)
        }
        "/never" => std::future::pending().await,
        _ => text(path),
    };
    Ok(Response::new(body))
}

/// Echoes until the peer ends; then this side ends, too.
async fn echo(mut read: impl AsyncRead + Unpin, mut write: impl AsyncWrite + Unpin) {
    let mut buf = [0; 4096];
    while let Ok(count @ 1..) = read.read(&mut buf).await {
        write.write_all(&buf[..count]).await.unwrap();
        write.flush().await.unwrap();
    }
    let _ = write.close().await;
}

/// Returns an error with its causes.
pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

pub async fn listen() -> (TcpListener, std::net::SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    (listener, addr)
}

pub async fn accept(listener: &TcpListener) -> Io<TcpStream> {
    Io::new(listener.accept().await.unwrap().0)
}

/// Serves one connection.
pub fn serve1(io: Io<TcpStream>) -> Task<hyper::Result<()>> {
    let mut http = server::conn::http1::Builder::new();
    http.timer(Timer).half_close(true);
    spawn(http.serve_connection(io, service_fn(answer)).with_upgrades())
}

pub fn serve2(io: Io<TcpStream>) -> Task<hyper::Result<()>> {
    let mut http = server::conn::http2::Builder::new(Executor);
    spawn(http.timer(Timer).serve_connection(io, service_fn(answer)))
}

pub type Sender1 = client::conn::http1::SendRequest<Sent>;
pub type Sender2 = client::conn::http2::SendRequest<Sent>;

pub async fn connect1(addr: std::net::SocketAddr) -> (Sender1, Task<hyper::Result<()>>) {
    let stream = TcpStream::connect(addr).await.unwrap();
    let (sender, connection) = client::conn::http1::handshake(Io::new(stream)).await.unwrap();
    (sender, spawn(connection.with_upgrades()))
}

pub async fn connect2(addr: std::net::SocketAddr) -> (Sender2, Task<hyper::Result<()>>) {
    let stream = TcpStream::connect(addr).await.unwrap();
    let (sender, connection) = client::conn::http2::handshake(Executor, Io::new(stream)).await.unwrap();
    (sender, spawn(connection))
}

pub fn get(path: &str) -> Request<Sent> {
    Request::get(path).header("host", "test").body(Full::default()).unwrap()
}

pub fn post(path: &str, body: Bytes) -> Request<Sent> {
    Request::post(path).header("host", "test").body(Full::new(body)).unwrap()
}

/// Returns the whole body of an answer.
pub async fn body(response: impl Future<Output = hyper::Result<Response<Incoming>>>) -> hyper::Result<Bytes> {
    Ok(response.await?.into_body().collect().await?.to_bytes())
}

/// Returns some MiB in which no two are alike.
pub fn large() -> Bytes {
    (0..3_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}
