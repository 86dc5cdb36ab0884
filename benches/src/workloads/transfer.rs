//! What is the cost of a large transfer over one stream?
//!
//! Hypothesis: most of it is the kernel's copies, so all rivals are alike. The runtimes differ in the number
//! of system calls that find no data, and in where the two ends run: on one thread or two. The adapter to
//! tokio's traits is free, because it does not initialise the caller's memory.

use std::io;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Outcome, report};
use crate::driver::child::{Child, Talk};
use crate::driver::division::{Division, confine};
use crate::driver::plan::Plan;
use crate::driver::results::Results;
use crate::driver::rig::Run;
use crate::driver::sweep::{CORES, Metric, Point, Sweep};
use crate::transfer::RIVALS;

pub(super) const QUESTION: &str = "1 GiB over one TCP stream, by the traits of `futures` and of tokio";

const MIB: usize = 1 << 20;

const RATE: Metric = Metric { unit: "MiB/s", ..crate::driver::sweep::RATE };
const CPU: Metric = Metric { unit: "us/MiB", decimals: 1, ..crate::driver::sweep::CPU };

/// KiB of a buffer, and whether each end has a process of its own.
const POINTS: [(usize, bool); 4] = [(64, true), (16, true), (64, false), (16, false)];

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let (mib, rounds) = if plan.quick { (256, 3) } else { (1024, 9) };
    let plan = &Plan { rounds, ..plan.clone() };
    let point = |(at, (kib, apart)): (usize, &(usize, bool))| {
        let ends = if *apart { "a process for each end" } else { "both ends in one, on all CPUs" };
        Point { x: at as f64, label: format!("buffers of {kib} KiB, {ends}") }
    };
    let points = POINTS.iter().enumerate().map(point).collect();
    let title =
        format!("{mib} MiB over one TCP stream, {} workers a process, the sender as load", plan.threads);
    let sweep = Sweep::measure("transfer", title, plan, points, RIVALS, |rival, point| {
        let (kib, apart) = POINTS[point.x as usize];
        transfer(rival, kib * 1024, mib, apart.then(|| plan.place()))
    });
    report(results, &sweep, &[RATE, CPU, CORES]);
    Ok(())
}

/// Starts both ends, each with CPUs of its own if they are apart, and waits for their figures. The time is
/// that of the receiver.
fn transfer(rival: &str, buffer: usize, mib: usize, apart: Option<Division>) -> io::Result<Run> {
    let start = |ends: &[&str], cpus: &[usize]| -> io::Result<(Child, Talk)> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["transfer-end", rival, &buffer.to_string(), &(mib * MIB).to_string()]).args(ends);
        confine(&mut command, cpus);
        let mut child = Child::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let talk = Talk::with(&mut child)?;
        Ok((child, talk))
    };
    let figures = |talk: &mut Talk| -> io::Result<(f64, f64)> {
        let figures: Value = serde_json::from_str(&talk.line()?).map_err(io::Error::other)?;
        let figure =
            |name: &str| figures[name].as_f64().ok_or_else(|| io::Error::other("a figure is missing"));
        Ok((figure("seconds")?, figure("cpu")?))
    };
    let (seconds, cpu) = if let Some(Division { server, load }) = apart {
        let (_receiver, mut receiver) = start(&["receive"], &server)?;
        let port = receiver.line()?;
        let (_sender, mut sender) = start(&["send", port.trim()], &load)?;
        let ((seconds, received), (_, sent)) = (figures(&mut receiver)?, figures(&mut sender)?);
        (seconds, received + sent)
    } else {
        let (_both, mut both) = start(&["both"], &[])?;
        figures(&mut both)?
    };
    let mib = mib as f64;
    Ok(Run { requests_per_second: mib / seconds, cpu_micros: cpu * 1e6 / mib, ..Run::default() })
}
