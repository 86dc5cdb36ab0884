//! Counts how threads get in each other's way, in a build with `--cfg paceline_contention`. In other builds
//! this is not compiled.
//!
//! - [`contention`] says how often a compare-and-swap failed, and how long threads waited for locks.
//! - [`writes`] says which cache lines are written, by which source line and which thread.
//!
//! Both see the atomics, locks and cells of this crate. Not counted: the queues of `concurrent-queue`, the
//! lists of `event-listener`, the tasks of `async-task`, the reference counts of std's `Arc`, and waiting in
//! the kernel.

mod cells;
mod writes;

#[cfg(test)]
use std::sync::TryLockResult;
use std::sync::atomic::{self, Ordering};
use std::sync::{LockResult, MutexGuard, TryLockError};
use std::time::Instant;

pub(crate) use cells::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, ProtocolCell};
pub use writes::{WriteCount, WriteKind, count_writes, writes};

static FAILED_SWAPS: atomic::AtomicU64 = atomic::AtomicU64::new(0);
static CONTENDED_LOCKS: atomic::AtomicU64 = atomic::AtomicU64::new(0);
static LOCK_WAIT_NANOS: atomic::AtomicU64 = atomic::AtomicU64::new(0);

/// The contention of all threads of the process since it started. Only in a build with
/// `--cfg paceline_contention`.
///
/// ```
/// let before = paceline::contention();
/// paceline::block_on(async {});
/// assert!(paceline::contention().lock_wait_nanos >= before.lock_wait_nanos);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contention {
    /// Compare-and-swaps that found another value than they expected. Some of them only check a value, and
    /// are not retried.
    pub failed_swaps: u64,
    /// Locks that another thread held.
    pub contended_locks: u64,
    /// Time spent waiting for these locks.
    pub lock_wait_nanos: u64,
}

/// Reads the counts, one after the other.
pub fn contention() -> Contention {
    Contention {
        failed_swaps: FAILED_SWAPS.load(Ordering::Relaxed),
        contended_locks: CONTENDED_LOCKS.load(Ordering::Relaxed),
        lock_wait_nanos: LOCK_WAIT_NANOS.load(Ordering::Relaxed),
    }
}

/// A mutex of `std`: it tries first, and measures the wait if that fails.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    #[cfg(test)]
    pub(crate) fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        self.0.try_lock()
    }

    /// Locks. If another thread holds the lock, counts that, and the time until this thread has it.
    #[track_caller]
    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        writes::count(WriteKind::Lock, self);
        match self.0.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Err(poisoned),
            Err(TryLockError::WouldBlock) => {}
        }
        let start = Instant::now();
        let guard = self.0.lock();
        CONTENDED_LOCKS.fetch_add(1, Ordering::Relaxed);
        LOCK_WAIT_NANOS.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        guard
    }
}

fn count_failed() {
    FAILED_SWAPS.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The counts belong to the process, and other tests run beside this one: the counts grow by at least
    /// this much.
    #[test]
    fn a_swap_that_fails_is_counted() {
        let before = contention();
        let word = AtomicU32::new(1);
        let swap = |now| word.compare_exchange(now, 2, Ordering::Relaxed, Ordering::Relaxed);
        assert_eq!([swap(7), swap(7), swap(1)], [Err(1), Err(1), Ok(1)]);
        assert!(contention().failed_swaps >= before.failed_swaps + 2);
    }

    #[test]
    fn a_lock_that_another_thread_holds_is_counted_with_the_wait() {
        const HELD: Duration = Duration::from_millis(30);
        let before = contention();
        let lock = Mutex::new(());
        std::thread::scope(|scope| {
            let held = lock.lock();
            let waiting = scope.spawn(|| drop(lock.lock()));
            std::thread::sleep(HELD);
            drop(held);
            waiting.join().unwrap();
        });
        let after = contention();
        assert!(after.contended_locks > before.contended_locks);
        // The thread may have arrived a little late.
        assert!(after.lock_wait_nanos >= before.lock_wait_nanos + HELD.as_nanos() as u64 / 2);
    }

    #[test]
    fn a_poisoned_lock_says_so() {
        let lock = Mutex::new(1);
        let poison = || {
            let _guard = lock.lock();
            panic!("on purpose");
        };
        assert!(std::thread::scope(|scope| scope.spawn(poison).join()).is_err());
        assert_eq!(*lock.lock().unwrap_err().into_inner(), 1);
    }
}
