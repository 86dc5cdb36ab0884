//! Everything at once, for a minute or for hours: five runtimes that stay and many that start and end. Random
//! actions of all kinds run on all of them.
//!
//! `cargo test --release --test soak -- --ignored --nocapture`, for `PACELINE_SOAK_SECS` seconds (20 by
//! default). The seed is printed; `PACELINE_SOAK_SEED` sets it, and so determines which actions begin, where
//! and in which order. `PACELINE_SOAK_ONLY=kind` runs only one kind. `PACELINE_SOAK_STAY=1` leaves a process
//! that hangs to a debugger.
//!
//! - *Nothing hangs.* A watchdog on a thread of its own ends the process with a report if an action is not
//!   done, or a repeated activity has made no progress, for 20 seconds (sources are registered and no
//!   thread leads; async-io hung like that after hours). Seconds in which the process has no core do not
//!   count.
//! - *Nothing is lost, nothing comes twice.* Each request is answered once, in order, with its own answer.
//!   Each panic reaches the awaiting task. Each destructor runs once. Sums are right.
//! - *Nothing is left.* Once a minute no new action begins, and the process waits until all actions are done:
//!   then there are no more threads, descriptors, tasks, sources, timers and memory than at the first such
//!   pause.
//!
//! | file | what it does |
//! |---|---|
//! | `scene` | shared parts: dice, the runtimes, `block_on`s of all libraries, waits |
//! | `ledger`, `watchdog` | actions in progress, repeated activities; the thread that watches them |
//! | `leftovers` | threads, descriptors, memory; the panic hook |
//! | `always` | permanent activities: pings, guests, a process that is stopped now and then |
//! | `server`, `echo` | numbered requests over TCP and Unix sockets, and their answers; broken connections |
//! | `gentle` | well-behaved tasks |
//! | `tasks` | tasks cancelled at any point; locks; moved timers; handles that outlive their runtime |
//! | `jobs` | blocking threads: closures, jobs past their deadlines, pipes |
//! | `strands` | operations from everywhere |
//! | `blocking` | tasks that block: for one another, in nested `block_on`s, in another runtime's |
//! | `executors` | executors run on two threads, in all possible ways |
//! | `endings` | runtimes that end while other threads wait for their sources and tasks |
//! | `panics` | tasks, root futures and wakers that panic |
#![cfg(target_os = "linux")]
#![allow(unreachable_pub)]

mod always;
mod blocking;
mod echo;
mod endings;
mod executors;
mod gentle;
mod jobs;
mod ledger;
mod leftovers;
mod panics;
mod scene;
mod server;
mod strands;
mod tasks;
mod watchdog;

use std::collections::BTreeMap;
use std::env;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use paceline::{Timer, block_on, spawn};

use always::Always;
use ledger::Ledger;
use leftovers::{AFTERWARDS, Census, IN_USE};
use scene::{Boxed, Dice, Scene, Stage, foreign};
use watchdog::Watchdog;

/// Maximum of actions in progress.
const BUSY: usize = 64;

/// The time between two pauses.
const ROUND: Duration = Duration::from_secs(60);

/// How long threads may take to end after all other activity has ended: surplus threads stay for about a
/// second, one after the other.
const PATIENCE: Duration = Duration::from_secs(60);

/// One kind of action.
struct Kind {
    name: &'static str,
    begin: fn(Scene, Dice) -> Boxed<()>,
}

macro_rules! kinds {
    ($($module:ident::$name:ident),* $(,)?) => {
        [$(Kind { name: stringify!($name), begin: |scene, dice| Box::pin($module::$name(scene, dice)) }),*]
    };
}

/// The mix: all kinds, each with the same frequency.
static KINDS: [Kind; 29] = kinds![
    echo::client,
    echo::crowd,
    echo::churn,
    gentle::fan_out,
    gentle::pass_around,
    gentle::timers,
    gentle::cancel,
    gentle::block,
    blocking::tasks_wait_for_tasks,
    blocking::foreign_block_ons,
    blocking::nested_block_ons,
    blocking::across_runtimes,
    tasks::cancelled_anywhere,
    tasks::locks,
    tasks::moved_timers,
    tasks::handles_outlive,
    jobs::closures,
    jobs::deadlines,
    jobs::pipes,
    strands::sums,
    strands::hurt,
    executors::on_two_threads,
    executors::local,
    endings::second_runtime,
    endings::outlived,
    panics::panicking_tasks,
    panics::panicking_roots,
    panics::panicking_wakers,
    panics::panicking_executors,
];

/// Where an action runs.
const PLACES: [&str; 8] = ["task", "task", "task", "root", "stranger", "alone", "default task", "other root"];

fn begin(place: usize, scene: &Scene, which: u64, action: impl Future<Output = ()> + Send + 'static) {
    let (runtime, other) = (scene.runtime.clone(), scene.other.clone());
    match place {
        0..3 => runtime.spawn(action).detach(),
        3 => _ = thread::spawn(move || runtime.block_on(action)),
        4 => _ = thread::spawn(move || foreign(which, action)),
        5 => _ = thread::spawn(move || block_on(action)),
        6 => spawn(action).detach(),
        _ => _ = thread::spawn(move || other.block_on(action)),
    }
}

fn number_from(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

#[test]
#[ignore = "takes as long as it is told to: cargo test --release --test soak -- --ignored"]
fn everything_at_once() {
    leftovers::be_quiet_about_what_is_on_purpose();
    let secs = number_from("PACELINE_SOAK_SECS").unwrap_or(20);
    let seed = number_from("PACELINE_SOAK_SEED").unwrap_or_else(|| u64::from(std::process::id()) << 20 | 1);
    say(&format!("PACELINE_SOAK_SEED={seed}, for {secs} seconds"));
    // The default instance stays, with its workers.
    block_on(spawn(Timer::after(Duration::from_millis(1))));
    thread::sleep(Duration::from_millis(100));
    let before = Census::take();
    let ledger = Arc::new(Ledger::default());
    let stage = Stage::build();
    let mut soak = Soak {
        start: Instant::now(),
        dice: Dice::new(seed),
        watchdog: Watchdog::start(ledger.clone(), stage.clone()),
        threads: before.threads + 1 + stage.threads(),
        ledger,
        stage,
        counted: BTreeMap::new(),
    };
    let length = Duration::from_secs(secs);
    soak.round((length / 6).min(ROUND));
    let warm = soak.pause(None);
    loop {
        let left = length.saturating_sub(soak.start.elapsed());
        if left < Duration::from_secs(1) {
            break;
        }
        soak.round(left.min(ROUND));
        soak.pause(Some(&warm));
    }
    soak.end(&before);
}

struct Soak {
    start: Instant,
    dice: Dice,
    watchdog: Watchdog,
    ledger: Arc<Ledger>,
    stage: Stage,
    /// The threads that stay.
    threads: usize,
    /// How often each kind had been completed at the last pause.
    counted: BTreeMap<&'static str, u64>,
}

impl Soak {
    /// Begins random actions for this time, and waits until all of them have ended.
    fn round(&mut self, length: Duration) {
        let Self { dice, ledger, stage, .. } = self;
        let mix = mix();
        let always = Always::start(stage, ledger, dice);
        let driver = ledger.pulse("the driver");
        let (start, done) = (Instant::now(), ledger.done_in_all());
        let mut most = Census::take();
        let mut next_census = start;
        while start.elapsed() < length {
            driver.beat();
            let now = Instant::now();
            if now >= next_census {
                leftovers::assert_nothing_failed();
                most = most.most(Census::take());
                next_census = now + Duration::from_millis(250);
            }
            if ledger.open() >= BUSY {
                thread::sleep(Duration::from_micros(200));
                continue;
            }
            let kind = mix[dice.roll(mix.len() as u64) as usize];
            let (place, which) = (dice.roll(PLACES.len() as u64) as usize, dice.roll(3));
            let mut dice = dice.fork();
            let ticket = ledger.begin(kind.name, PLACES[place], &dice);
            let scene = stage.scene(&mut dice);
            let action = (kind.begin)(scene.clone(), dice);
            begin(place, &scene, which, async move {
                action.await;
                ticket.ends();
            });
        }
        // The watchdog ensures that this ends.
        while ledger.open() > 0 {
            driver.beat();
            thread::sleep(Duration::from_millis(1));
        }
        let took = start.elapsed();
        let rounds = ledger.done_in_all() - done;
        let pings = always.stop();
        let each = ledger.rounds(&mut self.counted);
        let per_second = rounds as f64 / took.as_secs_f64();
        say(&format!(
            "{:5.0} s: {rounds} rounds, {per_second:.0}/s ({each}); {pings}; at most {most}",
            self.start.elapsed().as_secs_f64()
        ));
    }

    /// Waits until only the permanent resources are left, and no more than at the first pause.
    fn pause(&mut self, warm: Option<&Census>) -> Census {
        let start = self.ledger.clock();
        let mut before = Census::take();
        loop {
            thread::sleep(Duration::from_millis(100));
            let now = Census::take();
            let busy = self.stage.is_busy();
            let is_back = warm.map_or(now.threads <= self.threads, |warm| now.is_back_at(warm, &IN_USE));
            if is_back && busy.is_none() && now.descriptors == before.descriptors {
                break before = now;
            }
            before = now;
            let waited = self.ledger.clock() - start;
            let warm = warm.map_or(String::new(), |warm| format!("; after the warm-up: {warm}"));
            assert!(
                waited < PATIENCE,
                "not gone after {PATIENCE:?}: {now}{warm}; {busy:?}\n{}",
                self.stage.report()
            );
        }
        leftovers::assert_nothing_failed();
        let (answered, got) = (self.stage.answered(), echo::GOT.load(Relaxed));
        let unheard = echo::UNHEARD.load(Relaxed);
        assert!(
            (got..=got + unheard).contains(&answered),
            "{answered} requests were answered; {got} answers arrived, and {unheard} had no waiting client"
        );
        let sum = |what: fn(&paceline::Metrics) -> u64| self.stage.metrics().map(|it| what(&it)).sum::<u64>();
        let stalls = sum(|it| it.stalls);
        let (replacements, starved) = (sum(|it| it.replacements), sum(|it| it.starved));
        let rescues = sum(|it| it.deputy_rescues);
        say(&format!(
            "         left: {before}; {got} answers; {stalls} stalls, {starved} starved, {rescues} rescues, {replacements} replacements"
        ));
        before
    }

    fn end(self, before: &Census) {
        let Self { watchdog, ledger, stage, .. } = self;
        watchdog.stop();
        say(&ledger.to_string());
        assert!(mix().iter().all(|kind| ledger.done(kind.name) > 0), "some kinds never ran");
        for home in &*stage.0 {
            home.runtime.shutdown(PATIENCE).expect("nothing blocks for ever");
        }
        drop(stage);
        let start = Instant::now();
        loop {
            let now = Census::take();
            if now.is_back_at(before, &AFTERWARDS) {
                return say(&format!("without the runtimes: {now}; before: {before}"));
            }
            assert!(start.elapsed() < PATIENCE, "not gone after {PATIENCE:?}: {now}; before: {before}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Returns all kinds, or the requested one.
fn mix() -> Vec<&'static Kind> {
    let only = env::var("PACELINE_SOAK_ONLY").ok();
    KINDS.iter().filter(|kind| only.as_ref().is_none_or(|only| kind.name == only)).collect()
}

/// Prints directly, because the test harness captures the output until the end, and a run may take an hour.
fn say(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}
