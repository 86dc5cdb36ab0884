//! What is the cost of hyper on each runtime, with the same service?
//!
//! Hypothesis: most of a request is hyper's work, so the runtimes are closer to each other than in
//! `connections`; beside handlers that block they differ as much as there.

use std::io;
use std::process::Command;
use std::time::Duration;

use super::{Outcome, report};
use crate::driver::plan::Plan;
use crate::driver::procfs::Usage;
use crate::driver::results::Results;
use crate::driver::rig::{Beside, Run, Server, measure};
use crate::driver::sweep::{CORES, CPU, P50, P99, Point, RATE, SLOW, STARVED, Sweep};
use crate::driver::{division, tool};
use crate::load;
use crate::servers::HYPERS;

pub(super) const QUESTION: &str = "hyper's hello on each runtime: HTTP/1, beside handlers that block, HTTP/2";

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let http1 = |connections| load::Plan { hyper: true, ..plan.load("/", connections) };

    let title = format!("hyper, HTTP/1, {} workers", plan.threads);
    let points = plan.pick(&[1, 4, 64, 1_000, 10_000], &[1, 64, 10_000], "connections");
    let sweep = Sweep::measure("hyper", title, plan, points, HYPERS, |rival, point| {
        measure(rival, plan, &http1(point.x as usize), None)
    });
    report(results, &sweep, &[RATE, CPU, CORES, P50, P99, STARVED]);

    // As in `blocked`.
    let window = plan.window.max(Duration::from_millis(500));
    let title = "hyper, HTTP/1, 16 short connections beside handlers that block their thread for 20 ms";
    let points = plan.pick(&[4], &[4], "handlers that block");
    let sweep = Sweep::measure("hyper-blocked", title, plan, points, HYPERS, |rival, point| {
        let beside = Beside { path: "/b".into(), connections: point.x as usize };
        measure(rival, plan, &load::Plan { window, ..http1(16) }, Some(&beside))
    });
    report(results, &sweep, &[RATE, P99, P50, CPU, SLOW, STARVED]);

    let title = format!("hyper, HTTP/2 by h2load, {} workers", plan.threads);
    let point = Point { x: 10.0, label: "10 connections with 100 streams each".into() };
    let sweep = Sweep::measure("hyper-h2", title, plan, vec![point], HYPERS, |rival, _| {
        measure_with_h2load(&rival.replace("hyper", "hyper2"), plan)
    });
    report(results, &sweep, &[RATE, CPU]);
    Ok(())
}

fn measure_with_h2load(rival: &str, plan: &Plan) -> io::Result<Run> {
    tool::require("h2load")
        .map_err(|reason| io::Error::other(format!("{reason} (Debian: nghttp2-client)")))?;
    let mut server = Server::start(rival, plan)?;
    // A first run warms up. So many requests take half a second, or a quarter of one.
    h2load(plan, server.port, 20_000)?;
    let before = Usage::of(server.id());
    let text = h2load(plan, server.port, if plan.quick { 50_000 } else { 100_000 })?;
    let after = Usage::of(server.id());
    server.still_runs()?;
    let number = |before: &str, after: &str| -> Option<f64> {
        let (_, rest) = text.split_once(before)?;
        rest.split_once(after)?.0.trim().parse().ok()
    };
    let unclear = || io::Error::other(format!("h2load said: {text}"));
    let succeeded = number(" done, ", " succeeded").ok_or_else(unclear)?;
    Ok(Run {
        requests_per_second: number("s, ", " req/s").ok_or_else(unclear)?,
        cpu_micros: after.cpu_since(&before).as_secs_f64() * 1e6 / succeeded.max(1.0),
        errors: number(" succeeded, ", " failed").ok_or_else(unclear)? as u64,
        ..Run::default()
    })
}

fn h2load(plan: &Plan, port: u16, requests: u32) -> io::Result<String> {
    let address = format!("http://127.0.0.1:{port}/");
    let mut command = Command::new("h2load");
    division::confine(&mut command, &plan.place().load);
    let output = command.args(["-c10", "-m100", &format!("-n{requests}"), &address]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
