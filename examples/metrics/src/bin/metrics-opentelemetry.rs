//! The metrics of paceline for OpenTelemetry, by the crates `opentelemetry` and `opentelemetry_sdk`.
//!
//! ```sh
//! cargo run --release -p example-metrics --bin metrics-opentelemetry    # prints what it would export, and ends
//! ```
//!
//! Look at `observe`: it makes an observable instrument for each metric, and the SDK calls these when it
//! collects. A program that has a collector takes `opentelemetry-otlp` in the place of
//! `opentelemetry-stdout`.

#[path = "../../../common/cli.rs"]
mod cli;

use std::process::ExitCode;

use cli::AnyError;
use opentelemetry::metrics::{AsyncInstrument, Meter, MeterProvider};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_stdout::MetricExporter;
use paceline::{Handle, Metric, MetricKind, Metrics, Runtime};

/// Makes an instrument for each metric of a runtime.
fn observe(meter: &Meter, runtime: &Handle) {
    Metrics::default().each(|Metric { name, help, unit, kind, .. }| {
        let handle = runtime.clone();
        // Reads all metrics to pick one: that costs a microsecond or two, once in a collection.
        let now = move |observer: &dyn AsyncInstrument<f64>| {
            handle.metrics().each(|metric| {
                if metric.name == name {
                    observer.observe(metric.value, &[]);
                }
            });
        };
        let full_name = format!("paceline.{name}");
        if kind == MetricKind::Counter {
            let counter = meter.f64_observable_counter(full_name).with_unit(unit).with_description(help);
            counter.with_callback(now).build();
        } else {
            let gauge = meter.f64_observable_gauge(full_name).with_unit(unit).with_description(help);
            gauge.with_callback(now).build();
        }
    });
}

fn main() -> ExitCode {
    cli::run(include_str!("metrics-opentelemetry.rs"), |args| {
        cli::none(args)?;
        run()
    })
}

fn run() -> Result<(), AnyError> {
    // The SDK collects once a minute on a thread of its own, and once more at the end.
    let provider = SdkMeterProvider::builder().with_periodic_exporter(MetricExporter::default()).build();
    let runtime = Runtime::builder().threads(2).build()?;
    observe(&provider.meter("paceline"), &runtime.handle());

    // Some work to be counted.
    runtime.block_on(async {
        for number in 0..100 {
            paceline::spawn(async move { number }).await;
        }
    });
    provider.shutdown()?;
    Ok(())
}
