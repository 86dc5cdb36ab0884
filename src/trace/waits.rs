//! [`waits`]: records where tasks wait. [`TaskWait`]: one such place.

use std::backtrace::Backtrace;
use std::fmt;
use std::sync::Arc;

use crate::observed;

/// Turns on or off the recording of the places at which tasks wait, for
/// [`Handle::dump`](crate::Handle::dump): for all runtimes of the process, and for the tasks that are
/// spawned while this is on.
///
/// A future that has to wait clones the waker of its task. While this is on, each clone in a poll takes a
/// backtrace: some microseconds, and some kilobytes for each of up to eight places. A spawn and an end of a
/// task take a lock of the process. The lines are looked up when a dump is displayed: for the first time,
/// this loads the debug information, and tasks that clone their wakers wait meanwhile. Lines are known if the
/// program is built with debug information (`debug = "line-tables-only"` is enough); otherwise the dump has
/// the names of functions, unless they are stripped.
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
/// Its [`Display`](fmt::Display) form has a line for each function of the program on the stack, the innermost
/// first: `  at src/main.rs:12:20 (main::serve::{{closure}})`. The functions of this crate and of the
/// standard library are left out, and those of packages from a registry if their files are known, and those
/// without a line beside others with one; unless there is no other. With `{:#}` all are displayed.
#[derive(Clone)]
pub struct TaskWait(Arc<Backtrace>);

/// A function on the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StackFrame<'a> {
    name: &'a str,
    /// The file, line and column, if they are known.
    place: Option<&'a str>,
}

impl TaskWait {
    pub(super) fn new(backtrace: Arc<Backtrace>) -> Self {
        Self(backtrace)
    }
}

/// Reads the text of a backtrace: a line with a number and a name for each function, and perhaps one with its
/// place.
fn parse(text: &str) -> Vec<StackFrame<'_>> {
    let mut frames = Vec::<StackFrame<'_>>::new();
    for line in text.lines().map(str::trim) {
        if let Some(place) = line.strip_prefix("at ") {
            if let Some(last) = frames.last_mut() {
                last.place = Some(place.strip_prefix("./").unwrap_or(place));
            }
        } else if let Some((number, name)) = line.split_once(": ") {
            // A program without symbols has no names.
            if number.parse::<usize>().is_ok() && name != "<unknown>" {
                frames.push(StackFrame { name, place: None });
            }
        }
    }
    frames
}

/// Returns the functions between the poll of the task and the clone of its waker.
fn between<'a, 'b>(frames: &'b [StackFrame<'a>]) -> &'b [StackFrame<'a>] {
    let clones = |frame: &StackFrame<'_>| {
        frame.name.contains("paceline::observed::") || frame.name.contains("::task::wake::Waker")
    };
    let begin = frames.iter().position(|frame| frame.name.contains("paceline::observed::shim")).unwrap_or(0);
    let begin = begin + frames[begin..].iter().take_while(|frame| clones(frame)).count();
    let polls = |frame: &StackFrame<'_>| {
        frame.name.contains("paceline::observed::observation") || frame.name.contains("async_task::raw::")
    };
    let end = frames[begin..].iter().position(polls).map_or(frames.len(), |end| begin + end);
    &frames[begin..end]
}

/// Returns the folder with the source of this crate, as the backtrace has it.
fn own_folder<'a>(frames: &[StackFrame<'a>]) -> Option<&'a str> {
    let of_shim = |frame: &StackFrame<'a>| Some(frame.place?.split_once("observed/shim.rs")?.0);
    frames.iter().find_map(of_shim)
}

impl StackFrame<'_> {
    /// Returns whether the function belongs to the program. `own` is the folder of this crate: names of
    /// closures and of inlined functions may have no path.
    fn is_of_program(&self, own: Option<&str>) -> bool {
        const LIBRARIES: [&str; 4] = ["core::", "std::", "alloc::", "paceline::"];
        const FOLDERS: [&str; 4] = ["/rustc/", "/registry/src/", "/git/checkouts/", "/toolchains/"];
        let name = self.name.trim_start_matches(['<', '&']).trim_start_matches("mut ");
        let place = self.place.map(|place| place.replace('\\', "/")).unwrap_or_default();
        !LIBRARIES.iter().any(|library| name.starts_with(library))
            && !FOLDERS.iter().any(|folder| place.contains(folder))
            && !own.is_some_and(|own| place.starts_with(own))
    }
}

impl fmt::Display for TaskWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        let frames = parse(&text);
        let (inner, own) = (between(&frames), own_folder(&frames));
        if inner.is_empty() {
            return f.write_str("  at a place that is not known, because the program has no symbols");
        }
        let of_program: Vec<_> = inner.iter().filter(|frame| frame.is_of_program(own)).collect();
        // Packages from a registry are often built without debug information, and the program with it.
        let with_place: Vec<_> = of_program.iter().copied().filter(|frame| frame.place.is_some()).collect();
        let displayed = if f.alternate() || of_program.is_empty() {
            inner.iter().collect()
        } else if with_place.is_empty() {
            of_program
        } else {
            with_place
        };
        let mut is_first = true;
        for StackFrame { name, place } in displayed {
            if !std::mem::take(&mut is_first) {
                f.write_str("\n")?;
            }
            match place {
                // Without complete debug information some names are short, and say nothing.
                Some(place) if !name.contains("::") => write!(f, "  at {place}")?,
                Some(place) => write!(f, "  at {place} ({name})")?,
                None => write!(f, "  in {name}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for TaskWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TaskWait").field(&self.to_string()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACK: &str = "
   0: std::backtrace_rs::backtrace::libunwind::trace
             at /rustc/59807616e/library/std/src/../../backtrace/src/backtrace/libunwind.rs:117:9
   1: paceline::observed::shim::clone
             at ./src/observed/shim.rs:104:15
   2: <core::task::wake::Waker as core::clone::Clone>::clone
             at /rustc/59807616e/library/core/src/task/wake.rs:627:18
   3: async_lock::mutex::Mutex<T>::acquire
             at /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/async-lock-3.4.1/src/mutex.rs:9:3
   4: bank::transfer::{{closure}}
             at ./src/bank.rs:12:20
   5: poll_inner
             at ./own/net.rs:1:1
   6: bank::main::{{closure}}
   7: <paceline::observed::observation::Watched<F> as core::future::future::Future>::poll
             at ./src/observed/observation_on.rs:84:9
   8: bank::main";

    #[test]
    fn a_stack_is_cut_to_the_functions_of_the_program() {
        let frames = parse(STACK);
        assert_eq!(frames.len(), 9);
        let inner = between(&frames);
        assert_eq!(own_folder(&frames), Some("src/"));
        let of_program: Vec<_> = inner.iter().filter(|frame| frame.is_of_program(Some("own/"))).collect();
        let place = Some("src/bank.rs:12:20");
        let transfer = StackFrame { name: "bank::transfer::{{closure}}", place };
        let main = StackFrame { name: "bank::main::{{closure}}", place: None };
        assert_eq!((inner.len(), of_program), (4, vec![&transfer, &main]));
    }

    #[test]
    fn a_stack_without_names_is_empty() {
        let frames = parse("0: <unknown>\n1: <unknown>\n  at ./nptl/pthread_create.c:442:8");
        assert!(between(&frames).is_empty());
    }

    #[test]
    fn a_stack_without_the_known_names_is_whole() {
        let frames = parse("0: a::b\n1: c::d\n   at x.rs:1:1\nnoise");
        assert_eq!(between(&frames), &frames[..]);
        assert_eq!(frames[1], StackFrame { name: "c::d", place: Some("x.rs:1:1") });
    }
}
