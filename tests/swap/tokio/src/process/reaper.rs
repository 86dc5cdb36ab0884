//! The thread that minds `SIGCHLD`: it reaps the children that nobody waits for, and wakes those who wait without a pidfd. It belongs to no
//! runtime, so that children that outlive theirs are reaped too. There is one, from when it is first needed.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;

use crate::bell::Bell;

struct Reaper {
    /// Heard by the thread.
    bell: Bell,
    orphans: Mutex<Vec<Child>>,
    waiting: Mutex<Vec<Waker>>,
}

/// Sees to it that a child whose [`Child`](super::Child) was dropped does not stay a zombie when it ends.
pub(super) fn adopt(child: Child) {
    // Where no thread can be had, zombies are the least worry.
    if let Ok(reaper) = get() {
        lock(&reaper.orphans).push(child);
        // It may have ended since it was looked at.
        reaper.bell.ring();
    }
}

/// Wakes once, when a child has ended or stopped after this call.
pub(super) fn wake_at_sigchld(waker: &Waker) -> io::Result<()> {
    let mut waiting = lock(&get()?.waiting);
    if !waiting.iter().any(|other| other.will_wake(waker)) {
        waiting.push(waker.clone());
    }
    Ok(())
}

fn get() -> io::Result<&'static Reaper> {
    static REAPER: Mutex<Option<&'static Reaper>> = Mutex::new(None);

    let mut reaper = lock(&REAPER);
    if let Some(reaper) = *reaper {
        return Ok(reaper);
    }
    let (bell, rings) = Bell::new()?;
    // SAFETY: nothing else is done there.
    unsafe { bell.ring_at(libc::SIGCHLD, || {})? };
    let started: &Reaper =
        Box::leak(Box::new(Reaper { bell, orphans: Mutex::default(), waiting: Mutex::default() }));
    thread::Builder::new().name("tokio-reaper".into()).spawn(|| started.run(rings))?;
    Ok(reaper.insert(started))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reaper {
    fn run(&self, mut rings: UnixStream) {
        // The bell is never dropped: it goes on until the process ends.
        loop {
            match rings.read(&mut [0; 64]) {
                Ok(_) => {}
                // A signal whose handler somebody else has installed.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => panic!("the bell of child processes is broken: {error}"),
            }
            // A child that cannot be asked about is none of ours any more.
            lock(&self.orphans).retain_mut(|orphan| matches!(orphan.try_wait(), Ok(None)));
            let waiting = std::mem::take(&mut *lock(&self.waiting));
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}
