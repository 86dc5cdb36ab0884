//! Counts system calls with `strace`, if it is installed.

use std::fs;
use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};

use super::child::Child;
use super::procfs::eventually;

/// An strace process that follows all threads of a process and writes its result when it is stopped.
pub(crate) struct Tracer {
    child: Child,
    output: std::path::PathBuf,
    traced: u32,
}

/// The level of detail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The number of calls by name.
    Counts,
    /// Every call, with its time.
    Calls,
}

impl Tracer {
    /// `Err` has the reason for the tables.
    pub(crate) fn attach(process: u32, detail: Detail) -> io::Result<Tracer> {
        let output = std::env::temp_dir().join(format!("paceline-bench-{}-{process}", std::process::id()));
        let mut command = Command::new("strace");
        command.args(if detail == Detail::Counts { ["-f", "-c"] } else { ["-f", "-ttt"] });
        command.arg("-o").arg(&output).arg("-p").arg(process.to_string());
        let child = Child::spawn(command.stdin(Stdio::null()).stderr(Stdio::null()));
        let child = child.map_err(|error| io::Error::other(format!("needs strace: {error}")))?;
        let tracer = Tracer { child, output, traced: process };
        if eventually(Duration::from_secs(3), || tracer.holds_all_threads()) {
            // Every thread stops once when strace attaches; wait until the threads sleep again.
            std::thread::sleep(Duration::from_millis(50));
            Ok(tracer)
        } else {
            Err(io::Error::other("strace could not attach (not permitted here?)"))
        }
    }

    fn holds_all_threads(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.traced)).into_iter().flatten().flatten();
        threads.map(|thread| fs::read_to_string(thread.path().join("status")).unwrap_or_default()).all(
            |status| {
                status
                    .lines()
                    .any(|line| line.strip_prefix("TracerPid:").is_some_and(|pid| pid.trim() != "0"))
            },
        )
    }

    /// Detaches and returns the output of strace.
    pub(crate) fn finish(mut self) -> io::Result<String> {
        let pid = Pid::from_child(&self.child.0);
        kill_process(pid, Signal::INT)?;
        eventually(Duration::from_secs(3), || self.child.ended().is_some());
        let text = fs::read_to_string(&self.output);
        fs::remove_file(&self.output)?;
        text
    }
}

/// Returns the calls by name, most frequent first, from the summary of `strace -c`.
pub(crate) fn counts(summary: &str) -> Vec<(String, u64)> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, calls) = (words.last()?, words.get(3)?.parse().ok()?);
        (*name != "total").then(|| ((*name).to_owned(), calls))
    };
    let mut counts: Vec<_> = summary.lines().filter_map(row).collect();
    counts.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
    counts
}

/// Returns how many calls of a [`Detail::Calls`] trace come after a moment.
pub(crate) fn calls_after(trace: &str, moment: SystemTime) -> usize {
    let moment = moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    // Each line has the form "TID SECONDS call(...) = result".
    let time = |line: &str| line.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
    let of_detaching = |line: &str| line.contains("<detached ...>");
    trace.lines().filter(|line| time(line).is_some_and(|time| time > moment) && !of_detaching(line)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read_by_name() {
        let summary = "% time     seconds  usecs/call     calls    errors syscall\n\
            ------ ----------- ----------- --------- --------- ----------------\n \
            60.00    0.000600           1       300           write\n \
            40.00    0.000400           1       500        10 epoll_wait\n\
            ------ ----------- ----------- --------- --------- ----------------\n\
            100.00    0.001000           1       800        10 total\n";
        let expected = vec![("epoll_wait".to_owned(), 500), ("write".to_owned(), 300)];
        assert_eq!(counts(summary), expected);
    }

    #[test]
    fn only_calls_after_the_moment_count() {
        let trace =
            "11 100.5 read(1, ...) = 1\n11 101.5 write(1, ...) = 1\n12 102.0 futex(...) <detached ...>\n";
        assert_eq!(calls_after(trace, UNIX_EPOCH + Duration::from_secs(101)), 1);
    }
}
