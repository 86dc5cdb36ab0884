//! Prints once a second the server's work, and the roles of its threads.
//!
//! A thread outside of the runtime looks at the roles a hundred times a second. (A task of the runtime would
//! always find one thread that processes: its own.) A row shows how many threads were in each role, on
//! average.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use paceline::{Handle, Role};

use crate::ECHOES;

const LOOK: Duration = Duration::from_millis(10);
const ROW: Duration = Duration::from_secs(1);
const ROLES: [Role; 6] =
    [Role::Leads, Role::Follows, Role::Processes, Role::Blocks, Role::Computes, Role::Starves];

pub struct Watch {
    thread: JoinHandle<()>,
    is_over: Arc<AtomicBool>,
}

pub fn start(server: Handle) -> Watch {
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = is_over.clone();
    let thread = thread::spawn(move || {
        println!(
            " second  connections  echoes/s   leads follows processes blocks computes starves   woken  threads"
        );
        let mut second = 1;
        while row(&server, second, &ends) {
            second += 1;
        }
    });
    Watch { thread, is_over }
}

impl Watch {
    pub fn end(self) {
        self.is_over.store(true, Relaxed);
        // The thread has no result.
        let _ = self.thread.join();
    }
}

/// Prints a row at the end of its second. Returns false if the server ends before that.
fn row(server: &Handle, second: u32, is_over: &AtomicBool) -> bool {
    let (began, before, echoes) = (Instant::now(), server.metrics(), ECHOES.load(Relaxed));
    let (mut found, mut looks) = ([0; ROLES.len()], 0);
    while began.elapsed() < ROW {
        thread::sleep(LOOK);
        if is_over.load(Relaxed) {
            return false;
        }
        looks += 1;
        for thread in server.threads() {
            if let Some(at) = ROLES.iter().position(|role| *role == thread.role) {
                found[at] += 1;
            }
        }
    }
    let (now, lasted) = (server.metrics(), began.elapsed().as_secs_f64());
    let echoes = (ECHOES.load(Relaxed) - echoes) as f64 / lasted;
    // Each connection is a task, and one task accepts them.
    let connections = now.tasks.unwrap_or(0).saturating_sub(1);
    let [leads, follows, processes, blocks, computes, starves] =
        found.map(|times| f64::from(times) / f64::from(looks.max(1)));
    let woken = now.followers_woken - before.followers_woken;
    println!(
        "{second:7} {connections:12} {echoes:9.0} {leads:7.2} {follows:7.2} {processes:9.2} {blocks:6.2} {computes:8.2} \
         {starves:7.2} {woken:7} {:8}",
        now.workers
    );
    true
}
