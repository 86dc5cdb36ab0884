//! [`Stack`]: the calls on a thread's stack, as addresses; and the lines of source for which they stand.
//!
//! A stack is taken where a thread must not lose time, or must not notice: see [`Stack::here`] and
//! `blocked.rs`. Both only store addresses. To find functions and lines, the debug information of the program
//! is loaded, which takes a tenth of a second; the thread that displays a stack does that. The package
//! `backtrace` keeps a lock meanwhile, which no thread takes that stores addresses. (`std::backtrace` has one
//! lock for both: with it, each task that cloned a waker waited while a dump was displayed.)

mod blocked;
mod symbols;

use std::fmt;
use std::sync::Arc;

pub(crate) use symbols::{Frame, Site, WaitKind};

/// The most calls of a stack that are stored.
const MOST_CALLS: usize = 256;

/// The calls on a stack, the innermost first: the addresses to which they return.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Stack(Arc<[usize]>);

impl Stack {
    /// Returns the calls of this thread, as far as their frames are below the address `outer`: some
    /// microseconds.
    pub(crate) fn here(outer: usize) -> Self {
        let (mut calls, mut number) = ([0; MOST_CALLS], 0);
        let mut store = |frame: &backtrace::Frame| {
            if number == MOST_CALLS || frame.sp().addr() > outer {
                return false;
            }
            calls[number] = frame.ip().addr();
            number += 1;
            true
        };
        // SAFETY: the lock of the package is for debuggers of Windows.
        #[cfg(unix)]
        unsafe {
            backtrace::trace_unsynchronized(&mut store);
        }
        #[cfg(not(unix))]
        backtrace::trace(&mut store);
        Self(calls[..number].into())
    }

    /// Returns the calls of a thread that sleeps in a system call, without those of other modules than this
    /// one; `None` if the system does not tell, or if the thread is not where it was: `is_there` tells, after
    /// the stack was read.
    pub(crate) fn of_blocked(thread: Option<u32>, is_there: impl FnOnce() -> bool) -> Option<Self> {
        let calls = blocked::calls(thread?)?;
        is_there().then(|| Self(calls.into()))
    }

    /// Returns the functions on the stack, the innermost first.
    pub(crate) fn frames(&self) -> impl Iterator<Item = Frame> {
        self.0.iter().flat_map(|call| symbols::resolve(*call))
    }

    /// Returns where the program is on this stack.
    pub(crate) fn site(&self) -> Option<Site> {
        Site::of(self.frames())
    }

    /// Returns the line of the program on this stack, as text: "at src/main.rs:9:5 (main::serve)".
    pub(crate) fn line(&self) -> Option<String> {
        self.site().map(|site| site.frame.to_string())
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stack").field(&self.0.len()).finish()
    }
}
