//! A cluster of openraft under many seeds. The variable `RAFT_BUG` plants a bug in its store, and
//! `RAFT_SEEDS` sets the number of seeds.

use std::env;
use std::panic::catch_unwind;
use std::process::{Command, Output};

use paceline::sim::{self, Sim};
use raft::store::Bug;
use raft::{cluster, runtime};

/// Without a bug, and at most with one.
const SEEDS: u64 = 50;
const SEEDS_FOR_A_BUG: u64 = 1_000;

fn bug() -> Bug {
    match env::var("RAFT_BUG").as_deref() {
        Err(_) => Bug::None,
        Ok("vote") => Bug::Vote,
        Ok("older-vote") => Bug::OlderVote,
        Ok("unsynced-vote") => Bug::UnsyncedVote,
        Ok("applied") => Bug::Applied,
        Ok("purge") => Bug::Purge,
        Ok("early-purge") => Bug::EarlyPurge,
        Ok(other) => panic!("there is no bug {other:?}"),
    }
}

fn seeds() -> u64 {
    match env::var("RAFT_SEEDS") {
        Ok(seeds) => seeds.parse().expect("RAFT_SEEDS is a number"),
        Err(_) if bug() == Bug::None => SEEDS,
        Err(_) => SEEDS_FOR_A_BUG,
    }
}

#[paceline::sim(seeds = seeds())]
fn a_cluster_keeps_its_promises(sim: &mut Sim) {
    let done = cluster::run(sim, bug());
    println!("{}, {done:?}", sim.report());
}

/// The test above in another process, with these variables.
fn in_another_process(variables: &[(&str, &str)]) -> Output {
    Command::new(env::current_exe().unwrap())
        .args(["a_cluster_keeps_its_promises", "--exact", "--nocapture"])
        .env_remove("PACELINE_SEED")
        .env_remove("RAFT_SEEDS")
        .env("RUST_BACKTRACE", "0")
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

/// Runs seeds until one finds the bug, and then that seed alone, as the printed command does. Fails if no
/// seed finds it, or if the second run has another outcome.
fn finds(bug: &str) {
    let run = |variables: &[(&str, &str)]| {
        let output = in_another_process(&[&[("RAFT_BUG", bug)], variables].concat());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "the bug {bug} is not found: {text}");
        let (_, after) = text.split_once("a_cluster_keeps_its_promises fails with seed ").expect(&text);
        let (failure, after) = after.split_once("\nTo run it again:\n").expect(&text);
        // "7, 1.8 s after its start, on the node n1: the reason", and then the page.
        let line = failure.lines().next().expect(&text);
        let (seed, line) = line.split_once(", ").expect(&text);
        let (_, reason) = line.split_once(": ").expect(&text);
        let command =
            format!("PACELINE_SEED={seed} cargo test -p raft a_cluster_keeps_its_promises -- --exact");
        assert!(after.contains(&command), "{text}");
        // What is printed is the smallest run that was found in a time, so numbers may differ.
        (seed.to_owned(), reason.replace(|letter: char| letter.is_ascii_digit(), ""))
    };
    let (seed, reason) = run(&[]);
    println!("{bug} with seed {seed}: {reason}");
    assert_eq!(run(&[("PACELINE_SEED", &seed)]), (seed, reason));
}

#[test]
fn a_vote_that_is_replaced_by_an_older_one_is_found() {
    finds("older-vote");
}

#[test]
fn a_vote_that_is_not_synced_is_found() {
    finds("unsynced-vote");
}

#[test]
fn an_entry_that_is_skipped_after_a_restart_is_found() {
    finds("applied");
}

#[test]
fn an_entry_that_is_purged_too_early_is_found() {
    finds("purge");
}

/// Fails if runs with the random numbers of openraft's runtime for tokio do not differ: then the one of this
/// package would not be needed.
#[test]
fn random_numbers_of_the_system_are_found() {
    let differs = (0..50).any(|seed| {
        let run = || {
            sim::check(seed, |sim| {
                runtime::OF_THE_SYSTEM.set(true);
                cluster::run(sim, Bug::None);
            })
        };
        let panic = catch_unwind(run).err();
        panic.is_some_and(|panic| {
            panic.downcast::<String>().is_ok_and(|text| text.contains("the program is not deterministic"))
        })
    });
    assert!(differs);
}
