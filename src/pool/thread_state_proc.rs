//! What a thread does, as Linux tells.

use std::fs;

use crate::sync::thread_local;

thread_local! {
    static HERE: ThreadState = ThreadState(rustix::thread::gettid().as_raw_nonzero().get());
}

/// A thread, and a way to look what it does.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadState(i32);

impl ThreadState {
    /// Of the current thread.
    pub(super) fn here() -> Self {
        HERE.with(|here| *here)
    }

    /// Whether it runs, or waits for nothing but a processor. False where that is not to be had.
    pub(super) fn is_running(self) -> bool {
        let stat = fs::read(format!("/proc/self/task/{}/stat", self.0)).unwrap_or_default();
        // The name before it is the program's own, and may have anything in it.
        let name_ends = stat.iter().rposition(|byte| *byte == b')');
        name_ends.and_then(|at| stat.get(at + 2)) == Some(&b'R')
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_that_blocks_does_not_run() {
        assert!(ThreadState::here().is_running());
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let blocks = thread::Builder::new().name("R) R ".into()).spawn(move || {
            tell.send(ThreadState::here()).unwrap();
            let _ = ended.recv();
        });
        let state = told.recv().unwrap();
        while state.is_running() {
            thread::yield_now();
        }
        drop(end);
        blocks.unwrap().join().unwrap();
    }
}
