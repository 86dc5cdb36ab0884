//! The primitives of the crate: those of std.

pub(crate) use event_listener::Event;

pub(crate) use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{
            AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicU64 as MetricU64, AtomicUsize,
            Ordering,
        },
    },
    thread::{self, Thread},
    thread_local,
    time::Instant,
};

/// A static of the process; under shuttle a static of each run.
macro_rules! process_static {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr;) => {
        $(#[$meta])*
        static $name: $type = $value;
    };
}
pub(crate) use process_static;

/// Issues the store-load barrier of a Dekker handshake: what this thread wrote before it is visible to every
/// thread that passes its own `full_fence` later, or this thread sees what that thread wrote.
#[inline]
pub(crate) fn full_fence() {
    std::sync::atomic::fence(Ordering::SeqCst);
}

/// Issues the barrier of a reader that reads plain values and then the word that says whether they belong
/// together: what the writers of the values did before is visible to the loads that follow.
#[inline]
pub(crate) fn acquire_fence() {
    std::sync::atomic::fence(Ordering::Acquire);
}

/// Returns the milliseconds since some moment in the past, by the cheapest monotonic clock of the system,
/// which may be a few milliseconds behind.
#[inline]
pub(crate) fn coarse_millis() -> u64 {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    {
        /// `struct timespec`, on systems where both of its fields are `long`.
        #[repr(C)]
        struct CoarseTime {
            seconds: i64,
            nanos: i64,
        }
        const CLOCK_MONOTONIC_COARSE: std::ffi::c_int = 6;
        // The function of the C library, as std's clock uses it: rustix finds the kernel's page by itself,
        // and fails at that under valgrind.
        unsafe extern "C" {
            fn clock_gettime(clock: std::ffi::c_int, time: *mut CoarseTime) -> std::ffi::c_int;
        }
        let mut now = CoarseTime { seconds: 0, nanos: 0 };
        // SAFETY: the call writes to `now`, which has the layout that the C library has for it on these
        // systems; or it fails, and leaves `now` unchanged.
        unsafe { clock_gettime(CLOCK_MONOTONIC_COARSE, &raw mut now) };
        (now.seconds as u64).wrapping_mul(1_000).wrapping_add(now.nanos as u64 / 1_000_000)
    }
    #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
    {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        u64::try_from(START.get_or_init(Instant::now).elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Parks the current thread until it is unparked (perhaps spuriously) or until `deadline`. Returns false,
/// without parking, if `deadline` has passed already; true after every park, however it ended.
pub(crate) fn park_until(deadline: Option<Instant>) -> bool {
    let Some(deadline) = deadline else {
        thread::park();
        return true;
    };
    let left = deadline.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        thread::park_timeout(left);
    }
    !left.is_zero()
}

/// A cell whose exclusive access some protocol grants, checked in the models.
#[derive(Debug)]
pub(crate) struct ProtocolCell<T>(std::cell::UnsafeCell<T>);

impl<T> ProtocolCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Calls `f` with the value.
    ///
    /// # Safety
    ///
    /// The caller's protocol grants it exclusive access until `f` returns.
    #[inline]
    pub(crate) unsafe fn with_mut<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: exclusive, as the caller promises.
        f(unsafe { &mut *self.0.get() })
    }
}
