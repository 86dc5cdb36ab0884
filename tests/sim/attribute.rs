//! `#[paceline::sim]`, and the command that runs a seed again.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use paceline::Timer;
use paceline::sim::Sim;

use super::{another_process, in_another_process};

static SEEDS: AtomicU64 = AtomicU64::new(0);

#[paceline::sim(seeds = 3)]
#[ignore = "run by the test below, in another process"]
fn counts_seeds(sim: &mut Sim) {
    SEEDS.fetch_add(1 << (8 * sim.seed()), Relaxed);
    println!("runs so far: {:06x}", SEEDS.load(Relaxed));
}

/// Fails if a seed is left out, or if the first one does not run twice.
#[test]
fn each_seed_runs_once_and_the_first_one_twice() {
    let output = in_another_process("attribute::counts_seeds", &[("PACELINE_JOBS", "1")]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("runs so far: 010102"), "{text}");
}

/// Two runs that wait for each other.
#[paceline::sim(seeds = 3)]
#[ignore = "run by the test below, in another process"]
fn two_at_a_time(sim: &mut Sim) {
    static BESIDE: Barrier = Barrier::new(2);
    if sim.seed() > 0 {
        BESIDE.wait();
    }
}

/// Fails, because it never ends, if no two seeds run at a time.
#[test]
fn seeds_run_beside_each_other() {
    assert!(in_another_process("attribute::two_at_a_time", &[("PACELINE_JOBS", "2")]).status.success());
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
            let output = another_process(test, capture, &[("PACELINE_JOBS", "1")]);
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
    let (seed, after) = after.split_once(", ").expect(&text);
    assert!(
        after.starts_with("1.000000 s after its start, on the node test: the number is 3 (at tests/sim/"),
        "{text}"
    );
    let command =
        format!("PACELINE_SEED={seed} cargo test -p paceline {test} -- --exact --include-ignored\n");
    assert!(after.contains(&command), "{command} is not in {after}");

    // Its parts: the variable, and the path that selects one test.
    let again = in_another_process(test, &[("PACELINE_SEED", seed)]);
    let text = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(text.contains(&format!("fails with seed {seed}, 1.000000 s after")), "{text}");
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

    let wrong = in_another_process(test, &[("PACELINE_SEEDS", "9..3")]);
    let text = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(text.contains("PACELINE_SEEDS is \"9..3\"; it should be a number of seeds"), "{text}");
}

/// Returns the seeds under 100 with which `fails_sometimes` fails.
fn failing_seeds() -> Vec<u64> {
    (0..100).filter(|seed| Sim::new(*seed).rng().below(10) == 3).collect()
}

/// Fails if the seed that is explained is not the first that fails, also where later ones fail before it
/// ends.
#[test]
fn the_first_seed_that_fails_is_explained_and_with_keep_going_all_are_listed() {
    let (test, failing) = ("attribute::fails_sometimes", failing_seeds());
    let explained = format!("attribute::fails_sometimes fails with seed {}, ", failing[0]);
    for jobs in ["1", "8"] {
        let output = in_another_process(test, &[("PACELINE_SEEDS", "100"), ("PACELINE_JOBS", jobs)]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(&explained) && text.matches(" fails with seed ").count() == 1, "{text}");
    }
    let output = in_another_process(test, &[("PACELINE_SEEDS", "100"), ("PACELINE_KEEP_GOING", "1")]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let listed: Vec<_> = failing.iter().map(u64::to_string).collect();
    let list = format!("{} of 100 seeds of sim::{test} fail: {}\n", failing.len(), listed.join(", "));
    assert!(
        !output.status.success() && text.contains(&explained) && text.contains(&list),
        "{list} is not in {text}"
    );

    let range = format!("{}..{}", failing[0] + 1, failing[1]);
    let output = in_another_process(test, &[("PACELINE_SEEDS", &range)]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let passes = format!("sim::{test} passes with {} seeds\n", failing[1] - failing[0] - 1);
    assert!(output.status.success() && text.contains(&passes), "{passes} is not in {text}");
}

/// Fails if a run but the first begins when the time is over, or if that is not said.
#[test]
fn no_run_begins_after_the_time_limit() {
    let asked = [("PACELINE_TIME_LIMIT", "0"), ("PACELINE_SEEDS", "7"), ("PACELINE_JOBS", "1")];
    let output = in_another_process("attribute::fails_sometimes", &asked);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && text.contains("passes with 1 seeds of 7 in 0ns"), "{text}");
}
