//! hyper on three runtimes: the same service, with each runtime's own stream, executor and tasks for hyper.
//! All settings of hyper have their defaults.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::net::TcpListener;

use ::hyper::body::{Bytes, Incoming};
use ::hyper::header::{CONTENT_TYPE, HeaderValue};
use ::hyper::rt::{Read, Write};
use ::hyper::server::conn::{http1, http2};
use ::hyper::service::service_fn;
use ::hyper::{Request, Response};
use http_body_util::Full;

use super::{accept_failed, listen};
use crate::handler::{self, BODY};

#[derive(Clone, Copy, Debug)]
pub(super) enum Version {
    One,
    Two,
}

/// The service, which works as all servers do.
fn answer(request: Request<Incoming>) -> Ready<Result<Response<Full<Bytes>>, Infallible>> {
    handler::work(request.uri().path().as_bytes());
    let mut response = Response::new(Full::from(BODY));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    ready(Ok(response))
}

async fn one(io: impl Read + Write + Unpin + 'static) {
    // A client that disconnects is no error here.
    let _ = http1::Builder::new().serve_connection(io, service_fn(answer)).await;
}

/// Serves one connection with `$executor`. A macro, because hyper has different bounds for each executor.
macro_rules! converse {
    ($version:expr, $io:expr, $executor:expr) => {
        match $version {
            Version::One => one($io).await,
            Version::Two => {
                let connection = http2::Builder::new($executor).serve_connection($io, service_fn(answer));
                let _ = connection.await;
            }
        }
    };
}

#[cfg(feature = "paceline")]
pub(super) fn paceline(port: u16, threads: usize, version: Version) -> io::Result<()> {
    use ::paceline::hyper::{Executor, Io};
    use ::paceline::{Runtime, net, spawn};

    async fn accept(listener: TcpListener, version: Version) -> io::Result<()> {
        let listener = net::TcpListener::try_from(listener)?;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    stream.set_nodelay(true)?;
                    spawn(async move { converse!(version, Io::new(stream), Executor) }).detach();
                }
                Err(error) => accept_failed(&error),
            }
        }
    }

    let runtime = Runtime::builder().threads(threads).build()?;
    runtime.block_on(runtime.spawn(accept(listen(port)?, version)))
}

pub(super) fn tokio(port: u16, threads: usize, version: Version) -> io::Result<()> {
    use ::tokio::{net, runtime, spawn};
    use hyper_util::rt::{TokioExecutor, TokioIo};

    async fn accept(listener: TcpListener, version: Version) -> io::Result<()> {
        let listener = net::TcpListener::from_std(listener)?;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    stream.set_nodelay(true)?;
                    spawn(async move { converse!(version, TokioIo::new(stream), TokioExecutor::new()) });
                }
                Err(error) => accept_failed(&error),
            }
        }
    }

    let runtime = runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let listener = listen(port)?;
    runtime.block_on(async { spawn(accept(listener, version)).await.map_err(io::Error::other) })?
}

pub(super) fn smol(port: u16, threads: usize, version: Version) -> io::Result<()> {
    use async_executor::Executor;
    use async_io::Async;
    use smol_hyper::rt::{FuturesIo, SmolExecutor};

    /// A type that lends the executor to `smol-hyper`.
    #[derive(Clone, Copy)]
    struct Global(&'static Executor<'static>);

    impl AsRef<Executor<'static>> for Global {
        fn as_ref(&self) -> &Executor<'static> {
            self.0
        }
    }

    async fn accept(
        listener: Async<TcpListener>,
        version: Version,
        Global(executor): Global,
    ) -> io::Result<()> {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    stream.get_ref().set_nodelay(true)?;
                    let (io, on) = (FuturesIo::new(stream), SmolExecutor::new(Global(executor)));
                    executor.spawn(async move { converse!(version, io, on) }).detach();
                }
                Err(error) => accept_failed(&error),
            }
        }
    }

    let executor = Global(Box::leak(Box::new(Executor::new())));
    let accepting = executor.0.spawn(accept(Async::new(listen(port)?)?, version, executor));
    for _ in 1..threads {
        std::thread::spawn(move || async_io::block_on(executor.0.run(std::future::pending::<()>())));
    }
    async_io::block_on(executor.0.run(accepting))
}
