//! Tests of the simulation itself.

use super::*;

/// Round figures of a server.
const COSTS: Costs = Costs {
    access: 1,
    locked: 6,
    pause: 20,
    transfer: 60,
    wake: 1_500,
    wake_busy: 1_000,
    latency: 5_000,
    switch: 1_500,
    sleep: 1_000,
    offer: 400,
    wait: 500,
    event: 50,
    interrupt: 600,
    clock: 25,
};

/// Nanoseconds of a request without the pool's own work.
const REQUEST: u64 = 3_500;

fn plan(workers: usize, handler_micros: u64) -> Plan {
    Plan {
        cores: workers,
        workers,
        connections: 64,
        clients: Clients::Outside { delay: 10_000 },
        costs: COSTS,
        read: 500,
        write: 2_500,
        code: 500,
        handler: handler_micros * 1_000,
        warm: 5,
        window: 10,
    }
}

#[test]
fn a_simulation_gives_the_same_result_again() {
    let plan = plan(2, 5);
    assert_eq!(plan.run(), plan.run());
}

/// Fails if a cost is not charged, or charged twice.
#[test]
fn one_core_handles_as_many_requests_as_their_costs_allow() {
    for micros in [0, 20] {
        let outcome = plan(1, micros).run();
        let most = 1e9 / (REQUEST + micros * 1_000) as f64;
        assert!((0.9 * most..most).contains(&outcome.requests_per_second), "{most}: {outcome:?}");
        assert_eq!(outcome.transfers, 0.0, "one core has all lines");
    }
}

/// Fails if a thread runs without a core, if two threads run on one core at a time, or if sleeping workers
/// are not woken.
#[test]
fn four_cores_are_used_and_not_more() {
    let outcome = plan(4, 20).run();
    let used = outcome.requests_per_second * outcome.cpu / 1e6;
    assert!((3.8..4.01).contains(&used), "{used}: {outcome:?}");
    assert!(outcome.transfers > 1.0, "a batch of events is shared: {outcome:?}");
}

/// Eight threads on two cores. Fails if a core is given to several threads, or if a thread that waits for a
/// core gets none.
#[test]
fn more_workers_than_cores_share_the_cores() {
    let outcome = Plan { workers: 8, ..plan(2, 100) }.run();
    let most = 2e9 / (REQUEST + 100_000) as f64;
    assert!((0.85 * most..1.01 * most).contains(&outcome.requests_per_second), "{most}: {outcome:?}");
}

/// A client on the only core leaves the server the rest of it.
#[test]
fn clients_on_the_same_core_need_their_share_of_it() {
    let outcome = Plan { clients: Clients::Threads { number: 1, cost: 4_000 }, ..plan(1, 0) }.run();
    let most = 1e9 / (REQUEST + 4_000) as f64;
    assert!((0.85 * most..most).contains(&outcome.requests_per_second), "{most}: {outcome:?}");
}

/// Fails if workers fall asleep while the leader collects the events of many connections. A wake takes so
/// long here that few of them would be awake at a time.
#[test]
fn workers_stay_awake_while_the_leader_collects_many_events() {
    let costs = Costs { wake: 5_000, latency: 50_000, event: 80, ..COSTS };
    let outcome = Plan { connections: 1_000, costs, ..plan(8, 0) }.run();
    let used = outcome.requests_per_second * outcome.cpu / 1e6;
    assert!(used > 7.0, "{used}: {outcome:?}");
}
