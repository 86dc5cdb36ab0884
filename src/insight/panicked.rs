//! Panics of tasks: each is counted, and the program is told of it, by its hook or by a line on standard
//! error.
//!
//! A guard in the task's poll marks the task if a panic leaves the poll. `async-task` catches the panic, and
//! drops the task next. The drop finds the mark, or catches a panic of the future's destructor, and calls
//! [`Panics::note`], on the same thread, before code that awaits the task gets the panic. So the hook does
//! not run in the middle of an unwinding, and the task holds no lock any more. Code outside of this crate
//! with tasks that catch their panics reports them itself.
//!
//! From there the panic goes to the code that awaits the task, or nowhere if the task is detached. Only
//! `async-task` knows which, so the line names both.

use std::collections::BTreeSet;
use std::fmt;
use std::panic::Location;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use crate::notice;
use crate::place::SourceLine;
use crate::sync::{Counter, thread};

/// The lines that were told of, in the whole process. No hash set, because to make one in a simulation
/// changes the keys of the program's next one, and only the first run in a process would. Std's lock: no step
/// of a protocol is made under it.
static TOLD: LazyLock<Mutex<BTreeSet<Location<'static>>>> = LazyLock::new(Mutex::default);

/// A task that has panicked, in a poll or in its destructor: see
/// [`Builder::on_task_panic`](crate::Builder::on_task_panic).
///
/// Its [`Display`](fmt::Display) is a sentence: "the task spawned at src/main.rs:9:5 panicked on paceline-1".
/// The message of the panic is not in it: the panic hook of the standard library has printed that already.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskPanic {
    /// Where the task was spawned.
    pub spawned_at: &'static Location<'static>,
    /// The name of the thread that polled or dropped the task, if it has one.
    pub thread: Option<String>,
    /// The thread that polled or dropped the task.
    pub thread_id: thread::ThreadId,
}

impl fmt::Display for TaskPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thread = self.thread.as_deref().unwrap_or("a thread without a name");
        write!(f, "the task spawned at {} panicked on {thread}", SourceLine(self.spawned_at))
    }
}

/// Tells the program of a panic, and returns whether it could. Runs foreign code, and does not panic.
type Tell = Box<dyn Fn(&TaskPanic) -> bool + Send + Sync>;

/// The panics of an executor's tasks.
#[derive(Default)]
pub(crate) struct Panics {
    /// Number of tasks that have panicked.
    pub(crate) count: Counter,
    /// `None` if the program has no hook. Std's cell, because it is set before the first task.
    tell: OnceLock<Tell>,
}

impl Panics {
    /// Has `tell` called for each panic from now on. Only the first call has an effect.
    pub(crate) fn tell_by(&self, tell: impl Fn(&TaskPanic) -> bool + Send + Sync + 'static) {
        let _ = self.tell.set(Box::new(tell));
    }

    /// Counts a panic of a task and tells the program's hook of it. Without a hook, prints a line if
    /// that is wanted and this is the first panic of that spawn line in the process. The caller holds no lock
    /// and does not lead, because the hook is foreign code (LF3).
    #[cold]
    pub(crate) fn note(&self, spawned_at: &'static Location<'static>, may_print: bool) {
        self.count.add_shared(1);
        let is_told = self.tell.get().is_some_and(|tell| {
            let thread = thread::current();
            tell(&TaskPanic { spawned_at, thread: thread.name().map(Into::into), thread_id: thread.id() })
        });
        if is_told {
            return;
        }
        if may_print && TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(*spawned_at) {
            notice::print_captured(format_args!(
                "the task spawned at {} panicked. Code that awaits the task gets the panic; if the task is \
                 detached, nothing does. Later panics of tasks from this line are only counted \
                 (`Metrics::tasks_panicked`)",
                SourceLine(spawned_at)
            ));
        }
    }
}

impl fmt::Debug for Panics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Panics").field("count", &self.count).finish_non_exhaustive()
    }
}
