//! With `sim_libc!`, the clock of the system is that of the simulation for h2, too.

use std::time::Duration;

use simulated::check_slow_runs;

paceline::sim_libc!();

/// What h2 has without a setting.
const SECOND: Duration = Duration::from_secs(1);

/// Without the macro, both seeds differ.
#[test]
fn a_run_that_takes_longer_is_the_same_without_a_setting() {
    check_slow_runs(SECOND);
}
