//! [`waits`]: records where tasks wait. [`TaskWait`]: one such place.

use std::fmt;
use std::time::Duration;

use crate::observed;
use crate::rounded::Rounded;
use crate::stack::{Site, Stack, WaitKind};

/// Turns on or off the recording of the places at which tasks wait, for
/// [`Handle::dump`](crate::Handle::dump): for all runtimes of the process, and for the tasks that are
/// spawned while this is on.
///
/// A future that has to wait clones the waker of its task. While this is on, each clone in a poll stores the
/// addresses of the calls on the stack: some microseconds, and up to two kilobytes for each of up to eight
/// places. A spawn and an end of a task take a lock of the process. The lines are looked up when a dump is
/// [displayed](super::Dump), which holds up no task. Lines are known if the program is built with debug
/// information (`debug = "line-tables-only"` is enough); otherwise the dump has the names of functions,
/// unless they are stripped.
///
/// Combinators that poll their futures with wakers of their own, as `FuturesUnordered` and `join_all` of many
/// futures do, clone the waker of the task themselves: the dump then names the line at which the task awaits
/// all of them.
///
/// ```
/// paceline::trace::waits(true);
/// // Tasks that are spawned here are recorded.
/// paceline::trace::waits(false);
/// ```
pub fn waits(are_recorded: bool) {
    observed::set_waits(are_recorded);
}

/// A place at which a task waits: see [`TaskDump`](super::TaskDump).
///
/// Its [`Display`](fmt::Display) form is the innermost function of the program on the stack, as "at
/// src/main.rs:12:20 (main::serve)". Functions of packages from a registry, of the standard library and of
/// runtimes are left out, unless there is no other. With `{:#}` all functions on the stack are displayed,
/// each after a line break, the innermost first.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TaskWait(Stack);

impl TaskWait {
    pub(super) fn new(stack: Stack) -> Self {
        Self(stack)
    }

    /// Returns what is waited for, and where, as text; and whether that is in a function of the program.
    /// `timers` are those of the task.
    pub(super) fn line(&self, timers: &[Duration]) -> (bool, String) {
        let Some(Site { frame, is_of_program, callee, kind }) = self.0.site() else {
            return (false, NOT_KNOWN.into());
        };
        let within =
            |what: &str| callee.as_ref().map_or_else(|| what.into(), |callee| format!("{what}, in {callee}"));
        let what = match kind {
            Some(WaitKind::Timer) => timer(timers),
            Some(WaitKind::Socket) => within("a socket"),
            Some(WaitKind::Closure) => "a closure that blocks".into(),
            Some(WaitKind::Task) => "another task".into(),
            None => callee.unwrap_or_else(|| "a wake-up by other code".into()),
        };
        (is_of_program, format!("for {what}, {frame}"))
    }
}

const NOT_KNOWN: &str = "at a place that is not known, because the program has no symbols";

/// Returns the words for a timer of a task that has these.
pub(super) fn timer(timers: &[Duration]) -> String {
    match timers {
        [] => "a timer".into(),
        [Duration::ZERO] => "a timer that is due".into(),
        [due] => format!("a timer that is due in {}", Rounded(*due)),
        [first, ..] => format!("one of {} timers, the first due in {}", timers.len(), Rounded(*first)),
    }
}

impl fmt::Display for TaskWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return self.0.frames().try_for_each(|frame| write!(f, "\n    {frame:#}"));
        }
        f.write_str(&self.0.line().unwrap_or_else(|| NOT_KNOWN.into()))
    }
}

impl fmt::Debug for TaskWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TaskWait").field(&self.to_string()).finish()
    }
}
