//! The thread that handles `SIGCHLD`: it reaps children without a waiting task, and wakes tasks that wait
//! without a pidfd. The thread belongs to no runtime, so it also reaps children that outlive theirs. There is
//! one thread, from its first use on.

use std::io;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;

use crate::bell::{self, Bell};
use crate::quiet;

struct Reaper {
    /// The thread listens to it.
    bell: Bell,
    orphans: Mutex<Vec<Child>>,
    waiting: Mutex<Vec<Waker>>,
}

/// Makes sure that a child whose [`Child`](super::Child) was dropped does not stay a zombie when it ends.
pub(super) fn adopt(child: Child) {
    // Without a thread, zombies remain.
    if let Ok(reaper) = get() {
        lock(&reaper.orphans).push(child);
        // The child may have ended since the last check.
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
    // SAFETY: the closure does nothing.
    unsafe { bell.ring_at(libc::SIGCHLD, || {})? };
    let started: &Reaper =
        Box::leak(Box::new(Reaper { bell, orphans: Mutex::default(), waiting: Mutex::default() }));
    thread::Builder::new().name("tokio-reaper".into()).spawn(|| bell::listen(rings, || started.look()))?;
    Ok(reaper.insert(started))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reaper {
    /// Reaps the orphans that have ended, and wakes the tasks that wait for a child.
    fn look(&self) {
        // A child that cannot be waited for any more has been reaped elsewhere.
        lock(&self.orphans).retain_mut(|orphan| matches!(orphan.try_wait(), Ok(None)));
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        waiting.into_iter().for_each(quiet::wake);
    }
}
