//! A workload as a grid: points are rows, rivals are columns, and each cell has several rounds.

use std::io;

use serde_json::{Value, json};

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

/// The metrics that the raw figures contain.
const ALL: [Metric; 11] = [RATE, CPU, P50, P99, P999, VOLUNTARY, INVOLUNTARY, PEAK, SLOW, STARVED, LOAD];

impl Cell {
    pub(crate) fn spread(&self, metric: Metric) -> Option<Spread> {
        spread(&self.runs.iter().map(metric.of).collect::<Vec<_>>())
    }

    pub(crate) fn errors(&self) -> u64 {
        self.runs.iter().map(|run| run.errors).sum()
    }
}

/// All figures of one workload.
#[derive(Debug)]
pub(crate) struct Sweep {
    pub(crate) name: String,
    pub(crate) title: String,
    /// One row of cells per point, in the rivals' order.
    pub(crate) rows: Vec<(Point, Vec<Cell>)>,
}

impl Sweep {
    /// Runs one rival after the other within a round, so that disturbances of the machine affect all alike.
    /// `run` returns `Err` with the reason if a rival cannot take part at a point.
    pub(crate) fn measure(
        name: impl Into<String>,
        title: impl Into<String>,
        points: Vec<Point>,
        rivals: &[&str],
        rounds: usize,
        run: impl Fn(&str, &Point) -> io::Result<Run>,
    ) -> Sweep {
        let mut rows = Vec::new();
        for point in points {
            let cell = |rival: &&str| Cell { rival: (*rival).to_owned(), runs: vec![], absent: None };
            let mut cells: Vec<Cell> = rivals.iter().map(cell).collect();
            for _ in 0..rounds {
                for cell in cells.iter_mut().filter(|cell| cell.absent.is_none()) {
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
        Sweep { name: name.into(), title: title.into(), rows }
    }

    /// Returns the raw figures: every run of every cell.
    pub(crate) fn to_json(&self) -> Value {
        let cell = |cell: &Cell| {
            let metric = |metric: Metric| {
                let figures: Vec<f64> = cell.runs.iter().map(metric.of).collect();
                (format!("{} ({})", metric.name, metric.unit), json!(figures))
            };
            let figures: serde_json::Map<String, Value> = ALL.into_iter().map(metric).collect();
            json!({ "rival": cell.rival, "runs": figures, "errors": cell.errors(), "absent": cell.absent })
        };
        let rows = self.rows.iter().map(|(point, cells)| {
            json!({ "x": point.x, "point": point.label, "cells": cells.iter().map(cell).collect::<Vec<_>>() })
        });
        json!({ "name": self.name, "title": self.title, "points": rows.collect::<Vec<_>>() })
    }
}
