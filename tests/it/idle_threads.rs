//! Whether the threads of this process sleep.

use std::collections::HashMap;
use std::fs;
use std::thread;
use std::time::Duration;

use crate::setups::eventually;

/// Returns how often each thread of this process but the current one was switched to, by name.
pub fn switches() -> HashMap<String, u64> {
    statuses().into_iter().map(|(name, status)| (name, switches_in(&status))).collect()
}

/// Returns the status of each thread of this process but the current one, as the system prints it, by the
/// path and the name of the thread.
pub fn statuses() -> Vec<(String, String)> {
    let me = fs::read_link("/proc/thread-self").unwrap();
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|entry| entry.unwrap().path());
    let others = tasks.filter(|task| task.file_name() != me.file_name());
    others
        .filter_map(|task| {
            // The thread may have ended: a replacement of another worker.
            let status = fs::read_to_string(task.join("status")).ok()?;
            let name = status.lines().next().unwrap_or_default();
            Some((format!("{} {name}", task.display()), status))
        })
        .collect()
}

/// Returns how often the thread with this status was switched to.
pub fn switches_in(status: &str) -> u64 {
    let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
    counts.map(|line| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()).sum()
}

/// Waits until no thread runs, and then two seconds, in which none may run.
pub fn assert_all_rest() {
    let mut before = switches();
    // Threads for closures that block stay for a while, tokio's for ten seconds.
    eventually("all threads come to rest", || {
        thread::sleep(Duration::from_millis(100));
        let now = switches();
        now == std::mem::replace(&mut before, now.clone())
    });
    thread::sleep(Duration::from_secs(2));
    let after = switches();
    let busy: Vec<_> = after.iter().filter(|(thread, count)| before.get(*thread) != Some(count)).collect();
    assert!(busy.is_empty(), "these ran while all was idle: {busy:?}");
}
