//! How long does each micro-benchmark take, and has that changed since the last run?
//!
//! `cargo bench -p paceline-bench --bench micro [-- NAME]`. Criterion compares with the previous run; for two
//! versions, use `--save-baseline before`, then `--baseline before`. A reported change on a busy machine may
//! be none: `instructions.rs` decides whether the code itself has grown.

#[allow(dead_code, reason = "some of it is for the instruction counter")]
mod cases;

use std::time::Duration;

use criterion::{Criterion, SamplingMode};

fn main() {
    let mut criterion = Criterion::default()
        .without_plots()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let mut group = criterion.benchmark_group("micro");
    // Each sample sets up anew; equal sizes make the samples comparable.
    group.sampling_mode(SamplingMode::Flat);
    for case in cases::ALL {
        group.bench_function(case.name, |bencher| bencher.iter_custom(|operations| case.run(operations)));
    }
    group.finish();
    criterion.final_summary();
}
