//! The tables of `benches/simulate`: what was measured, what is simulated, and the difference.

use std::collections::BTreeMap;

use super::{Clients, Outcome, Plan};
use crate::sync::cores::Costs;

/// Microseconds of work per request.
const HANDLERS: [u64; 4] = [0, 5, 20, 100];

/// The output of `paceline-bench costs`.
#[derive(Debug)]
struct Measured {
    costs: BTreeMap<String, u64>,
    real: Vec<Real>,
}

/// The real server, with one load thread on the same cores.
#[derive(Clone, Copy, Debug)]
struct Real {
    cores: usize,
    workers: usize,
    handler: u64,
    requests_per_second: f64,
    cpu_nanos: f64,
    client_nanos: f64,
}

impl Measured {
    /// # Panics
    ///
    /// Panics on a line that is none of those.
    fn parse(text: &str) -> Self {
        let mut measured = Self { costs: BTreeMap::new(), real: Vec::new() };
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |at: usize| words[at].parse::<f64>().expect("a number");
            if words[0] == "real" {
                measured.real.push(Real {
                    cores: number(1) as usize,
                    workers: number(2) as usize,
                    handler: number(3) as u64,
                    requests_per_second: number(4),
                    cpu_nanos: number(5),
                    client_nanos: number(6),
                });
            } else {
                measured.costs.insert(words[0].into(), number(1) as u64);
            }
        }
        measured
    }

    fn costs(&self) -> Costs {
        let cost = |name: &str| *self.costs.get(name).unwrap_or_else(|| panic!("{name} was not measured"));
        Costs {
            access: cost("access"),
            locked: cost("locked"),
            pause: cost("pause"),
            transfer: cost("transfer"),
            wake: cost("wake"),
            wake_busy: cost("wake-busy"),
            latency: cost("latency"),
            switch: cost("switch"),
            sleep: cost("sleep"),
            offer: cost("offer"),
            wait: cost("wait"),
            event: cost("event"),
            interrupt: cost("interrupt"),
            clock: cost("clock"),
        }
    }

    /// Returns the plan of the real run without work on one core. No other run tells the cost of a client,
    /// and the cost of the server's code that nothing else stands for.
    fn calibrated(&self) -> Plan {
        let is_base = |real: &&Real| (real.cores, real.workers, real.handler) == (1, 1, 0);
        let base = self.real.iter().find(is_base).expect("it was measured");
        let mut plan = Plan {
            cores: base.cores,
            workers: base.workers,
            connections: 64,
            clients: Clients::Threads { number: 1, cost: base.client_nanos as u64 },
            costs: self.costs(),
            read: self.costs["read"],
            write: self.costs["write"],
            code: 0,
            handler: 0,
            warm: 20,
            window: 200,
        };
        let without_code = plan.run().cpu * 1e3;
        plan.code = (base.cpu_nanos - without_code).max(0.0) as u64;
        plan
    }
}

fn print_comparison(measured: &Measured, plan: &Plan) {
    println!("\n| cores | workers | work, us | real | SIMULATED | error | CPU, us: real | SIMULATED |");
    println!("|---|---|---|---|---|---|---|---|");
    for real in &measured.real {
        let (cores, workers, handler) = (real.cores, real.workers, real.handler * 1_000);
        let outcome = Plan { cores, workers, handler, ..plan.clone() }.run();
        println!(
            "| {cores} | {workers} | {} | {:.0} | {:.0} | {:+.0} % | {:.1} | {:.1} |",
            real.handler,
            real.requests_per_second,
            outcome.requests_per_second,
            (outcome.requests_per_second / real.requests_per_second - 1.0) * 100.0,
            real.cpu_nanos / 1e3,
            outcome.cpu,
        );
    }
}

/// Prints the requests per second on 1 to 64 cores, with as many workers for each core as the plan has.
fn print_scaling(title: &str, plan: &Plan) {
    println!(
        "\nSIMULATED thousands of requests per second, {title}; in brackets microseconds of processor time, lines moved and wakes per request\n"
    );
    println!("| cores | {} |", HANDLERS.map(|micros| format!("{micros} us of work")).join(" | "));
    println!("|---|---|---|---|---|");
    for cores in [1, 2, 4, 8, 16, 32, 64] {
        let cell = |micros: u64| {
            let workers = cores * plan.workers;
            let outcome = Plan { cores, workers, handler: micros * 1_000, ..plan.clone() }.run();
            let Outcome { requests_per_second, cpu, transfers, wakes, .. } = outcome;
            format!("{:.0} ({cpu:.1}; {transfers:.1}; {wakes:.4})", requests_per_second / 1e3)
        };
        println!("| {cores} | {} |", HANDLERS.map(cell).join(" | "));
    }
}

#[test]
#[ignore = "run by benches/simulate, with the figures of the machine"]
fn report() {
    let file = std::env::var("PACELINE_MEASURED").expect("PACELINE_MEASURED names the file of the figures");
    let measured = Measured::parse(&std::fs::read_to_string(file).expect("the file can be read"));
    let plan = measured.calibrated();
    println!(
        "\nnanoseconds: {:?}, code of the server {}, client {:?}",
        measured.costs, plan.code, plan.clients
    );
    print_comparison(&measured, &plan);
    // The two cores of a small machine may be neighbours: their figure says little of many cores.
    let costs = Costs { transfer: 70, ..plan.costs };
    let base =
        Plan { clients: Clients::Outside { delay: 10_000 }, connections: 1_000, window: 20, costs, ..plan };
    let with = |change: fn(&mut Plan)| {
        let mut plan = base.clone();
        change(&mut plan);
        plan
    };
    print_scaling("1 000 connections, 70 ns for a line", &base);
    print_scaling("64 connections", &with(|plan| plan.connections = 64));
    print_scaling("10 000 connections", &with(|plan| plan.connections = 10_000));
    print_scaling("two workers for each core", &with(|plan| plan.workers = 2));
    print_scaling("40 ns for a line", &with(|plan| plan.costs.transfer = 40));
    print_scaling("100 ns for a line", &with(|plan| plan.costs.transfer = 100));
    let quick = |plan: &mut Plan| (plan.costs.wake, plan.costs.latency) = (1_500, 5_000);
    print_scaling("1.5 us to wake a thread, which runs after 5 us", &with(quick));
    let slow = |plan: &mut Plan| (plan.costs.wake, plan.costs.latency) = (5_000, 50_000);
    print_scaling("5 us to wake a thread, which runs after 50 us", &with(slow));
}
