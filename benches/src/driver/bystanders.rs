//! How much of the processor other programs use, before and during a workload.

use std::fs;
use std::thread;
use std::time::Duration;

/// The start of an observation of other programs.
#[derive(Debug)]
pub(crate) struct Watch {
    machine: Ticks,
    ours: u64,
}

/// Processor time of all cores since the system started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    all: u64,
}

impl Watch {
    pub(crate) fn start() -> Watch {
        Watch { machine: Ticks::now(), ours: ours() }
    }

    /// Observes for a third of a second, in which the driver and its children do nothing.
    pub(crate) fn glance() -> f64 {
        let watch = Watch::start();
        thread::sleep(Duration::from_millis(300));
        watch.percent()
    }

    /// Returns the share of all cores since the start that was neither idle nor used by this process and its
    /// children, in percent. A child counts after the driver has waited for it.
    pub(crate) fn percent(&self) -> f64 {
        let now = Ticks::now();
        let busy = now.busy.saturating_sub(self.machine.busy);
        let ours = ours().saturating_sub(self.ours);
        let all = now.all.saturating_sub(self.machine.all).max(1);
        busy.saturating_sub(ours) as f64 / all as f64 * 100.0
    }
}

impl Ticks {
    fn now() -> Ticks {
        Ticks::read(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn read(stat: &str) -> Ticks {
        let line = stat.lines().next().unwrap_or_default();
        let ticks: Vec<u64> =
            line.split_whitespace().skip(1).take(8).map(|word| word.parse().unwrap_or(0)).collect();
        // Time in interrupts is left out: most of it is loopback traffic of the benchmark, and some kernels
        // charge it to no process.
        let [user, nice, system, _idle, _iowait, _irq, _softirq, steal] = ticks[..] else {
            return Ticks { busy: 0, all: 0 };
        };
        Ticks { busy: user + nice + system + steal, all: ticks.iter().sum() }
    }
}

/// Returns the ticks of this process and of all its descendants that have been waited for.
fn ours() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may hold spaces; the four times are the 12th to 15th field after it.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().skip(11).take(4).filter_map(|word| word.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_interrupts_are_not_busy() {
        let ticks = Ticks::read("cpu  100 1 50 800 20 7 9 13 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n");
        assert_eq!(ticks, Ticks { busy: 164, all: 1_000 });
    }

    #[test]
    fn what_children_burn_is_ours() {
        let before = ours();
        let burn = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", burn]).status().unwrap().success());
        assert!(ours() > before);
    }
}
