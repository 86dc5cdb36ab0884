//! With `sim_libc!`, the clock of the system is that of the simulation for h2, too.

use std::thread;
use std::time::Duration;

use paceline::sim::check;
use simulated::program_with;

paceline::sim_libc!();

/// What h2 has without a setting.
const SECOND: Duration = Duration::from_secs(1);

/// In these seeds there are streams that were reset. Without the macro, both runs of each differ, because the
/// second one takes longer.
#[test]
fn a_run_that_takes_longer_is_the_same_without_a_setting() {
    for seed in [231, 759] {
        let mut pauses = [false, true].into_iter();
        check(seed, |sim| {
            let pauses = pauses.next().is_some_and(|pauses| pauses);
            let pause = move |_| thread::sleep(Duration::from_millis(if pauses { 1100 } else { 0 }));
            program_with(sim, SECOND, pause);
        });
    }
}
