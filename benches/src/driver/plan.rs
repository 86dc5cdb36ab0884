//! How long, how often, with whom: what `--quick` and `--full` differ in.

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

    /// On two cores the load generator has to share them with two workers, as a client on the same machine does.
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

    /// For the raw figures.
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

    /// All rivals in a full run, the main ones in a quick one; always in the same order.
    pub(crate) fn rivals(&self) -> Vec<&'static str> {
        if self.quick { Self::main_rivals() } else { Self::all_rivals().collect() }
    }

    fn all_rivals() -> impl Iterator<Item = &'static str> {
        RIVALS.iter().copied().chain(Some(super::ace::NAME))
    }

    /// One of each kind, in their default settings.
    pub(crate) fn main_rivals() -> Vec<&'static str> {
        Self::named(&["floor", "tokio", "smol", "hsha", "paceline", super::ace::NAME])
    }

    /// Those of them that there are, in the tables' order.
    pub(crate) fn named(names: &[&str]) -> Vec<&'static str> {
        Self::all_rivals().filter(|rival| names.contains(rival)).collect()
    }

    /// Those that have more than one thread: a single one has nothing to show beside a handler that blocks it.
    pub(crate) fn threaded_rivals(&self) -> Vec<&'static str> {
        self.rivals().into_iter().filter(|rival| !ONE_THREAD.contains(rival)).collect()
    }

    /// Who is not among `taking_part` and why, in words for a plot.
    pub(crate) fn left_out(&self, taking_part: &[&str]) -> String {
        let missing = Self::all_rivals().filter(|rival| !taking_part.contains(rival));
        let (single, other): (Vec<_>, Vec<_>) =
            missing.partition(|rival| ONE_THREAD.contains(rival) && (!self.quick || *rival == "floor"));
        let reasons = [(single, "only one thread"), (other, "in full runs only")];
        let named = reasons.into_iter().filter(|(rivals, _)| !rivals.is_empty());
        named.map(|(rivals, why)| format!("{} ({why})", rivals.join(", "))).collect::<Vec<_>>().join("; ")
    }

    pub(crate) fn load(&self, path: &str, connections: usize) -> load::Plan {
        load::Plan {
            port: 0,
            executors: 1,
            path: path.to_owned(),
            connections,
            warm: self.warm,
            window: self.window,
            threads: self.load_threads,
            churn: None,
            every: None,
            hyper: false,
        }
    }

    /// With windows of at most so many milliseconds: for a workload with many points.
    pub(crate) fn brief(&self, window_ms: u64) -> Plan {
        let window = self.window.min(Duration::from_millis(window_ms));
        Plan { window, warm: self.warm.min(Duration::from_millis(100)), ..self.clone() }
    }

    /// The quick points are among the full ones.
    pub(crate) fn pick(&self, full: &[usize], quick: &[usize], what: &str) -> Vec<Point> {
        let values = if self.quick { quick } else { full };
        let point = |value: &usize| Point { x: *value as f64, label: format!("{value} {what}") };
        values.iter().map(point).collect()
    }
}
