//! What is the cost of a request that comes alone, now and then?
//!
//! Hypothesis: a sleep and a wake, and additional work of the runtime when its threads wake up. A deputy that
//! wakes for each burst, or keeps looking after it, shows only here. The latency is that of a wake.

use std::time::Duration;

use super::{Outcome, report};
use crate::driver::plan::Plan;
use crate::driver::plot::Caption;
use crate::driver::results::Results;
use crate::driver::rig::measure;
use crate::driver::sweep::{CPU, INVOLUNTARY, P50, P99, RATE, Sweep, VOLUNTARY};
use crate::load;
use crate::svg::Scale;

pub(super) const QUESTION: &str = "one connection, a request every 1 to 15 ms with 0, 30, 200 us of work";

const RIVALS: [&str; 4] = ["floor", "tokio", "smol", "paceline"];

/// Microseconds of work, what the figures are called, and whether a quick run has them.
const LENGTHS: [(usize, &str, bool); 3] =
    [(0, "paced-0", true), (30, "paced-30", false), (200, "paced-200", false)];

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let rivals = Plan::named(&RIVALS);
    for (micros, name, _) in LENGTHS.into_iter().filter(|(.., in_quick)| *in_quick || !plan.quick) {
        let points = plan.pick(&[1, 3, 6, 15], &[3, 15], "ms between requests");
        let fewer = if plan.quick { " (a full run: 0, 30, 200 us, every 1, 3, 6, 15 ms)" } else { "" };
        let title = format!("A request every so often, {micros} us of work, {} workers{fewer}", plan.threads);
        let sweep = Sweep::measure(name, title, points, &rivals, plan.rounds.min(3), |rival, point| {
            measure(rival, plan.threads, &paced(plan, &format!("/w{micros}"), point.x), None)
        });
        let title = &format!("CPU time of the server per lone request, {micros} µs of work");
        let caption = Caption::of_few(title, ("ms between requests", Scale::Log), "CPU per request (µs)");
        report(results, &sweep, &[CPU, P50, P99, RATE, VOLUNTARY, INVOLUNTARY], ("cpu", CPU, &caption))?;
    }
    Ok(())
}

/// The window has thirty requests at least, so that one request more or less does not show.
fn paced(plan: &Plan, path: &str, every_ms: f64) -> load::Plan {
    let every = Duration::from_secs_f64(every_ms / 1e3);
    let load = plan.load(path, 1);
    load::Plan { every: Some(every), window: load.window.max(every * 30), ..load }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_thirty_requests_and_the_plan_s_length_at_least() {
        let plan = Plan::quick();
        let window = |every_ms| paced(&plan, "/", every_ms).window;
        assert_eq!([window(1.0), window(15.0)], [plan.window, Duration::from_millis(450)]);
    }
}
