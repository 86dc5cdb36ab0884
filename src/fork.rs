//! Noticing that the process was forked.
//!
//! A child of `fork` has a copy of all memory, one thread, and its parent's descriptors. So nobody leads a reactor that
//! it inherited, any lock of it may be held by a thread that is not there, and its epoll instance *is* the parent's: the
//! child would take events away from it, and deregister its sources. Therefore each thing that cannot be used in a child
//! knows where it is from, and is left alone elsewhere: not used, not locked, not freed.
//!
//! What a child finds is a default instance of its own, made on first use, and a clear word from everything else. Where it
//! goes on inside of a `block_on` that it inherited, that word is its last: to unwind would be to use what is the parent's.
//! Only `fork` itself is noticed, not a `clone` beside the C library; and whoever replaces the process by another program
//! (`exec`) needs none of this.

// Std's in all modes: no model forks.
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Forks between this process and the first one that asked.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process in which something was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin(u32);

impl Origin {
    /// This process.
    pub(crate) fn here() -> Self {
        watch();
        Self(FORKS.load(Relaxed))
    }

    /// This process, as far as a call that is in progress needs to know it: to tell whether it forks.
    #[inline]
    pub(crate) fn of_this_call() -> Self {
        Self(FORKS.load(Relaxed))
    }

    /// After a call of user code: aborts a child that comes out of it.
    #[inline]
    pub(crate) fn assert_here(self) {
        if !self.is_here() {
            abort_child();
        }
    }

    /// Whether that is this process.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        self.0 == FORKS.load(Relaxed)
    }
}

/// Ends a child in which code goes on that belongs to its parent. Takes no lock, not even that of the error stream.
#[cold]
pub(crate) fn abort_child() -> ! {
    let what = format!(
        "paceline: process {} was forked inside of a `block_on` or a task, and came to where that waits or makes way for \
         another one: threads, events and tasks are its parent's. A child should end in there, or replace itself (`exec`); \
         it may start a `block_on` of its own\n",
        std::process::id()
    );
    say(what.as_bytes());
    std::process::abort();
}

#[cfg(unix)]
fn say(what: &[u8]) {
    // SAFETY: 2 is the error stream; if it is closed, nothing is written.
    let _ = rustix::io::write(unsafe { std::os::fd::BorrowedFd::borrow_raw(2) }, what);
}

#[cfg(not(unix))]
fn say(_: &[u8]) {}

#[cfg(all(unix, not(miri)))]
fn watch() {
    use std::ffi::c_int;
    use std::sync::Once;

    type Handler = Option<extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
    }
    extern "C" fn forked() {
        FORKS.fetch_add(1, Relaxed);
        crate::frame::forked();
    }
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: the declaration is POSIX's, and the handler does nothing that is forbidden between `fork` and `exec`. It
        // fails if there is no memory for it; then a fork goes unnoticed.
        let _ = unsafe { pthread_atfork(None, None, Some(forked)) };
    });
}

/// There is no fork; nor is there under miri.
#[cfg(any(not(unix), miri))]
fn watch() {}
