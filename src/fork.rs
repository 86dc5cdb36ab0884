//! Detecting that the process was forked.
//!
//! A child of `fork` has a copy of all memory, one thread, and its parent's descriptors. No thread leads an
//! inherited reactor. Any lock may be held by a thread that does not exist in the child. The inherited epoll
//! instance *is* the parent's: the child would take events away from the parent and deregister its sources.
//! Therefore each object that cannot be used in a child records its [`Origin`], and in any other process it
//! is not used, not locked and not freed.
//!
//! A child gets a default instance of its own, made on first use, and a clear error or panic from inherited
//! objects. If the child continues inside of an inherited `block_on`, it is aborted with a message: unwinding
//! would use objects of the parent. Only `fork` of the C library is detected, not a direct `clone`. A child
//! that replaces its program (`exec`) needs none of this.

// The atomics of std in all modes: no model forks.
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The number of forks between the process that first called [`Origin::here`] and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process in which an object was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin(u32);

impl Origin {
    /// Returns this process, and from the first call on detects forks (not if memory runs out in that call).
    pub(crate) fn here() -> Self {
        register_handler();
        Self(FORKS.load(Relaxed))
    }

    /// Returns this process, for a call in progress that has to detect only a fork during the call.
    #[inline]
    pub(crate) fn of_this_call() -> Self {
        Self(FORKS.load(Relaxed))
    }

    /// Aborts a child that returns from a call of user code which its parent made.
    #[inline]
    pub(crate) fn assert_here(self) {
        if !self.is_here() {
            abort_child();
        }
    }

    /// Returns whether the origin is this process.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        self.0 == FORKS.load(Relaxed)
    }
}

/// Returns whether this process was forked from one that had used this crate.
#[inline]
pub(crate) fn is_child() -> bool {
    FORKS.load(Relaxed) > 0
}

/// Returns whether no other thread of this process can wake the calling one, because there is none.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn is_only_thread() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

/// Returns false: this system does not tell.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn is_only_thread() -> bool {
    false
}

/// Returns the message about an inherited object that a child cannot use. `what` is the begin of the
/// sentence: the object, or what it was doing.
pub(crate) fn inherited(what: &str) -> String {
    format!(
        "{what} of the process that forked this one (pid {}), whose threads do not exist here: make a new one in the \
         child, or fork before",
        std::process::id()
    )
}

/// Aborts a child that runs code of its parent, with a message. Takes no lock, not even that of standard
/// error.
#[cold]
pub(crate) fn abort_child() -> ! {
    let what = format!(
        "paceline: process {} was forked inside of a `block_on` or a task, and has come to a point where that has to wait \
         or yield: the threads, events and tasks belong to the parent. A child should exit before that, or replace itself \
         (`exec`); it may start a `block_on` of its own\n",
        std::process::id()
    );
    say(what.as_bytes());
    std::process::abort();
}

/// Writes these bytes to standard error, at once and without a lock. Ignores errors.
#[cfg(unix)]
fn say(what: &[u8]) {
    // SAFETY: 2 is standard error; if it is closed, the write fails and nothing is written.
    let _ = rustix::io::write(unsafe { std::os::fd::BorrowedFd::borrow_raw(2) }, what);
}

#[cfg(not(unix))]
fn say(_: &[u8]) {}

/// Has each later `fork` counted in the child, where it also adjusts the thread, by `note_fork` of other
/// modules.
/// Only the first call has an effect.
#[cfg(all(unix, not(miri)))]
fn register_handler() {
    use std::ffi::c_int;
    use std::sync::Once;

    type Handler = Option<extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
    }
    /// Runs in each child, on its only thread.
    extern "C" fn forked() {
        FORKS.fetch_add(1, Relaxed);
        crate::frame::note_fork();
        crate::flight::note_fork();
    }
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the declaration is that of POSIX, and the handler does only what is allowed between `fork`
        // and `exec`. The call fails if memory runs out; then a fork is not detected.
        let _ = unsafe { pthread_atfork(None, None, Some(forked)) };
    });
}

/// Does nothing: there is no fork, or miri does not support it.
#[cfg(any(not(unix), miri))]
fn register_handler() {}
