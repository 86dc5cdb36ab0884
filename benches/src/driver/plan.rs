//! Durations, rounds and rivals: the differences between `--quick` and `--full`.

use std::time::Duration;

use serde_json::{Value, json};

use super::environment::cores;
use super::sweep::Point;
use crate::servers::RIVALS;
use crate::{handler, load};

const ONE_THREAD: [&str; 2] = ["floor", "tokio-ct"];

/// The settings of a run of the driver.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) quick: bool,
    pub(crate) rounds: usize,
    pub(crate) warm: Duration,
    pub(crate) window: Duration,
    /// Workers of each server.
    pub(crate) threads: usize,
    pub(crate) load_threads: usize,
}

impl Plan {
    pub(crate) fn quick() -> Plan {
        Plan {
            quick: true,
            rounds: 3,
            warm: Duration::from_millis(100),
            window: Duration::from_millis(200),
            ..Plan::full()
        }
    }

    /// With two cores the load generator shares them with two workers, as a client on the same machine does.
    pub(crate) fn full() -> Plan {
        Plan {
            quick: false,
            rounds: 5,
            warm: Duration::from_millis(150),
            window: Duration::from_millis(500),
            threads: 2,
            load_threads: (cores() / 4).max(1),
        }
    }

    /// Returns the plan as it appears in the raw figures.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "rounds": self.rounds,
            "warm_ms": self.warm.as_millis() as u64,
            "window_ms": self.window.as_millis() as u64,
            "server_threads": self.threads,
            "load_threads": self.load_threads,
            "steps_per_micro": handler::steps_per_micro(),
        })
    }

    /// Returns all rivals in a full run, the main ones in a quick run, always in the same order.
    pub(crate) fn rivals(&self) -> Vec<&'static str> {
        if self.quick { Self::main_rivals() } else { Self::all_rivals().collect() }
    }

    fn all_rivals() -> impl Iterator<Item = &'static str> {
        RIVALS.iter().copied().chain(Some(super::ace::NAME))
    }

    /// Returns one rival of each kind, in its default settings.
    pub(crate) fn main_rivals() -> Vec<&'static str> {
        Self::named(&["floor", "tokio", "smol", "hsha", "paceline", super::ace::NAME])
    }

    /// Returns those of the named rivals that are available, in the order of the tables.
    pub(crate) fn named(names: &[&str]) -> Vec<&'static str> {
        Self::all_rivals().filter(|rival| names.contains(rival)).collect()
    }

    /// Returns the rivals with more than one thread. A single thread has nothing to show beside a handler
    /// that blocks it.
    pub(crate) fn threaded_rivals(&self) -> Vec<&'static str> {
        self.rivals().into_iter().filter(|rival| !ONE_THREAD.contains(rival)).collect()
    }

    /// Names the rivals that are not in `taking_part`, with the reasons, for a plot.
    pub(crate) fn left_out(&self, taking_part: &[&str]) -> String {
        let missing = Self::all_rivals().filter(|rival| !taking_part.contains(rival));
        let (single, other): (Vec<_>, Vec<_>) =
            missing.partition(|rival| ONE_THREAD.contains(rival) && (!self.quick || *rival == "floor"));
        let reasons = [(single, "only one thread"), (other, "in full runs only")];
        let named = reasons.into_iter().filter(|(rivals, _)| !rivals.is_empty());
        named.map(|(rivals, why)| format!("{} ({why})", rivals.join(", "))).collect::<Vec<_>>().join("; ")
    }

    /// Returns the load for one server. Ten thousand connections wait a quarter of a second for one answer
    /// each, so they have a longer warm-up and window.
    pub(crate) fn load(&self, path: &str, connections: usize) -> load::Plan {
        const MANY: usize = 5_000;
        let (warm, window) = if connections < MANY { (1, 1) } else { (3, 2) };
        load::Plan {
            port: 0,
            executors: 1,
            path: path.to_owned(),
            connections,
            warm: self.warm * warm,
            window: self.window * window,
            threads: self.load_threads,
            churn: None,
            every: None,
            hyper: false,
        }
    }

    /// Returns the plan with windows of at most so many milliseconds, for a workload with many points.
    pub(crate) fn brief(&self, window_ms: u64) -> Plan {
        let window = self.window.min(Duration::from_millis(window_ms));
        Plan { window, warm: self.warm.min(Duration::from_millis(100)), ..self.clone() }
    }

    /// Returns the points of this run. The quick points must be among the full ones.
    pub(crate) fn pick(&self, full: &[usize], quick: &[usize], what: &str) -> Vec<Point> {
        let values = if self.quick { quick } else { full };
        let point = |value: &usize| Point { x: *value as f64, label: format!("{value} {what}") };
        values.iter().map(point).collect()
    }
}
