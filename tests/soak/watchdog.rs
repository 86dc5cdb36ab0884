//! [`Watchdog`]: names everything without progress, and ends the process.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{env, fs, mem, process, thread};

use crate::ledger::Ledger;
use crate::scene::Stage;

/// No action takes longer, even on a busy machine: each one waits for some tens of milliseconds in total.
const LIMIT: Duration = Duration::from_secs(20);

const NAME: &str = "watchdog";

/// The time between two looks.
const NAP: Duration = Duration::from_millis(200);

/// Checks the ledger again and again, on a thread of its own that never waits for other threads.
pub struct Watchdog {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Watchdog {
    pub fn start(ledger: Arc<Ledger>, stage: Stage) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let watch = move || {
            let mut clock = Clock::start();
            while !stopped.load(Relaxed) {
                thread::sleep(NAP);
                ledger.advance(clock.elapsed());
                let stuck = ledger.stuck(LIMIT);
                if !stuck.is_empty() {
                    bark(&stuck, &stage);
                }
            }
        };
        Self { stop, thread: thread::Builder::new().name(NAME.into()).spawn(watch).unwrap() }
    }

    pub fn stop(self) {
        self.stop.store(true, Relaxed);
        self.thread.join().unwrap();
    }
}

/// A clock that does not count the time for which the process is runnable without a core.
struct Clock {
    looked: Instant,
    processor_time: Duration,
}

impl Clock {
    fn start() -> Self {
        Self { looked: Instant::now(), processor_time: processor_time() }
    }

    /// Returns the time since the last look, which was a nap ago, or more if the watchdog itself had no core
    /// or was stopped.
    fn elapsed(&mut self) -> Duration {
        let before = mem::replace(self, Self::start());
        let elapsed = (self.looked - before.looked).min(2 * NAP);
        let used = self.processor_time.saturating_sub(before.processor_time);
        // If all threads sleep, none waits for a core. Otherwise the process counts as if it had one core,
        // which other programs use at times.
        if used < elapsed && wants_a_core() { used } else { elapsed }
    }
}

/// Returns the processor time of all threads. The system counts it in hundredths of a second.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ');
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

/// Returns whether any thread but this one is runnable.
fn wants_a_core() -> bool {
    let runs = |(name, state): (String, char)| state != 'S' && name != NAME;
    each_thread().any(runs)
}

/// Returns name and state of each thread.
fn each_thread() -> impl Iterator<Item = (String, char)> {
    fs::read_dir("/proc/self/task").into_iter().flatten().flatten().filter_map(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(") ")?;
        Some((name.into(), rest.chars().next()?))
    })
}

/// Reports hanging actions and ends the process, because nothing could end those actions.
fn bark(stuck: &str, stage: &Stage) -> ! {
    // Not `eprintln`, which the test harness captures.
    let say = |text: &str| _ = io::stderr().write_all(text.as_bytes());
    say(&format!("\nno progress for {LIMIT:?}; all that is open, oldest first:\n{stuck}"));
    say(&format!("{}\n", threads()));
    if env::var_os("PACELINE_SOAK_STAY").is_some() {
        say(&format!("process {} stays\n", process::id()));
        loop {
            thread::sleep(LIMIT);
        }
    }
    // This call may hang, too.
    thread::spawn(|| {
        thread::sleep(LIMIT);
        process::abort();
    });
    say(&stage.report());
    process::abort();
}

/// Returns how many threads of each name and state exist.
pub fn threads() -> String {
    let mut names = BTreeMap::<String, usize>::new();
    for (name, state) in each_thread() {
        *names.entry(format!("{name} {state}")).or_default() += 1;
    }
    format!("threads: {names:?}")
}
