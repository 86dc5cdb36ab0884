//! Detecting that the process was forked.
//!
//! A child of `fork` has a copy of all memory, one thread, and its parent's descriptors. No thread leads an
//! inherited reactor. Any lock may be held by a thread that does not exist in the child. The inherited epoll
//! instance *is* the parent's: the child would take events away from the parent and deregister its sources.
//! Therefore reactors and pools of blocking threads record their [`Origin`], and a child that comes to an
//! inherited one is [aborted](abort_child) with a message, where it would need a thread of the parent or
//! change what belongs to it:
//!
//! - it enters the runtime or calls its `block_on`, or comes back to a `block_on` from the future;
//! - it spawns, or schedules a task of another library;
//! - it registers a source, or waits for a source or a timer;
//! - it queues a closure that blocks;
//! - it starts a flight recorder.
//!
//! What a child drops leaves the parent alone. So does a `block_on` of a future that is ready at once, if no
//! runtime is named: it needs none.
//!
//! Only `fork` of the C library is detected, not a direct `clone`. A child that replaces its program (`exec`)
//! needs none of this.

// The atomics of std in all modes: no model forks.
use std::io::{Cursor, Write};
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
        Self::unwatched()
    }

    /// Returns this process. Forks are detected from the first call of [`here`](Self::here) on.
    #[inline]
    pub(crate) fn unwatched() -> Self {
        Self(FORKS.load(Relaxed))
    }

    /// Returns whether the origin is this process.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        self.0 == FORKS.load(Relaxed)
    }
}

/// Aborts a child that uses a runtime of its parent, with a message. Takes no lock, because a thread that does
/// not exist here may have it: neither that of standard error nor that of the allocator, so the message is
/// made on the stack.
#[cold]
pub(crate) fn abort_child() -> ! {
    let mut what = Cursor::new([0; 512]);
    // A message that is too long is cut.
    let _ = writeln!(
        what,
        "paceline: process {} was forked, and uses a runtime of the process that forked it: the threads, events and \
         tasks belong to the parent. A child should exit, replace itself (`exec`), or build a `Runtime` of its own; or \
         fork before there is a runtime",
        std::process::id()
    );
    say(&what.get_ref()[..what.position() as usize]);
    std::process::abort();
}

/// Writes these bytes to standard error, by one call and without a lock. Ignores errors.
#[cfg(unix)]
fn say(what: &[u8]) {
    // SAFETY: 2 is standard error; if it is closed, the write fails and nothing is written.
    let _ = rustix::io::write(unsafe { std::os::fd::BorrowedFd::borrow_raw(2) }, what);
}

#[cfg(not(unix))]
fn say(_: &[u8]) {}

/// Has each later `fork` counted in the child, where it also adjusts the thread, by `note_fork` of other
/// modules. Only the first call has an effect.
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
