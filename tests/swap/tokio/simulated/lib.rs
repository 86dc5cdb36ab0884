//! A program of three nodes in a simulation: a client of reqwest asks a server of axum, whose handler calls a
//! service of tonic. None of these crates knows of the simulation.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::header::{DATE, HeaderValue};
use axum::http::{Response, StatusCode};
use axum::routing::get;
use paceline::sim::{Sim, check, note};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Server};
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::util::MapResponseLayer;

const MILLISECOND: Duration = Duration::from_millis(1);

/// Longer than a run, also by the clock of the system.
pub const NEVER: Duration = Duration::from_secs(3600);

/// How many requests each client sends, one after another.
const REQUESTS: u32 = 10;

/// What the clients saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub answers: u32,
    /// Answers that say that the service cannot be reached.
    pub unavailable: u32,
    /// Requests without an answer.
    pub errors: u32,
    /// The slowest request, with its repetitions.
    pub slowest: Duration,
}

/// Runs the program, and returns what the clients saw.
pub fn program(sim: &mut Sim) -> Seen {
    program_with(sim, NEVER, |_| {})
}

/// Runs the program, whose h2 remembers a stream that was reset for the time `remembers`. Calls `repairs`
/// with the length of the partition when that ends.
fn program_with(sim: &mut Sim, remembers: Duration, repairs: impl FnOnce(Duration) + Send + 'static) -> Seen {
    let network = sim.network();
    network.set_loss(0.01);
    network.set_latency(MILLISECOND..=5 * MILLISECOND);
    sim.node("rpc", rpc);
    let service = SocketAddr::new(network.address("rpc"), 50051);
    sim.node("web", move || web(service, remembers));

    let mut rng = sim.rng();
    let cut = Duration::from_millis(200 + rng.below(1000));
    let length = Duration::from_millis(500 + rng.below(5000));
    let cuts = network.clone();
    sim.at(cut, move || cuts.partition("web", "rpc"));
    sim.at(cut + length, move || {
        repairs(length);
        network.repair("web", "rpc");
    });

    let clients = sim.client("client", clients());
    let seen = sim.block_on(clients);
    note(format_args!("{seen:?}"));
    seen
}

/// Checks two seeds in which there are streams that were reset. The second run of each takes a second longer,
/// at a moment when there are such streams.
pub fn check_slow_runs(remembers: Duration) {
    for seed in [231, 759] {
        let mut pauses = [false, true].into_iter();
        check(seed, |sim| {
            let pauses = pauses.next().is_some_and(|pauses| pauses);
            let pause = move |_| thread::sleep(Duration::from_millis(if pauses { 1100 } else { 0 }));
            program_with(sim, remembers, pause);
        });
    }
}

/// The service: tonic's own health service. The state of one part changes now and then.
async fn rpc() {
    let (reporter, service) = tonic_health::server::health_reporter();
    reporter.set_service_status("steady", ServingStatus::Serving).await;
    tokio::spawn(async move {
        for status in [ServingStatus::NotServing, ServingStatus::Serving].into_iter().cycle() {
            reporter.set_service_status("changing", status).await;
            sleep(300 * MILLISECOND).await;
        }
    });
    let listener = TcpListener::bind("0.0.0.0:50051").await.unwrap();
    Server::builder()
        .layer(MapResponseLayer::new(dated))
        .add_service(service)
        .serve_with_incoming(TcpListenerStream::new(listener))
        .await
        .unwrap();
}

/// Sets the date of an answer, so that hyper does not add one by the clock of the system. HTTP/2 sends a date
/// in fewer bytes if it is that of the answer before, and digits take five or six bits each. So the sizes of
/// segments would depend on that clock. The date of HTTP/1 always has 29 bytes.
fn dated<B>(mut answer: Response<B>) -> Response<B> {
    answer.headers_mut().insert(DATE, HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"));
    answer
}

/// The web server. Reaches the service over one connection, and makes a new one if that is broken.
///
/// h2 remembers a stream that was reset for the time `remembers`, by the clock of the system.
/// After that, what still arrives for the stream is answered with another reset: one packet more in a run
/// that takes longer than usual.
async fn web(service: SocketAddr, remembers: Duration) {
    let channel = Channel::from_shared(format!("http://{service}"))
        .unwrap()
        .connect_timeout(500 * MILLISECOND)
        .http2_keep_alive_interval(500 * MILLISECOND)
        .keep_alive_timeout(500 * MILLISECOND)
        .keep_alive_while_idle(true)
        .http2_reset_stream_duration(remembers)
        .connect_lazy();
    let routes = Router::new().route("/status/{name}", get(status)).with_state(HealthClient::new(channel));
    let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
    axum::serve(listener, routes).await.unwrap();
}

/// Asks the service, at most four times.
async fn status(
    Path(name): Path<String>,
    State(service): State<HealthClient<Channel>>,
) -> Result<String, StatusCode> {
    for attempt in 0..4 {
        let mut service = service.clone();
        let request = HealthCheckRequest { service: name.clone() };
        match timeout(400 * MILLISECOND, service.check(request)).await {
            Ok(Ok(answer)) => return Ok(format!("{:?}", answer.into_inner().status())),
            Ok(Err(status)) if status.code() == tonic::Code::NotFound => return Err(StatusCode::NOT_FOUND),
            Ok(Err(status)) => note(format_args!("attempt {attempt}: {status}")),
            Err(_) => note(format_args!("attempt {attempt} is late")),
        }
        sleep(50 * MILLISECOND * (1 << attempt)).await;
    }
    Err(StatusCode::SERVICE_UNAVAILABLE)
}

/// Three clients, with one pool of connections.
async fn clients() -> Seen {
    let client = reqwest::Client::builder().timeout(3000 * MILLISECOND).dns_resolver(Names).build().unwrap();
    let mut tasks = JoinSet::new();
    for name in ["steady", "changing", "unknown"] {
        tasks.spawn(ask(client.clone(), name));
    }
    let mut all = Seen::default();
    while let Some(seen) = tasks.join_next().await {
        let seen = seen.unwrap();
        all.answers += seen.answers;
        all.unavailable += seen.unavailable;
        all.errors += seen.errors;
        all.slowest = all.slowest.max(seen.slowest);
    }
    all
}

async fn ask(client: reqwest::Client, name: &str) -> Seen {
    let mut seen = Seen::default();
    for number in 0..REQUESTS {
        let begin = Instant::now();
        loop {
            match client.get(format!("http://web/status/{name}")).send().await {
                Ok(answer) if answer.status() == StatusCode::SERVICE_UNAVAILABLE => seen.unavailable += 1,
                Ok(answer) => {
                    let (status, text) = (answer.status(), answer.text().await);
                    note(format_args!("{name} {number}: {status} {text:?}"));
                    seen.answers += 1;
                    break;
                }
                Err(error) => {
                    note(format_args!("{name} {number}: {error:?}"));
                    seen.errors += 1;
                }
            }
            sleep(100 * MILLISECOND).await;
        }
        seen.slowest = seen.slowest.max(begin.elapsed());
        sleep(50 * MILLISECOND).await;
    }
    seen
}

/// Looks up names in the simulated network. The resolver that these crates have asks the system, which knows
/// nothing of the nodes.
struct Names;

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(Box::new(found.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}
