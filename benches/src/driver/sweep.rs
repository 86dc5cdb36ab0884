//! A workload as a grid: points are rows, rivals are columns, and each cell has several rounds.

use std::io;

use serde_json::{Value, json};

use super::division::Division;
use super::plan::Plan;
use super::rig::Run;
use crate::stats::{Spread, spread};

/// A position on the x axis, and its name in the tables.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) label: String,
}

/// The figures of a rival at one point.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) rival: String,
    pub(crate) runs: Vec<Run>,
    /// The reason if runs are missing.
    pub(crate) absent: Option<String>,
}

/// A figure of a run, with its names in tables, plots and raw figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) decimals: usize,
    pub(crate) of: fn(&Run) -> f64,
}

pub(crate) const RATE: Metric =
    Metric { name: "rate", unit: "req/s", decimals: 0, of: |run| run.requests_per_second };
pub(crate) const CPU: Metric = Metric { name: "cpu", unit: "us/req", decimals: 2, of: |run| run.cpu_micros };
/// How many cores the server keeps busy.
pub(crate) const CORES: Metric = Metric {
    name: "cores",
    unit: "busy",
    decimals: 2,
    of: |run| run.requests_per_second * run.cpu_micros / 1e6,
};
pub(crate) const P50: Metric = Metric { name: "p50", unit: "us", decimals: 0, of: |run| run.p50 };
pub(crate) const P99: Metric = Metric { name: "p99", unit: "us", decimals: 0, of: |run| run.p99 };
pub(crate) const P999: Metric = Metric { name: "p99.9", unit: "us", decimals: 0, of: |run| run.p999 };
pub(crate) const VOLUNTARY: Metric =
    Metric { name: "vol.sw", unit: "/req", decimals: 3, of: |run| run.voluntary };
pub(crate) const INVOLUNTARY: Metric =
    Metric { name: "invol", unit: "/req", decimals: 3, of: |run| run.involuntary };
pub(crate) const PEAK: Metric = Metric { name: "peak", unit: "MiB", decimals: 1, of: |run| run.peak_mib };
pub(crate) const SLOW: Metric =
    Metric { name: "slow", unit: "req/s", decimals: 0, of: |run| run.slow_per_second };

/// Connections without an answer in the window: p99 looks good if the other connections wait forever.
pub(crate) const STARVED: Metric =
    Metric { name: "starved", unit: "conns", decimals: 0, of: |run| run.starved };

/// The CPU use of the load generator: near 100 % the generator is the limit, and not the server.
pub(crate) const LOAD: Metric = Metric { name: "load", unit: "% busy", decimals: 0, of: |run| run.load };

impl Metric {
    /// Returns the name in the raw figures.
    pub(crate) fn key(&self) -> String {
        format!("{} ({})", self.name, self.unit)
    }
}

/// The metrics that the raw figures contain.
const ALL: [Metric; 12] =
    [RATE, CPU, CORES, P50, P99, P999, VOLUNTARY, INVOLUNTARY, PEAK, SLOW, STARVED, LOAD];

impl Cell {
    pub(crate) fn spread(&self, metric: Metric) -> Option<Spread> {
        spread(&self.runs.iter().map(metric.of).collect::<Vec<_>>())
    }

    /// Returns this rival's figures divided by another one's, round by round: the runs of a round follow each
    /// other, while the speed of a machine changes within minutes.
    pub(crate) fn ratio(&self, base: &Cell, metric: Metric) -> Option<Spread> {
        let rounds = self.runs.iter().zip(&base.runs);
        let ratios = rounds.map(|(run, base)| (metric.of)(run) / (metric.of)(base));
        spread(&ratios.filter(|ratio| ratio.is_finite()).collect::<Vec<_>>())
    }

    pub(crate) fn errors(&self) -> u64 {
        self.runs.iter().map(|run| run.errors).sum()
    }
}

/// Returns the cell to which ratios refer: that of tokio, also under hyper or axum.
pub(crate) fn base(cells: &[Cell]) -> Option<&Cell> {
    cells.iter().find(|cell| cell.rival.ends_with("tokio"))
}

/// The metrics of which the tables and the raw figures have ratios.
pub(crate) const COMPARED: [Metric; 3] = [RATE, CPU, P99];

/// All figures of one workload.
#[derive(Debug)]
pub(crate) struct Sweep {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) division: Division,
    /// One row of cells per point, in the rivals' order.
    pub(crate) rows: Vec<(Point, Vec<Cell>)>,
}

impl Sweep {
    /// Runs one rival after the other within a round, and every second round in reverse order, so that
    /// disturbances of the machine affect all alike.
    /// `run` returns `Err` with the reason if a rival cannot take part at a point.
    pub(crate) fn measure(
        name: impl Into<String>,
        title: impl Into<String>,
        plan: &Plan,
        points: Vec<Point>,
        rivals: &[&str],
        run: impl Fn(&str, &Point) -> io::Result<Run>,
    ) -> Sweep {
        let mut rows = Vec::new();
        for point in points {
            let cell = |rival: &&str| Cell { rival: (*rival).to_owned(), runs: vec![], absent: None };
            let mut cells: Vec<Cell> = rivals.iter().map(cell).collect();
            for round in 0..plan.rounds {
                let mut turns: Vec<_> = cells.iter_mut().filter(|cell| cell.absent.is_none()).collect();
                if round % 2 == 1 {
                    turns.reverse();
                }
                for cell in turns {
                    match run(&cell.rival, &point) {
                        Ok(run) => cell.runs.push(run),
                        Err(reason) => cell.absent = Some(reason.to_string()),
                    }
                }
            }
            eprint!(".");
            rows.push((point, cells));
        }
        eprintln!();
        let division = plan.place();
        Sweep { name: name.into(), title: format!("{}; {division}", title.into()), division, rows }
    }

    /// Returns the raw figures: every run of every cell.
    pub(crate) fn to_json(&self) -> Value {
        let cell = |cell: &Cell, base: Option<&Cell>| {
            let metric = |metric: Metric| {
                let figures: Vec<f64> = cell.runs.iter().map(metric.of).collect();
                (metric.key(), json!(figures))
            };
            let figures: serde_json::Map<String, Value> = ALL.into_iter().map(metric).collect();
            let ratio = |metric: Metric| Some((metric.name.to_owned(), cell.ratio(base?, metric)?.to_json()));
            let ratios: serde_json::Map<String, Value> = COMPARED.into_iter().filter_map(ratio).collect();
            json!({
                "rival": cell.rival,
                "runs": figures,
                "of_tokio": ratios,
                "errors": cell.errors(),
                "absent": cell.absent,
            })
        };
        let rows = self.rows.iter().map(|(point, cells)| {
            let all: Vec<_> = cells.iter().map(|one| cell(one, base(cells))).collect();
            json!({ "x": point.x, "point": point.label, "cells": all })
        });
        json!({
            "name": self.name,
            "title": self.title,
            "division": self.division.to_json(),
            "points": rows.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The medians are equal, but two of three rounds say that one rival is twice as fast.
    #[test]
    fn a_ratio_is_one_within_a_round() {
        let cell = |rates: [f64; 3]| {
            let runs = rates.map(|requests_per_second| Run { requests_per_second, ..Run::default() });
            Cell { rival: String::new(), runs: runs.into(), absent: None }
        };
        let (base, other) = (cell([100.0, 300.0, 200.0]), cell([200.0, 600.0, 100.0]));
        assert_eq!(other.ratio(&base, RATE).unwrap().median, 2.0);
        // There is no latency to compare.
        assert!(other.ratio(&base, P99).is_none());
    }
}
