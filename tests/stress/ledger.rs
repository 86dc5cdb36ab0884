//! [`Ledger`]: what has begun and not ended yet. [`Watchdog`]: names what takes too long, and ends the process.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use crate::leftovers;
use crate::scene::{Dice, Scene};

/// No action takes longer, on a busy machine either: each waits for some milliseconds all in all.
const DEADLINE: Duration = Duration::from_secs(10);

#[derive(Default)]
pub struct Ledger {
    number: AtomicUsize,
    open: AtomicUsize,
    entries: Mutex<BTreeMap<usize, Entry>>,
    done: Mutex<BTreeMap<&'static str, Sum>>,
}

struct Entry {
    kind: &'static str,
    place: &'static str,
    dice: Dice,
    since: Instant,
}

#[derive(Default)]
struct Sum {
    done: u64,
    longest: Duration,
}

impl Ledger {
    pub fn begin(self: &Arc<Self>, kind: &'static str, place: &'static str, dice: &Dice) -> Ticket {
        let number = self.number.fetch_add(1, Relaxed);
        let entry = Entry { kind, place, dice: dice.clone(), since: Instant::now() };
        self.entries.lock().unwrap().insert(number, entry);
        self.open.fetch_add(1, Relaxed);
        Ticket { ledger: self.clone(), number, ended: false }
    }

    pub fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    pub fn done(&self, kind: &str) -> u64 {
        self.done.lock().unwrap().get(kind).map_or(0, |sum| sum.done)
    }

    /// What should have ended by now, and all else that is open; empty if all is well.
    fn overdue(&self) -> String {
        let entries = self.entries.lock().unwrap();
        if entries.values().all(|entry| entry.since.elapsed() < DEADLINE) {
            return String::new();
        }
        entries.values().map(|entry| format!("{entry}\n")).collect()
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, place, dice, since } = self;
        write!(f, "{kind} ({place}, {dice:?}), begun {:?} ago", since.elapsed())
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, Sum { done, longest }) in &*self.done.lock().unwrap() {
            writeln!(f, "{done:7} {kind}, the longest took {longest:?}")?;
        }
        Ok(())
    }
}

/// An action that is going on.
pub struct Ticket {
    ledger: Arc<Ledger>,
    number: usize,
    ended: bool,
}

impl Ticket {
    pub fn ends(mut self) {
        self.ended = true;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let entry = self.ledger.entries.lock().unwrap().remove(&self.number).expect("it ends once");
        if self.ended {
            let mut done = self.ledger.done.lock().unwrap();
            let sum = done.entry(entry.kind).or_default();
            sum.done += 1;
            sum.longest = sum.longest.max(entry.since.elapsed());
        } else {
            leftovers::failed(&format!("{entry}: ended in a panic, or was dropped"));
        }
        self.ledger.open.fetch_sub(1, Relaxed);
    }
}

/// Looks into the ledger again and again, on a thread of its own, which waits for nobody.
pub struct Watchdog {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Watchdog {
    pub fn start(ledger: Arc<Ledger>, scene: &Scene) -> Self {
        let (stop, scene) = (Arc::new(AtomicBool::new(false)), scene.clone());
        let stopped = stop.clone();
        let watch = move || {
            while !stopped.load(Relaxed) {
                thread::sleep(Duration::from_millis(50));
                let overdue = ledger.overdue();
                if !overdue.is_empty() {
                    bark(&overdue, &scene);
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
fn bark(overdue: &str, scene: &Scene) -> ! {
    // Not `eprintln`, which the test harness keeps to itself.
    let say = |text: &str| _ = io::stderr().write_all(text.as_bytes());
    say(&format!("\nnot done within {DEADLINE:?}, oldest first:\n{overdue}"));
    say(&format!("threads: {}\n", thread_names()));
    if env::var_os("PACELINE_STRESS_STAY").is_some() {
        say(&format!("process {} stays\n", process::id()));
        loop {
            thread::sleep(DEADLINE);
        }
    }
    say(&scene.metrics());
    process::exit(101);
}

fn thread_names() -> String {
    let mut names = BTreeMap::<String, usize>::new();
    for thread in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        *names.entry(name.trim().into()).or_default() += 1;
    }
    format!("{names:?}")
}
