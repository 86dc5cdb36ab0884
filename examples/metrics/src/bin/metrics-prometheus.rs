//! The metrics of paceline for Prometheus, by the crates `metrics` and `metrics-exporter-prometheus`.
//!
//! ```sh
//! cargo run --release -p example-metrics --bin metrics-prometheus                     # prints one page and ends
//! cargo run --release -p example-metrics --bin metrics-prometheus -- 127.0.0.1:9090   # serves it until Ctrl-C:
//! curl http://127.0.0.1:9090/metrics
//! ```
//!
//! Look at `describe` and `record`: the program calls the first one once, and the second one for each page. A
//! program with an exporter of its own, such as the HTTP listener of `metrics-exporter-prometheus`, calls
//! `record` in a task, once in some seconds.

#[path = "../../../common/cli.rs"]
mod cli;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use cli::AnyError;
use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use paceline::net::{TcpListener, TcpStream};
use paceline::prelude::*;
use paceline::{Metric, MetricKind, Metrics, block_on, spawn, timeout};

/// Longest time for a request and its answer.
const REQUEST: Duration = Duration::from_secs(5);

/// Returns whether a metric is a counter of `metrics`, which counts in whole numbers. A time in seconds is
/// not: it becomes a gauge, and loses nothing by that.
fn is_counter(metric: &Metric) -> bool {
    metric.kind == MetricKind::Counter && metric.unit != "s"
}

/// Gives the name, the unit and the meaning of each metric to the exporter.
fn describe() {
    Metrics::default().each(|metric| {
        let name = format!("paceline_{}", metric.name);
        match metric.unit {
            "s" => describe_gauge!(name, Unit::Seconds, metric.help),
            _ if is_counter(&metric) => describe_counter!(name, metric.help),
            _ => describe_gauge!(name, metric.help),
        }
    });
}

/// Gives the numbers of now to the exporter.
fn record(metrics: &Metrics) {
    metrics.each(|metric| {
        let name = format!("paceline_{}", metric.name);
        match is_counter(&metric) {
            true => counter!(name).absolute(metric.value as u64),
            false => gauge!(name).set(metric.value),
        }
    });
}

fn main() -> ExitCode {
    cli::run(include_str!("metrics-prometheus.rs"), |args| run(cli::address(args)?))
}

/// Serves pages on this address until Ctrl-C; without an address, prints a page.
fn run(addr: Option<&str>) -> Result<(), AnyError> {
    // With this, the exporter adds `_total` to counters and `_seconds` to the time.
    let recorder = PrometheusBuilder::new().with_recommended_naming(true).build_recorder();
    let exporter = recorder.handle();
    metrics::set_global_recorder(recorder)?;
    describe();

    block_on(async {
        // Some work to be counted.
        for number in 0..100 {
            spawn(async move { number }).await;
        }
        let Some(addr) = addr else {
            record(&paceline::metrics());
            print!("{}", exporter.render());
            return Ok(());
        };
        let listener = TcpListener::bind(addr).await?;
        println!("serving the page on {}, until Ctrl-C", listener.local_addr()?);
        loop {
            match listener.accept().await {
                Ok((stream, _)) => spawn(timeout(REQUEST, answer(stream, exporter.clone()))).detach(),
                Err(error) => eprintln!("{error}"),
            }
        }
    })
}

/// Answers one request with the page. A web server in earnest is in `examples/http`.
async fn answer(mut stream: TcpStream, exporter: PrometheusHandle) -> io::Result<()> {
    let (mut head, mut buffer) = (Vec::new(), [0; 1024]);
    while !head.ends_with(b"\r\n\r\n") && head.len() < 16 * 1024 {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            read => head.extend_from_slice(&buffer[..read]),
        }
    }
    record(&paceline::metrics());
    let page = exporter.render();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.close().await
}
