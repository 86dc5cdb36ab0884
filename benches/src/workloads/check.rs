//! Does an independent client measure the same figures as this load generator?
//!
//! Hypothesis: ratios between rivals agree within the noise. Both clients have the same CPUs, and one thread.

use std::io;
use std::process::Command;

use serde_json::json;

use super::Outcome;
use crate::driver::plan::Plan;
use crate::driver::procfs::Usage;
use crate::driver::results::Results;
use crate::driver::rig::{Run, Server, measure};
use crate::driver::sweep::{CPU, Cell, P50, P99, RATE};
use crate::driver::{division, tool};
use crate::load;

pub(super) const QUESTION: &str = "our load generator against wrk, 64 connections";

const CONNECTIONS: usize = 64;

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    println!("\n## Our load generator against wrk, {CONNECTIONS} connections\n");
    if let Err(reason) = tool::require("wrk") {
        println!("  left out: {reason}");
        results.add(json!({ "name": "check", "absent": reason }));
        return Ok(());
    }
    println!(
        "  {:18} {:>9} {:>5} {:>9} {:>5} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "",
        "own r/s",
        "+-%",
        "wrk r/s",
        "+-%",
        "own cpu",
        "wrk cpu",
        "own p50",
        "wrk p50",
        "own p99",
        "wrk p99"
    );
    let load = load::Plan { threads: 1, ..plan.load("/", CONNECTIONS) };
    let mut rows = Vec::new();
    for rival in Plan::named(&["floor", "tokio", "paceline"]) {
        let cell = || Cell { rival: rival.to_owned(), runs: vec![], absent: None };
        let (mut own, mut wrk) = (cell(), cell());
        let outcome = (0..plan.rounds.min(3)).try_for_each(|_| {
            own.runs.push(measure(rival, plan, &load, None)?);
            wrk.runs.push(measure_with_wrk(rival, plan)?);
            io::Result::Ok(())
        });
        match outcome {
            Ok(()) => print(&own, &wrk),
            Err(reason) => println!("  {rival:18} absent: {reason}"),
        }
        let rates = |cell: &Cell| cell.runs.iter().map(RATE.of).collect::<Vec<_>>();
        rows.push(json!({ "rival": rival, "own_rate": rates(&own), "wrk_rate": rates(&wrk) }));
    }
    results.add(json!({ "name": "check", "rivals": rows }));
    Ok(())
}

fn print(own: &Cell, wrk: &Cell) {
    print!("  {:18}", own.rival);
    for cell in [own, wrk] {
        let rate = cell.spread(RATE);
        print!(
            " {:9.0} {:5.1}",
            rate.map_or(f64::NAN, |rate| rate.median),
            rate.map_or(f64::NAN, |rate| rate.percent())
        );
    }
    for metric in [CPU, P50, P99] {
        for cell in [own, wrk] {
            print!(" {:8.*}", metric.decimals, cell.spread(metric).map_or(f64::NAN, |figure| figure.median));
        }
    }
    println!();
}

fn measure_with_wrk(rival: &str, plan: &Plan) -> io::Result<Run> {
    let server = Server::start(rival, plan)?;
    wrk(plan, server.port, 1)?;
    let before = Usage::of(server.id());
    let text = wrk(plan, server.port, 2)?;
    let after = Usage::of(server.id());
    let line = |start: &str| text.lines().map(str::trim).find_map(|line| line.strip_prefix(start));
    let total = text.lines().find_map(|line| line.trim().split_once(" requests in")?.0.parse().ok());
    let total: f64 = total.ok_or_else(|| io::Error::other(format!("wrk said: {text}")))?;
    Ok(Run {
        requests_per_second: line("Requests/sec:").and_then(|rest| rest.trim().parse().ok()).unwrap_or(0.0),
        p50: line("50%").map_or(0.0, micros),
        p99: line("99%").map_or(0.0, micros),
        cpu_micros: after.cpu_since(&before).as_secs_f64() * 1e6 / total.max(1.0),
        ..Run::default()
    })
}

fn wrk(plan: &Plan, port: u16, seconds: u32) -> io::Result<String> {
    let (connections, duration) = (format!("-c{CONNECTIONS}"), format!("-d{seconds}s"));
    let address = format!("http://127.0.0.1:{port}/");
    let mut command = Command::new("wrk");
    division::confine(&mut command, &plan.place().load);
    let output = command.args(["-t1", &connections, &duration, "--latency", &address]).output();
    let output = output.map_err(|error| io::Error::other(format!("no wrk: {error}")))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// wrk writes `170.00us`, `1.02ms`, `1.10s`.
fn micros(text: &str) -> f64 {
    let text = text.trim();
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    let parse = |(unit, factor): (&str, f64)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * factor);
    units.into_iter().find_map(parse).unwrap_or(0.0)
}
