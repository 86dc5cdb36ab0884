//! `#[paceline::sim]`, and the command that runs a seed again.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use paceline::Timer;
use paceline::sim::Sim;

use super::{another_process, in_another_process};

static SEEDS: AtomicU64 = AtomicU64::new(0);

/// The first seed runs twice.
#[paceline::sim(seeds = 3)]
fn counts_seeds(sim: &mut Sim) {
    SEEDS.fetch_add(1 << (8 * sim.seed()), Relaxed);
    if sim.seed() == 2 {
        assert_eq!(SEEDS.load(Relaxed), 0x01_01_02);
    }
}

#[paceline::sim(seeds = 1 + 1, crate = ::paceline)]
#[should_panic(expected = "by intent")]
fn takes_other_attributes(sim: &mut Sim) {
    sim.block_on(async { panic!("by intent") });
}

#[paceline::sim(seeds = 0)]
#[should_panic(expected = "no seeds")]
fn no_seeds_are_an_error(_: &mut Sim) {}

/// Fails under about one seed of ten, and not under 0.
#[paceline::sim]
#[ignore = "run by the test below, in another process"]
fn fails_sometimes(sim: &mut Sim) {
    let mut rng = sim.rng();
    sim.block_on(async move {
        Timer::after(Duration::from_secs(1)).await;
        let number = rng.below(10);
        assert!(number != 3, "the number is {number}");
    });
    println!("passed with seed {}", sim.seed());
}

/// A panic in a destructor during a panic is an abort that no library can prevent.
#[paceline::sim]
#[ignore = "run by the test below, in another process"]
fn aborts_sometimes(sim: &mut Sim) {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in a panic");
        }
    }
    let seed = sim.seed();
    sim.block_on(async move {
        let _bomb = (seed == 5).then(|| Bomb);
        assert!(seed < 5, "on purpose");
    });
}

/// The handler of this abort runs on a small stack of std's.
#[paceline::sim]
#[ignore = "run by the test below, in another process"]
fn overflows_sometimes(sim: &mut Sim) {
    fn deeper(level: u64) -> u64 {
        std::hint::black_box(if level == 0 { 0 } else { deeper(level + 1) + 1 })
    }
    let seed = sim.seed();
    sim.block_on(async move { assert_eq!(deeper(seed / 5), 0) });
}

/// Fails if an abort prints no seed, also if the harness has captured what was printed before.
#[cfg(unix)]
#[test]
fn an_abort_prints_the_seed() {
    use std::os::unix::process::ExitStatusExt;
    for test in ["attribute::aborts_sometimes", "attribute::overflows_sometimes"] {
        for capture in ["--nocapture", "--show-output"] {
            let output = another_process(test, capture, &[]);
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.signal(), Some(6), "{text}");
            let line = "paceline: the process aborts in the simulation with seed 5. PACELINE_SEED=5 ";
            assert_eq!(text.matches(line).count(), 1, "{text}");
        }
    }
}

/// Fails if the printed command does not run the seed that has failed.
#[test]
fn a_failure_prints_the_seed_and_the_command_that_runs_it_again() {
    let test = "attribute::fails_sometimes";
    let output = in_another_process(test, &[]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{text}");
    let (_, after) = text.split_once("sim::attribute::fails_sometimes fails with seed ").expect(&text);
    let (seed, after) = after.split_once(": ").expect(&text);
    assert!(after.starts_with("the number is 3\n"), "{text}");
    let command = format!("PACELINE_SEED={seed} cargo test -p paceline {test} -- --exact\n");
    assert!(after.contains(&command), "{command} is not in {after}");
    assert!(text.contains(&format!("a panic ends the simulation with seed {seed}\n")), "{text}");

    // Its parts: the variable, and the path that selects one test.
    let again = in_another_process(test, &[("PACELINE_SEED", seed)]);
    let text = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(text.contains(&format!("fails with seed {seed}: the number is 3")), "{text}");
    let passed = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(!passed.contains("passed with seed"), "{passed}");

    let other = in_another_process(test, &[("PACELINE_SEED", "0")]);
    let passed = String::from_utf8_lossy(&other.stdout).into_owned();
    assert!(other.status.success() && passed.contains("passed with seed 0"), "{passed}");
    assert!(!passed.contains("passed with seed 1"), "{passed}");

    let last = u64::MAX.to_string();
    let ran = in_another_process(test, &[("PACELINE_SEED", &last)]);
    let text = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(text.contains(&format!("with seed {last}")), "{text}");

    let wrong = in_another_process(test, &[("PACELINE_SEED", "seven")]);
    let text = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(text.contains("PACELINE_SEED is \"seven\"; it should be a seed"), "{text}");
}
