//! tonic: the standard health service, and its client. One request with one answer, and one with a stream of
//! them.

use std::future::Future;
use std::time::Duration;

use hyper::server::conn::http2;
use hyper::service::service_fn as hyper_service_fn;
use paceline::hyper::{Executor, Io, Timer};
use paceline::net::{TcpListener, TcpStream};
use paceline::{block_on, spawn, timeout};
use tonic::service::Routes;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server, Uri};
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::server::{HealthReporter, health_reporter};
use tower::{Service, service_fn};

use crate::Outcome;

const NAME: &str = "guests";
const SOON: Duration = Duration::from_secs(30);

/// Asks for the state, and sees it change.
async fn asks(channel: Channel, reporter: HealthReporter) -> Outcome {
    let mut client = HealthClient::new(channel);
    let request = || HealthCheckRequest { service: NAME.to_owned() };
    let answer = client.check(request()).await?.into_inner();
    assert_eq!(answer.status(), ServingStatus::Serving.into());
    let unknown = client.check(HealthCheckRequest { service: "missing".to_owned() }).await;
    assert_eq!(unknown.expect_err("there is no such service").code(), tonic::Code::NotFound);

    let mut changes = client.watch(request()).await?.into_inner();
    let mut next = async || changes.message().await.map(|change| change.map(|change| change.status()));
    // The current state, and then the next one.
    assert_eq!(next().await?, Some(ServingStatus::Serving.into()));
    reporter.set_service_status(NAME, ServingStatus::NotServing).await;
    assert_eq!(next().await?, Some(ServingStatus::NotServing.into()));
    Ok(())
}

/// Tonic's own server and client, with tokio's sockets and connections on the hidden thread. Requests come
/// from paceline's tasks.
pub(crate) fn as_they_are() -> Outcome {
    block_on(async {
        let (reporter, service) = health_reporter();
        reporter.set_service_status(NAME, ServingStatus::Serving).await;
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse()?)?;
        let addr = incoming.local_addr()?;
        let _server = spawn(Server::builder().add_service(service).serve_with_incoming(incoming));

        let channel = Endpoint::try_from(format!("http://{addr}"))?.timeout(SOON).connect().await?;
        timeout(SOON, spawn(asks(channel, reporter))).await?
    })
}

/// The services of tonic in hyper's HTTP/2 on paceline, and a channel that connects and spawns with paceline:
/// tokio's threads only run timeouts.
pub(crate) fn on_our_sockets() -> Outcome {
    block_on(async {
        let (reporter, service) = health_reporter();
        reporter.set_service_status(NAME, ServingStatus::Serving).await;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let _server = spawn(serve(listener, Routes::new(service).prepare()));

        let connects = service_fn(move |_: Uri| async move { TcpStream::connect(addr).await.map(Io::new) });
        let endpoint = Endpoint::from_static("http://localhost").executor(Executor);
        let channel = endpoint.connect_with_connector(connects).await?;
        timeout(SOON, spawn(asks(channel, reporter))).await?
    })
}

async fn serve(listener: TcpListener, routes: Routes) {
    loop {
        match listener.accept().await {
            Ok((stream, _peer)) => spawn(connection(stream, routes.clone())).detach(),
            // Perhaps no descriptor is free; that is reported once, and the listener continues.
            Err(error) => eprintln!("{error}"),
        }
    }
}

fn connection(stream: TcpStream, routes: Routes) -> impl Future<Output = hyper::Result<()>> {
    let service = hyper_service_fn(move |request| routes.clone().call(request));
    http2::Builder::new(Executor).timer(Timer).serve_connection(Io::new(stream), service)
}
