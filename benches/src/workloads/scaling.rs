//! How much does another worker help, and what is its cost?
//!
//! Hypothesis: throughput grows with the workers until the cores, which the load shares, are used up. Without
//! work one thread that leads and polls is enough for longest.

use super::{Outcome, report};
use crate::driver::environment::cores;
use crate::driver::plan::Plan;
use crate::driver::plot::Caption;
use crate::driver::results::Results;
use crate::driver::rig::measure;
use crate::driver::sweep::{CPU, LOAD, P50, P99, RATE, Sweep, VOLUNTARY};
use crate::svg::Scale;

pub(super) const QUESTION: &str =
    "from one worker to the cores there are (and twice that), 0 to 100 us of work";

/// Microseconds of work, and what the figures are called.
const LENGTHS: [(usize, &str); 4] =
    [(0, "scaling-0"), (5, "scaling-5"), (20, "scaling-20"), (100, "scaling-100")];

const RIVALS: [&str; 5] = ["floor-reuseport", "tokio", "smol", "paceline", "paceline-eager"];

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let counts = worker_counts(cores());
    let (connections, load_threads) = load_for(&counts, cores());
    let plan = &Plan { load_threads, ..plan.brief(250) };
    let rivals = Plan::named(&RIVALS);
    for (micros, name) in LENGTHS {
        let points = plan.pick(&counts, &counts, "workers");
        let title = format!(
            "{micros} us of work per request, {connections} connections, load from {load_threads} threads, {} cores",
            cores()
        );
        let sweep = Sweep::measure(name, title, points, &rivals, plan.rounds.min(3), |rival, point| {
            measure(rival, point.x as usize, &plan.load(&format!("/w{micros}"), connections), None)
        });
        let title = &format!("Throughput against workers, {micros} µs of work per request");
        let caption = Caption::of_few(title, ("workers", Scale::Steps), "requests per second");
        report(results, &sweep, &[RATE, CPU, P50, P99, VOLUNTARY, LOAD], ("throughput", RATE, &caption))?;
    }
    Ok(())
}

/// Returns the powers of two up to twice the cores, and the number of cores.
fn worker_counts(cores: usize) -> Vec<usize> {
    let doubled = std::iter::successors(Some(1), |count| Some(count * 2));
    let mut counts: Vec<usize> = doubled.take_while(|count| *count <= 2 * cores).collect();
    counts.push(cores);
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Returns the connections and threads of the load, which are the same at all points: 16 connections for each
/// worker of the largest point, and half of the cores. A thread of the load makes about as many requests
/// without work as one worker handles; so on 16 cores the load can saturate eight workers without work, and
/// with 20 microseconds of work more workers than there are cores.
fn load_for(counts: &[usize], cores: usize) -> (usize, usize) {
    let most = counts.iter().copied().max().unwrap_or(1);
    ((16 * most).max(64), (cores / 2).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cores_themselves_are_among_the_counts() {
        assert_eq!(worker_counts(1), [1, 2]);
        assert_eq!(worker_counts(2), [1, 2, 4]);
        assert_eq!(worker_counts(6), [1, 2, 4, 6, 8]);
        assert_eq!(worker_counts(16), [1, 2, 4, 8, 16, 32]);
    }

    #[test]
    fn sixteen_cores_get_more_load_than_two() {
        let load = |cores| load_for(&worker_counts(cores), cores);
        assert_eq!([load(1), load(2), load(16)], [(64, 1), (64, 1), (512, 8)]);
    }
}
