//! Waits that neither fail because the machine is busy, nor go on when all threads of the process are stuck.
//!
//! The clock of a wait stops while its thread has no core. A hang is a state and not a time: if all
//! threads sleep for seconds and none is switched to, the wait ends with the word "deadlock", by which
//! `.ci/tests` knows it. A thread without a core is runnable, so load does not make that state.

use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(all(target_os = "linux", not(miri)))]
use rustix::{
    io::Errno,
    process::{WaitId, WaitIdOptions, waitid},
};

#[cfg(all(target_os = "linux", not(miri)))]
use crate::idle_threads;
use crate::setups::{SOON, number_of_thread, stacks};

/// The end of a wait in a process whose threads still do something.
const LONG: Duration = Duration::from_secs(if cfg!(miri) { 600 } else { 120 });

/// The time between two looks of a wait.
const SLICE: Duration = Duration::from_millis(10);

/// How long all threads must sleep to count as stuck.
const STUCK: Duration = Duration::from_secs(3);

/// The threads in a wait. They wake for each slice, but that is no sign of life.
static WAITERS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// The calling thread's entry in [`WAITERS`], while this exists.
struct Waiter(u32);

impl Waiter {
    fn new() -> Self {
        let this = number_of_thread();
        WAITERS.lock().unwrap_or_else(PoisonError::into_inner).push(this);
        Self(this)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiters = WAITERS.lock().unwrap_or_else(PoisonError::into_inner);
        // A `holds` may wait, too, so the thread may have several entries.
        let at = waiters.iter().rposition(|waiter| *waiter == self.0);
        waiters.swap_remove(at.expect("it was entered"));
    }
}

/// Waits until `wait` returns something, and returns that. `wait` waits no longer than the duration that it
/// gets.
#[track_caller]
pub fn wait_for<T>(what: &str, mut wait: impl FnMut(Duration) -> Option<T>) -> T {
    let _waiter = Waiter::new();
    let (mut given, mut looked) = (Duration::ZERO, Duration::ZERO);
    while given < LONG {
        let (begun, waited) = (Instant::now(), time_without_a_core());
        if let Some(found) = wait(SLICE) {
            return found;
        }
        // Without a free descriptor the system cannot be asked.
        given += begun.elapsed().saturating_sub(time_without_a_core().saturating_sub(waited));
        if given - looked >= SOON {
            looked = given;
            if all_sleep_for(STUCK) {
                // The wait may have been over when the look began.
                let found = wait(Duration::ZERO);
                return found.unwrap_or_else(|| {
                    panic!("deadlock: {what}: not yet, and all threads sleep\n{}", stacks(std::process::id()))
                });
            }
        }
    }
    panic!("{what}: not within {LONG:?}\n{}", stacks(std::process::id()));
}

/// Receivers whose messages come soon.
pub trait RecvSoon<T> {
    /// Waits for a message as [`wait_for`] does. Returns an error if all senders are gone.
    fn recv_soon(&self) -> Result<T, mpsc::RecvError>;
}

impl<T> RecvSoon<T> for mpsc::Receiver<T> {
    #[track_caller]
    fn recv_soon(&self) -> Result<T, mpsc::RecvError> {
        wait_for("a message", |slice| match self.recv_timeout(slice) {
            Ok(message) => Some(Ok(message)),
            Err(mpsc::RecvTimeoutError::Timeout) => None,
            Err(mpsc::RecvTimeoutError::Disconnected) => Some(Err(mpsc::RecvError)),
        })
    }
}

/// Returns how long the calling thread has been runnable without a core, if the system reports it.
fn time_without_a_core() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split_whitespace().nth(1).and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

/// Returns whether all other threads sleep for that long, and none is switched to. The deputy may tick.
fn all_sleep_for(duration: Duration) -> bool {
    let Some(before) = sleepers() else { return false };
    let begun = Instant::now();
    while begun.elapsed() < duration {
        thread::sleep(duration / 10);
        if sleepers().as_ref() != Some(&before) {
            return false;
        }
    }
    true
}

/// Returns the path and the switches of each thread that is no waiter and no deputy. Returns `None` if one of
/// them does not sleep, or if a child may still do something.
#[cfg(all(target_os = "linux", not(miri)))]
fn sleepers() -> Option<Vec<(String, u64)>> {
    let looks_at_children = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if !matches!(waitid(WaitId::All, looks_at_children), Err(Errno::CHILD)) {
        return None;
    }
    let waiters = WAITERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let is_waiter = |path: &str| waiters.iter().any(|id| path.ends_with(&format!("/{id}")));
    let path_of = |thread: &str| thread.split_whitespace().next().unwrap_or_default().to_owned();
    let watched = idle_threads::statuses().into_iter();
    watched
        .filter(|(thread, _)| !thread.ends_with("paceline-deputy") && !is_waiter(&path_of(thread)))
        .map(|(thread, status)| {
            let sleeps = status.lines().any(|line| line.starts_with("State:\tS"));
            sleeps.then(|| (thread, idle_threads::switches_in(&status)))
        })
        .collect()
}

/// Returns `None`, because other systems do not tell what a thread does.
#[cfg(not(all(target_os = "linux", not(miri))))]
fn sleepers() -> Option<Vec<(String, u64)>> {
    None
}
