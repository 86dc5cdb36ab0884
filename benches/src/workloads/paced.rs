//! What is the cost of a request that comes alone, now and then?
//!
//! Hypothesis: a sleep and a wake, and additional work of the runtime when its threads wake up. A deputy that
//! wakes for each burst, or keeps looking after it, shows only here. The latency is that of a wake.

use std::time::Duration;

use super::{Outcome, report};
use crate::driver::plan::Plan;
use crate::driver::results::Results;
use crate::driver::rig::measure;
use crate::driver::sweep::{CPU, INVOLUNTARY, P50, P99, RATE, Sweep, VOLUNTARY};
use crate::load;

pub(super) const QUESTION: &str = "one connection, a request every 1 to 15 ms with 0, 200 us of work";

const RIVALS: [&str; 4] = ["floor", "tokio", "smol", "paceline"];

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    for micros in [0, 200].into_iter().filter(|micros| !plan.quick || *micros == 0) {
        let points = plan.pick(&[1, 3, 15], &[3], "ms between requests");
        let title = format!("A request every so often, {micros} us of work, {} workers", plan.threads);
        let name = format!("paced-{micros}");
        let sweep = Sweep::measure(name, title, plan, points, &Plan::named(&RIVALS), |rival, point| {
            measure(rival, plan, &paced(plan, &format!("/w{micros}"), point.x), None)
        });
        report(results, &sweep, &[CPU, P50, P99, RATE, VOLUNTARY, INVOLUNTARY]);
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
