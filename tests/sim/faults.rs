//! `buggify!`: faults that a program injects into itself.

use std::time::Duration;

use paceline::buggify;
use paceline::sim::{self, Report, Sim};

use super::panic_of;

/// Returns how often each of eight places injects a fault in a thousand calls.
fn faults_of_places(seed: u64) -> ([u32; 8], Report) {
    let mut sim = Sim::new(seed);
    let faults = sim.block_on(async {
        let mut faults = [0; 8];
        for _ in 0..1000 {
            #[rustfmt::skip]
            let now = [
                buggify!(0.5), buggify!(0.5), buggify!(0.5), buggify!(0.5),
                buggify!(0.5), buggify!(0.5), buggify!(0.5), buggify!(0.5),
            ];
            faults.iter_mut().zip(now).for_each(|(faults, now)| *faults += u32::from(now));
        }
        faults
    });
    (faults, sim.report())
}

/// Fails if a place is not faulty in about a quarter of the runs, or injects faults at another rate.
#[test]
fn the_seed_makes_a_quarter_of_the_places_faulty() {
    let all: Vec<[u32; 8]> = (0..100).map(|seed| faults_of_places(seed).0).collect();
    for place in 0..8 {
        let faulty = all.iter().filter(|faults| faults[place] > 0).count();
        assert!((10..45).contains(&faulty), "place {place}: {faulty} of 100");
    }
    assert!(all.iter().flatten().all(|faults| matches!(faults, 0 | 420..580)), "{all:?}");
    let is_mixed = |faults: &&[u32; 8]| faults.contains(&0) && faults.iter().any(|faults| *faults > 0);
    assert!(all.iter().filter(is_mixed).count() > 50, "each place is chosen by itself: {all:?}");
}

/// Fails if faults depend on more than the seed, or are no events.
#[test]
fn faults_are_events_that_the_seed_decides() {
    for seed in 0..20 {
        let (faults, report) = faults_of_places(seed);
        assert_eq!(faults_of_places(seed), (faults, report.clone()));
        let quiet = sim::check(seed, |sim| sim.block_on(async {}));
        assert_eq!(report.events - quiet.events, u64::from(faults.iter().sum::<u32>()));
    }
}

/// Fails if a program that injects no faults behaves in another way because it could.
#[test]
fn a_place_without_faults_changes_nothing() {
    let run = |seed, is_there: bool| {
        let mut sim = Sim::new(seed);
        sim.spawn(async move {
            if is_there {
                assert!(!buggify!(0.0));
            }
            sim::note(sim::rng().below(1000));
        })
        .detach();
        sim.run_for(Duration::from_secs(1))
    };
    assert!((0..40).all(|seed| run(seed, true) == run(seed, false)));
}

#[test]
fn outside_of_a_simulation_there_are_no_faults() {
    assert!(!(0..1000).any(|_| buggify!(1.0)));
}

#[test]
fn a_wrong_probability_is_an_error_that_says_so() {
    for probability in [-0.1, 1.5, f64::NAN] {
        let text = panic_of(|| assert!(!buggify!(probability)));
        assert_eq!(text, format!("{probability} is no probability"));
    }
}
