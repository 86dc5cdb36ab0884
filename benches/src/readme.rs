//! Prints the tables of the project's README from the raw figures of a run: `table [FOLDER]`.

use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::driver::sweep::{CORES, CPU, Metric, P99, RATE, SLOW};
use crate::stats::spread;

const RUNTIMES: &[&str] = &["paceline", "tokio", "tokio-ct", "smol", "floor", "ace"];
const APART: &[&str] = &[
    "paceline",
    "paceline-unblock",
    "paceline-portable",
    "tokio",
    "tokio-spawn-blocking",
    "tokio-block-in-place",
    "smol",
    "ace",
];

/// A line of a table: its label, the workload, the place on the workload's axis, and the figures in a cell.
type Row = (&'static str, &'static str, f64, &'static [Metric]);

const REQUESTS: &[Row] = &[
    ("1 connection", "connections", 1.0, &[RATE, CPU, CORES]),
    ("4 connections", "connections", 4.0, &[RATE, CPU]),
    ("64", "connections", 64.0, &[RATE, CPU]),
    ("1 000", "connections", 1_000.0, &[RATE, CPU]),
    ("10 000", "connections", 10_000.0, &[RATE, CPU]),
    ("64 connections, 1 worker", "scaling-0-64", 1.0, &[RATE, CPU]),
    ("1 000 connections, 1 worker", "scaling-0-1000", 1.0, &[RATE, CPU]),
    ("64 connections, 100 us of work", "work-100", 64.0, &[RATE, CPU]),
    ("1 connection, a request every 3 ms", "paced-0", 3.0, &[CPU]),
    ("beside the load on all CPUs: 1 connection", "beside", 1.0, &[RATE, CPU, CORES]),
    ("64", "beside", 64.0, &[RATE, CPU]),
    ("1 000", "beside", 1_000.0, &[RATE, CPU]),
    ("hyper: 1 connection", "hyper", 1.0, &[RATE, CPU]),
    ("64", "hyper", 64.0, &[RATE, CPU]),
    ("1 000", "hyper", 1_000.0, &[RATE, CPU]),
    ("10 000", "hyper", 10_000.0, &[RATE, CPU]),
    ("axum: 1 connection", "axum", 1.0, &[RATE, CPU]),
    ("4", "axum", 4.0, &[RATE, CPU]),
    ("64", "axum", 64.0, &[RATE, CPU]),
    ("1 000", "axum", 1_000.0, &[RATE, CPU]),
    ("10 000", "axum", 10_000.0, &[RATE, CPU]),
];

const BESIDE: &[Row] = &[
    ("nothing", "blocked", 0.0, &[RATE, P99]),
    ("1 handler that blocks for 20 ms", "blocked", 1.0, &[RATE, P99]),
    ("4", "blocked", 4.0, &[RATE, P99]),
    ("1 that computes for 5 ms", "burning", 1.0, &[RATE, P99, SLOW]),
    ("2", "burning", 2.0, &[RATE, P99, SLOW]),
    ("4", "burning", 4.0, &[RATE, P99, SLOW]),
    ("8", "burning", 8.0, &[RATE, P99, SLOW]),
];

/// The hidden subcommand.
pub(crate) fn main(folder: Option<&String>) -> Result<(), Box<dyn Error>> {
    let full = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/full");
    let file = folder.map_or(full.as_path(), Path::new).join("figures.json");
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let figures: Value = serde_json::from_str(&text)?;
    println!("{}\n", table("workload", RUNTIMES, REQUESTS, &figures));
    println!("{}\n", table("16 short connections beside", APART, BESIDE, &figures));
    println!("{}", tasks(&figures));
    Ok(())
}

fn named<'a>(list: &'a Value, key: &str, name: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|one| one[key] == name)
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    format!("| {} |", cells.into_iter().collect::<Vec<_>>().join(" | "))
}

fn head(first: &str, columns: &[&str]) -> Vec<String> {
    let names = [first].into_iter().chain(columns.iter().copied()).map(str::to_owned);
    vec![line(names), line(vec!["---".to_owned(); columns.len() + 1])]
}

/// The second column has the first rival's ratios to tokio.
fn table(first: &str, rivals: &[&str], rows: &[Row], figures: &Value) -> String {
    let columns = [&rivals[..1], &["of tokio's"], &rivals[1..]].concat();
    let mut lines = head(first, &columns);
    for (label, workload, x, metrics) in rows {
        let points = named(&figures["workloads"], "name", workload).map(|found| &found["points"]);
        let point = points.and_then(|points| points.as_array()?.iter().find(|point| point["x"] == *x));
        let cells = point.and_then(|point| point["cells"].as_array()).map_or(&[][..], Vec::as_slice);
        // Under hyper and axum the names have a prefix.
        let is = |cell: &Value, rival: &str| {
            let name = cell["rival"].as_str().unwrap_or_default();
            name.strip_suffix(rival).is_some_and(|prefix| ["", "hyper-", "axum-"].contains(&prefix))
        };
        let cell = |rival: &str| cells.iter().find(|cell| is(cell, rival));
        let figures = |rival: &&str| joined(metrics, |metric| median(cell(rival)?, metric));
        let ratio = |metric: &Metric| {
            Some(format!("{:.2}", cell(rivals[0])?["of_tokio"][metric.name]["median"].as_f64()?))
        };
        let own = [(*label).to_owned(), figures(&rivals[0]), joined(metrics, ratio)];
        lines.push(line(own.into_iter().chain(rivals[1..].iter().map(figures))));
    }
    lines.join("\n")
}

/// Returns the texts that there are, or a dash.
fn joined(metrics: &[Metric], text: impl Fn(&Metric) -> Option<String>) -> String {
    let all = metrics.iter().filter_map(text).collect::<Vec<_>>().join(", ");
    if all.is_empty() { "-".to_owned() } else { all }
}

fn median(cell: &Value, metric: &Metric) -> Option<String> {
    let runs = cell["runs"][metric.key()].as_array()?;
    let median = spread(&runs.iter().filter_map(Value::as_f64).collect::<Vec<_>>())?.median;
    Some(match metric.name {
        "cpu" => format!("{} us", short(median)),
        "p99" => format!("{} ms", short(median / 1e3)),
        "cores" => format!("{median:.2} cores"),
        "slow" => format!("{median:.0} slow"),
        _ => short(median),
    })
}

fn tasks(figures: &Value) -> String {
    const RIVALS: &[&str] = &["paceline", "tokio", "smol"];
    let mut lines = head("one operation", &["paceline", "of the better one's", "tokio", "smol"]);
    let cases = named(&figures["workloads"], "name", "tasks").and_then(|tasks| tasks["cases"].as_array());
    for case in cases.into_iter().flatten() {
        let text = |name: &str| case[name].as_str().unwrap_or_default();
        let cell = |rival: &&str| match case["rivals"][*rival]["median"].as_f64() {
            Some(median) => format!("{} {}", short(median), text("unit")),
            None => "-".to_owned(),
        };
        if RIVALS.iter().any(|rival| case["rivals"][*rival].is_object()) {
            let ratio = case["of_best"][RIVALS[0]]["median"].as_f64();
            let ratio = ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
            let own = [text("what").to_owned(), cell(&RIVALS[0]), ratio];
            lines.push(line(own.into_iter().chain(RIVALS[1..].iter().map(cell))));
        }
    }
    lines.join("\n")
}

/// Returns three digits of a figure, as `48 700`, `128`, `7.1` or `0.34`.
fn short(figure: f64) -> String {
    if figure < 1.0 {
        return format!("{figure:.2}");
    }
    if figure < 100.0 {
        return format!("{figure:.1}");
    }
    let unit = 10_f64.powi(figure.log10() as i32 - 2);
    let digits = format!("{:.0}", (figure / unit).round() * unit);
    let from_end = |at: usize| digits.len() - at;
    let separated = digits.char_indices().map(|(at, digit)| match from_end(at) % 3 {
        0 if at > 0 => format!(" {digit}"),
        _ => digit.to_string(),
    });
    separated.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_have_three_digits() {
        let texts = [0.342, 7.13, 99.96, 128.4, 999.7, 48_712.0, 1_166_432.0].map(short);
        assert_eq!(texts, ["0.34", "7.1", "100.0", "128", "1 000", "48 700", "1 170 000"]);
    }

    #[test]
    fn a_row_has_a_cell_for_each_rival_and_a_dash_for_what_is_absent() {
        let cell = |rival: &str, rate: f64, of: f64| {
            json!({
                "rival": rival,
                "runs": { "rate (req/s)": [rate, rate] },
                "of_tokio": { "rate": { "median": of } },
            })
        };
        let cells = [cell("axum-tokio", 1_000.0, 1.0), cell("axum-paceline", 2_000.0, 2.0)];
        let point = json!({ "x": 64.0, "cells": cells });
        let figures = json!({ "workloads": [{ "name": "axum", "points": [point] }] });
        let rows: &[Row] = &[("64", "axum", 64.0, &[RATE]), ("1", "axum", 1.0, &[RATE])];
        let text = table("", &["paceline", "tokio", "smol"], rows, &figures);
        let lines: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(lines, ["| 64 | 2 000 | 2.00 | 1 000 | - |", "| 1 | - | - | - | - |"]);
    }
}
