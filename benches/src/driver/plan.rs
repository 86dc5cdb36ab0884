//! Durations, rounds and rivals: the differences between `--quick` and `--full`.

use std::time::Duration;

use serde_json::{Value, json};

use super::division::Division;
use super::environment::cores;
use super::sweep::Point;
use crate::servers::RIVALS;
use crate::{handler, load};

/// The settings of a run of the driver.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) quick: bool,
    pub(crate) rounds: usize,
    pub(crate) warm: Duration,
    pub(crate) window: Duration,
    /// Workers of each server.
    pub(crate) threads: usize,
    /// The CPUs of all servers and loads.
    pub(crate) division: Division,
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

    pub(crate) fn full() -> Plan {
        Plan {
            quick: false,
            rounds: 5,
            warm: Duration::from_millis(150),
            window: Duration::from_millis(500),
            threads: 2,
            division: Division::here(),
        }
    }

    /// Returns the CPUs of a server with so many workers, and those of its load.
    pub(crate) fn place(&self) -> Division {
        self.division.with_workers(self.threads)
    }

    /// The load has a thread for each of its CPUs, and where it shares them with the server, for a quarter.
    fn load_threads(&self) -> usize {
        if self.division.load.is_empty() { (cores() / 4).max(1) } else { self.division.load.len() }
    }

    /// Returns the plan with server and load on all CPUs together.
    pub(crate) fn together(&self) -> Plan {
        Plan { division: Division::default(), ..self.clone() }
    }

    /// Returns the plan as it appears in the raw figures.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "rounds": self.rounds,
            "warm_ms": self.warm.as_millis() as u64,
            "window_ms": self.window.as_millis() as u64,
            "server_threads": self.threads,
            "load_threads": self.load_threads(),
            "division": self.place().to_json(),
            "steps_per_micro": handler::steps_per_micro(),
        })
    }

    /// Returns the servers that run the same handler, in the order of the tables.
    pub(crate) fn rivals() -> Vec<&'static str> {
        RIVALS.iter().copied().chain(Some(super::ace::NAME)).collect()
    }

    /// Returns those of the named rivals that are available, in the order of the tables.
    pub(crate) fn named(names: &[&str]) -> Vec<&'static str> {
        Self::rivals().into_iter().filter(|rival| names.contains(rival)).collect()
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
            threads: self.load_threads(),
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

    /// Returns the plan with at most three rounds, for a workload whose figures vary little.
    pub(crate) fn in_few_rounds(&self) -> Plan {
        Plan { rounds: self.rounds.min(3), ..self.clone() }
    }

    /// Returns the points of this run. The quick points must be among the full ones.
    pub(crate) fn pick(&self, full: &[usize], quick: &[usize], what: &str) -> Vec<Point> {
        let values = if self.quick { quick } else { full };
        let point = |value: &usize| Point { x: *value as f64, label: format!("{value} {what}") };
        values.iter().map(point).collect()
    }
}
