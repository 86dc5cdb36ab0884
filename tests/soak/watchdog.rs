//! [`Watchdog`]: names what makes no progress, and ends the process.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use crate::ledger::Ledger;
use crate::scene::Stage;

/// Nothing takes longer, on a busy machine either: each action waits for some tens of milliseconds all in all.
const LIMIT: Duration = Duration::from_secs(20);

/// How often it looks.
const NAP: Duration = Duration::from_millis(50);

/// Looks into the ledger again and again, on a thread of its own, which waits for nobody.
pub struct Watchdog {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Watchdog {
    pub fn start(ledger: Arc<Ledger>, stage: Stage) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let watch = move || {
            while !stopped.load(Relaxed) {
                let start = Instant::now();
                thread::sleep(NAP);
                // A process that has no core, or was stopped, is not stuck: what this thread had to wait for does not count.
                ledger.advance(start.elapsed().min(2 * NAP));
                let stuck = ledger.stuck(LIMIT);
                if !stuck.is_empty() {
                    bark(&stuck, &stage);
                }
            }
        };
        Self { stop, thread: thread::Builder::new().name("watchdog".into()).spawn(watch).unwrap() }
    }

    pub fn stop(self) {
        self.stop.store(true, Relaxed);
        self.thread.join().unwrap();
    }
}

/// Says what hangs and ends the process: nobody could end what hangs.
fn bark(stuck: &str, stage: &Stage) -> ! {
    // Not `eprintln`, which the test harness keeps to itself.
    let say = |text: &str| _ = io::stderr().write_all(text.as_bytes());
    say(&format!("\nno progress for {LIMIT:?}; all that is open, oldest first:\n{stuck}"));
    say(&format!("{}\n", threads()));
    if env::var_os("PACELINE_SOAK_STAY").is_some() {
        say(&format!("process {} stays\n", process::id()));
        loop {
            thread::sleep(LIMIT);
        }
    }
    // What it asks may hang, too.
    thread::spawn(|| {
        thread::sleep(LIMIT);
        process::abort();
    });
    say(&stage.report());
    process::abort();
}

/// How many threads there are of each name and state.
pub fn threads() -> String {
    let mut names = BTreeMap::<String, usize>::new();
    for thread in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let what = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(") "));
        let what = what.map_or(String::new(), |(name, rest)| format!("{name} {}", &rest[..1]));
        *names.entry(what).or_default() += 1;
    }
    format!("threads: {names:?}")
}
