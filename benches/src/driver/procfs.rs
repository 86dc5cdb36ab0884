//! What the kernel reports of a process: CPU time, context switches, peak memory.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// One reading of a process. The figures are differences of two readings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// From schedstat of the live threads: exact, but without threads that have ended.
    threads_cpu: Duration,
    /// From stat: all threads, including those that have ended, in clock ticks.
    process_cpu: Duration,
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
    pub(crate) peak_kib: u64,
}

/// The resolution of [`Usage::process_cpu`] on all relevant Linux systems (`USER_HZ` is 100).
const TICK: Duration = Duration::from_millis(10);

impl Usage {
    /// Reads a process. All values are zero if the process has ended.
    pub(crate) fn of(process: u32) -> Usage {
        let mut usage = Usage { process_cpu: process_cpu(process).unwrap_or_default(), ..Usage::default() };
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        usage.peak_kib = field(&status, "VmHWM:");
        let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        for thread in threads.map(|entry| entry.path()) {
            let schedstat = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
            usage.threads_cpu += Duration::from_nanos(first_number(&schedstat));
            let status = fs::read_to_string(thread.join("status")).unwrap_or_default();
            usage.voluntary += field(&status, "voluntary_ctxt_switches:");
            usage.involuntary += field(&status, "nonvoluntary_ctxt_switches:");
        }
        usage
    }

    /// Returns the CPU time since an earlier reading, from the coarse clock only if threads have ended.
    pub(crate) fn cpu_since(&self, earlier: &Usage) -> Duration {
        let exact = self.threads_cpu.saturating_sub(earlier.threads_cpu);
        let coarse = self.process_cpu.saturating_sub(earlier.process_cpu);
        if coarse > exact + 2 * TICK { coarse } else { exact }
    }
}

/// Returns the CPU time of all threads of this process.
pub(crate) fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn process_cpu(process: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may hold spaces; user and system time are the 12th and 13th field after it.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(first_number).sum::<u64>();
    Some(TICK * u32::try_from(ticks).ok()?)
}

fn field(status: &str, name: &str) -> u64 {
    status.lines().find_map(|line| line.strip_prefix(name)).map_or(0, first_number)
}

fn first_number(text: &str) -> u64 {
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Waits for a condition, which is checked every few milliseconds.
pub(crate) fn eventually(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = std::time::Instant::now() + limit;
    while std::time::Instant::now() < deadline {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process;

    #[test]
    fn a_busy_process_uses_cpu_and_an_ended_thread_is_not_forgotten() {
        let me = process::id();
        let before = Usage::of(me);
        let burn = || {
            // Not wall time: beside other programs this thread may get a fraction of it.
            while clock_gettime(ClockId::ThreadCPUTime).tv_nsec < 100_000_000 {}
        };
        std::thread::spawn(burn).join().unwrap();
        let used = Usage::of(me).cpu_since(&before);
        assert!(used > Duration::from_millis(50), "{used:?}");
    }
}
