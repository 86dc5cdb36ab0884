//! What the hidden runtime costs who does not use it.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::Duration;

use paceline::{Timer, block_on, spawn, unblock};

use crate::context::all_of_tokio;
use crate::setups::{eventually, is_child};

/// How often each thread of this process was switched to, by name.
fn switches() -> BTreeMap<String, u64> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let of = |task: std::path::PathBuf| {
        let status = fs::read_to_string(task.join("status")).ok()?;
        let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
        let sum = counts.map(|line| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()).sum();
        Some((format!("{} {}", task.display(), status.lines().next().unwrap_or_default()), sum))
    };
    // The test's own thread looks, and its main thread waits for it with a limit.
    let own = format!("/proc/self/task/{} ", rustix::thread::gettid().as_raw_nonzero());
    tasks.filter_map(of).filter(|(name, _)| !name.starts_with(&own)).collect()
}

/// An idle process makes no system calls, whatever of tokio it has used, and one thread is all that was added.
#[test]
fn an_idle_process_does_nothing() {
    if !is_child("cost::an_idle_process_does_nothing", ":") {
        return;
    }
    let is_hidden = |(name, _): &(&String, &u64)| name.ends_with("paceline-tokio");
    block_on(async {
        spawn(Timer::after(Duration::from_millis(1))).await;
        unblock(|| ()).await;
    });
    // It gives itself its name when it runs.
    eventually("there is one hidden thread", || switches().iter().filter(is_hidden).count() == 1);
    block_on(spawn(all_of_tokio()));
    let mut before = switches();
    // Tokio's threads for what blocks stay for ten seconds.
    eventually("all threads come to rest", || {
        thread::sleep(Duration::from_millis(100));
        let now = switches();
        now == std::mem::replace(&mut before, now.clone())
    });
    thread::sleep(Duration::from_secs(2));
    let after = switches();
    let busy: Vec<_> = after.iter().filter(|(thread, count)| before.get(*thread) != Some(count)).collect();
    assert!(busy.is_empty(), "these ran while all was idle: {busy:?}");
    block_on(spawn(all_of_tokio()));
}
