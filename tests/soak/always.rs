//! [`Always`]: activities that run all the time, beside the actions.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use paceline::{Async, Runtime, Timer, spawn};

use crate::ledger::{Ledger, Pulse};
use crate::say;
use crate::scene::{Dice, Home, Stage};
use crate::watchdog::threads;

/// System threads that run until they are told to stop.
pub struct Always {
    stop: Arc<AtomicBool>,
    hearts: Vec<JoinHandle<Pings>>,
    others: Vec<JoinHandle<()>>,
}

/// A ping that takes longer is late, and is reported at once with the state of the runtime.
const LATE: Duration = Duration::from_secs(1);

/// The number of pings, and the longest one.
#[derive(Default)]
pub struct Pings {
    count: u64,
    late: u64,
    longest: Duration,
    longest_of: &'static str,
}

impl fmt::Display for Pings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, late, longest, longest_of } = self;
        write!(f, "{count} pings, {late} of them late, the longest took {longest:.0?} ({longest_of})")
    }
}

impl Always {
    pub fn start(stage: &Stage, ledger: &Arc<Ledger>, dice: &mut Dice) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut always = Self { stop: stop.clone(), hearts: Vec::new(), others: Vec::new() };
        for home in &*stage.0 {
            let pulse = ledger.pulse(format!("pings of {}", home.name));
            always.hearts.push(heartbeat(home, pulse, stop.clone()));
            let pulse = ledger.pulse(format!("guests of {}", home.name));
            always.others.push(guests(home.runtime.clone(), pulse, stop.clone(), dice.fork()));
        }
        always.others.push(interruptions(stop, dice.fork()));
        always
    }

    pub fn stop(self) -> Pings {
        self.stop.store(true, Relaxed);
        self.others.into_iter().for_each(|thread| thread.join().expect("guests end"));
        let pings = self.hearts.into_iter().map(|heart| heart.join().expect("the heart never stopped"));
        pings.fold(Pings::default(), |all, one| {
            let (count, late) = (all.count + one.count, all.late + one.late);
            let slowest = if one.longest > all.longest { one } else { all };
            Pings { count, late, ..slowest }
        })
    }
}

/// Sends pings end to end until it is told to stop.
fn heartbeat(home: &Home, pulse: Pulse, stop: Arc<AtomicBool>) -> JoinHandle<Pings> {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    ours.set_read_timeout(Some(LATE)).unwrap();
    let echo = async move {
        let mut stream = Async::new(theirs).unwrap();
        let mut byte = [0];
        while let Ok(1) = stream.read(&mut byte).await {
            stream.write_all(&byte).await.unwrap();
        }
    };
    home.runtime.spawn(echo).detach();
    let (runtime, name) = (home.runtime.clone(), home.name);
    thread::spawn(move || {
        let mut pings = Pings::default();
        while !stop.load(Relaxed) {
            let start = Instant::now();
            ours.write_all(b"x").unwrap();
            let mut answer = ours.read_exact(&mut [0]);
            if answer.is_err() {
                pings.late += 1;
                say(&format!(
                    "{name} is late with a ping:\n{runtime:?}\n{}\n{}",
                    runtime.metrics(),
                    threads()
                ));
            }
            while answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
                answer = ours.read_exact(&mut [0]);
            }
            answer.expect("a ping comes back");
            let took = start.elapsed();
            pings.count += 1;
            if took > pings.longest {
                (pings.longest, pings.longest_of) = (took, name);
            }
            pulse.beat();
            thread::sleep(Duration::from_millis(2));
        }
        pings
    })
}

/// Guests enter and leave all the time, and wait for the workers.
fn guests(runtime: Arc<Runtime>, pulse: Pulse, stop: Arc<AtomicBool>, mut dice: Dice) -> JoinHandle<()> {
    thread::spawn(move || {
        while !stop.load(Relaxed) {
            let micros = dice.roll(4_000);
            runtime.block_on(async {
                let task = spawn(async move { Timer::after(Duration::from_micros(micros)).await });
                future::zip(task, Timer::after(Duration::from_micros(micros / 2))).await;
            });
            pulse.beat();
        }
    })
}

/// Stops and continues the process, all threads at once, which interrupts each wait in the kernel.
fn interruptions(stop: Arc<AtomicBool>, mut dice: Dice) -> JoinHandle<()> {
    thread::spawn(move || {
        while !stop.load(Relaxed) {
            let script = format!("kill -STOP $PPID; sleep 0.0{}; kill -CONT $PPID", dice.roll(10));
            let status = Command::new("sh").args(["-c", &script]).status().expect("a shell can be started");
            assert!(status.success());
            let until = Instant::now() + Duration::from_secs(2) + dice.micros(4_000_000);
            while !stop.load(Relaxed) && Instant::now() < until {
                thread::sleep(Duration::from_millis(20));
            }
        }
    })
}
