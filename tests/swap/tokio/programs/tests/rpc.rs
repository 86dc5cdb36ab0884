//! A server and clients of tonic, in one process. The service is tonic's own health service: one call, and
//! one stream.

use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Server};
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus as Answer;
use tonic_health::pb::health_client::HealthClient;

fn about(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_and_a_stream() {
    let (reporter, service) = tonic_health::server::health_reporter();
    reporter.set_service_status("mail", ServingStatus::Serving).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(
        Server::builder()
            .add_service(service)
            .serve_with_incoming_shutdown(TcpListenerStream::new(listener), async {
                stopped.await.unwrap_or_default()
            }),
    );
    let channel =
        Channel::from_shared(address).unwrap().timeout(Duration::from_secs(10)).connect().await.unwrap();
    let mut client = HealthClient::new(channel);

    // Many calls at once, on one connection.
    let mut calls = JoinSet::new();
    for _ in 0..100 {
        let mut client = client.clone();
        calls.spawn(async move { client.check(about("mail")).await.unwrap().into_inner().status() });
    }
    assert_eq!(calls.join_all().await, vec![Answer::Serving; 100]);
    assert_eq!(client.check(about("post")).await.unwrap_err().code(), tonic::Code::NotFound);

    // A stream of changes.
    let mut watched = client.watch(about("mail")).await.unwrap().into_inner();
    assert_eq!(watched.message().await.unwrap().unwrap().status(), Answer::Serving);
    for status in [ServingStatus::NotServing, ServingStatus::Serving, ServingStatus::NotServing] {
        reporter.set_service_status("mail", status).await;
        let said = watched.message().await.unwrap().unwrap().status();
        assert_eq!(said == Answer::Serving, matches!(status, ServingStatus::Serving));
    }

    drop(watched);
    drop(client);
    stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(10), server).await.expect("it stops").unwrap().unwrap();
}
