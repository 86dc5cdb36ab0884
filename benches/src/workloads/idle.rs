//! What does an idle process do?
//!
//! Hypothesis: nothing (LF9). After a burst of requests the connections stay open; then the workload counts
//! CPU time, context switches and system calls of all threads. A deputy that still ticks or a leader that
//! still spins shows here.

use std::io;
use std::time::{Duration, SystemTime};

use serde_json::json;

use super::Outcome;
use crate::driver::plan::Plan;
use crate::driver::procfs::Usage;
use crate::driver::results::Results;
use crate::driver::rig::{Load, Server};
use crate::driver::strace::{Detail, Tracer, calls_after};
use crate::load;

pub(super) const QUESTION: &str = "system calls and CPU of an idle process with 64 open connections";

struct Idle {
    cpu: Duration,
    switches: u64,
    calls: Result<usize, String>,
}

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let window = Duration::from_millis(if plan.quick { 400 } else { 2_000 });
    let settle = Duration::from_millis(if plan.quick { 250 } else { 1_000 });
    println!("\n## Idle for {} ms, 64 open connections, after a burst of requests\n", window.as_millis());
    println!("  {:18} {:>10} {:>10} {:>10}", "", "CPU us", "switches", "calls");
    let mut rows = Vec::new();
    for rival in Plan::rivals() {
        match watch(rival, plan, settle, window) {
            Ok(idle) => {
                let calls =
                    idle.calls.as_ref().map_or_else(|reason| format!("- ({reason})"), usize::to_string);
                println!(
                    "  {rival:18} {:10.0} {:10} {calls:>10}",
                    idle.cpu.as_secs_f64() * 1e6,
                    idle.switches
                );
                rows.push(json!({
                    "rival": rival,
                    "cpu_us": idle.cpu.as_secs_f64() * 1e6,
                    "switches": idle.switches,
                    "calls": idle.calls.ok(),
                }));
            }
            Err(reason) => {
                println!("  {rival:18} absent: {reason}");
                rows.push(json!({ "rival": rival, "absent": reason.to_string() }));
            }
        }
    }
    results.add(json!({ "name": "idle", "window_ms": window.as_millis() as u64, "rivals": rows }));
    Ok(())
}

/// First without a tracer, which itself wakes the threads; then with one, without the calls that attaching
/// causes.
fn watch(rival: &str, plan: &Plan, settle: Duration, window: Duration) -> io::Result<Idle> {
    let server = Server::start(rival, plan)?;
    let burst = Duration::from_millis(100);
    let load = load::Plan { port: server.port, window: burst, ..plan.load("/", 64) };
    let mut load = Load::connect(&load, plan)?;
    load.go()?;
    load.begun()?;
    load.result()?;
    let held = load;
    std::thread::sleep(settle);
    let before = Usage::of(server.id());
    std::thread::sleep(window);
    let after = Usage::of(server.id());
    let switches = |usage: &Usage| usage.voluntary + usage.involuntary;
    let calls = traced(&server, settle, window).map_err(|error| error.to_string());
    drop(held);
    let switches = switches(&after).saturating_sub(switches(&before));
    Ok(Idle { cpu: after.cpu_since(&before), switches, calls })
}

fn traced(server: &Server, settle: Duration, window: Duration) -> io::Result<usize> {
    let tracer = Tracer::attach(server.id(), Detail::Calls)?;
    std::thread::sleep(settle);
    let from = SystemTime::now();
    std::thread::sleep(window);
    Ok(calls_after(&tracer.finish()?, from))
}
