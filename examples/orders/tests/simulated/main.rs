//! The service in simulations, without a bug and with each of those in [`Plant`].
//!
//! `cargo test --test simulated -- --ignored --exact early_ack` shows what a failed seed prints.

mod notes;
mod scenario;

use std::env;
use std::process::Command;

use orders::Plant;
use paceline::sim::Sim;

// The clocks and the random numbers of the crates, too.
paceline::sim_libc!();

/// Enough for each of the bugs.
const SEEDS: u64 = 200;

#[paceline::sim(seeds = 20)]
fn correct(sim: &mut Sim) {
    scenario::run(sim, Plant::None);
}

#[paceline::sim(seeds = SEEDS)]
#[ignore = "a planted bug: shows what a failed seed prints"]
fn lost_update(sim: &mut Sim) {
    scenario::run(sim, Plant::LostUpdate);
}

#[paceline::sim(seeds = SEEDS)]
#[ignore = "a planted bug: shows what a failed seed prints"]
fn no_retry(sim: &mut Sim) {
    scenario::run(sim, Plant::NoRetry);
}

#[paceline::sim(seeds = SEEDS)]
#[ignore = "a planted bug: shows what a failed seed prints"]
fn early_ack(sim: &mut Sim) {
    scenario::run(sim, Plant::EarlyAck);
}

/// Runs the test of a planted bug in another process, and checks that a seed fails, for this reason.
fn finds(test: &str, reason: &str) {
    let mut command = Command::new(env::current_exe().unwrap());
    // What the caller asks for is meant for `correct`.
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("PACELINE_") {
            command.env_remove(name);
        }
    }
    let output = command
        .args([test, "--exact", "--ignored", "--nocapture"])
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{SEEDS} seeds do not find {test}");
    println!("{text}");
    assert!(text.contains(reason), "{text}");
}

#[test]
fn a_lost_update_is_found() {
    finds("lost_update", "are left of");
}

#[test]
fn a_missing_retry_is_found() {
    finds("no_retry", "is not at the warehouse");
}

#[test]
fn an_early_acknowledgement_is_found() {
    finds("early_ack", "was acknowledged, and is not in the shop");
}
