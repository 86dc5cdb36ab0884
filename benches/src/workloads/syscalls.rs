//! Which system calls does a request make?
//!
//! Hypothesis: a read, a write and a share of one epoll wait; all other calls are the runtime's own. The
//! server is much slower under strace, so these runs measure no times, and batches are smaller than normal.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use super::Outcome;
use crate::driver::plan::Plan;
use crate::driver::results::Results;
use crate::driver::rig::{Load, Server};
use crate::driver::strace::{Detail, Tracer, counts};
use crate::driver::tool;
use crate::load;

pub(super) const QUESTION: &str = "system calls per request (strace -c)";

const CONNECTIONS: usize = 64;

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    count_all("syscalls", &Plan::rivals(), &plan.load("/", CONNECTIONS), plan, results);
    Ok(())
}

/// Prints the calls per request of each rival under this load, and saves them under `name`.
pub(super) fn count_all(name: &str, rivals: &[&str], load: &load::Plan, plan: &Plan, results: &mut Results) {
    println!("\n## System calls per request, {} connections\n", load.connections);
    if let Err(reason) = tool::require("strace") {
        println!("  left out: {reason}");
        return results.add(json!({ "name": name, "absent": reason }));
    }
    let mut rows = Vec::new();
    for rival in rivals {
        match count(rival, load, plan) {
            Ok((requests, calls)) => {
                let each = |calls: u64| calls as f64 / requests as f64;
                let sum = each(calls.iter().map(|(_, calls)| calls).sum());
                let seen = calls.iter().filter(|(_, calls)| each(*calls) >= 0.0005);
                let seen: Vec<_> = seen.map(|(name, calls)| format!("{name} {:.3}", each(*calls))).collect();
                println!("  {rival:18} {sum:6.3}   {}", seen.join(", "));
                let calls: serde_json::Map<String, Value> =
                    calls.iter().map(|(name, calls)| (name.clone(), json!(each(*calls)))).collect();
                rows.push(json!({ "rival": rival, "per_request": sum, "calls": calls }));
            }
            Err(reason) => {
                println!("  {rival:18} {:>6}   {reason}", "-");
                rows.push(json!({ "rival": rival, "absent": reason.to_string() }));
            }
        }
    }
    results.add(json!({ "name": name, "rivals": rows }));
}

/// Attaches after the connections are open and detaches after the last answer, so only requests are counted.
fn count(rival: &str, load: &load::Plan, plan: &Plan) -> io::Result<(u64, Vec<(String, u64)>)> {
    let server = Server::start(rival, plan)?;
    let window = Duration::from_millis(500);
    let load = load::Plan { port: server.port, warm: Duration::ZERO, window, ..load.clone() };
    let mut load = Load::connect(&load, plan)?;
    let tracer = Tracer::attach(server.id(), Detail::Counts)?;
    load.go()?;
    load.begun()?;
    let result = load.result()?;
    let requests = result["total"].as_u64().unwrap_or(0).max(1);
    Ok((requests, counts(&tracer.finish()?)))
}
